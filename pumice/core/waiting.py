"""
Why jobs wait: the sentence, the reason as data, and what is said of each pod.

Thousands of jobs may wait for the same, so what is said of many in the same words is made once.
Texts are Volcano's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Final

import numpy as np

from pumice.core.findings import Findings
from pumice.core.fitness import FitErrors, Limit, Trouble
from pumice.core.ids import PodUid
from pumice.core.model.jobs import JobInfo
from pumice.core.model.tasks import Status, Task, TaskClass
from pumice.core.plan import Obstacle, PodNote, Reason
from pumice.core.readiness import job_ready
from pumice.core.resources import PODS, Floats, plus
from pumice.core.workspace import Trial, Workspace

Needs = tuple[tuple[TaskClass, int], ...]
"""Classes of tasks, and how many of each."""

WAITING: Final = Status.PENDING | Status.ALLOCATED | Status.PIPELINED
_UNTRIED: Final = ("", FitErrors())


@dataclass(frozen=True, slots=True)
class Waiting:
    """A session's state at its end, and what it says of the jobs that wait."""

    #: resource names by row
    names: Sequence[str]
    space: Workspace
    findings: Findings
    #: what is free on all nodes together, in units by row
    free: Floats = field(init=False)
    _balances: dict[Needs, dict[str, float]] = field(default_factory=dict)
    _asked: dict[TaskClass, dict[str, float]] = field(default_factory=dict)
    _refusals: dict[FitErrors, PodNote] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "free", self.space.nodes.idle.clip(min=0).sum(axis=1))

    def found(self, job: JobInfo) -> int:
        """Return how many waiting tasks had found a node before their gang gave it back."""
        last = self.space.last
        if not last:
            return 0
        return sum(
            task.status is Status.PENDING
            and (trial := last.get(task.uid)) is not None
            and trial.status is Status.ALLOCATED
            for task in job.tasks.values()
        )

    def sentence(self, job: JobInfo, trouble: Trouble, found: int) -> str:
        """Return in a sentence why a job waits: its tasks by status, and the first thing amiss."""
        total = job.counts.total
        by_status = tuple(total.by_status.items())
        text = _summary(by_status, job.min_available, job_ready(job), total.pending, found)
        if trouble.message:
            return f"{text}. Origin reason is: {in_full(trouble)}"
        for uid, errors in trouble.tasks.items():
            words = self._refusal(errors).message
            return f"{text}. Origin reason is {job.tasks[PodUid(uid)].name}: {words}"
        for uid, limit in trouble.over_limit.items():
            return f"{text}. Origin reason is {job.tasks[PodUid(uid)].name}: {limit.message}"
        return text

    def reason(self, job: JobInfo, trouble: Trouble, text: str, found: int) -> Reason:
        """Return why a job, or a part of it, waits: what it needs, and what is free."""
        # Of those that were passed over for another one's sake there is nothing to tell.
        tried = (entry for entry in trouble.tasks.items() if not entry[1].error)
        uid, errors = next(tried, _UNTRIED)
        limit = _limit(trouble)
        numbers = dict(trouble.numbers)
        numbers["minAvailable"] = float(job.min_available)
        numbers["ready"] = float(job.counts.total.ready)
        if trouble.tasks or limit is not None:
            numbers |= self._balance(job)
        if limit is not None:
            numbers |= limit.numbers
            uid = next(iter(trouble.over_limit), uid)
        asking = job.tasks.get(PodUid(uid)) or next(iter(job.tasks.values()), None)
        return Reason(
            "enqueue" if job.is_pending else "allocate",
            (limit.plugin if limit else trouble.plugin) or "gang",
            trouble.message or text,
            numbers,
            errors.reasons,
            detail=limit.message if limit else trouble.detail,
            obstacle=self._obstacle(job, trouble, limit),
            whole=job_ready(job),
            queue=job.queue,
            waiting=job.counts.total.count(WAITING),
            found=found,
            asks=self._asks(asking.cls) if asking else {},
            of_nodes=errors.nodes,
            most=errors.most,
            confined=trouble.confined if limit is None else None,
            rivals=trouble.rivals,
            expected=self._expected(job),
        )

    def _expected(self, job: JobInfo) -> float | None:
        """Return when the job is to start at the latest, where room is kept for it."""
        kept = self.findings.reservation
        return kept.start if kept is not None and kept.job == job.key else None

    def _obstacle(self, job: JobInfo, trouble: Trouble, limit: Limit | None) -> Obstacle:
        if trouble.invalid:
            return "too few pods"
        if job.is_pending and trouble.message:
            return "admission"
        if trouble.tasks or not len(self.space.nodes):
            return "room"
        if trouble.confined and not limit and not trouble.message:
            return "room"
        if limit is not None or trouble.by_queue:
            return "queue"
        if trouble.message:
            return ""
        trials = (self.space.last.get(uid) for uid in job.tasks)
        promised = any(trial.status is Status.PIPELINED for trial in trials if trial is not None)
        if promised or job.counts.total.waiting:
            return "promised"
        return "gates" if any(task.gates for task in job.tasks.values()) else ""

    def _balance(self, job: JobInfo) -> Mapping[str, float]:
        """Return what the waiting tasks ask for that the gang needs next, and what is free."""
        needs = _needs(job)
        known = self._balances.get(needs)
        if known is not None:
            return known
        needed = np.zeros(0)
        for cls, n in needs:
            needed = plus(needed, cls.req * n)
        numbers = self._balances[needs] = {}
        for row, amount in enumerate(needed.tolist()):
            if amount:
                numbers[f"needed {self.names[row]}"] = amount
                numbers[f"free {self.names[row]}"] = float(self.free[row])
        return numbers

    def _asks(self, cls: TaskClass) -> Mapping[str, float]:
        """Return what a task asks for besides its pod slot, by resource."""
        known = self._asked.get(cls)
        if known is None:
            rows = (row for row in cls.rows if row != PODS)
            known = self._asked[cls] = {self.names[row]: float(cls.req[row]) for row in rows}
        return known

    # Pods.

    def notes(self, job: JobInfo, trouble: Trouble, text: str) -> dict[PodUid, PodNote]:
        """Return the PodScheduled conditions of the job's waiting pods."""
        notes: dict[PodUid, PodNote] = {}
        common: PodNote | None = None
        for uid, task in job.tasks.items():
            if not task.status & WAITING or task.gates:
                continue
            trial, errors = self.space.last.get(uid), trouble.tasks.get(uid)
            if trial is None and task.status is not Status.PENDING:
                trial = Trial(task.status, task.node)
            if trial is not None and trial.status is not Status.PENDING:
                notes[uid] = self._found_room(task, trial)
            elif uid in trouble.over_limit:
                limit = trouble.over_limit[uid]
                notes[uid] = PodNote("Unschedulable", limit.message, "", limit.by_capacity)
            elif errors is not None:
                notes[uid] = self._refusal(errors)
            else:
                if common is None:
                    held = trouble.by_queue or bool(trouble.invalid) or job.is_pending
                    common = PodNote("Unschedulable", text, by_capacity=not held)
                notes[uid] = common
        return notes

    def _refusal(self, errors: FitErrors) -> PodNote:
        """Return what is said of all pods that found no node for the same reason."""
        known = self._refusals.get(errors)
        if known is None:
            known = self._refusals[errors] = PodNote("Unschedulable", str(errors), errors=errors)
        return known

    def _found_room(self, task: Task, trial: Trial) -> PodNote:
        where = f"Pod {task.key} can possibly be assigned to {trial.node}, once"
        if trial.status is Status.ALLOCATED:
            return PodNote("Schedulable", f"{where} minAvailable is satisfied", trial.node)
        node = trial.node if task.uid in self.space.evicted_for else ""
        message = f"{where} resource is released and minAvailable is satisfied"
        return PodNote("Unschedulable", message, node)


@lru_cache(maxsize=1024)
def _summary(
    by_status: tuple[tuple[Status, int], ...], least: int, ready: bool, pending: int, found: int
) -> str:
    """Return a job's tasks in words: by status, and how many of those that wait found a node."""
    tasks = _listed([f"{least} minAvailable", *(f"{n} {status.title}" for status, n in by_status)])
    text = f"pod group is {'' if ready else 'not '}ready, {tasks}"
    verdicts = {"Schedulable": found, "Unschedulable": pending - found}
    waiting = _listed(f"{n} {verdict}" for verdict, n in verdicts.items() if n)
    return f"{text}; Pending: {waiting}" if waiting else text


def _listed(entries: Iterable[str]) -> str:
    return ", ".join(sorted(entries))


def _limit(trouble: Trouble) -> Limit | None:
    """Return what the queue had against the job, or against a task of it, if anything."""
    if trouble.message or trouble.tasks:
        return trouble.limit
    return next(iter(trouble.over_limit.values()), None)


def _needs(job: JobInfo) -> Needs:
    """Return of which classes the waiting tasks are that the gang needs next."""
    lacking = max(job.min_available - job.counts.total.ready, 1)
    waiting = (
        task.cls
        for task in job.tasks.values()
        if task.status & WAITING and not task.cls.best_effort
    )
    return tuple(Counter(islice(waiting, lacking)).items())


def in_full(trouble: Trouble) -> str:
    """Return what keeps a group from being let in, with its numbers."""
    return f"{trouble.message}: {trouble.detail}" if trouble.detail else trouble.message
