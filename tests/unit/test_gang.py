"""gang: validity, what a job can spare, and the conditions that tell why it waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from pumice.core.api.core import Pod
from pumice.core.api.scheduling import PodGroup, SubGroupPolicy
from pumice.core.extension import Validity
from pumice.core.ids import JobKey
from pumice.core.model.jobs import JobInfo
from pumice.core.plugins.gang import surplus, validity
from tests.builders import (
    Thing,
    a_cluster,
    a_conf,
    a_group,
    a_job,
    a_node,
    a_plan,
    a_pod,
    a_session,
)


def the_job(group: PodGroup, pods: Sequence[Pod]) -> JobInfo:
    return a_cluster(group, pods).jobs[JobKey("ns/j")]


def pods(*statuses: str) -> list[Pod]:
    """Return pods in statuses such as `running`, `leaving`, `gone` or `pending`."""
    return [
        a_pod(
            f"p{i}",
            job="j",
            node="n" if status in ("running", "leaving") else "",
            deleting=status in ("leaving", "gone"),
        )
        for i, status in enumerate(statuses)
    ]


VALIDITY = {
    "enough tasks": (the_job(a_group("j", least=2), pods("running", "pending")), None),
    "too few tasks": (
        the_job(a_group("j", least=3), pods("running", "leaving")),
        Validity("NotEnoughTasks", "Not enough valid tasks for gang-scheduling, valid: 1, min: 3"),
    ),
    "a role is short": (
        the_job(a_group("j", least=3, roles={"ps": 1}), pods("running", "pending")),
        Validity("NotEnoughPodsOfTask", "Not enough valid pods of each task for gang-scheduling"),
    ),
    "parts are missing": (
        the_job(
            a_group(
                "j",
                policies=[SubGroupPolicy(name="w", match_label_keys=["part"], min_sub_groups=2)],
            ),
            pods("running", "pending"),
        ),
        Validity(
            "NotEnoughPodsOfTask", "Not enough valid subGroups of each task for gang-scheduling"
        ),
    ),
}


@pytest.mark.parametrize(("job", "want"), VALIDITY.values(), ids=VALIDITY.keys())
def test_validity(job: JobInfo, want: Validity | None) -> None:
    assert validity(job) == want


def test_a_job_spares_what_it_has_beyond_its_minimum() -> None:
    ssn = a_session(
        a_conf("allocate", ["gang"]),
        a_cluster(
            a_node("n", "9 9Gi"),
            a_job("rich", 4, gang=2, on=["n"] * 4),
            a_job("poor", 3, gang=3, on=["n"] * 3),
            a_job("free", 1, gang=0, on=["n"]),
            a_pod("lone", node="n"),
        ),
    )
    candidates = list(ssn.nodes.tasks_on("n").values())
    assert [task.name for task in surplus(ssn, candidates)] == ["rich-0", "rich-1", "free-0"]


CONF = a_conf("allocate", ["gang"], ["predicates", "binpack"])


@dataclass(frozen=True)
class Told:
    """The condition that a group gets; none where it keeps what it had."""

    world: Sequence[Thing]
    kind: str
    reason: str
    message: str


TOLD = {
    "a gang that is placed": Told(
        a_job("j", 2), "Scheduled", "tasks in gang are ready to be scheduled", ""
    ),
    "a gang that runs": Told(
        a_job("j", 2, on=["n", "n"]), "Scheduled", "tasks in gang are ready to be scheduled", ""
    ),
    "a gang with surplus that waits": Told(
        a_job("j", 9, gang=2), "Scheduled", "tasks in gang are ready to be scheduled", ""
    ),
    "a gang without room": Told(
        a_job("j", 6),
        "Unschedulable",
        "NotEnoughResources",
        "2/6 tasks in gang unschedulable: pod group is not ready, 6 Pending, 6 minAvailable;"
        " Pending: 2 Unschedulable, 4 Schedulable. Origin reason is j-4: 0/1 nodes are"
        " unavailable: 1 Insufficient cpu.",
    ),
    "a gang that lost a member": Told(
        [a_group("j", least=2, phase="Running"), a_pod("p", job="j", node="n")],
        "Unschedulable",
        "NotEnoughTasks",
        "1/1 tasks in gang unschedulable: pod group is not ready, 1 Running, 2 minAvailable."
        " Origin reason is: Not enough valid tasks for gang-scheduling, valid: 1, min: 2",
    ),
    "a gang that waits for members to leave": Told(
        [
            a_group("j", least=2),
            *[a_pod(f"p{i}", job="j") for i in range(2)],
            a_pod("old", "3", node="n", deleting=True),
        ],
        "Unschedulable",
        "NotEnoughResources",
        "1/2 tasks in gang unschedulable: pod group is not ready, 1 Allocated, 1 Pipelined,"
        " 2 minAvailable",
    ),
}


@pytest.mark.parametrize("case", TOLD.values(), ids=TOLD.keys())
def test_conditions(case: Told) -> None:
    plan = a_plan(CONF, a_node("n", "4 64Gi"), case.world)
    (group,) = plan.groups
    (condition,) = group.conditions
    assert (condition.type, condition.reason, condition.message) == (
        case.kind,
        case.reason,
        case.message,
    )
    assert condition.status == "True"


SILENT: dict[str, list[Thing]] = {
    "a group without pods": [a_group("j", least=2)],
    "a gang whose members merely leave": [
        a_group("j", least=1, phase="Running"),
        a_pod("p", job="j", node="n", deleting=True),
    ],
}


@pytest.mark.parametrize("world", SILENT.values(), ids=SILENT.keys())
def test_no_condition(world: list[Thing]) -> None:
    (group,) = a_plan(CONF, a_node("n", "4 64Gi"), world).groups
    assert (group.conditions, group.event) == ((), None)
