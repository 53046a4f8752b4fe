"""preempt in detail: its arguments, what it tells, what it asks again and what it does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from pumice.core import catalog
from pumice.core.actions.dryrun import Comparison
from pumice.core.api.scheduling import NetworkTopology
from pumice.core.conf import Arguments, Configuration
from pumice.core.extension import Code, LivePredicate, PredicateResult, Refusal, Victims, Vote
from pumice.core.model.tasks import Task, TaskClass
from pumice.core.plan import Placement, Plan
from pumice.core.session import Session
from tests.builders import (
    Thing,
    a_cluster,
    a_conf,
    a_group,
    a_job,
    a_plan,
    a_plugin,
    a_pod,
    a_priority_class,
    nodes,
)

RANKS = [a_priority_class("low", 10), a_priority_class("high", 100)]
TIERS = (["priority", "gang", "conformance"], ["predicates", "proportion", "binpack"])
CONF = a_conf("allocate preempt", *TIERS)
FULL = (nodes(n="1 4Gi"), RANKS, a_job("low", gang=0, priority="low", on=["n"]))


def gone(plan: Plan) -> list[str]:
    return [victim.uid for decision in plan.evictions for victim in decision.victims]


def promised(node: str) -> list[Thing]:
    """Return a job of high priority whose pod is nominated to a node."""
    return [a_group("high", priority="high"), a_pod("high-0", job="high", nominated=node)]


def test_a_decision_says_who_goes_for_whom_and_why() -> None:
    plan = a_plan(CONF, *FULL, a_job("high", priority="high"))
    [decision] = plan.evictions
    assert (decision.job, decision.group_uid, decision.action) == (
        "ns/high",
        "group-high",
        "preempt",
    )
    assert decision.claims == (Placement(decision.claims[0].uid, "n"),)
    [victim] = decision.victims
    assert (victim.uid, victim.job, victim.node) == ("low-0", "ns/low", "n")
    reason = victim.reason
    assert (reason.action, reason.plugin, reason.sake, reason.tier) == (
        "preempt",
        "priority, gang, conformance",
        "ns/high-0",
        1,
    )
    assert reason.numbers == {"asked cpu": 1000.0, "free cpu": 0.0, "freed cpu": 1000.0}


def test_the_pods_that_are_promised_room_are_told_the_node() -> None:
    plan = a_plan(CONF, *FULL, a_job("high", priority="high"))
    [group] = [group for group in plan.groups if group.job == "ns/high"]
    assert [note.node for note in group.pods.values()] == ["n"]


def test_free_room_is_left_to_allocate_where_that_is_still_to_come() -> None:
    things = (nodes(n="1 4Gi"), RANKS, a_job("high", priority="high"))
    first = a_plan(a_conf("preempt allocate", *TIERS), *things)
    assert [p.uid for a in first.allocations for p in a.placements] == ["high-0"]


def test_a_job_that_asks_for_a_topology_is_left_out() -> None:
    group, pod = a_job("high", priority="high")
    group.spec.network_topology = NetworkTopology(mode="soft")  # type: ignore[union-attr]
    assert gone(a_plan(CONF, *FULL, [group, pod])) == []


def test_nobody_else_goes_while_pods_leave_the_node_that_a_pod_is_promised() -> None:
    plan = a_plan(
        CONF,
        nodes(n="1 4Gi", m="1 4Gi"),
        RANKS,
        a_job("low", gang=0, priority="low", on=["m"]),
        # Even where that will not be enough.
        [a_pod("leaves", node="n", deleting=True), a_pod("stays", node="n")],
        promised("n"),
    )
    assert gone(plan) == []


def test_a_promise_on_a_node_that_is_gone_holds_nobody_up() -> None:
    assert gone(a_plan(CONF, *FULL, promised("away"))) == ["low-0"]


def test_within_a_job_the_better_task_takes_the_place_of_the_lesser() -> None:
    conf = a_conf("allocate preempt", ["priority"], ["predicates", "binpack"])
    lesser = a_pod("lesser", job="j", node="n", priority=1)
    better = a_pod("better", job="j", priority=9)
    plan = a_plan(conf, nodes(n="1 4Gi"), [a_group("j", least=1), lesser, better])
    assert gone(plan) == ["lesser"]


def test_within_a_gang_nobody_goes_if_it_is_too_small_all_the_same() -> None:
    flags = ("enableJobReady", "enableJobPipelined", "enableJobStarving")
    tier = [a_plugin("priority"), a_plugin("gang", *flags)]
    conf = a_conf("allocate preempt", tier, ["predicates", "binpack"])
    members = [
        a_pod("lesser", job="j", node="n", priority=1),
        a_pod("better", job="j", priority=9),
    ]
    assert gone(a_plan(conf, nodes(n="1 4Gi"), [a_group("j", least=2), *members])) == []


COMPARED = {
    "a tenth of the nodes": ({}, 500, 50),
    "one at least": ({}, 5, 1),
    "a hundred at most": ({}, 5000, 100),
    "never more than there are": ({"minCandidateNodesAbsolute": 9}, 4, 4),
    "another percentage": ({"minCandidateNodesPercentage": 50}, 10, 5),
    "another bound": ({"maxCandidateNodesAbsolute": 3}, 100, 3),
    "nonsense still finds one": ({"maxCandidateNodesAbsolute": -1}, 10, 1),
}


@pytest.mark.parametrize(("args", "n", "want"), COMPARED.values(), ids=COMPARED.keys())
def test_how_many_nodes_are_compared(args: dict[str, object], n: int, want: int) -> None:
    assert Comparison.parse(Arguments(args)).of(n) == want


def test_an_argument_of_the_wrong_type_is_told() -> None:
    arguments = Arguments({"enableTopologyAwarePreemption": "perhaps"})
    conf = replace(CONF, configurations={"preempt": arguments})
    plan = a_plan(conf, *FULL, a_job("high", priority="high"))
    assert [w for w in plan.warnings if "enableTopologyAwarePreemption" in w]
    assert gone(plan) == ["low-0"]


class Watchful:
    """Refuses a node as long as one pod stays there; counts how often it is asked for victims."""

    name = "watchful"
    asked = 0

    def on_session_open(self, ssn: Session) -> None:
        def check(cls: TaskClass) -> PredicateResult:
            here = ssn.space.tasks_on("n")
            stays = any(t.name == "low-0" and t.status.title == "Running" for t in here)
            mask = ~ssn.nodes.columns.all() if stays else ssn.nodes.columns.all()
            refusal = Refusal(Code.UNSCHEDULABLE, "somebody is there", ~mask)
            return PredicateResult(mask, (refusal,))

        def preemptable(task: Task, candidates: Sequence[Task]) -> Victims:
            Watchful.asked += 1
            return candidates, Vote.PERMIT

        ssn.points.live_predicate[self.name] = LivePredicate(lambda cls: True, check)
        ssn.points.preemptable[self.name] = preemptable

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""


@pytest.fixture
def watchful() -> Iterator[Configuration]:
    def build(args: Arguments) -> Watchful:
        return Watchful()

    Watchful.asked = 0
    catalog.add_plugin(Watchful.name, build)
    yield a_conf("preempt", ["watchful", "priority", "gang"])
    catalog.remove_plugin(Watchful.name)


def test_predicates_are_asked_again_after_each_eviction(watchful: Configuration) -> None:
    things = (
        nodes(n="9 9Gi"),
        RANKS,
        a_job("low", 2, gang=0, priority="low", on=["n", "n"]),
        a_job("high", priority="high"),
    )
    assert gone(a_plan(watchful, *things)) == ["low-0"]


def test_jobs_that_are_alike_are_not_tried_one_after_the_other_in_vain(
    watchful: Configuration,
) -> None:
    lows = a_job("low", gang=0, priority="low", on=["n"])
    equals = [a_job(f"equal-{i}", priority="low") for i in range(20)]
    assert gone(a_plan(watchful, nodes(n="1 4Gi"), RANKS, lows, *equals)) == []
    assert Watchful.asked == 1


def test_everything_is_as_it_was_when_nobody_can_be_served() -> None:
    cluster = a_cluster(
        nodes(n="2 4Gi"),
        RANKS,
        a_job("low", 2, gang=0, priority="low", on=["n", "n"]),
        a_job("high", 3, gang=3, priority="high"),
    )
    ssn = Session(cluster.snapshot(), CONF, 0.0, "s1")
    ssn.open()
    before = [t.tobytes() for t in (ssn.nodes.used, ssn.nodes.releasing, ssn.nodes.pipelined)]
    action = catalog.action_named("preempt")
    assert action is not None
    action().execute(ssn)
    after = [t.tobytes() for t in (ssn.nodes.used, ssn.nodes.releasing, ssn.nodes.pipelined)]
    assert after == before
    assert ssn.space.changed  # It was tried.
    assert ssn.close().evictions == ()
