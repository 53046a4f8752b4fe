"""
Occupants: what the tasks hold that an action may send off, by node and queue.

The sums are made once for an action and follow what is evicted and let stay. They say in one
comparison which nodes are worth a look; who goes is asked on single nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from pumice.core.extension import Event, EventHandler
from pumice.core.model.tasks import Task
from pumice.core.resources import Floats
from pumice.core.session import Session


class Occupants:
    """The sums over tasks in some statuses that say of themselves that they may be evicted."""

    def __init__(self, ssn: Session, statuses: int) -> None:
        self._ssn = ssn
        self._statuses = statuses
        self._shape = (ssn.nodes.rows, len(ssn.nodes))
        #: by queue and column
        self._held: dict[str, dict[int, Floats]] = {}
        #: of all queues that lend what they do not need themselves
        self._lent: Floats = np.zeros(self._shape)
        #: of the queue asked for last
        self._own: tuple[str, Floats] = ("", self._lent)
        for i, name in enumerate(ssn.nodes.names):
            for task in ssn.space.tasks_on(name):
                if task.status & statuses:
                    self._count(task, i, 1.0)

    @classmethod
    @contextmanager
    def followed(cls, ssn: Session, statuses: int) -> Iterator[Occupants]:
        """Return the sums, kept up to date until the action is over."""
        occupants = cls(ssn, statuses)
        follow = occupants._follow
        handler = EventHandler(lambda e: follow(e, 1.0), lambda e: follow(e, -1.0))
        ssn.space.handlers.append(handler)
        try:
            yield occupants
        finally:
            ssn.space.handlers.remove(handler)

    def on(self, i: int) -> Iterator[Task]:
        """Yield the tasks on a node that may be evicted."""
        for task in self._ssn.space.tasks_on(self._ssn.nodes.names[i]):
            if task.status & self._statuses and self._may_go(task):
                yield task

    def of(self, queue: str) -> Floats:
        """Return what tasks of a queue hold, by node (R, N)."""
        if self._own[0] != queue:
            held = np.zeros(self._shape)
            for i, amount in self._held.get(queue, {}).items():
                held[:, i] = amount
            self._own = (queue, held)
        return self._own[1]

    def lent_to(self, queue: str) -> Floats:
        """Return what tasks of all other queues hold that lend to others, by node (R, N)."""
        lends = self._ssn.queues[queue].reclaimable
        return self._lent - self.of(queue) if lends else self._lent

    def _may_go(self, task: Task) -> bool:
        return (
            task.preemptable
            and task.uid not in self._ssn.snapshot.spared
            and self._ssn.job(task.job) is not None
        )

    def _follow(self, event: Event, sign: float) -> None:
        """Take note of who is sent off, or let stay; what is placed or taken back is not there."""
        for task, i in zip(event.tasks, event.nodes, strict=True):
            if task.status & self._statuses:
                self._count(task, i, sign)

    def _count(self, task: Task, i: int, sign: float) -> None:
        job = self._ssn.job(task.job)
        if job is None or not self._may_go(task):
            return
        req = task.cls.req
        by_node = self._held.setdefault(job.queue, {})
        amount = by_node.get(i)
        if amount is None:
            amount = by_node[i] = np.zeros(self._shape[0])
        amount[: req.size] += sign * req
        if self._ssn.queues[job.queue].reclaimable:
            self._lent[: req.size, i] += sign * req
        if self._own[0] == job.queue:
            self._own[1][: req.size, i] += sign * req
