"""The volume filters, one pod before a few nodes: who takes it, and why the others do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from pumice.core.api.core import Node, Pod
from pumice.core.ids import PodUid
from pumice.core.model.storage import Stored
from pumice.core.session import Session
from tests.builders import a_cluster, a_conf, a_group, a_node, a_plugin, a_pod, a_session
from tests.volumes import (
    HOST,
    SELECTED,
    a_capacity,
    a_claim,
    a_class,
    a_csi_node,
    a_driver,
    a_mounting_pod,
    a_volume,
    mounting,
    store,
)

CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
NOTHING = "node(s) didn't find available persistent volumes to bind"
TOO_LITTLE = "node(s) did not have enough free storage"
LOST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
ZONE = "node(s) had no available volume zone"
TOO_MANY = "node(s) exceed max volume count"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already"
    " in-use by another pod"
)

TOPOLOGY = "topology.kubernetes.io"
BETA = "failure-domain.beta.kubernetes.io"


def zoned(name: str, zone: str) -> Node:
    return a_node(name, labels={f"{TOPOLOGY}/zone": zone})


#: two nodes in one zone, one in another, one in none
NODES = [zoned("n1", "a"), zoned("n2", "a"), zoned("n3", "b"), a_node("n4")]
LOCAL = a_class("local")
MADE = a_class("made", by="csi")


@dataclass(frozen=True)
class Case:
    stored: Sequence[Stored]
    #: the nodes that take pod `p`
    taken: str = ""
    #: why the others do not, and how many
    reasons: Mapping[str, int] = field(default_factory=dict)
    #: why no node is asked at all
    refused: str | None = None
    pod: Pod = field(default_factory=lambda: a_mounting_pod("p", "a", job="g"))
    others: Sequence[Pod] = ()
    arguments: Mapping[str, object] = field(default_factory=dict)


def off(*switches: str) -> dict[str, object]:
    return {f"predicate.{switch}Enable": False for switch in switches}


def two(first: str = "a", second: str = "b") -> Pod:
    return a_mounting_pod("p", first, second, job="g")


def in_zone(zone: str, *claims: str) -> Pod:
    """Return a pod that mounts claims and wants to be in a zone."""
    pod = a_mounting_pod("p", *claims, job="g")
    pod.spec.node_selector = {f"{TOPOLOGY}/zone": zone}
    return pod


def term(key: str, *values: str, operator: str = "In") -> dict[str, object]:
    expression = {"key": key, "operator": operator, "values": list(values)}
    return {"matchExpressions": [expression]}


BOUND = {
    "a bound volume is where one node reaches it": Case(
        [a_claim("a", volume="v"), a_volume("v", on="n2")], "n2", {CONFLICT: 3}
    ),
    "one that every node reaches": Case([a_claim("a", volume="v"), a_volume("v")], "n1 n2 n3 n4"),
    "one that a zone reaches": Case(
        [a_claim("a", volume="v"), a_volume("v", terms=[term(f"{TOPOLOGY}/zone", "a")])],
        "n1 n2",
        {CONFLICT: 2},
    ),
    "several terms are alternatives": Case(
        [
            a_claim("a", volume="v"),
            a_volume(
                "v", terms=[term(HOST, "n3"), term(f"{TOPOLOGY}/zone", operator="DoesNotExist")]
            ),
        ],
        "n3 n4",
        {CONFLICT: 2},
    ),
    "expressions of a term hold together": Case(
        [
            a_claim("a", volume="v"),
            a_volume(
                "v",
                terms=[
                    {
                        "matchExpressions": [
                            {"key": HOST, "operator": "In", "values": ["n1", "n3"]},
                            {"key": f"{TOPOLOGY}/zone", "operator": "In", "values": ["b"]},
                        ]
                    }
                ],
            ),
        ],
        "n3",
        {CONFLICT: 3},
    ),
    "a term without expressions means no node": Case(
        [a_claim("a", volume="v"), a_volume("v", terms=[{}])], "", {CONFLICT: 4}
    ),
    "two volumes in different places": Case(
        [
            a_claim("a", volume="v"),
            a_claim("b", volume="w"),
            a_volume("v", on="n1"),
            a_volume("w", on="n2"),
        ],
        "",
        {CONFLICT: 4},
        pod=two(),
    ),
    "a volume that does not exist is missed by name": Case(
        [a_claim("a", volume="v")], refused='persistentvolume "v" not found'
    ),
    "or counted, where zones are not looked at": Case(
        [a_claim("a", volume="v")], "", {LOST: 4}, arguments=off("VolumeZone")
    ),
    "a node that is refused for itself is refused for no volume": Case(
        [a_claim("a", volume="v"), a_volume("v", on="n3")],
        "n3",
        {"node(s) didn't match Pod's node affinity/selector": 3},
        pod=in_zone("b", "a"),
    ),
    "a claim that does not exist": Case([], refused='persistentvolumeclaim "a" not found'),
    "a claim that somebody else is to bind": Case(
        [a_claim("a", of="other")], refused="pod has unbound immediate PersistentVolumeClaims"
    ),
    "switched off": Case([], "n1 n2 n3 n4", arguments=off("VolumeBinding", "VolumeZone")),
}

UNBOUND = {
    "a volume that is there, and where it is": Case(
        [LOCAL, a_claim("a"), a_volume("v", on="n2")], "n2", {NOTHING: 3}
    ),
    "one that every node reaches": Case([LOCAL, a_claim("a"), a_volume("v")], "n1 n2 n3 n4"),
    "of another class": Case([LOCAL, a_claim("a"), a_volume("v", of="other")], "", {NOTHING: 4}),
    "too small": Case([LOCAL, a_claim("a", storage="2Gi"), a_volume("v")], "", {NOTHING: 4}),
    "larger": Case([LOCAL, a_claim("a"), a_volume("v", storage="9Gi")], "n1 n2 n3 n4"),
    "without some access mode": Case(
        [LOCAL, a_claim("a", modes=["ReadWriteOnce", "ReadOnlyMany"]), a_volume("v")],
        "",
        {NOTHING: 4},
    ),
    "with more of them": Case(
        [LOCAL, a_claim("a"), a_volume("v", modes=["ReadWriteOnce", "ReadOnlyMany"])],
        "n1 n2 n3 n4",
    ),
    "raw where a file system is wanted": Case(
        [LOCAL, a_claim("a"), a_volume("v", volumeMode="Block")], "", {NOTHING: 4}
    ),
    "raw as wanted": Case(
        [LOCAL, a_claim("a", volumeMode="Block"), a_volume("v", volumeMode="Block")],
        "n1 n2 n3 n4",
    ),
    "with other attributes": Case(
        [LOCAL, a_claim("a", volumeAttributesClassName="gold"), a_volume("v")], "", {NOTHING: 4}
    ),
    "chosen by its labels": Case(
        [
            LOCAL,
            a_claim("a", selector={"disk": "ssd"}),
            a_volume("v", on="n1"),
            a_volume("w", on="n2", labels={"disk": "ssd"}),
        ],
        "n2",
        {NOTHING: 3},
    ),
    "not available": Case([LOCAL, a_claim("a"), a_volume("v", phase="Released")], "", {NOTHING: 4}),
    "kept for somebody else": Case(
        [LOCAL, a_claim("a"), a_volume("v", claim="b")], "", {NOTHING: 4}
    ),
    "kept for this claim: it takes no other": Case(
        [LOCAL, a_claim("a"), a_volume("v", on="n1", claim="a"), a_volume("w", on="n2")],
        "n1",
        {NOTHING: 3},
    ),
    "kept for this claim, and too small": Case(
        [
            LOCAL,
            a_claim("a", storage="2Gi"),
            a_volume("v", on="n1", claim="a"),
            a_volume("w", on="n2", storage="2Gi"),
        ],
        "n2",
        {NOTHING: 3},
    ),
    "two claims of a pod take two volumes": Case(
        [
            LOCAL,
            a_claim("a"),
            a_claim("b"),
            a_volume("v1", on="n1"),
            a_volume("v2", on="n2"),
            a_volume("w2", on="n2"),
        ],
        "n2",
        {NOTHING: 3},
        pod=two(),
    ),
    "the smallest claim takes the smallest volume": Case(
        [
            LOCAL,
            a_claim("a", storage="5Gi"),
            a_claim("b", storage="1Gi"),
            a_volume("v", on="n1", storage="5Gi"),
            a_volume("w", on="n1", storage="1Gi"),
        ],
        "n1",
        {NOTHING: 3},
        pod=two(),
    ),
    "one claim is bound, the other is not: both count": Case(
        [
            LOCAL,
            a_claim("a", volume="v"),
            a_claim("b"),
            a_volume("v", terms=[term(HOST, "n1", "n2")], phase="Bound", claim="a"),
            a_volume("w", terms=[term(HOST, "n2", "n3")]),
        ],
        "n2",
        {CONFLICT: 2, NOTHING: 2},
        pod=two(),
    ),
    "a pod on its way has its volume already": Case(
        [LOCAL, a_claim("a"), a_claim("b"), a_volume("v1", on="n1"), a_volume("v2", on="n2")],
        "n2",
        {NOTHING: 3},
        others=[a_pod("o", node="n1", phase="Pending", spec=mounting("b"))],
    ),
    "several pods mount a claim, and one of them is on its way": Case(
        [
            LOCAL,
            a_claim("a"),
            a_volume("v", terms=[term(HOST, "n1", "n2")]),
            a_volume("w", on="n3"),
        ],
        "n1 n2",
        {NOTHING: 2},
        others=[a_pod("o", node="n1", phase="Pending", spec=mounting("a"))],
    ),
    "and kube-scheduler keeps a volume for it": Case(
        [
            LOCAL,
            a_claim("a"),
            a_volume("v", terms=[term(HOST, "n1", "n2")], claim="a"),
            a_volume("w", on="n3"),
        ],
        "n1 n2",
        {NOTHING: 2},
        others=[a_pod("o", node="n1", phase="Pending", spec=mounting("a"))],
    ),
    "or has one made": Case(
        [MADE, a_claim("a", of="made", annotations={SELECTED: "n1"})],
        "n1",
        {NOTHING: 3},
        others=[a_pod("o", node="n1", phase="Pending", spec=mounting("a"))],
    ),
    "a volume is made where the class allows it": Case(
        [
            a_class("made", by="csi", topologies=[{f"{TOPOLOGY}/zone": ["a"]}]),
            a_claim("a", of="made"),
        ],
        "n1 n2",
        {NOTHING: 2},
    ),
    "topologies are alternatives": Case(
        [
            a_class("made", by="csi", topologies=[{}, {HOST: ["n4"]}, {f"{TOPOLOGY}/zone": ["b"]}]),
            a_claim("a", of="made"),
        ],
        "n3 n4",
        {NOTHING: 2},
    ),
    "anywhere, where it says nothing": Case([MADE, a_claim("a", of="made")], "n1 n2 n3 n4"),
    "or is there already": Case(
        [
            a_class("made", by="csi", topologies=[{HOST: ["n1"]}]),
            a_claim("a", of="made"),
            a_volume("v", of="made", on="n4"),
        ],
        "n1 n4",
        {NOTHING: 2},
    ),
    "a volume is being made for some node": Case(
        [MADE, a_claim("a", of="made", annotations={SELECTED: "n3"})], "n3", {NOTHING: 3}
    ),
    "the driver tells what is left": Case(
        [
            MADE,
            a_driver("csi"),
            a_claim("a", of="made", storage="5Gi"),
            a_capacity("c1", "made", "5Gi", **{HOST: "n1"}),
            a_capacity("c2", "made", "4Gi", **{HOST: "n2"}),
            a_capacity("c3", "other", "9Gi", **{HOST: "n3"}),
            a_capacity("c4", "made", "9Gi", most="4Gi", **{HOST: "n4"}),
        ],
        "n1",
        {TOO_LITTLE: 3},
    ),
    "it does so for zones": Case(
        [
            MADE,
            a_driver("csi"),
            a_claim("a", of="made"),
            a_capacity("c", "made", "5Gi", **{f"{TOPOLOGY}/zone": "a"}),
        ],
        "n1 n2",
        {TOO_LITTLE: 2},
    ),
    "a driver that does not tell": Case(
        [MADE, a_driver("csi", tells_capacity=False), a_claim("a", of="made")], "n1 n2 n3 n4"
    ),
    "an ephemeral volume": Case(
        [LOCAL, a_claim("p-e", owner="p"), a_volume("v", on="n1")],
        "n1",
        {NOTHING: 3},
        pod=a_pod("p", job="g", spec=mounting(ephemeral=["e"])),
    ),
    "very many claims, and volumes larger than any": Case(
        [
            LOCAL,
            *(a_claim(f"c{i}", storage="8E") for i in range(70)),
            *(a_volume(f"v{i}", on="n1" if i < 70 else "n2", storage="9E") for i in range(100)),
        ],
        "n1",
        {NOTHING: 3},
        pod=a_mounting_pod("p", *(f"c{i}" for i in range(70)), job="g"),
    ),
    "a selector that makes no sense": Case(
        [LOCAL, a_claim("a", selector={"a b": "c"}), a_volume("v")],
        refused="a claim of the pod makes no sense: 'a b' is not a valid label key",
    ),
}

ZONES = {
    "a volume goes with its zone; a node that names none is not refused": Case(
        [a_claim("a", volume="v"), a_volume("v", labels={f"{TOPOLOGY}/zone": "b"})],
        "n3 n4",
        {ZONE: 2},
    ),
    "it may be in several": Case(
        [a_claim("a", volume="v"), a_volume("v", labels={f"{TOPOLOGY}/zone": "b__ c"})],
        "n3 n4",
        {ZONE: 2},
    ),
    "labels of old mean the labels of today": Case(
        [a_claim("a", volume="v"), a_volume("v", labels={f"{BETA}/zone": "a"})],
        "n1 n2 n4",
        {ZONE: 1},
    ),
    "a region that no node names": Case(
        [a_claim("a", volume="v"), a_volume("v", labels={f"{TOPOLOGY}/region": "r"})],
        "n4",
        {ZONE: 3},
    ),
    "a list with a gap means nothing": Case(
        [a_claim("a", volume="v"), a_volume("v", labels={f"{TOPOLOGY}/zone": "b__"})],
        "n1 n2 n3 n4",
    ),
    "switched off": Case(
        [a_claim("a", volume="v"), a_volume("v", labels={f"{TOPOLOGY}/zone": "b"})],
        "n1 n2 n3 n4",
        arguments=off("VolumeZone"),
    ),
}

DISKS: list[Stored] = [
    *(a_claim(name, volume=f"v-{name}") for name in "abc"),
    *(a_volume(f"v-{name}", driver="csi") for name in "abc"),
]
HOLDER = a_mounting_pod("o", "b", node="n1")

LIMITS = {
    "a node takes so many volumes of a driver": Case(
        [*DISKS, a_csi_node("n1", csi=1), a_csi_node("n2", csi=1), a_csi_node("n3", csi=None)],
        "n2 n3 n4",
        {TOO_MANY: 1},
        others=[HOLDER],
    ),
    "of another driver it takes more": Case(
        [*DISKS, a_csi_node("n1", other=1)], "n1 n2 n3 n4", others=[HOLDER]
    ),
    "all of a pod's volumes count": Case(
        [*DISKS, a_csi_node("n1", csi=2), a_csi_node("n2", csi=2)],
        "n2 n3 n4",
        {TOO_MANY: 1},
        pod=two("a", "c"),
        others=[HOLDER],
    ),
    "what is attached already counts once": Case(
        [*DISKS, a_csi_node("n1", csi=1), a_csi_node("n2", csi=0)],
        "n1 n3 n4",
        {TOO_MANY: 1},
        pod=a_mounting_pod("p", "b", job="g"),
        others=[HOLDER, a_mounting_pod("o2", "b", node="n1")],
    ),
    "pods on their way out count": Case(
        [*DISKS, a_csi_node("n1", csi=1)],
        "n2 n3 n4",
        {TOO_MANY: 1},
        others=[a_pod("o", node="n1", deleting=True, spec=mounting("b"))],
    ),
    "pods that are finished do not": Case(
        [*DISKS, a_csi_node("n1", csi=1)],
        "n1 n2 n3 n4",
        others=[a_pod("o", node="n1", phase="Succeeded", spec=mounting("b"))],
    ),
    "a volume that is to be made counts as well": Case(
        [MADE, a_claim("a", of="made"), a_csi_node("n1", csi=0)], "n2 n3 n4", {TOO_MANY: 1}
    ),
    "one without a driver does not": Case(
        [a_claim("a", volume="v"), a_volume("v"), a_csi_node("n1", csi=0)], "n1 n2 n3 n4"
    ),
    "switched off": Case(
        [*DISKS, a_csi_node("n1", csi=0)], "n1 n2 n3 n4", arguments=off("NodeVolumeLimits")
    ),
}

ALONE: list[Stored] = [a_claim("a", volume="v", modes=["ReadWriteOncePod"]), a_volume("v")]

EXCLUSIVE = {
    "a claim for one pod that another one uses": Case(
        ALONE, "", {IN_USE: 4}, others=[a_mounting_pod("o", "a", node="n1")]
    ),
    "or merely wants": Case(ALONE, "n1 n2 n3 n4", others=[a_mounting_pod("o", "a")]),
    "or had used": Case(
        ALONE,
        "n1 n2 n3 n4",
        others=[a_pod("o", node="n1", phase="Failed", spec=mounting("a"))],
    ),
}


def test_nothing_is_said_of_volumes_while_they_cannot_be_read() -> None:
    cluster = a_cluster(NODES, a_group("g"), a_mounting_pod("p", "a", job="g"))
    cluster.inputs.storage.unread = True
    ssn = a_session(a_conf("", ["predicates"]), cluster)
    view = ssn.views.of_task(ssn.active[0].tasks[PodUid("p")])
    assert view.refused is None
    assert view.candidates().all()


def opened(case: Case) -> Session:
    cluster = a_cluster(NODES, a_group("g"), case.others, case.pod)
    assert not cluster.faults
    conf = a_conf("", [a_plugin("predicates", **case.arguments)])
    return a_session(conf, store(cluster, case.stored))


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{table}: {name}")
        for table, cases in {
            "bound": BOUND,
            "unbound": UNBOUND,
            "zones": ZONES,
            "limits": LIMITS,
            "alone": EXCLUSIVE,
        }.items()
        for name, case in cases.items()
    ],
)
def test_who_takes_a_pod(case: Case) -> None:
    ssn = opened(case)
    [job] = ssn.active
    view = ssn.views.of_task(job.tasks[PodUid("p")])

    assert view.refused == case.refused
    if view.refused is None:
        taken = [n for n, ok in zip(ssn.nodes.names, view.candidates(), strict=True) if ok]
        assert " ".join(taken) == case.taken
        assert view.errors(resources=False).reasons == case.reasons
    assert not ssn.findings.warnings
