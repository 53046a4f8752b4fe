"""
Writing what a session found: the status of groups, conditions of waiting pods, use of queues.

Nothing is written that changes nothing, nor while the answer to the last write is still to come:
only the answer shows what there is to change. A phase is written at once; texts and counters,
which move with the cluster, at most once in `TEXT_S` for each group; the use of a queue when what
is stored has been wrong for `QUEUE_S`; and a pod's condition when the pod has waited for
`PATIENCE_S`. So a pod that is placed right away costs no write but its own.

Where thousands wait, every change in the cluster changes what is to be said of all of them. So
there are only so many texts a second, and each group or pod has its turn the more rarely the
more there are: releases and bindings must not queue behind explanations.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from extender.allowance import Allowance
from extender.model import Model
from extender.writes import OutboxWrites
from pumice.core import names
from pumice.core.api.scheduling import PodGroup, PodGroupCondition, PodGroupStatus
from pumice.core.explain.sentences import explained, fresh_condition
from pumice.core.ids import JobKey, PodUid
from pumice.core.plan import GroupStatus, Plan, PodNote, QueueUse
from pumice.kube.clock import Clock, rfc3339
from pumice.kube.events import Recorder
from pumice.kube.outbox import Merge, Outbox
from pumice.kube.resources import POD_GROUPS, QUEUES

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

TEXT_S = 5.0
PATIENCE_S = 1.0
POD_TEXT_S = 30.0
QUEUE_S = 1.0
TEXTS_AT_ONCE = 50
GROUPS_A_SECOND = 50.0
PODS_A_SECOND = 100.0
BREATH = 100
"""Groups after which the event loop gets to do other things."""

Said = tuple[str, str, str, str]
MadeOf = tuple[str, Mapping[str, float] | None, float | None]


@dataclass(slots=True)
class Statuses:
    """Remembers when it last wrote what, so as not to write too often."""

    model: Model
    outbox: Outbox
    writes: OutboxWrites
    recorder: Recorder
    clock: Clock
    _group_written: dict[JobKey, float] = field(default_factory=dict)
    _pod_written: dict[PodUid, float] = field(default_factory=dict)
    #: job -> what a session said of why it waits, what a pod asked for and when it is to start;
    #: and that in plain words
    _told: dict[JobKey, tuple[MadeOf, str]] = field(default_factory=dict)
    #: job -> whether its phase, or anything else, is to be written, as long as the group and what
    #: a session said of it are these very objects
    _judged: dict[JobKey, tuple[PodGroup, GroupStatus, bool, bool]] = field(default_factory=dict)
    #: queue -> since when its stored use is wrong
    _queue_wrong: dict[str, float] = field(default_factory=dict)
    _group_texts: Allowance = field(init=False)
    _pod_texts: Allowance = field(init=False)
    #: how long the text of a group stands at least
    _group_text_s: float = TEXT_S
    _pod_text_s: float = POD_TEXT_S

    def __post_init__(self) -> None:
        now = self.clock.monotonic()
        self._group_texts = Allowance(TEXTS_AT_ONCE, GROUPS_A_SECOND, now)
        self._pod_texts = Allowance(TEXTS_AT_ONCE, PODS_A_SECOND, now)

    async def write(self, plan: Plan) -> None:
        """Write what the plan says and the API server does not show yet."""
        self._group_text_s = max(TEXT_S, len(plan.groups) / GROUPS_A_SECOND)
        self._pod_text_s = max(POD_TEXT_S, len(self.model.pending) / PODS_A_SECOND)
        for number, status in enumerate(plan.groups, start=1):
            job = self.model.cluster.jobs.get(status.job)
            if job is not None and job.group.metadata.uid == status.group_uid:
                self._group(job.group, status, plan.session)
                self._pods(status)
            if number % BREATH == 0:
                await asyncio.sleep(0)
        for use in plan.queues:
            self._queue(use)
        self._tidy()

    # --- groups -----------------------------------------------------------------------------

    def _group(self, group: PodGroup, status: GroupStatus, session: str) -> None:
        meta = group.metadata
        moved, changed = self._judge(group, status)
        if not (moved or changed) or self.outbox.pending(POD_GROUPS, meta.namespace, meta.name):
            return
        if not moved and not self._may_say(status.job):
            return
        now = rfc3339(self.clock.now())
        conditions = _merged(group.status, self._explained(status), session, now)
        body: dict[str, Any] = {"status": _body(status, conditions)}
        if _elsewhere(group, status):
            body["metadata"] = {
                "annotations": {names.ALLOCATED_HYPERNODE: status.hypernode or None}
            }
        self._group_written[status.job] = self.clock.monotonic()
        self.outbox.put(
            Merge(
                resource=POD_GROUPS,
                namespace=meta.namespace,
                name=meta.name,
                uid=meta.uid,
                body=body,
            )
        )
        if status.event is not None:
            kind, reason, message = status.event
            self.recorder.record(POD_GROUPS, meta, kind, reason, message)

    def _judge(self, group: PodGroup, status: GroupStatus) -> tuple[bool, bool]:
        """Return whether the phase that is stored is wrong, and whether anything else is."""
        known = self._judged.get(status.job)
        if known is not None and known[0] is group and known[1] is status:
            return known[2:]
        conditions = _merged(group.status, self._explained(status))
        moved = group.status.phase != status.phase
        changed = (
            _counted(group.status) != _counted(status)
            or _said(group.status.conditions or ()) != _said(conditions)
            or _elsewhere(group, status)
        )
        self._judged[status.job] = (group, status, moved, changed)
        return moved, changed

    def _explained(self, status: GroupStatus) -> Iterator[PodGroupCondition]:
        """Yield the conditions of a group, the one that says why it waits in plain words, too."""
        fresh = fresh_condition(status)
        for condition in status.conditions:
            if condition is fresh:
                message = self._in_words(status, condition.message)
                yield msgspec.structs.replace(condition, message=message)
            else:
                yield condition

    def _in_words(self, status: GroupStatus, message: str) -> str:
        """Return the text of a condition; made anew where what it is made of changed."""
        reason = status.reason
        made_of: MadeOf = (message, None, None)
        if reason is not None:
            made_of = (message, reason.asks, reason.expected)
        told = self._told.get(status.job)
        if told is None or told[0] != made_of:
            told = self._told[status.job] = (made_of, explained(message, reason))
        return told[1]

    def _may_say(self, job: JobKey) -> bool:
        now, last = self.clock.monotonic(), self._group_written.get(job)
        if last is not None and now - last < self._group_text_s:
            return False
        return self._group_texts.take(now)

    # --- pods -------------------------------------------------------------------------------

    def _pods(self, status: GroupStatus) -> None:
        """Write the conditions of pods that wait for capacity."""
        if not self._pod_texts.left(self.clock.monotonic()):
            return
        for uid, note in status.pods.items():
            if note.by_capacity:
                self._note(uid, note)

    def _note(self, uid: PodUid, note: PodNote) -> None:
        pod, entry = self.model.pending.get(uid), self.model.ledger.get(uid)
        if pod is None or entry is None or entry.node:
            return
        if entry.verdict == (note.reason, note.message):
            return
        now, last = self.clock.monotonic(), self._pod_written.get(uid)
        if self.model.now() - entry.since < PATIENCE_S:
            return
        if last is not None and now - last < self._pod_text_s:
            return
        if not self._pod_texts.take(now):
            return
        self._pod_written[uid] = now
        self.writes.set_condition(
            pod,
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": note.reason,
                "message": note.message,
                "lastTransitionTime": rfc3339(self.clock.now()),
            },
        )

    # --- queues -----------------------------------------------------------------------------

    def _queue(self, use: QueueUse) -> None:
        info = self.model.cluster.queues.get(use.queue)
        if info is None:
            return
        queue = info.queue
        if (queue.status.allocated or {}) == use.allocated:
            self._queue_wrong.pop(use.queue, None)
            return
        now = self.clock.monotonic()
        if now - self._queue_wrong.setdefault(use.queue, now) < QUEUE_S:
            return
        if self.outbox.pending(QUEUES, "", use.queue):
            return
        del self._queue_wrong[use.queue]
        gone = {name: None for name in queue.status.allocated or {} if name not in use.allocated}
        self.outbox.put(
            Merge(
                resource=QUEUES,
                namespace="",
                name=use.queue,
                uid=queue.metadata.uid,
                resource_version=queue.metadata.resource_version,
                body={"status": {"allocated": {**use.allocated, **gone}}},
                subresource="status",
            )
        )

    def _tidy(self) -> None:
        """Forget what is gone, now and then."""
        pending, cluster = self.model.pending, self.model.cluster
        self._pod_written = _those_of(pending, self._pod_written)
        self._group_written = _those_of(cluster.jobs, self._group_written)
        self._told = _those_of(cluster.jobs, self._told)
        self._judged = _those_of(cluster.jobs, self._judged)
        self._queue_wrong = _those_of(cluster.queues, self._queue_wrong, spare=0)


def _those_of(alive: Collection[K], known: dict[K, V], spare: int = 100) -> dict[K, V]:
    """Return what is known of those that are there, once most of it is of others."""
    if len(known) <= 2 * len(alive) + spare:
        return known
    return {key: value for key, value in known.items() if key in alive}


def _merged(
    old: PodGroupStatus, new: Iterable[PodGroupCondition], session: str = "", now: str = ""
) -> list[PodGroupCondition]:
    """
    Return the conditions as they should stand: one for each type.

    Those that say something new bear the session and the time, the others what they bore before.
    """
    before = {c.type: c for c in old.conditions or ()}
    after = dict(before)
    for condition in new:
        known = before.get(condition.type)
        if known is not None and _said([known]) == _said([condition]):
            continue
        after[condition.type] = PodGroupCondition(
            type=condition.type,
            status=condition.status,
            transition_id=session,
            last_transition_time=now,
            reason=condition.reason,
            message=condition.message,
        )
    return list(after.values())


def _elsewhere(group: PodGroup, status: GroupStatus) -> bool:
    """Tell whether the pods are in another HyperNode than the group says."""
    said = (group.metadata.annotations or {}).get(names.ALLOCATED_HYPERNODE, "")
    return status.hypernode is not None and status.hypernode != said


def _counted(status: PodGroupStatus | GroupStatus) -> tuple[int, int, int]:
    return status.running, status.succeeded, status.failed


def _said(conditions: Any) -> list[Said]:
    return [(c.type, c.status, c.reason, c.message) for c in conditions]


def _body(status: GroupStatus, conditions: list[PodGroupCondition]) -> dict[str, Any]:
    return {
        "phase": status.phase,
        "running": status.running,
        "succeeded": status.succeeded,
        "failed": status.failed,
        "conditions": [
            {
                "type": c.type,
                "status": c.status,
                "transitionID": c.transition_id,
                "lastTransitionTime": c.last_transition_time,
                "reason": c.reason,
                "message": c.message,
            }
            for c in conditions
        ],
    }
