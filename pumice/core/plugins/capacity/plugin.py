"""
The plugin `capacity`: registers what `attributes` and `reclaiming` work out.

A queue, and all above it, keep room for the pods that were let out of the gate of their queue and
have no node yet: others may have what is left beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key

import numpy as np

from pumice.core import names
from pumice.core.conf import Arguments
from pumice.core.extension import Event, EventHandler, SortKey, Victims, Vote
from pumice.core.fitness import Limit
from pumice.core.model.jobs import JobInfo, without_gated
from pumice.core.model.queues import QueueInfo
from pumice.core.model.signatures import THROUGH_GATE
from pumice.core.model.tasks import Status, Task, TaskClass
from pumice.core.plan import Reason
from pumice.core.plugins.capacity.attributes import Attributes, side_by_side, tree
from pumice.core.plugins.capacity.reclaiming import Reclaiming, may_ask
from pumice.core.queue_limits import affordable, guaranteed_to_others, insufficient
from pumice.core.resources import as_text, minus, plus
from pumice.core.session import Session

NAME = "capacity"
Step = tuple[str, float, bool]
"""A queue on the way from the root: name, share, whether nothing is due to it."""


class Capacity:
    """The plugin. With `hierarchy` queues form a tree, and only its leaves have jobs."""

    name = NAME
    steady = True

    def __init__(self, args: Arguments) -> None:
        self.level = max(args.integer("ancestorReclaimLevel", 0), 0)
        self.hierarchy = False
        self.queues: dict[str, Attributes] = {}
        self.names: tuple[str, ...] = ()
        self.limits: dict[str, Limit] = {}

    def on_session_open(self, ssn: Session) -> None:
        """Work out what each queue may have and deserves."""
        self.names, self.limits = ssn.names, ssn.findings.limits
        if self.hierarchy:
            self.queues, faults = tree(ssn.queues, ssn.snapshot.usage, ssn.total)
            ssn.findings.warnings += faults
            ssn.points.victim_queue_order[NAME] = self.nearness
        else:
            self.level = 0
            self.queues = side_by_side(ssn.queues, ssn.snapshot.usage, ssn.total)
        self._reserve(ssn)
        dues = {name: attr.deserved.tolist() for name, attr in self.queues.items()}
        ssn.findings.deserved = dues
        self._register(ssn)

    def _register(self, ssn: Session) -> None:
        points = ssn.points
        points.queue_order[NAME] = self.order
        points.allocatable[NAME] = self.allocatable
        points.simulate_allocatable[NAME] = self.affordable
        points.preemptive[NAME] = self.preemptive
        points.admitted[NAME] = self.admitted
        points.job_enqueueable[NAME] = lambda job: self.enqueueable(ssn.queues[job.queue], job)
        points.job_enqueued[NAME] = self.enqueued

        def reclaimable(reclaimer: Task, candidates: Sequence[Task]) -> Victims:
            return self.reclaimable(ssn, reclaimer, candidates)

        def evictable(action: str, job: JobInfo, candidates: Sequence[Task]) -> Victims:
            if action == "gangpreempt":
                return candidates, Vote.PERMIT
            return self.evictable(ssn, job, candidates)

        points.reclaimable[NAME] = points.beyond_due[NAME] = reclaimable
        points.unified_evictable[NAME] = evictable
        ssn.listen(EventHandler(lambda e: self._follow(e, 1), lambda e: self._follow(e, -1)))

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""

    def _follow(self, event: Event, sign: int) -> None:
        """Follow what the session does; the shares of inner queues stay as they were."""
        attr = self.queues.get(event.job.queue)
        if attr is None:
            return
        n = sign * len(event.tasks)
        kept = event.cls.signature.traits.get(names.QUEUE_ALLOCATION_GATE) == THROUGH_GATE
        for queue in attr.chain:
            queue.take(event.cls, n)
            if kept:
                queue.reserve(event.cls, -n)
        attr.measure()

    # Orders.

    def order(self, queue: QueueInfo) -> SortKey:
        """
        Put higher priority first, then the smaller share, then who has anything due to it.

        In a tree it is not the leaves themselves that are compared, but the queues just below
        the last one that they have in common; leaves go before inner queues.
        """
        attr = self.queues.get(queue.name)
        if attr is None:
            return (-queue.priority, True, _by_branch(()))
        steps = attr.path if not attr.children else [attr]
        path = tuple((a.queue.name, a.share, not a.has_due) for a in steps)
        return (-queue.priority, bool(attr.children), _by_branch(path))

    def nearness(self, queue: QueueInfo, own: QueueInfo) -> SortKey:
        """Put the victims of queues first that are closer relatives of the one that asks."""
        a, b = self.queues.get(queue.name), self.queues.get(own.name)
        if a is None or b is None:
            return 0
        return -sum(x is y for x, y in zip(a.path, b.path, strict=False))

    # Limits.

    def allocatable(self, queue: QueueInfo, cls: TaskClass, n: int) -> int:
        """Return how many tasks the queue may have; none if it is not open, or has queues below."""
        if not queue.is_open:
            self.limits[queue.name] = Limit(f"queue {queue.name} is not open", plugin=NAME)
            return 0
        return self.affordable(queue, cls, n)

    def affordable(self, queue: QueueInfo, cls: TaskClass, n: int) -> int:
        """Return how many tasks fit into what the queue, and all above it, may have."""
        fault = self._fault(queue)
        if fault:
            self.limits[queue.name] = Limit(fault, plugin=NAME)
            return 0
        kept = cls.signature.traits.get(names.QUEUE_ALLOCATION_GATE) == THROUGH_GATE
        for attr in self.queues[queue.name].chain:
            held = attr.allocated if kept or not attr.reserved else attr.held
            n, row = affordable(cls, held, attr.limit, n)
            if row is not None:
                self.limits[queue.name] = self._limit(attr, row)
            if n and attr.pool is not None and attr.pool.rows:
                n, row = affordable(cls, held, attr.pool.limit(attr.allocated, attr.guarantee), n)
                if row is not None:
                    self.limits[queue.name] = guaranteed_to_others(
                        NAME, attr.queue.name, self.names[row], by_capacity=attr.ancestors == []
                    )
        return n

    def admitted(self, queue: QueueInfo, cls: TaskClass, n: int) -> None:
        """Keep room for tasks that were let out of the gate of their queue."""
        attr = self.queues.get(queue.name)
        for above in attr.chain if attr else ():
            above.reserve(cls, n)

    def _reserve(self, ssn: Session) -> None:
        for job in ssn.unsettled:
            if job.counts.total.pending and job.queue in self.queues:
                for task in job.tasks.values():
                    traits = task.cls.signature.traits
                    through = traits.get(names.QUEUE_ALLOCATION_GATE) == THROUGH_GATE
                    if through and task.status is Status.PENDING and not task.gates:
                        self.admitted(ssn.queues[job.queue], task.cls, 1)

    def _fault(self, queue: QueueInfo) -> str:
        """Return why nothing of the queue can be scheduled, if so."""
        attr = self.queues.get(queue.name)
        if attr is None:
            return f"queue {queue.name} does not hang together with the root queue"
        return f"queue {queue.name} has queues below it, jobs go to those" if attr.children else ""

    def _limit(self, attr: Attributes, row: int) -> Limit:
        name, queue = self.names[row], attr.queue.name
        numbers = {f"held {name}": attr.allocated[row], f"capability {name}": attr.limit[row]}
        held, most = (as_text(name, amount) for amount in numbers.values())
        message = f"queue {queue} holds {held} of the {most} {name} that it may have"
        # Of queues in a tree no limit comes from the size of the cluster.
        by_capacity = not self.hierarchy and bool(attr.limit[row] < attr.capability[row])
        return Limit(message, by_capacity, NAME, numbers)

    def preemptive(self, queue: QueueInfo, tasks: Sequence[Task]) -> bool:
        """Return whether the queue may take room from others for these tasks."""
        attr = self.queues.get(queue.name)
        return attr is not None and queue.is_open and may_ask(attr, tasks, self.level)

    def enqueueable(self, queue: QueueInfo, job: JobInfo) -> tuple[Vote, Reason | None]:
        """Vote on whether the group's minimum stays within what the queues may ever have."""
        fault = self._fault(queue) or ("" if queue.is_open else f"queue {queue.name} is not open")
        if fault:
            return Vote.REJECT, Reason("enqueue", NAME, fault)
        least = job.min_resources
        if least is None:
            return Vote.PERMIT, None
        for attr in self.queues[queue.name].chain:
            held = minus(plus(np.array(attr.allocated), attr.inqueue), attr.elastic)
            limit = np.array(attr.limit)
            reason = insufficient(NAME, attr.queue.name, least, held, limit, self.names)
            if reason is not None:
                return Vote.REJECT, reason
        return Vote.PERMIT, None

    def enqueued(self, job: JobInfo) -> None:
        """Count a group that was let in."""
        attr = self.queues.get(job.queue)
        if attr is not None and job.min_resources is not None:
            amount = without_gated(job, job.min_resources)
            for queue in attr.chain:
                queue.inqueue = plus(queue.inqueue, amount)

    # Victims.

    def reclaimable(self, ssn: Session, reclaimer: Task, candidates: Sequence[Task]) -> Victims:
        """Return the tasks that must go, those first that the session would evict first."""
        job = ssn.job(reclaimer.job)
        own = self.queues.get(job.queue) if job else None
        if own is None:
            return (), Vote.REJECT
        search = Reclaiming(own, self.level)
        ordered = sorted(candidates, key=lambda task: ssn.victim_key(task, reclaimer))
        chosen = []
        for task in ordered:
            attr = self._queue_of(ssn, task)
            if attr is not None and search.takes(attr, task.cls, reclaimer.cls):
                chosen.append(task)
        return chosen, Vote.PERMIT

    def evictable(self, ssn: Session, job: JobInfo, candidates: Sequence[Task]) -> Victims:
        """Return the tasks that may go for a whole gang of another queue, in the given order."""
        own = self.queues.get(job.queue)
        if own is None:
            return (), Vote.REJECT
        search = Reclaiming(own, 0)
        chosen = []
        for task in candidates:
            attr = self._queue_of(ssn, task)
            if attr is None:
                continue
            if search.keeps_guarantee(attr, task.cls) and search.must_give(attr, task.cls):
                search.give(attr, task.cls)
                chosen.append(task)
        return chosen, Vote.PERMIT

    def _queue_of(self, ssn: Session, task: Task) -> Attributes | None:
        job = ssn.job(task.job)
        return self.queues.get(job.queue) if job else None


def _compare(a: Sequence[Step], b: Sequence[Step]) -> int:
    for (name, *mine), (other, *theirs) in zip(a, b, strict=False):
        if name != other:
            return (mine > theirs) - (mine < theirs)
    return 0


_by_branch = cmp_to_key(_compare)
