"""
Turns: which queue is next, and which of its jobs.

Queues and jobs stand by their keys at the moment they are put in. That is enough: what an action
does between taking out and putting back changes the keys of nothing that is still in.
Where queues move each other (`queues_move`), their keys compare as things stand, and the heap is
put in order before each turn.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import count

from pumice.core.model.jobs import JobInfo
from pumice.core.model.queues import QueueInfo
from pumice.core.orders import OrderKey
from pumice.core.session import Session

Row = tuple[OrderKey, int, JobInfo]


class Turns:
    """Queues by queue order, in each of them jobs by job order."""

    def __init__(self, ssn: Session, jobs: Iterable[JobInfo]) -> None:
        self._ssn = ssn
        self._serial = count()
        #: jobs that wait for their first turn, the first one last; and a heap of those that wait
        #: for another one
        self._fresh: dict[str, list[Row]] = {}
        self._again: dict[str, list[Row]] = {}
        self._queues: list[tuple[OrderKey, int, QueueInfo]] = []
        for job in jobs:
            row = (ssn.job_key(job), next(self._serial), job)
            self._fresh.setdefault(job.queue, []).append(row)
        for name, rows in self._fresh.items():
            rows.sort(reverse=True)
            self._again[name] = []
            self.put_queue(ssn.queues[name])

    def next_queue(self) -> QueueInfo | None:
        """Take out the first queue."""
        if self._ssn.queues_move:
            heapq.heapify(self._queues)
        return heapq.heappop(self._queues)[2] if self._queues else None

    def next_job(self, queue: QueueInfo) -> JobInfo | None:
        """Take out the first job of a queue."""
        fresh, again = self._fresh[queue.name], self._again[queue.name]
        if again and not (fresh and fresh[-1] < again[0]):
            return heapq.heappop(again)[2]
        return fresh.pop()[2] if fresh else None

    def put_queue(self, queue: QueueInfo) -> None:
        """Let a queue wait for its next turn."""
        row = (self._ssn.queue_key(queue), next(self._serial), queue)
        heapq.heappush(self._queues, row)

    def put_job(self, job: JobInfo) -> None:
        """Let a job wait for its next turn."""
        row = (self._ssn.job_key(job), next(self._serial), job)
        heapq.heappush(self._again[job.queue], row)

    def left(self, queue: QueueInfo) -> list[JobInfo]:
        """Return the jobs of a queue that wait for a turn, in order."""
        rows = sorted(self._fresh[queue.name] + self._again[queue.name])
        return [job for _, _, job in rows]
