"""Closing: phases, counts, events, the conditions of pods, and what queues hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from pumice.core.api.scheduling import PodGroupCondition
from pumice.core.plan import GroupStatus, Plan, PodNote, QueueUse
from tests.builders import (
    Thing,
    a_conf,
    a_group,
    a_job,
    a_node,
    a_plan,
    a_pod,
    a_queue,
    nodes,
)

CONF = a_conf("enqueue allocate backfill", ["priority", "gang"], ["predicates", "binpack"])


def the_group(plan: Plan, name: str = "j") -> GroupStatus:
    return next(group for group in plan.groups if group.job == f"ns/{name}")


SHORT = (
    "pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Unschedulable, 2 Schedulable."
    " Origin reason is j-2: 0/1 nodes are unavailable: 1 Insufficient cpu."
)


def test_a_gang_one_short() -> None:
    group = the_group(a_plan(CONF, nodes(n="2 8Gi"), a_job("j", 3)))
    assert group.phase == "Inqueue"
    assert group.event == ("Warning", "Unschedulable", f"3/3 tasks in gang unschedulable: {SHORT}")
    room = "Pod ns/{} can possibly be assigned to n, once minAvailable is satisfied"
    assert group.pods == {
        "j-0": PodNote("Schedulable", room.format("j-0"), "n"),
        "j-1": PodNote("Schedulable", room.format("j-1"), "n"),
        "j-2": PodNote("Unschedulable", "0/1 nodes are unavailable: 1 Insufficient cpu."),
    }
    assert group.reason is not None
    assert group.reason.message == SHORT
    assert group.reason.nodes == {"Insufficient cpu": 1}
    assert group.reason.numbers == {
        "minAvailable": 3.0,
        "ready": 0.0,
        "needed cpu": 3000.0,
        "free cpu": 2000.0,
        "needed pods": 3.0,
        "free pods": 110.0,
    }


def test_a_gang_that_is_promised_room() -> None:
    world = [a_pod("old", node="n", deleting=True), *a_job("j", 2)]
    group = the_group(a_plan(CONF, nodes(n="2 8Gi"), world))
    where = "can possibly be assigned to n, once"
    assert group.pods == {
        "j-0": PodNote("Schedulable", f"Pod ns/j-0 {where} minAvailable is satisfied", "n"),
        "j-1": PodNote(
            "Unschedulable",
            f"Pod ns/j-1 {where} resource is released and minAvailable is satisfied",
        ),
    }


def test_surplus_that_waits_has_its_reason() -> None:
    group = the_group(a_plan(CONF, nodes(n="2 8Gi"), a_job("j", 4, gang=2)))
    message = "0/1 nodes are unavailable: 1 Insufficient cpu."
    assert group.pods == {
        "j-2": PodNote("Unschedulable", message),
        "j-3": PodNote("Unschedulable", message),
    }
    assert [c.type for c in group.conditions] == ["Scheduled"]


def test_members_whose_role_has_failed_are_told_so() -> None:
    pods = [a_pod(f"p-{i}", "9", job="j", role="w") for i in range(2)]
    group = the_group(a_plan(CONF, nodes(n="2 8Gi"), a_group("j", least=1), pods))
    assert [note.message for note in group.pods.values()] == [
        "0/1 nodes are unavailable: 1 Insufficient cpu.",
        "Task p-1 with role spec w has already predicated failed, skip",
    ]


def test_gated_pods_get_no_condition() -> None:
    pods = [a_pod("open", job="j"), a_pod("gated", job="j", gates=["example.com/g"])]
    group = the_group(a_plan(CONF, nodes(n="2 8Gi"), a_group("j", least=2), pods))
    assert list(group.pods) == ["open"]


HELD: dict[str, tuple[Sequence[Thing], str]] = {
    "a queue that does not exist": (
        a_job("j", queue="gone"),
        "queue gone not found",
    ),
    "a gang short of pods": (
        [a_group("j", least=2), a_pod("j-0", job="j")],
        "pod group is not ready, 1 Pending, 2 minAvailable; Pending: 1 Unschedulable. Origin"
        " reason is: Not enough valid tasks for gang-scheduling, valid: 1, min: 2",
    ),
    "a group that is not let in": (
        [a_queue("default", capability="500m"), *a_job("j", phase="Pending", resources="1")],
        "pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Unschedulable. Origin"
        " reason is: queue resource quota insufficient: insufficient cpu:"
        " 1 cpu asked for, queue default may have 500m in all",
    ),
}


@pytest.mark.parametrize(("world", "message"), HELD.values(), ids=HELD.keys())
def test_what_does_not_hang_on_capacity_is_no_condition_of_the_pod(
    world: Sequence[Thing], message: str
) -> None:
    conf = a_conf("enqueue allocate", ["gang"], ["proportion", "predicates"])
    group = the_group(a_plan(conf, nodes(n="4 8Gi"), world))
    assert group.pods == {"j-0": PodNote("Unschedulable", message, by_capacity=False)}


@dataclass(frozen=True)
class Event:
    world: Sequence[Thing]
    want: tuple[str, str, str] | None


EVENTS = {
    "a group becomes Running": Event(
        a_job("j", on=["n"]), ("Normal", "Scheduled", "pod group is ready")
    ),
    "a group is Running": Event(a_job("j", 2, gang=1, phase="Running", on=["n"]), None),
    "a gang was placed and is not seen running yet": Event(a_job("j", 2), None),
    "a group without pods waits": Event([a_group("j", phase="Inqueue")], None),
    "a group is not let in": Event(
        a_job("j", phase="Pending", resources="99"),
        (
            "Normal",
            "Unschedulable",
            "resource in cluster is overused: overused cpu",
        ),
    ),
    "the queue does not exist": Event(
        a_job("j", queue="gone"), ("Warning", "Unschedulable", "queue gone not found")
    ),
}


@pytest.mark.parametrize("case", EVENTS.values(), ids=EVENTS.keys())
def test_events(case: Event) -> None:
    conf = a_conf("enqueue allocate", ["gang"], ["overcommit", "predicates"])
    assert the_group(a_plan(conf, nodes(n="4 8Gi"), case.world)).event == case.want


def test_counts_and_kept_conditions() -> None:
    old = PodGroupCondition(type="Unschedulable", status="True", transition_id="old")
    pods = [
        a_pod("a", job="j", node="n"),
        a_pod("b", job="j", node="n", phase="Succeeded"),
        a_pod("c", job="j", node="n", phase="Failed"),
    ]
    group = the_group(a_plan(CONF, a_node("n"), a_group("j", conditions=[old]), pods))
    assert (group.running, group.succeeded, group.failed, group.phase) == (1, 1, 1, "Running")
    assert [(c.type, c.transition_id) for c in group.conditions] == [
        ("Unschedulable", "old"),
        ("Scheduled", ""),
    ]


def test_a_group_before_its_admission_tells_why_it_is_not_let_in() -> None:
    conf = a_conf("enqueue", ["gang"], ["overcommit"])
    group = the_group(a_plan(conf, nodes(n="4 8Gi"), a_group("j", phase="Pending", resources="99")))
    (condition,) = group.conditions
    assert (group.phase, condition.reason, condition.message) == (
        "Pending",
        "NotEnoughResources",
        "resource in cluster is overused: overused cpu: 99 cpu asked for, 4 in the cluster",
    )


def test_settled_groups_are_not_reported() -> None:
    ready = PodGroupCondition(type="Scheduled", status="True")
    settled = a_group("j", phase="Running", conditions=[ready])
    settled.status.running = 1
    plan = a_plan(CONF, a_node("n"), settled, a_pod("p", job="j", node="n"), a_job("k"))
    assert [group.job for group in plan.groups] == ["ns/k"]


def test_what_queues_hold() -> None:
    plan = a_plan(
        CONF,
        nodes(n="8 64Gi nvidia.com/gpu=8"),
        [
            a_queue("root"),
            a_queue("team", parent="root"),
            a_queue("leaf", parent="team"),
            a_queue("idle"),
            a_queue("orphan", parent="gone"),
        ],
        a_job("r", asks="1 1Gi", queue="leaf", on=["n"], phase="Running"),
        a_job("new", 2, "500m nvidia.com/gpu=1", queue="leaf"),
        a_job("waits", asks="99", queue="team"),
    )
    held = {"cpu": "2", "memory": "1Gi", "pods": "3", "nvidia.com/gpu": "2"}
    assert plan.queues == (
        QueueUse("root", held),
        QueueUse("team", held),
        QueueUse("leaf", held),
        QueueUse("idle", {}),
        QueueUse("orphan", {}),
    )


def test_faults_are_told() -> None:
    negative = a_group("n", least=-1)
    plan = a_plan(
        CONF,
        a_node("n"),
        a_job("a", priority="missing"),
        a_job("b", resources="plenty"),
        negative,
        a_pod("bad", "plenty"),
    )
    assert plan.warnings == (
        "pod ns/bad: not a quantity: 'plenty'",
        "podgroup ns/n: minMember -1 counts as 0",
        "podgroup ns/a: priority class missing does not exist, priority is 0",
        "podgroup ns/b: minResources: not a quantity: 'plenty'",
    )
