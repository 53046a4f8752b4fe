"""
Closing: what a session has to say of groups, pods and queues once all actions have run.

Only jobs that were looked at are reported: of all others the status is what it was. Texts and
conditions are Volcano's. Nothing is compared with what is stored; whoever writes the status
leaves out what would change nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pumice.core.api.scheduling import PodGroupCondition
from pumice.core.findings import Findings
from pumice.core.fitness import Trouble
from pumice.core.ids import JobKey
from pumice.core.model.jobs import JobInfo
from pumice.core.model.queues import QueueInfo
from pumice.core.model.snapshots import Snapshot
from pumice.core.model.tasks import Status, TaskClass
from pumice.core.phases import phase_of
from pumice.core.plan import (
    Allocate,
    Evict,
    GroupStatus,
    Placement,
    Plan,
    PodNote,
    QueueUse,
    Reason,
    Victim,
)
from pumice.core.resources import Floats, as_text, plus
from pumice.core.waiting import WAITING, Waiting, in_full
from pumice.core.workspace import Workspace

Event = tuple[Literal["Normal", "Warning"], str, str]
ConditionType = Literal["Unschedulable", "Scheduled"]

NOT_ENOUGH_RESOURCES: Final = "NotEnoughResources"
QUEUE_NOT_FOUND: Final = "QueueNotFound"
MALFORMED: Final = "Malformed"
READY: Final = "tasks in gang are ready to be scheduled"
_GANG: Final = "tasks in gang unschedulable"
_NO_TROUBLE = Trouble()


@dataclass(frozen=True, slots=True)
class Closing:
    """A session's state at its end, and the texts made of it."""

    id: str
    now: float
    snapshot: Snapshot
    space: Workspace
    findings: Findings
    #: what is known already to be said of jobs
    recalled: Mapping[JobKey, GroupStatus]
    #: the condition of all gangs that are ready
    ready: PodGroupCondition = field(init=False)
    waiting: Waiting = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ready", _condition("Scheduled", READY, ""))
        waiting = Waiting(self.snapshot.names, self.space, self.findings)
        object.__setattr__(self, "waiting", waiting)

    def plan(
        self, unsettled: Iterable[JobInfo], stranded: Iterable[JobInfo], *, steady: bool
    ) -> Plan:
        """Return all that was decided; `steady` says that it depends on the snapshot alone."""
        known = self.recalled
        groups = [known.get(job.key) or self._group(job) for job in unsettled]
        groups += [known.get(job.key) or self._stranded(job) for job in stranded]
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
            steady=steady and self._left_nothing(),
        )

    def _left_nothing(self) -> bool:
        """Return whether everything is as it was when the session began."""
        space, findings = self.space, self.findings
        done = (space.dismissed, findings.enqueued, findings.admitted, findings.acted)
        odd = (findings.reservation, findings.failures, *space.placed.values())
        return not (any(done) or any(odd))

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
        waits = reason is not None or job.counts.total.count(WAITING) > 0
        found = self.waiting.found(job) if waits else 0
        text = self.waiting.sentence(job, trouble, found) if waits else ""
        held = job.is_pending and bool(trouble.message)
        conditions = [c for c in job.group.status.conditions or () if c.type]
        if reason is not None:
            lacking = job.min_available - job.counts.total.ready - found
            message = f"{lacking}/{job.counts.total.total} {_GANG}: {text}"
            conditions = _with(conditions, _condition("Unschedulable", reason, message))
        elif held:
            conditions = _with(
                conditions,
                _condition("Unschedulable", NOT_ENOUGH_RESOURCES, in_full(trouble)),
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
            pods=self.waiting.notes(job, trouble, text) if waits else {},
            reason=self.waiting.reason(job, trouble, text, found) if waits or held else None,
            unschedulable=reason is not None or held,
            hypernode=self.findings.hypernodes.get(job.key),
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
        condition = _condition("Unschedulable", reason, message)
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


def _condition(kind: ConditionType, reason: str, message: str) -> PodGroupCondition:
    return PodGroupCondition(type=kind, status="True", reason=reason, message=message)


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
