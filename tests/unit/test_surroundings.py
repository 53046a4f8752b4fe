"""Surroundings: what a gang finds on the nodes."""

from __future__ import annotations

from pumice.core.cluster import Cluster
from pumice.core.ids import PodUid
from pumice.core.surroundings import Surroundings
from pumice.core.waves import Member, waves
from tests.unit.sessions import a_cluster, a_node, a_pod
from tests.unit.worlds import a_term, near, spread

NODES = [a_node(f"n{i}", {"zone": zone}) for i, zone in enumerate("aabc")]
WEB = {"app": "web"}


def around(cluster: Cluster, *hidden: str) -> Surroundings:
    """Return what is there, without the pods that only we have put where they are."""
    headcount = cluster.headcount(lambda task: task.uid not in hidden)
    return Surroundings(cluster.nodes.columns, headcount)


def a_member(cluster: Cluster, uid: str) -> Member:
    task = cluster.task(PodUid(uid))
    assert task is not None
    return Member(task.uid, task.cls.signature, task.labels, task.namespace)


def test_pods_that_are_there_satisfy_terms_in_their_domain() -> None:
    wanting = a_pod("p", spec={"affinity": near(a_term("web"))})
    cluster = a_cluster(NODES, [a_pod("r", WEB, node="n0"), wanting])
    signature = a_member(cluster, "p").signature

    got = around(cluster)

    domains = ("a", "b", "nowhere")
    assert [got.satisfies(signature.affinity, "zone", d) for d in domains] == [True, False, False]


def test_room_that_is_merely_held_counts_where_it_is_seen() -> None:
    wanting = a_pod("p", spec={"affinity": near(a_term("web"))})
    held = [a_pod("early", WEB), a_pod("late", WEB)]
    cluster = a_cluster(NODES, [a_pod("r", WEB, node="n0"), wanting, *held])
    signature = a_member(cluster, "p").signature
    cluster.assume(PodUid("early"), "n2")
    cluster.assume(PodUid("late"), "n3")

    got = around(cluster, "late")

    domains = ("a", "b", "c")
    assert [got.satisfies(signature.affinity, "zone", d) for d in domains] == [True, True, False]
    assert cluster.check() == []
    after = around(cluster)
    assert after.satisfies(signature.affinity, "zone", "c")


def test_a_constraint_is_counted_in_the_domains_that_the_pod_may_go_to() -> None:
    spec = {
        "topologySpreadConstraints": [spread("web")],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "zone", "operator": "In", "values": ["a", "b"]}
                            ]
                        }
                    ]
                }
            }
        },
    }
    pods = [a_pod("r0", WEB, node="n0"), a_pod("r1", WEB, node="n1"), a_pod("p", WEB, spec=spec)]
    cluster = a_cluster(NODES, pods)
    signature = a_member(cluster, "p").signature

    got = around(cluster)

    assert got.counts(signature, signature.spread[0]) == {"a": 2, "b": 0}


def test_a_gang_makes_up_for_an_uneven_start() -> None:
    spec = {"topologySpreadConstraints": [spread("web")]}
    pods = [a_pod("r", WEB, node="n0"), *(a_pod(f"p{i}", WEB, spec=spec) for i in range(3))]
    cluster = a_cluster(NODES[:3], pods)
    gang = [a_member(cluster, f"p{i}") for i in range(3)]
    node_of = dict(zip((m.uid for m in gang), ("n1", "n2", "n2"), strict=True))
    outside = around(cluster)

    got = waves(gang, node_of, lambda node, key: {"n2": "b"}.get(node, "a"), outside)

    assert got == [["p1"], ["p0", "p2"]]
