"""
Usage: what each queue's jobs amount to, and which jobs need to be looked at.

Both are kept from event to event. A job that changed is *touched*, and its share of the queue's
sums is made anew when the next snapshot is taken, so a session over a hundred thousand running
pods starts with a few additions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from pumice.core.ids import JobKey
from pumice.core.model.jobs import JobInfo, elastic, without_gated
from pumice.core.model.snapshots import QueueSums
from pumice.core.model.tasks import ALLOCATED_STATUSES, Status
from pumice.core.phases import phase_of
from pumice.core.readiness import job_ready
from pumice.core.resources import Floats, minus, pad, plus

_NOTHING = np.zeros(0)
_EMPTY = QueueSums(0, _NOTHING, _NOTHING, _NOTHING, _NOTHING, _NOTHING)
_VECTORS = tuple(f.name for f in fields(QueueSums) if f.name != "jobs")


@dataclass(frozen=True, slots=True)
class _Share:
    """What one job adds to its queue."""

    queue: str
    sums: QueueSums


class QueueUsage:
    """Sums by queue, and the jobs that are not settled."""

    __slots__ = ("_active", "_queues", "_shares", "_touched")

    def __init__(self) -> None:
        self._queues: dict[str, QueueSums] = {}
        self._shares: dict[JobKey, _Share] = {}
        self._active: set[JobKey] = set()
        self._touched: dict[JobKey, None] = {}

    def touch(self, key: JobKey) -> None:
        """Say that a job has changed, or is gone."""
        self._touched[key] = None

    def settle(self, jobs: Mapping[JobKey, JobInfo]) -> None:
        """Bring the sums up to date."""
        for key in self._touched:
            self._take_off(key)
            job = jobs.get(key)
            self._active.discard(key)
            if job is None:
                continue
            self._put_on(key, _Share(job.queue, sums_of(job)))
            if not is_settled(job):
                self._active.add(key)
        self._touched.clear()

    def by_queue(self) -> dict[str, QueueSums]:
        """Return the sums of the queues that have jobs."""
        return dict(self._queues)

    def of(self, queue: str) -> QueueSums:
        """Return the sums of one queue."""
        return self._queues.get(queue, _EMPTY)

    def active(self) -> frozenset[JobKey]:
        """Return the jobs that a session must look at."""
        return frozenset(self._active)

    def _put_on(self, key: JobKey, share: _Share) -> None:
        self._shares[key] = share
        old = self._queues.get(share.queue, _EMPTY)
        self._queues[share.queue] = combine(old, share.sums)

    def _take_off(self, key: JobKey) -> None:
        share = self._shares.pop(key, None)
        if share is None:
            return
        left = combine(self._queues[share.queue], share.sums, sign=-1)
        if left.jobs:
            self._queues[share.queue] = left
        else:
            del self._queues[share.queue]


def combine(a: QueueSums, b: QueueSums, sign: int = 1) -> QueueSums:
    """Return the sum, or the difference where the sign is negative."""
    add = plus if sign > 0 else minus
    vectors = {name: add(getattr(a, name), getattr(b, name)) for name in _VECTORS}
    return QueueSums(a.jobs + sign * b.jobs, **vectors)


def sums_of(job: JobInfo) -> QueueSums:
    """Return what one job adds to its queue."""
    return QueueSums(
        jobs=1,
        allocated=job.allocated,
        request=plus(plus(job.allocated, job.pending_request), job.leaving_request),
        inqueue=_reserved(job, whole=False),
        admitted=_reserved(job, whole=True),
        elastic=elastic(job),
    )


def _reserved(job: JobInfo, *, whole: bool) -> Floats:
    """
    Return what is kept for an admitted job and not allocated yet.

    An Inqueue job keeps its minimum less what it holds (or all of it, where asked for the
    whole), a Running one the rest of its minimum once it holds as many tasks as it needs.
    """
    least = job.min_resources
    if least is None or job.phase not in ("Inqueue", "Running"):
        return _NOTHING
    if job.phase == "Inqueue" and whole:
        return without_gated(job, least)
    allocated = job.counts.total.count(ALLOCATED_STATUSES)
    if job.phase == "Running" and allocated < job.min_available:
        return _NOTHING
    held = pad(job.allocated, least.size)[: least.size]
    return without_gated(job, np.where(least > 0, np.maximum(least - held, 0.0), 0.0))


def is_settled(job: JobInfo) -> bool:
    """
    Return whether no session has anything to say about the job.

    The group is let in, nothing of it waits, the gang is ready, and its status shows all that.
    """
    total, status = job.counts.total, job.group.status
    if job.is_pending or total.pending or not job_ready(job):
        return False
    shown = (status.phase, status.running, status.succeeded, status.failed)
    counts = (total.by_status.get(s, 0) for s in (Status.RUNNING, Status.SUCCEEDED, Status.FAILED))
    if shown != (phase_of(job, unschedulable=False), *counts):
        return False
    return any(c.type == "Scheduled" and c.status == "True" for c in status.conditions or ())
