"""Bounds to HyperNodes where no search is made: pods that ask for nothing, evictions, questions."""

from __future__ import annotations

from pumice.core.explain.choice import choose, class_of
from pumice.core.explain.words import OUTSIDE
from pumice.core.ids import JobKey, PodUid
from tests.builders import (
    Thing,
    a_conf,
    a_group,
    a_job,
    a_plan,
    a_pod,
    a_queue,
    hypernodes,
    nodes,
    placements,
    within,
)
from tests.unit.explain.builders import a_picture

SIZE = "2 8Gi"
PAIRS: list[Thing] = [
    *nodes(n1=SIZE, n2=SIZE, n3=SIZE, n4=SIZE),
    *hypernodes(s0="1 n1 n2", s1="1 n3 n4", s2="2 @s0 @s1"),
]
TIER = ["predicates", "proportion", "binpack", "network-topology-aware"]
PLAIN = a_conf("enqueue allocate backfill", ["priority", "gang"], TIER)
RECLAIM = a_conf("enqueue allocate reclaim backfill", ["priority", "gang"], TIER)


def test_a_pod_that_asks_for_nothing_stays_with_the_others() -> None:
    plan = a_plan(
        PLAIN,
        PAIRS,
        a_pod("r", "1", node="n1"),
        a_group("j", least=2, topology=within(1)),
        [a_pod("a", "2", job="j", node="n3"), a_pod("b", "", job="j")],
    )
    assert placements(plan)["b"] in ("n3", "n4")


def test_the_first_of_them_goes_where_a_bound_can_be_kept() -> None:
    plan = a_plan(
        PLAIN,
        nodes(n0=SIZE, n1=SIZE),
        hypernodes(s0="1 n1"),
        a_group("j", topology=within(1)),
        a_pod("a", "", job="j"),
    )
    assert placements(plan) == {"a": "n1"}


def test_room_is_taken_back_where_the_gang_is() -> None:
    others = a_job("r", 7, queue="other", gang=1, on=["n1", "n2", "n2", "n3", "n3", "n4", "n4"])
    plan = a_plan(
        RECLAIM,
        PAIRS,
        [a_queue("own"), a_queue("other")],
        others,
        a_group("j", least=2, topology=within(1), queue="own"),
        [a_pod("a", "1", job="j", node="n1"), a_pod("b", "2", job="j")],
    )
    (eviction,) = plan.evictions
    assert {victim.node for victim in eviction.victims} == {"n2"}
    assert [(claim.uid, claim.node) for claim in eviction.claims] == [("b", "n2")]


def test_nodes_outside_are_told() -> None:
    kin, waits = a_pod("a", "1", job="j", node="n1"), a_pod("b", "2", job="j")
    picture = a_picture(PAIRS, a_group("j", least=2, topology=within(1)), kin, waits, conf=PLAIN)
    job = picture.snapshot.jobs[JobKey("ns/j")]
    choice = choose(picture, PLAIN, job, job.tasks[PodUid("b")], class_of(picture, waits), "n3")
    assert (choice.nodes, choice.open) == (4, 1)
    assert [(r.nodes, r.reason) for r in choice.refused if r.reason == OUTSIDE] == [(2, OUTSIDE)]
    assert choice.verdict is not None
    assert not choice.verdict.takes
