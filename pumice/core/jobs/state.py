"""
The phases of a Job, as one table.

       create        enough pods started       R: enough succeeded
    ────────► Pending ─────────────────► Running ───────────────► Completed
                ▲ ▲ └─────────────────────┘ │ │ │ └──────────────► Failed
                │ │   R: too many pending   │ │ └─ CompleteJob ──► Completing ──► Completed
                │ │                         │ └─── TerminateJob ─► Terminating ─► Terminated
                │ └── X ── Restarting ◄─────┤ RestartJob, ...Task, ...Pod, ...Partition
                │             │   ▲         └───── AbortJob ────► Aborting ────► Aborted
                │   X: no more│   │ ResumeJob                         │              │
                │     retries ▼   └───────────────────────────────────┴──────────────┘
                            Failed

    Pending takes every command that Running takes. Completed, Failed and Terminated are never
    left. A command other than a restart that reaches a restarting Job is swallowed, as in Volcano.

Each cell says how pods are treated (`sync` makes what is missing, `kill` removes), which phase the
Job takes, and which rule settles the phase from the counters afterwards. docs/job-states.md shows
the table in full; `pumice.core.jobs.state_page` writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pumice.core.api.batch import JobPhase, JobSpec, JobStatus
from pumice.core.jobs import types as t

Retained = frozenset[str]
SOFT: Final[Retained] = frozenset({"Succeeded", "Failed"})
NONE: Final[Retained] = frozenset()


@dataclass(frozen=True, slots=True)
class Rule:
    """How fresh counters settle the phase."""

    #: what cells call it
    letter: str
    phase_of: Callable[[JobSpec, JobStatus], JobPhase]
    #: the phases it may leave for, each with the reason; otherwise the Job stays
    outcomes: Mapping[JobPhase, str]


@dataclass(frozen=True, slots=True)
class Step:
    """One cell of the table."""

    do: Literal["sync", "kill", "kill target"]
    #: pod phases that a kill spares
    retain: Retained = NONE
    #: the phase to take, counters aside; None: let `settle` say
    goto: JobPhase | None = None
    settle: Rule | None = None
    #: spend one of the Job's retries
    retry: bool = False


def total_replicas(spec: JobSpec) -> int:
    """Return how many pods the Job asks for."""
    return sum(task.replicas for task in spec.tasks or ())


def started(spec: JobSpec, status: JobStatus) -> JobPhase:
    """P: a Job runs once its minimum has started, in whatever way the pods ended since."""
    if status.running + status.succeeded + status.failed >= spec.min_available:
        return "Running"
    return "Pending"


def running(spec: JobSpec, status: JobStatus) -> JobPhase:
    """R: what a running Job's counters mean; the order of the questions matters."""
    total = total_replicas(spec)
    if total == 0:
        return "Running"
    if spec.min_success is not None and status.succeeded >= spec.min_success:
        return "Completed"
    if status.succeeded + status.failed == total:
        return _ended(spec, status)
    if status.pending > total - spec.min_available:
        return "Pending"
    return "Running"


def _ended(spec: JobSpec, status: JobStatus) -> JobPhase:
    """Judge a Job all of whose pods ended."""
    tasks = spec.tasks or []
    counts = status.task_status_count or {}
    minima = sum(x.replicas if x.min_available is None else x.min_available for x in tasks)
    if spec.min_available >= minima:
        for task in tasks:
            count = counts.get(task.name or "")
            if task.min_available is None or count is None:
                continue
            if (count.phase or {}).get("Succeeded", 0) < task.min_available:
                return "Failed"
    if spec.min_success is not None or status.succeeded < spec.min_available:
        return "Failed"
    return "Completed"


def restarted(spec: JobSpec, status: JobStatus) -> JobPhase:
    """X: a restart fails the Job on its last retry, and is over once enough old pods are gone."""
    if status.retry_count >= spec.max_retry:
        return "Failed"
    if total_replicas(spec) - status.terminating >= status.min_available:
        return "Pending"
    return "Restarting"


def _emptied(letter: str, before: JobPhase, after: JobPhase) -> Rule:
    """Return the rule that leaves `before` for `after` when nothing lives any more."""

    def phase_of(_spec: JobSpec, status: JobStatus) -> JobPhase:
        return before if status.terminating or status.pending or status.running else after

    return Rule(letter, phase_of, {after: "no pod is pending, running or terminating"})


STARTED: Final = Rule("P", started, {"Running": "as many pods as the minimum have started"})
RUNNING: Final = Rule(
    "R",
    running,
    {
        "Completed": "minSuccess pods succeeded, or all ended and enough succeeded",
        "Failed": "all ended, and too few succeeded",
        "Pending": "more pods are pending than the minimum leaves over",
    },
)
RESTARTED: Final = Rule(
    "X",
    restarted,
    {
        "Failed": "no retry is left",
        "Pending": "enough old pods are gone for the minimum to be made",
    },
)
ABORTED: Final = _emptied("A", "Aborting", "Aborted")
COMPLETED: Final = _emptied("C", "Completing", "Completed")
TERMINATED: Final = _emptied("T", "Terminating", "Terminated")

_OF_TARGETS = (t.RESTART_TASK, t.RESTART_POD, t.RESTART_PARTITION)
_ALIVE: Final[Mapping[str, Step]] = {
    t.RESTART: Step("kill", NONE, goto="Restarting", retry=True),
    **dict.fromkeys(_OF_TARGETS, Step("kill target", goto="Restarting", retry=True)),
    t.ABORT: Step("kill", SOFT, goto="Aborting"),
    t.COMPLETE: Step("kill", SOFT, goto="Completing"),
    t.TERMINATE: Step("kill", SOFT, goto="Terminating"),
}
_RESUME: Final = Step("kill", SOFT, goto="Restarting", retry=True)
_FINISHED: Final[Mapping[str, Step]] = {"*": Step("kill", SOFT)}

#: phase -> action -> step; `*` stands for every action that is not listed
TABLE: Final[Mapping[JobPhase, Mapping[str, Step]]] = {
    "Pending": {**_ALIVE, "*": Step("sync", settle=STARTED)},
    "Running": {**_ALIVE, "*": Step("sync", settle=RUNNING)},
    "Restarting": {
        t.SYNC: Step("sync", settle=RESTARTED),
        **dict.fromkeys(_OF_TARGETS, Step("kill target", settle=RESTARTED)),
        "*": Step("kill", NONE, settle=RESTARTED),
    },
    "Aborting": {
        t.RESUME: _RESUME,
        "*": Step("kill", SOFT, settle=ABORTED),
    },
    "Aborted": {t.RESUME: _RESUME, "*": Step("kill", SOFT)},
    "Completing": {"*": Step("kill", SOFT, settle=COMPLETED)},
    "Terminating": {"*": Step("kill", SOFT, settle=TERMINATED)},
    "Completed": _FINISHED,
    "Failed": _FINISHED,
    "Terminated": _FINISHED,
}


def step(phase: JobPhase | Literal[""], action: t.Action) -> Step:
    """Return the cell for an action; a Job without a phase counts as pending."""
    row = TABLE[phase or "Pending"]
    return row.get(action, row["*"])
