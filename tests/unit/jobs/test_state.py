"""The phases: every cell of the table, and the rules that settle a phase from the counters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from pumice.core.api.batch import JobPhase, TaskSpec, TaskState
from pumice.core.jobs import types as t
from pumice.core.jobs.state import NONE, SOFT, restarted, running, started, step
from tests.unit.jobs.builders import a_job, a_task

RESTARTS = (t.RESTART_TASK, t.RESTART_POD, t.RESTART_PARTITION)
ORDERS = (t.RESTART, *RESTARTS, t.ABORT, t.COMPLETE, t.TERMINATE, t.RESUME, t.SYNC, "Whatever")
#: what a cell says, in short: what is done, what a kill spares, the phase taken, retries spent
Cell = tuple[str, frozenset[str], JobPhase | None, bool]
RESTART_ALL: Cell = ("kill", NONE, "Restarting", True)
RESTART_SOME: Cell = ("kill target", NONE, "Restarting", True)
RESUME: Cell = ("kill", SOFT, "Restarting", True)
SYNC: Cell = ("sync", NONE, None, False)
KILL_SOFT: Cell = ("kill", SOFT, None, False)
KILL_ALL: Cell = ("kill", NONE, None, False)
ALIVE: dict[str, Cell] = {
    t.RESTART: RESTART_ALL,
    **dict.fromkeys(RESTARTS, RESTART_SOME),
    t.ABORT: ("kill", SOFT, "Aborting", False),
    t.COMPLETE: ("kill", SOFT, "Completing", False),
    t.TERMINATE: ("kill", SOFT, "Terminating", False),
    t.RESUME: SYNC,
    t.SYNC: SYNC,
    "Whatever": SYNC,
}
ENDED: dict[str, Cell] = dict.fromkeys(ORDERS, KILL_SOFT)
TABLE: dict[str, tuple[JobPhase, dict[str, Cell]]] = {
    "a pending job takes every order": ("Pending", ALIVE),
    "a running job takes every order": ("Running", ALIVE),
    "a restarting job swallows orders and goes on restarting": (
        "Restarting",
        {
            **dict.fromkeys(ORDERS, KILL_ALL),
            **dict.fromkeys(RESTARTS, ("kill target", NONE, None, False)),
            t.SYNC: SYNC,
        },
    ),
    "an aborting job can only be resumed": ("Aborting", {**ENDED, t.RESUME: RESUME}),
    "an aborted job can only be resumed": ("Aborted", {**ENDED, t.RESUME: RESUME}),
    "a completing job is completed": ("Completing", ENDED),
    "a terminating job is terminated": ("Terminating", ENDED),
    "a completed job is never left": ("Completed", ENDED),
    "a failed job is never left": ("Failed", ENDED),
    "a terminated job is never left": ("Terminated", ENDED),
}


@pytest.mark.parametrize(("phase", "want"), TABLE.values(), ids=TABLE.keys())
def test_the_table(phase: JobPhase, want: dict[str, Cell]) -> None:
    cells = {order: step(phase, order) for order in ORDERS}

    assert {o: (c.do, c.retain, c.goto, c.retry) for o, c in cells.items()} == want


def test_a_job_without_a_phase_is_pending() -> None:
    assert step("", t.SYNC) == step("Pending", t.SYNC)


@dataclass(frozen=True)
class Case:
    want: JobPhase
    tasks: list[TaskSpec] = field(default_factory=lambda: [a_task("w", 4)])
    spec: dict[str, Any] = field(default_factory=dict)
    pods: dict[str, int] = field(default_factory=dict)
    ended: dict[str, dict[str, int]] = field(default_factory=dict)


TWO = [a_task("a", 2, min_available=1), a_task("b", 2, min_available=1)]
RUNNING = {
    "a job without pods stays": Case("Running", tasks=[a_task("w", 0)]),
    "all pods succeeded": Case("Completed", pods={"succeeded": 4}),
    "one of four failed": Case("Failed", pods={"succeeded": 3, "failed": 1}),
    "one of four failed, and three are enough": Case(
        "Completed",
        spec={"min_available": 3},
        pods={"succeeded": 3, "failed": 1},
    ),
    "all ended and too few succeeded": Case(
        "Failed", spec={"min_available": 3}, pods={"succeeded": 2, "failed": 2}
    ),
    "one still runs": Case("Running", pods={"succeeded": 3, "running": 1}),
    "enough succeeded while others run": Case(
        "Completed", spec={"min_success": 2}, pods={"succeeded": 2, "running": 2}
    ),
    "all ended below minSuccess though above minAvailable": Case(
        "Failed", spec={"min_success": 3, "min_available": 1}, pods={"succeeded": 2, "failed": 2}
    ),
    "a task below its minimum fails a job that asks for all minima": Case(
        "Failed",
        tasks=TWO,
        spec={"min_available": 2},
        pods={"succeeded": 2, "failed": 2},
        ended={"a": {"Succeeded": 2}, "b": {"Failed": 2}},
    ),
    "a task below its minimum is no matter where the job asks for less": Case(
        "Completed",
        tasks=TWO,
        spec={"min_available": 1},
        pods={"succeeded": 2, "failed": 2},
        ended={"a": {"Succeeded": 2}, "b": {"Failed": 2}},
    ),
    "more pods wait than the minimum allows": Case(
        "Pending", spec={"min_available": 3}, pods={"pending": 2, "running": 2}
    ),
    "as many pods wait as the minimum allows": Case(
        "Running", spec={"min_available": 3}, pods={"pending": 1, "running": 3}
    ),
}


@pytest.mark.parametrize("case", RUNNING.values(), ids=RUNNING.keys())
def test_running(case: Case) -> None:
    counts = {task: TaskState(phase=phases) for task, phases in case.ended.items()}
    job = a_job(*case.tasks, status={**case.pods, "task_status_count": counts}, **case.spec)

    assert running(job.spec, job.status) == case.want


@pytest.mark.parametrize(
    ("pods", "want"),
    [({"running": 1}, "Pending"), ({"running": 1, "succeeded": 1, "failed": 1}, "Running")],
)
def test_a_job_has_started_when_its_minimum_has(pods: dict[str, int], want: JobPhase) -> None:
    job = a_job(a_task("w", 4), min_available=3, status=pods)

    assert started(job.spec, job.status) == want


RESTARTED: dict[str, tuple[dict[str, int], JobPhase]] = {
    "old pods hold too many places": ({"terminating": 2, "min_available": 3}, "Restarting"),
    "enough old pods are gone": ({"terminating": 1, "min_available": 3}, "Pending"),
    "the last retry is spent": ({"retry_count": 3, "min_available": 3}, "Failed"),
}


@pytest.mark.parametrize(("status", "want"), RESTARTED.values(), ids=RESTARTED.keys())
def test_restarted(status: dict[str, int], want: JobPhase) -> None:
    job = a_job(a_task("w", 4), max_retry=3, status=status)

    assert restarted(job.spec, job.status) == want
