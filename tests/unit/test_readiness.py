"""When a gang may start, and when it is worth going on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from pumice.core.api.core import Pod
from pumice.core.api.scheduling import SubGroupPolicy
from pumice.core.ids import JobKey
from pumice.core.model.jobs import JobInfo
from pumice.core.model.tasks import Status, Task
from pumice.core.readiness import (
    is_starving,
    job_pipelined,
    job_ready,
    roles_valid,
    sub_jobs_valid,
    worth_continuing,
)
from tests.builders import a_cluster, a_group, a_pod


def part(name: str, *, size: int = 1, least: int = 0) -> SubGroupPolicy:
    return SubGroupPolicy(
        name=name, match_label_keys=[name], sub_group_size=size, min_sub_groups=least
    )


def members(text: str) -> list[Pod]:
    """Return pods by words `status[:role[:part]]`; `besteffort` waits and asks for nothing."""
    pods = []
    for i, word in enumerate(text.split()):
        status, role, part_id = [*word.split(":"), "", ""][:3]
        pods.append(
            a_pod(
                f"p{i}",
                "" if status == "besteffort" else "1",
                job="j",
                role=role,
                labels={"part": part_id} if part_id else {},
                node="" if status in ("pending", "besteffort", "gone") else "n",
                phase=status.capitalize() if status in ("succeeded", "failed") else "",
                deleting=status in ("leaving", "gone"),
            )
        )
    return pods


@dataclass(frozen=True)
class Case:
    pods: str
    ready: bool
    least: int = 2
    roles: Mapping[str, int] = field(default_factory=dict)
    policies: tuple[SubGroupPolicy, ...] = ()
    starving: bool = False


CASES = {
    "enough tasks run": Case("running running", True),
    "too few tasks run": Case("running pending", False, starving=True),
    "a succeeded task counts": Case("running succeeded", True),
    "a failed one does not": Case("running failed", False, starving=True),
    "one on its way out does not": Case("running leaving", False, starving=True),
    "a waiting task that asks for nothing counts": Case("running besteffort", True, starving=True),
    "one that was deleted before it ran does not": Case("running gone", False, starving=True),
    "a gang of none is ready": Case("pending", True, 0),
    "each role has its minimum": Case("running:a running:b", True, roles={"a": 1, "b": 1}),
    "a role lacks a task": Case("running:a running:a", False, roles={"a": 1, "b": 1}),
    "a role's task that asks for nothing counts": Case(
        "running:a besteffort:b", True, roles={"a": 1, "b": 1}, starving=True
    ),
    "minima of roles beyond the job's own are not looked at": Case(
        "running:a running:a", True, roles={"a": 2, "b": 1}
    ),
    "enough parts are ready": Case(
        "running::1 running::2", True, policies=(part("part", least=2),)
    ),
    "too few parts are ready": Case(
        "running::1 running::1", False, policies=(part("part", least=2),)
    ),
    "a part needs its size": Case(
        "running::1 running::2 running::2 pending::1",
        False,
        policies=(part("part", size=2, least=2),),
    ),
    "parts do not matter without a minimum of them": Case(
        "running::1 running::1", True, policies=(part("part"),)
    ),
}


def a_member_job(case: Case) -> JobInfo:
    group = a_group("j", least=case.least, roles=case.roles, policies=case.policies)
    return a_cluster(group, members(case.pods)).jobs[JobKey("ns/j")]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_ready(case: Case) -> None:
    job = a_member_job(case)
    assert (job_ready(job), is_starving(job)) == (case.ready, case.starving)


def test_ready_by_another_view_of_the_tasks() -> None:
    """In the barrier a pod whose node is decided waits until kube-scheduler has accepted it."""
    group = a_group("j", least=3)
    pods = [a_pod("a", job="j"), a_pod("b", job="j"), a_pod("c", "", job="j")]
    cluster = a_cluster(group, pods, assumed={"a": "n", "b": "n"})
    job = cluster.jobs[JobKey("ns/j")]

    def seen(*arrived: str) -> bool:
        def status_of(task: Task) -> Status:
            decided = task.status is Status.BINDING
            return Status.PENDING if decided and task.name not in arrived else task.status

        return job_ready(job, status_of)

    assert job_ready(job)
    assert (seen(), seen("a"), seen("a", "b")) == (False, False, True)


def test_pipelined_tasks_count_for_pipelined_only() -> None:
    job = a_member_job(
        Case("running:a:1 pending:b:2", False, roles={"a": 1, "b": 1}, policies=(part("part"),))
    ).clone()
    waiting = next(task for task in job.tasks.values() if task.status is Status.PENDING)
    assert not job_pipelined(job)
    job.put(waiting.at(Status.PIPELINED, "n"))
    assert (job_ready(job), job_pipelined(job), is_starving(job)) == (False, True, False)


VALID = {
    "roles that can reach their minima": (
        Case("running:a pending:b", True, roles={"a": 1, "b": 1}),
        True,
        True,
    ),
    "a role without enough pods": (
        Case("running:a failed:b", False, roles={"a": 1, "b": 1}),
        False,
        True,
    ),
    "a role without pods": (Case("running:a", False, roles={"a": 1, "b": 1}), False, True),
    "enough parts": (
        Case("pending::1 pending::2", False, policies=(part("part", least=2),)),
        True,
        True,
    ),
    "too few parts": (Case("pending::1", False, policies=(part("part", least=2),)), True, False),
}


@pytest.mark.parametrize(("case", "roles", "parts"), VALID.values(), ids=VALID.keys())
def test_validity(case: Case, roles: bool, parts: bool) -> None:
    job = a_member_job(case)
    assert (roles_valid(job), sub_jobs_valid(job)) == (roles, parts)


@dataclass(frozen=True)
class Going:
    case: Case
    failed: set[str]
    want: bool


GOING = {
    "every task is needed": Going(Case("pending:a pending:b", False), {"a"}, False),
    "a spare task failed": Going(Case("pending:a pending:b pending:b", False), {"a"}, True),
    "a role with its minimum may fail further": Going(
        Case("running:a pending:a pending:b", False, roles={"a": 1, "b": 1}), {"a"}, True
    ),
    "a role below its minimum may not": Going(
        Case("pending:a pending:a pending:b", False, roles={"a": 1, "b": 1}), {"a"}, False
    ),
    "others suffice where minima are not looked at": Going(
        Case("pending:a pending:b pending:b", False, roles={"a": 2, "b": 2}), {"a"}, True
    ),
    "others do not suffice": Going(
        Case("pending:a pending:a pending:b", False, roles={"a": 2, "b": 2}), {"a"}, False
    ),
}


@pytest.mark.parametrize("going", GOING.values(), ids=GOING.keys())
def test_worth_continuing(going: Going) -> None:
    assert worth_continuing(a_member_job(going.case), None, going.failed) is going.want


def test_worth_continuing_within_a_part() -> None:
    policies = (part("part", size=2, least=1),)
    job = a_member_job(
        Case("pending::1 pending::1 pending::2 pending::2 pending::2", False, policies=policies)
    )
    whole, spare = (job.sub_jobs[f"ns/j/part-{i}"] for i in (1, 2))
    assert worth_continuing(job, whole, {""}) is False
    assert worth_continuing(job, spare, {""}) is True
