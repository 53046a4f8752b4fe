"""
Closing: what a session has to say of groups, pods and queues once all actions have run.

Only jobs that were looked at are reported: of all others the status is what it was. Texts and
conditions are Volcano's. Nothing is compared with what is stored; whoever writes the status
leaves out what would change nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from pumice.core.api.scheduling import PodGroupCondition
from pumice.core.fitness import FitErrors, Limit, Trouble
from pumice.core.ids import JobKey, PodUid
from pumice.core.model.inputs import Reservation
from pumice.core.model.jobs import JobInfo
from pumice.core.model.queues import QueueInfo
from pumice.core.model.snapshots import Snapshot
from pumice.core.model.tasks import Status, Task, TaskClass
from pumice.core.phases import phase_of
from pumice.core.plan import (
    Admit,
    Allocate,
    Enqueue,
    Evict,
    GroupStatus,
    Obstacle,
    Placement,
    Plan,
    PodNote,
    QueueUse,
    Reason,
    Victim,
)
from pumice.core.readiness import job_ready
from pumice.core.resources import PODS, Floats, as_text, plus
from pumice.core.timestamps import stamp
from pumice.core.workspace import Trial, Workspace

Event = tuple[Literal["Normal", "Warning"], str, str]
ConditionType = Literal["Unschedulable", "Scheduled"]

NOT_ENOUGH_RESOURCES: Final = "NotEnoughResources"
QUEUE_NOT_FOUND: Final = "QueueNotFound"
MALFORMED: Final = "Malformed"
READY: Final = "tasks in gang are ready to be scheduled"
_GANG: Final = "tasks in gang unschedulable"
_NO_TROUBLE = Trouble()
_NOTED = Status.PENDING | Status.ALLOCATED | Status.PIPELINED


@dataclass(slots=True)
class Findings:
    """What actions and plugins write down in the course of a session."""

    troubles: dict[JobKey, Trouble] = field(default_factory=dict)
    #: groups whose gang could not be placed: reason of the condition
    unschedulable: dict[JobKey, str] = field(default_factory=dict)
    #: groups whose gang is ready
    schedulable: set[JobKey] = field(default_factory=set)
    #: why a queue could not have more, as last found
    limits: dict[str, Limit] = field(default_factory=dict)
    #: what each queue deserves, in units by row
    deserved: Mapping[str, Sequence[float]] = field(default_factory=dict)
    #: of groups that are bound to HyperNodes the lowest one that holds their pods, if any
    hypernodes: dict[JobKey, str] = field(default_factory=dict)
    enqueued: list[Enqueue] = field(default_factory=list)
    admitted: list[Admit] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    #: plugins that raised -> the extension points at which they did, and how often
    failures: dict[str, Counter[str]] = field(default_factory=dict)
    #: room that is kept for a gang
    reservation: Reservation | None = None
    #: plugins that act from time to time and did so in this session -> when
    acted: dict[str, float] = field(default_factory=dict)

    def trouble(self, job: JobInfo) -> Trouble:
        """Return the record of what keeps a job's tasks from being placed."""
        found = self.troubles.get(job.key)
        if found is None:
            found = self.troubles[job.key] = Trouble()
        return found


@dataclass(frozen=True, slots=True)
class Closing:
    """A session's state at its end, and the texts made of it."""

    id: str
    now: float
    snapshot: Snapshot
    space: Workspace
    findings: Findings
    #: the condition of all gangs that are ready
    ready: PodGroupCondition = field(init=False)
    #: what is free on all nodes together, in units by row
    free: Floats = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ready", self._condition("Scheduled", READY, ""))
        object.__setattr__(self, "free", self.space.nodes.idle.clip(min=0).sum(axis=1))

    def plan(self, active: Iterable[JobInfo], stranded: Iterable[JobInfo]) -> Plan:
        """Return all that was decided."""
        groups = [self._group(job) for job in active]
        groups += [self._stranded(job) for job in stranded]
        return Plan(
            session=self.id,
            now=self.now,
            allocations=tuple(self._allocations()),
            evictions=tuple(self._evictions()),
            enqueued=tuple(self.findings.enqueued),
            admitted=tuple(self.findings.admitted),
            groups=tuple(groups),
            queues=tuple(self._queues()),
            deserved=self.findings.deserved,
            warnings=tuple(self.findings.warnings),
            failures={name: n.total() for name, n in self.findings.failures.items()},
            acted=dict(self.findings.acted),
            reservation=self.findings.reservation,
        )

    def _allocations(self) -> Iterable[Allocate]:
        for commitment in self.space.committed:
            job = self.space.jobs[commitment.job]
            cards = self.space.choices
            placements = tuple(
                Placement(t.uid, t.node, cards=cards.get(t.uid)) for t in commitment.tasks
            )
            yield Allocate(job.key, job.uid, placements, self._placed(job, len(placements)))

    def _evictions(self) -> Iterable[Evict]:
        for dismissal in self.space.dismissed:
            job = self.space.jobs[dismissal.job]
            victims = tuple(
                Victim(task.uid, task.job, task.node, victim.reason)
                for victim in dismissal.victims
                if (task := victim.before).job is not None
            )
            claims = tuple(Placement(task.uid, task.node) for task in dismissal.claims)
            yield Evict(job.key, job.uid, victims, claims, dismissal.action)

    def _placed(self, job: JobInfo, n: int) -> Reason:
        total = job.counts.total
        message = (
            f"{n} of {total.total} tasks placed; with them {total.ready} are ready"
            f" of the {job.min_available} that the gang needs"
        )
        numbers = {
            "placed": float(n),
            "ready": float(total.ready),
            "minAvailable": float(job.min_available),
        }
        return Reason("allocate", "gang", message, numbers)

    # Groups.

    def _group(self, job: JobInfo) -> GroupStatus:
        reason = self.findings.unschedulable.get(job.key)
        phase = phase_of(job, unschedulable=reason is not None)
        trouble = self.findings.troubles.get(job.key, _NO_TROUBLE)
        counts = job.counts.total.by_status
        waits = reason is not None or any(status & _NOTED for status in counts)
        text = fit_error(job, trouble, self.space.last) if waits else ""
        held = job.is_pending and bool(trouble.message)
        conditions = [c for c in job.group.status.conditions or () if c.type]
        found = self._found(job) if waits else 0
        if reason is not None:
            lacking = job.min_available - job.counts.total.ready - found
            message = f"{lacking}/{job.counts.total.total} {_GANG}: {text}"
            conditions = _with(conditions, self._condition("Unschedulable", reason, message))
        elif held:
            conditions = _with(
                conditions,
                self._condition("Unschedulable", NOT_ENOUGH_RESOURCES, _in_full(trouble)),
            )
        elif job.key in self.findings.schedulable:
            conditions = _with(conditions, self.ready)
        return GroupStatus(
            job=job.key,
            group_uid=job.uid,
            phase=phase,
            running=counts.get(Status.RUNNING, 0),
            succeeded=counts.get(Status.SUCCEEDED, 0),
            failed=counts.get(Status.FAILED, 0),
            conditions=tuple(conditions),
            event=self._event(job, phase, trouble, text),
            pods=self._notes(job, trouble, text) if waits else {},
            reason=self._waiting(job, trouble, text, found) if waits or held else None,
            unschedulable=reason is not None or held,
            hypernode=self.findings.hypernodes.get(job.key),
        )

    def _condition(self, kind: ConditionType, reason: str, message: str) -> PodGroupCondition:
        return PodGroupCondition(
            type=kind,
            status="True",
            transition_id=self.id,
            last_transition_time=stamp(self.now),
            reason=reason,
            message=message,
        )

    def _found(self, job: JobInfo) -> int:
        """Return how many waiting tasks had found a node before their gang gave it back."""
        return sum(
            task.status is Status.PENDING
            and (trial := self.space.last.get(task.uid)) is not None
            and trial.status is Status.ALLOCATED
            for task in job.tasks.values()
        )

    def _event(self, job: JobInfo, phase: str, trouble: Trouble, text: str) -> Event | None:
        if job.is_pending and trouble.message:
            return ("Normal", "Unschedulable", trouble.message)
        total = job.counts.total
        if phase in ("Unknown", "Pending", "Inqueue"):
            if not total.total or job.key in self.findings.schedulable:
                return None
            return ("Warning", "Unschedulable", f"{total.pending}/{total.total} {_GANG}: {text}")
        changed = phase != job.group.status.phase
        return ("Normal", "Scheduled", "pod group is ready") if changed else None

    def _stranded(self, job: JobInfo) -> GroupStatus:
        """Report a job that is malformed or has no queue: nothing but that can be said."""
        status = job.group.status
        message = job.terms.fault or f"queue {job.queue} not found"
        reason = MALFORMED if job.terms.fault else QUEUE_NOT_FOUND
        condition = self._condition("Unschedulable", reason, message)
        note = PodNote("Unschedulable", message, by_capacity=False)
        pending = [t.uid for t in job.tasks.values() if t.status is Status.PENDING and not t.gates]
        counts = job.counts.total.by_status
        return GroupStatus(
            job=job.key,
            group_uid=job.uid,
            phase=status.phase or "Pending",
            running=counts.get(Status.RUNNING, 0),
            succeeded=counts.get(Status.SUCCEEDED, 0),
            failed=counts.get(Status.FAILED, 0),
            conditions=tuple(_with(status.conditions or (), condition)),
            event=("Warning", "Unschedulable", message),
            pods=dict.fromkeys(pending, note),
            reason=Reason(
                "session",
                "",
                message,
                obstacle="malformed" if job.terms.fault else "no queue",
                queue=job.queue,
                waiting=job.counts.total.pending,
            ),
            unschedulable=True,
        )

    def _waiting(self, job: JobInfo, trouble: Trouble, text: str, found: int) -> Reason:
        """Return why a job, or a part of it, waits: what it needs, and what is free."""
        # Of those that were passed over for another one's sake there is nothing to tell.
        tried = (entry for entry in trouble.tasks.items() if not entry[1].error)
        uid, errors = next(tried, ("", FitErrors()))
        limit = self._limit(job, trouble)
        numbers = dict(trouble.numbers)
        numbers["minAvailable"] = float(job.min_available)
        numbers["ready"] = float(job.counts.total.ready)
        if trouble.tasks or limit is not None:
            for row, amount in enumerate(_needed(job).tolist()):
                if amount:
                    numbers[f"needed {self.snapshot.names[row]}"] = amount
                    numbers[f"free {self.snapshot.names[row]}"] = float(self.free[row])
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
            waiting=job.counts.total.count(_NOTED),
            found=found,
            asks=self._asks(asking) if asking else {},
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

    def _limit(self, job: JobInfo, trouble: Trouble) -> Limit | None:
        """Return what the queue had against the job, or against a task of it, if anything."""
        if trouble.message:
            limit = self.findings.limits.get(job.queue)
            return limit if limit is not None and limit.message == trouble.message else None
        return None if trouble.tasks else next(iter(trouble.over_limit.values()), None)

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

    def _asks(self, task: Task) -> dict[str, float]:
        """Return what a task asks for besides its pod slot, by resource."""
        rows = (row for row in task.cls.rows if row != PODS)
        return {self.snapshot.names[row]: float(task.cls.req[row]) for row in rows}

    # Pods.

    def _notes(self, job: JobInfo, trouble: Trouble, text: str) -> dict[PodUid, PodNote]:
        """Return the PodScheduled conditions of the job's waiting pods."""
        notes: dict[PodUid, PodNote] = {}
        held = trouble.by_queue or bool(trouble.invalid) or job.is_pending
        common = PodNote("Unschedulable", text, by_capacity=not held)
        by_errors: dict[int, PodNote] = {}
        for task in job.tasks.values():
            if not task.status & _NOTED or task.gates:
                continue
            trial = self.space.last.get(task.uid) or Trial(task.status, task.node)
            errors = trouble.tasks.get(task.uid)
            if trial.status is not Status.PENDING:
                notes[task.uid] = self._found_room(task, trial)
            elif task.uid in trouble.over_limit:
                limit = trouble.over_limit[task.uid]
                notes[task.uid] = PodNote("Unschedulable", limit.message, "", limit.by_capacity)
            elif errors is not None:
                note = by_errors.get(id(errors))
                if note is None:
                    note = PodNote("Unschedulable", str(errors), errors=errors)
                    by_errors[id(errors)] = note
                notes[task.uid] = note
            else:
                notes[task.uid] = common
        return notes

    def _found_room(self, task: Task, trial: Trial) -> PodNote:
        where = f"Pod {task.key} can possibly be assigned to {trial.node}, once"
        if trial.status is Status.ALLOCATED:
            return PodNote("Schedulable", f"{where} minAvailable is satisfied", trial.node)
        node = trial.node if task.uid in self.space.evicted_for else ""
        message = f"{where} resource is released and minAvailable is satisfied"
        return PodNote("Unschedulable", message, node)

    # Queues.

    def _queues(self) -> Iterable[QueueUse]:
        """Add up what each queue holds, and let its ancestors hold it too."""
        held: dict[str, Floats] = {q: s.allocated for q, s in self.snapshot.usage.items()}
        placed: Counter[tuple[str, TaskClass]] = Counter()
        for commitment in self.space.committed:
            queue = self.space.jobs[commitment.job].queue
            for task in commitment.tasks:
                placed[queue, task.cls] += 1
        for (queue, cls), n in placed.items():
            held[queue] = plus(held[queue], cls.req * n)
        total: dict[str, Floats] = {}
        for name, amount in held.items():
            for queue in self._with_ancestors(name):
                total[queue] = plus(total[queue], amount) if queue in total else amount
        for name in self.snapshot.queues:
            yield QueueUse(name, self._amounts(total[name]) if name in total else {})

    def _with_ancestors(self, name: str) -> Iterable[str]:
        seen: dict[str, None] = {}
        queue: QueueInfo | None = self.snapshot.queues.get(name)
        while queue is not None and queue.name not in seen:
            seen[queue.name] = None
            queue = self.snapshot.queues.get(queue.parent)
        return seen

    def _amounts(self, vector: Floats) -> dict[str, str]:
        amounts = zip(self.snapshot.names, vector.tolist(), strict=False)
        return {name: as_text(name, amount) for name, amount in amounts if amount > 0}


def fit_error(job: JobInfo, trouble: Trouble, last: dict[PodUid, Trial]) -> str:
    """Return in a sentence why a job waits: its tasks by status, and the first thing amiss."""
    by_status = {s.title: n for s, n in job.counts.total.by_status.items()}
    histogram = _histogram({**by_status, "minAvailable": job.min_available})
    text = f"pod group is {'' if job_ready(job) else 'not '}ready, {histogram}"
    reasons = Counter(
        "Schedulable"
        if (trial := last.get(task.uid)) is not None and trial.status is Status.ALLOCATED
        else "Unschedulable"
        for task in job.tasks.values()
        if task.status is Status.PENDING
    )
    if reasons:
        text = f"{text}; Pending: {_histogram(reasons)}"
    if trouble.message:
        return f"{text}. Origin reason is: {_in_full(trouble)}"
    for uid, errors in trouble.tasks.items():
        return f"{text}. Origin reason is {job.tasks[PodUid(uid)].name}: {errors}"
    for uid, limit in trouble.over_limit.items():
        return f"{text}. Origin reason is {job.tasks[PodUid(uid)].name}: {limit.message}"
    return text


def _histogram(counts: dict[str, int] | Counter[str]) -> str:
    return ", ".join(sorted(f"{n} {name}" for name, n in counts.items()))


def _with(
    conditions: Iterable[PodGroupCondition], new: PodGroupCondition
) -> list[PodGroupCondition]:
    """Return the conditions with `new` in the place of the one of its type."""
    found = list(conditions)
    for i, old in enumerate(found):
        if old.type == new.type:
            found[i] = new
            return found
    return [*found, new]


def _needed(job: JobInfo) -> Floats:
    """Return what the waiting tasks ask for that the gang needs next."""
    lacking = max(job.min_available - job.counts.total.ready, 1)
    pending = [t for t in job.tasks.values() if t.status & _NOTED and not t.cls.best_effort]
    needed = np.zeros(0)
    for cls, n in Counter(task.cls for task in pending[:lacking]).items():
        needed = plus(needed, cls.req * n)
    return needed


def _in_full(trouble: Trouble) -> str:
    """Return what keeps a group from being let in, with its numbers."""
    return f"{trouble.message}: {trouble.detail}" if trouble.detail else trouble.message
