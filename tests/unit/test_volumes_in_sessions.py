"""Volumes in whole sessions: gangs go where their volumes are, and no volume is given twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core.api.core import Node, Pod
from pumice.core.api.scheduling import PodGroup
from pumice.core.cluster import Cluster
from pumice.core.conf import Configuration
from pumice.core.cycle import run_session
from pumice.core.ids import PodUid
from pumice.core.model.storage import Stored
from pumice.core.plan import Plan
from tests.builders import (
    a_cluster,
    a_conf,
    a_group,
    a_node,
    a_plugin,
    a_priority_class,
    a_session,
    nodes,
    placements,
    waits,
)
from tests.effort import examples
from tests.volumes import (
    HOST,
    a_claim,
    a_class,
    a_csi_node,
    a_mounting_pod,
    a_volume,
    store,
)

CONF = a_conf("allocate backfill", ["priority", "gang"], ["predicates", "nodeorder", "proportion"])
NOTHING = "node(s) didn't find available persistent volumes to bind"
LOCAL = a_class("local")
MADE = a_class("made", by="csi")


def a_gang(name: str, *claims: str, asks: str = "1", least: int = 0) -> list[PodGroup | Pod]:
    """Return a gang with one member for each entry, which names the claims that it mounts."""
    pods = [
        a_mounting_pod(f"{name}-{i}", *entry.split(), asks=asks, job=name)
        for i, entry in enumerate(claims)
    ]
    return [a_group(name, least=least or len(claims)), *pods]


def claims(*names: str, **what: str) -> list[Stored]:
    return [a_claim(name, **what) for name in names]  # type: ignore[arg-type]


def disks(**nodes_: str) -> list[Stored]:
    """Return a local volume for each word, by node: `n1="v w"`; sizes as `v=2Gi`."""
    found: list[Stored] = []
    for node, words in nodes_.items():
        for word in words.split():
            name, _, size = word.partition("=")
            found.append(a_volume(name, on=node, storage=size or "1Gi"))
    return found


def planned(stored: Sequence[Stored], *things: object, conf: Configuration = CONF) -> Plan:
    cluster = store(a_cluster(*things), stored)  # type: ignore[arg-type]
    return run_session(cluster.snapshot(), conf, 0.0, "session-1")


@dataclass(frozen=True)
class Case:
    stored: Sequence[Stored]
    things: Sequence[object]
    plan: Mapping[str, str] = field(default_factory=dict)
    waits: Mapping[str, str] = field(default_factory=dict)


SIX = nodes(n1="4", n2="4", n3="4", n4="4", n5="4", n6="4")

CASES = {
    "a gang goes where its disks are": Case(
        [LOCAL, *claims("a", "b", "c", "d"), *disks(n2="v w", n5="x y")],
        [SIX, a_gang("g", "a", "b", "c", "d")],
        {"g-0": "n2", "g-1": "n5", "g-2": "n2", "g-3": "n5"},
    ),
    "one disk too few, and nobody starts": Case(
        [LOCAL, *claims("a", "b", "c", "d"), *disks(n2="v w", n5="x")],
        [SIX, a_gang("g", "a", "b", "c", "d")],
        waits={"g": f"0/6 nodes are unavailable: 6 {NOTHING}."},
    ),
    "a gang that does not fit gives its disks back": Case(
        [LOCAL, *claims("a", "b", "c"), *disks(n2="v w")],
        [SIX, a_gang("g", "a", "b", "b c"), a_gang("h", "a", "b")],
        {"h-0": "n2", "h-1": "n2"},
    ),
    "members with other claims stand beside": Case(
        [LOCAL, *claims("a", "b"), *disks(n6="v w")],
        [SIX, a_gang("g", "a b", "", "")],
        {"g-0": "n6", "g-1": "n1", "g-2": "n2"},
    ),
    "bound claims": Case(
        [
            *(a_claim(c, volume=f"v-{c}") for c in "abcd"),
            *(
                a_volume(f"v-{c}", on=n)
                for c, n in zip("abcd", ("n3", "n6", "n3", "n6"), strict=True)
            ),
        ],
        [SIX, a_gang("g", "a", "b", "c", "d")],
        {"g-0": "n3", "g-1": "n6", "g-2": "n3", "g-3": "n6"},
    ),
    "the larger claim of another job gets the larger disk": Case(
        [
            LOCAL,
            *claims("a"),
            a_claim("b", storage="5Gi"),
            *disks(n1="v=5Gi", n2="w=1Gi"),
        ],
        [SIX, a_gang("g", "a"), a_gang("h", "b")],
        {"g-0": "n2", "h-0": "n1"},
    ),
    "a claim that all members mount is bound once": Case(
        [LOCAL, *claims("a"), *disks(n2="v")],
        [SIX, a_gang("g", "a", "a", "a")],
        {"g-0": "n2", "g-1": "n2", "g-2": "n2"},
    ),
    "or made once, and the others may be elsewhere": Case(
        [MADE, *claims("a", of="made")],
        [SIX, a_gang("g", "a", "a", "a", asks="3")],
        {"g-0": "n1", "g-1": "n2", "g-2": "n3"},
    ),
    "nodes take so many volumes": Case(
        [
            *(a_claim(c, volume=f"v-{c}") for c in "abcd"),
            *(a_volume(f"v-{c}", driver="csi") for c in "abcd"),
            *(a_csi_node(f"n{i}", csi=1) for i in range(1, 5)),
            a_csi_node("n5", csi=0),
            a_csi_node("n6", csi=0),
        ],
        [SIX, a_gang("g", "a", "b", "c", "d")],
        {"g-0": "n1", "g-1": "n2", "g-2": "n3", "g-3": "n4"},
    ),
    "and one more than they take waits": Case(
        [
            *(a_claim(c, volume=f"v-{c}") for c in "ab"),
            *(a_volume(f"v-{c}", driver="csi") for c in "ab"),
            a_csi_node("n1", csi=1),
        ],
        [nodes(n1="4"), a_gang("g", "a", "b")],
        waits={"g": "0/1 nodes are unavailable: 1 node(s) exceed max volume count."},
    ),
    "a claim for one pod alone is given once": Case(
        [a_claim("a", volume="v", modes=["ReadWriteOncePod"]), a_volume("v")],
        [SIX, a_gang("g", "a", "a", least=1)],
        {"g-0": "n1"},
    ),
    "a missing claim is named": Case(
        [],
        [SIX, a_gang("g", "a")],
        waits={"g": '0/6 nodes are unavailable: 6 persistentvolumeclaim "a" not found.'},
    ),
    "pods that ask for nothing are filled in where their volumes are": Case(
        [LOCAL, *claims("a"), *disks(n4="v")], [SIX, a_gang("g", "a", asks="")], {"g-0": "n4"}
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_session(case: Case) -> None:
    plan = planned(case.stored, *case.things)
    assert placements(plan) == case.plan
    for group, message in case.waits.items():
        assert message in waits(plan)[group]


def test_where_nobody_mounts_claims_nothing_looks_at_them() -> None:
    cluster = store(a_cluster(SIX, a_gang("g", "")), claims("a"), disks(n1="v"))
    points = a_session(CONF, cluster).points
    assert not points.distinction
    assert not points.pre_predicate


def test_the_tightest_volume_is_the_best_unless_the_shape_says_otherwise() -> None:
    stored = [LOCAL, *claims("a"), *disks(n1="v=4Gi", n2="w=2Gi", n3="x=9Gi")]
    reverse = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]

    def goes_to(**arguments: object) -> str:
        args = {f"volumebinding__{key}": value for key, value in arguments.items()}
        conf = a_conf("allocate", [a_plugin("predicates", **args)])
        return placements(planned(stored, SIX, a_gang("g", "a"), conf=conf))["g-0"]

    assert goes_to() == "n2"
    assert goes_to(shape=reverse) == "n3"
    assert goes_to(weight=0) == "n1"


def test_the_score_is_the_mean_over_classes_of_how_full_the_volumes_are() -> None:
    stored = [
        LOCAL,
        MADE,
        *(a_claim(name, storage=size) for name, size in (("a", "1Gi"), ("b", "2Gi"))),
        a_claim("c", of="made", storage="3Gi"),
        *disks(n1="v=1Gi w=3Gi", n2="x=4Gi y=4Gi", n3="z1=2Gi z2=1Gi"),
        a_volume("m", of="made", on="n1", storage="6Gi"),
        a_volume("m3", of="made", on="n3", storage="3Gi"),
    ]
    # Of class `local` 3 of 4 Gi, 3 of 8, 3 of 3; of class `made` 3 of 6, none, 3 of 3.
    cluster = store(a_cluster(nodes(n1="4", n2="4", n3="4"), a_gang("g", "a b c")), stored)
    shape = [{"utilization": 0, "score": 0}, {"utilization": 50, "score": 8}]
    for arguments, want in (
        ({}, [(75 + 50) // 2 + 1, 37, 100]),  # 62.5 is rounded up
        ({"volumebinding__weight": 3, "volumebinding__shape": shape}, [240, 177, 240]),
    ):
        ssn = a_session(a_conf("", [a_plugin("predicates", **arguments)]), cluster)
        view = ssn.views.of_task(ssn.active[0].tasks[PodUid("g-0")])
        assert view.scores(np.arange(3)).tolist() == want


def test_a_malformed_shape_is_told() -> None:
    shapes: list[object] = ["x", [], [{}], [{"utilization": 101, "score": 1}], [{"utilization": 0}]]
    for shape in shapes:
        conf = a_conf("", [a_plugin("predicates", volumebinding__shape=shape)])
        ssn = a_session(conf, a_cluster())
        assert ["volumebinding.shape" in text for text in ssn.findings.warnings] == [True]


EVICTING = a_conf("allocate preempt", ["priority", "gang"], ["predicates", "proportion"])
RANKS = [a_priority_class("low", 10), a_priority_class("high", 100)]


def ranked(name: str, claim: str, node: str = "") -> list[PodGroup | Pod]:
    """Return a job of one pod that is as important as its name says."""
    pod = a_mounting_pod(f"{name}-0", claim, job=name, node=node)
    return [a_group(name, least=0 if node else 1, priority=name), pod]


ATTACHED: list[Stored] = [
    *(a_claim(c, volume=f"v-{c}") for c in "ab"),
    *(a_volume(f"v-{c}", driver="csi") for c in "ab"),
    a_csi_node("n1", csi=1),
]
ALONE: list[Stored] = [a_claim("a", volume="v", modes=["ReadWriteOncePod"]), a_volume("v")]


@pytest.mark.parametrize(
    ("stored", "held"),
    [
        pytest.param(ATTACHED, "b", id="room to attach a volume"),
        pytest.param(ALONE, "a", id="a claim that one pod alone may use"),
    ],
)
def test_a_pod_is_evicted_for_what_it_holds(stored: Sequence[Stored], held: str) -> None:
    jobs = [ranked("low", held, "n1"), ranked("high", "a")]
    plan = planned(stored, nodes(n1="4"), RANKS, *jobs, conf=EVICTING)
    assert [victim.uid for d in plan.evictions for victim in d.victims] == ["low-0"]


def test_nobody_is_evicted_for_a_volume_that_is_elsewhere() -> None:
    stored = [a_claim("a", volume="v"), a_claim("b", volume="w"), *disks(n2="v", n1="w")]
    jobs = [ranked("low", "b", "n1"), ranked("high", "a")]
    plan = planned(stored, nodes(n1="1", n2="0"), RANKS, *jobs, conf=EVICTING)
    assert not plan.evictions


# --- whatever the world ------------------------------------------------------------------------

NAMES = [f"n{i}" for i in range(4)]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Cluster, dict[str, list[str]]]:
    """Draw a cluster with jobs that mount claims, and which claims each pod mounts."""
    sizes = st.sampled_from(["1Gi", "2Gi", "3Gi"])
    places = st.lists(st.sampled_from(NAMES), max_size=3, unique=True)
    stored: list[Stored] = [LOCAL, MADE]
    for i in range(draw(st.integers(0, 8))):
        at, of = draw(places), draw(st.sampled_from(["local", "made"]))
        inside = (
            [{"matchExpressions": [{"key": HOST, "operator": "In", "values": at}]}] if at else []
        )
        stored.append(a_volume(f"v{i}", of=of, storage=draw(sizes), terms=inside))
    stored += [a_csi_node(name, csi=draw(st.integers(0, 3))) for name in NAMES]
    things: list[Node | PodGroup | Pod] = [a_node(name, "3") for name in NAMES]
    mounted: dict[str, list[str]] = {}
    serial = 0
    for j in range(draw(st.integers(1, 4))):
        members = draw(st.integers(1, 4))
        things.append(a_group(f"j{j}", least=draw(st.integers(1, members))))
        for i in range(members):
            names = [f"c{serial + k}" for k in range(draw(st.integers(0, 2)))]
            serial += len(names)
            for name in names:
                of = draw(st.sampled_from(["local", "local", "made", "attached"]))
                volume = f"v-{name}" if of == "attached" else ""
                stored.append(a_claim(name, of=of, storage=draw(sizes), volume=volume))
                stored += [a_volume(volume, of=of, driver="csi")] if volume else []
            mounted[f"j{j}-{i}"] = names
            things.append(a_mounting_pod(f"j{j}-{i}", *names, job=f"j{j}"))
    return store(a_cluster(things), stored), mounted


def served(cluster: Cluster, mounted: Mapping[str, list[str]], plan: Mapping[str, str]) -> bool:
    """Return whether every claim of a placed pod can have a volume of its own on its node."""
    storage = cluster.inputs.storage
    owner: dict[str, tuple[str, str]] = {}
    wanted = [(c, node) for pod, node in plan.items() for c in mounted[pod]]
    sizes = {"1Gi": 1, "2Gi": 2, "3Gi": 3}

    def suitable(claim: str, node: str) -> list[str]:
        spec = storage.claims[f"ns/{claim}"].spec
        found = []
        for name, volume in storage.volumes.items():
            near, asked = volume.spec.node_affinity, (spec.resources.requests or {})["storage"]
            terms = near.required.node_selector_terms if near and near.required else None
            held = [
                v for t in terms or () for e in t.match_expressions or () for v in e.values or ()
            ]
            holds = (volume.spec.capacity or {})["storage"]
            fits = sizes[str(holds)] >= sizes[str(asked)]
            same = volume.spec.storage_class_name == spec.storage_class_name
            if fits and same and (not held or node in held):
                found.append(name)
        return found

    def give(entry: tuple[str, str], tried: set[str]) -> bool:
        for name in suitable(*entry):
            if name not in tried:
                tried.add(name)
                if name not in owner or give(owner[name], tried):
                    owner[name] = entry
                    return True
        return False

    local = [
        (c, n) for c, n in wanted if storage.claims[f"ns/{c}"].spec.storage_class_name == "local"
    ]
    return all(give(entry, set()) for entry in local)


def within_limits(
    cluster: Cluster, mounted: Mapping[str, list[str]], plan: Mapping[str, str]
) -> bool:
    """Return whether no node has more volumes to attach than its driver takes."""
    storage = cluster.inputs.storage
    made = Counter(
        node
        for pod, node in plan.items()
        for claim in mounted[pod]
        if storage.claims[f"ns/{claim}"].spec.storage_class_name != "local"
    )
    limits = {
        name: sum(d.allocatable.count or 0 for d in node.spec.drivers or () if d.allocatable)
        for name, node in storage.csi_nodes.items()
    }
    return all(number <= limits[node] for node, number in made.items())


@settings(max_examples=examples(100, enduring=600), deadline=None)
@given(worlds())
def test_no_volume_is_given_twice_and_no_node_gets_too_many(
    world: tuple[Cluster, dict[str, list[str]]],
) -> None:
    cluster, mounted = world
    first = placements(run_session(cluster.snapshot(), CONF, 0.0, "session-1"))
    assert served(cluster, mounted, first)
    assert within_limits(cluster, mounted, first)

    # What is on its way holds its volumes in the next session, too.
    for uid, node in first.items():
        cluster.assume(PodUid(uid), node)
    second = placements(run_session(cluster.snapshot(), CONF, 1.0, "session-2"))
    assert served(cluster, mounted, {**first, **second})
    assert within_limits(cluster, mounted, {**first, **second})


@settings(max_examples=examples(75, enduring=400), deadline=None)
@given(worlds())
def test_what_is_undone_leaves_no_trace(world: tuple[Cluster, dict[str, list[str]]]) -> None:
    cluster, _ = world
    ssn = a_session(CONF, cluster)
    tasks = [t for job in ssn.active for t in job.tasks.values()]
    before = {t.uid: ssn.views.of_task(t).candidates().tolist() for t in tasks}
    statement = ssn.statement()
    for task in tasks:
        for i in ssn.views.of_task(task).picks(1):
            statement.allocate([task], [int(i)])
    statement.discard()
    assert before == {t.uid: ssn.views.of_task(t).candidates().tolist() for t in tasks}
