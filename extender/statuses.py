"""
Writing what a session found: the status of groups, conditions of waiting pods, use of queues.

Nothing is written that changes nothing, nor while the answer to the last write is still to come:
only the answer shows what there is to change. A phase is written at once; texts and counters,
which move with the cluster, at most once in `TEXT_S` for each group; the use of a queue when what
is stored has been wrong for `QUEUE_S`; and a pod's condition when the pod has waited for
`PATIENCE_S`. So a pod that is placed right away costs no write but its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from extender.model import Model
from extender.writes import OutboxWrites
from pumice.core.api.scheduling import PodGroup, PodGroupCondition, PodGroupStatus
from pumice.core.ids import JobKey, PodUid
from pumice.core.plan import GroupStatus, Plan, PodNote, QueueUse
from pumice.kube.clock import Clock, rfc3339
from pumice.kube.events import Recorder
from pumice.kube.outbox import Merge, Outbox
from pumice.kube.resources import POD_GROUPS, QUEUES

TEXT_S = 2.0
PATIENCE_S = 1.0
POD_TEXT_S = 30.0
PODS_A_SESSION = 200
QUEUE_S = 1.0

Said = tuple[str, str, str, str]


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
    #: queue -> since when its stored use is wrong
    _queue_wrong: dict[str, float] = field(default_factory=dict)

    def write(self, plan: Plan) -> None:
        """Write what the plan says and the API server does not show yet."""
        budget = PODS_A_SESSION
        for status in plan.groups:
            job = self.model.cluster.jobs.get(status.job)
            if job is None or job.group.metadata.uid != status.group_uid:
                continue
            self._group(job.group, status)
            budget -= self._pods(status, budget)
        for use in plan.queues:
            self._queue(use)
        self._tidy()

    # --- groups -----------------------------------------------------------------------------

    def _group(self, group: PodGroup, status: GroupStatus) -> None:
        meta = group.metadata
        if self.outbox.pending(POD_GROUPS, meta.namespace, meta.name):
            return
        conditions = _merged(group.status, status, rfc3339(self.clock.now()))
        changed = _counted(group.status) != _counted(status) or (
            _said(group.status.conditions or ()) != _said(conditions)
        )
        moved = group.status.phase != status.phase
        if not moved and not (changed and self._may_say(status.job)):
            return
        body = {"status": _body(status, conditions)}
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

    def _may_say(self, job: JobKey) -> bool:
        last = self._group_written.get(job)
        return last is None or self.clock.monotonic() - last >= TEXT_S

    # --- pods -------------------------------------------------------------------------------

    def _pods(self, status: GroupStatus, budget: int) -> int:
        """Write the conditions of pods that wait for capacity; return how many."""
        written = 0
        for uid, note in status.pods.items():
            if written >= budget:
                break
            if note.by_capacity and self._note(uid, note):
                written += 1
        return written

    def _note(self, uid: PodUid, note: PodNote) -> bool:
        pod, entry = self.model.pending.get(uid), self.model.ledger.get(uid)
        if pod is None or entry is None or entry.node:
            return False
        now = self.clock.monotonic()
        waited = self.model.now() - entry.since
        if waited < PATIENCE_S or now - self._pod_written.get(uid, -POD_TEXT_S) < POD_TEXT_S:
            return False
        if entry.verdict == (note.reason, note.message):
            return False
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
        return True

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
        if len(self._pod_written) > 2 * len(self.model.pending) + 100:
            self._pod_written = {
                u: t for u, t in self._pod_written.items() if u in self.model.pending
            }
        if len(self._group_written) > 2 * len(self.model.cluster.jobs) + 100:
            jobs = self.model.cluster.jobs
            self._group_written = {j: w for j, w in self._group_written.items() if j in jobs}
        if len(self._queue_wrong) > 2 * len(self.model.cluster.queues):
            queues = self.model.cluster.queues
            self._queue_wrong = {q: t for q, t in self._queue_wrong.items() if q in queues}


def _merged(old: PodGroupStatus, new: GroupStatus, now: str) -> list[PodGroupCondition]:
    """Return the conditions as they should stand: one for each type, times kept where unchanged."""
    before = {c.type: c for c in old.conditions or ()}
    after = dict(before)
    for condition in new.conditions:
        known = before.get(condition.type)
        if known is not None and _said([known]) == _said([condition]):
            continue
        after[condition.type] = PodGroupCondition(
            type=condition.type,
            status=condition.status,
            transition_id=condition.transition_id,
            last_transition_time=now,
            reason=condition.reason,
            message=condition.message,
        )
    return list(after.values())


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
