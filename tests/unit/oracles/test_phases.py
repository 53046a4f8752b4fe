"""The phase of a group, by its tasks."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pumice.core.api.scheduling import PodGroupPhase
from pumice.core.phases import phase_of
from tests.unit.oracles.cases import job_of


@dataclass(frozen=True)
class Case:
    """Tasks as `status@node`; `unschedulable` where this session could not place the gang."""

    before: PodGroupPhase
    least: int
    tasks: str
    want: PodGroupPhase
    unschedulable: bool = False


CASES = {
    "its only task leaves": Case("Running", 1, "releasing@n1", "Running"),
    "one of two tasks leaves": Case("Running", 2, "running@n1 releasing@n2", "Running"),
    "both tasks leave": Case("Running", 2, "releasing@n1 releasing@n2", "Running"),
    "tasks that never had a node leave": Case("Pending", 2, "releasing@ pending@", "Pending"),
    "all tasks have finished": Case("Running", 2, "succeeded@n1 succeeded@n2", "Completed"),
    "one of two tasks is all that is left": Case("Running", 2, "releasing@n1", "Pending"),
    "tasks run below the minimum": Case(
        "Running", 2, "running@n1 pending@", "Unknown", unschedulable=True
    ),
    "nothing runs below the minimum": Case(
        "Inqueue", 2, "pending@ pending@", "Inqueue", unschedulable=True
    ),
    "tasks are bound below the minimum": Case(
        "Running", 2, "bound@n1 pending@", "Pending", unschedulable=True
    ),
    "tasks run": Case("Inqueue", 2, "running@n1 bound@n2", "Running"),
    "tasks that are only decided are not scheduled yet": Case(
        "Inqueue", 2, "binding@n1 binding@n2", "Inqueue"
    ),
    "nor are those that wait for others": Case(
        "Inqueue", 2, "allocated@n1 pipelined@n2", "Inqueue"
    ),
    "a group that was never let in": Case("Pending", 2, "running@n1 pending@", "Pending"),
    "a failed task counts as finished": Case("Running", 2, "failed@n1 succeeded@n2", "Completed"),
    "all tasks have failed": Case("Running", 2, "failed@n1 failed@n2", "Completed"),
    "some have finished and others run": Case("Running", 1, "succeeded@n1 running@n2", "Running"),
    "the minimum has finished and others wait": Case(
        "Running", 1, "succeeded@n1 pending@", "Running"
    ),
    "too few are left of a group that ran": Case("Running", 2, "failed@n1", "Pending"),
    "let in, without a minimum and without tasks": Case("Inqueue", 0, "", "Running"),
    "let in, without a minimum, tasks wait": Case("Inqueue", 0, "pending@", "Running"),
    "not let in, without a minimum": Case("Pending", 0, "pending@", "Pending"),
    "without a minimum, all tasks have finished": Case("Running", 0, "succeeded@n", "Completed"),
    "a phase that was never written": Case("", 1, "pending@", "Pending"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_phase(case: Case) -> None:
    job = job_of(case.tasks, least=case.least, phase=case.before)
    assert phase_of(job, unschedulable=case.unschedulable) == case.want
