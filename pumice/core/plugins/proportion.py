"""
proportion: queues share the cluster by weight.

What a queue deserves is worked out by filling: all queues rise by their weight until they have
what they ask for or may have; what is left over goes round again among the others. A queue may
take no more than it deserves, goes ahead of others the less of it it holds, and gives back what
it holds beyond it, to whole gangs as to single tasks. What a queue is guaranteed stays free for it,
however many others there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pumice.core.conf import Arguments
from pumice.core.extension import Event, EventHandler, SortKey, Victims, Vote
from pumice.core.fitness import Limit
from pumice.core.model.jobs import JobInfo, without_gated
from pumice.core.model.queues import QueueInfo
from pumice.core.model.snapshots import QueueSums
from pumice.core.model.tasks import Task, TaskClass
from pumice.core.plan import Reason
from pumice.core.queue_limits import Pool, affordable, guaranteed_to_others, insufficient
from pumice.core.resources import (
    EPSILON,
    Floats,
    as_text,
    excess,
    fits,
    is_empty,
    minus,
    over_limit,
    pad,
    plus,
    share,
    whole_units,
)
from pumice.core.session import Session

NAME = "proportion"


@dataclass(slots=True)
class Attributes:
    """A queue in one session. Vectors have all rows; `allocated` follows the session."""

    weight: int
    guarantee: Floats
    capability: Floats
    request: Floats
    inqueue: Floats
    elastic: Floats
    allocated: list[float]
    deserved: Floats
    #: `deserved` as plain numbers, once it is settled
    limit: list[float] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Return how much of its due the queue holds."""
        pairs = zip(self.allocated, self.limit, strict=True)
        return max((share(held, due) for held, due in pairs if due >= EPSILON), default=0.0)


class Proportion:
    """The plugin. It has no arguments."""

    name = NAME
    steady = True

    def __init__(self, args: Arguments) -> None:
        self.queues: dict[str, Attributes] = {}
        self.names: tuple[str, ...] = ()
        self.limits: dict[str, Limit] = {}
        self.pool = Pool((), (), [])

    def on_session_open(self, ssn: Session) -> None:
        """Work out what each queue with jobs deserves."""
        self.names, self.limits = ssn.names, ssn.findings.limits
        guaranteed = np.zeros(len(ssn.names))
        for queue in ssn.queues.values():
            guaranteed = plus(guaranteed, queue.guarantee)
        free = excess(ssn.total, guaranteed)
        for name, usage in ssn.snapshot.usage.items():
            if name in ssn.queues:
                self.queues[name] = attributes(ssn.queues[name], usage, free)
        fill(list(self.queues.values()), ssn.total)
        for attr in self.queues.values():
            attr.limit = attr.deserved.tolist()
        ssn.findings.deserved = {name: attr.limit for name, attr in self.queues.items()}
        held = {name: attr.allocated for name, attr in self.queues.items()}
        self.pool = Pool.of_all(ssn.total, ssn.queues, held)
        self._register(ssn)

    def _register(self, ssn: Session) -> None:
        points = ssn.points
        points.queue_order[NAME] = self.order
        points.overused[NAME] = self.overused
        points.allocatable[NAME] = self.allocatable
        points.simulate_allocatable[NAME] = self.affordable
        points.preemptive[NAME] = self.preemptive
        points.job_enqueueable[NAME] = lambda job: self.enqueueable(ssn.queues[job.queue], job)
        points.job_enqueued[NAME] = self.enqueued

        def reclaimable(_: Task, candidates: Sequence[Task]) -> Victims:
            return self.victims(ssn, candidates), Vote.PERMIT

        def for_gang(action: str, job: JobInfo, candidates: Sequence[Task]) -> Victims:
            if action == "gangpreempt":
                return candidates, Vote.PERMIT
            return self.victims(ssn, candidates), Vote.PERMIT

        points.reclaimable[NAME] = reclaimable
        points.unified_evictable[NAME] = for_gang
        ssn.listen(EventHandler(lambda e: self._follow(e, 1), lambda e: self._follow(e, -1)))

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""

    def _follow(self, event: Event, sign: int) -> None:
        attr = self.queues[event.job.queue]
        held, n = attr.allocated, sign * len(event.tasks)
        for row in event.cls.rows:
            before = held[row]
            held[row] += n * float(event.cls.req[row])
            self.pool.follow(row, before, held[row], float(attr.guarantee[row]))

    def order(self, queue: QueueInfo) -> SortKey:
        """Put higher priority first, then the smaller share."""
        return (-queue.priority, self.queues[queue.name].share)

    def overused(self, queue: QueueInfo) -> bool:
        """Return whether the queue holds its due in every dimension, pods included."""
        attr = self.queues[queue.name]
        for held, due in zip(attr.allocated, attr.limit, strict=True):
            if due - held >= EPSILON:
                return False
        by_capacity = not any(self._is_capped(queue, row) for row in range(len(attr.limit)))
        message = f"queue {queue.name} holds all that it deserves"
        numbers = {
            f"{word} {name}": amount
            for word, amounts in (("held", attr.allocated), ("deserved", attr.limit))
            for name, amount in zip(self.names, amounts, strict=True)
        }
        self.limits[queue.name] = Limit(message, by_capacity, NAME, numbers)
        return True

    def allocatable(self, queue: QueueInfo, cls: TaskClass, n: int) -> int:
        """Return how many tasks the queue may have within its due; none if it is not open."""
        if not queue.is_open:
            self.limits[queue.name] = Limit(f"queue {queue.name} is not open", plugin=NAME)
            return 0
        return self.affordable(queue, cls, n)

    def affordable(self, queue: QueueInfo, cls: TaskClass, n: int) -> int:
        """Return how many tasks fit into the queue's due; strictly, pods not counted."""
        attr = self.queues[queue.name]
        n, row = affordable(cls, attr.allocated, attr.limit, n)
        if row is not None:
            self._explain(queue, row)
        if n and self.pool.rows:
            beside = self.pool.limit(attr.allocated, attr.guarantee)
            n, row = affordable(cls, attr.allocated, beside, n)
            if row is not None:
                self.limits[queue.name] = guaranteed_to_others(NAME, queue.name, self.names[row])
        return n

    def _explain(self, queue: QueueInfo, row: int) -> None:
        attr = self.queues[queue.name]
        name = self.names[row]
        numbers = {f"held {name}": attr.allocated[row], f"deserved {name}": attr.limit[row]}
        known = self.limits.get(queue.name)
        if known is not None and known.plugin == NAME and known.numbers == numbers:
            return
        held, due = (as_text(name, amount) for amount in numbers.values())
        message = f"queue {queue.name} holds {held} of the {due} {name} that it deserves"
        by_capacity = not self._is_capped(queue, row)
        self.limits[queue.name] = Limit(message, by_capacity, NAME, numbers)

    def _is_capped(self, queue: QueueInfo, row: int) -> bool:
        """Return whether the queue's own capability, and not the cluster, sets its due."""
        cap = queue.capability
        return cap is not None and row < cap.size and 0 < cap[row] <= self._due(queue, row)

    def _due(self, queue: QueueInfo, row: int) -> float:
        return self.queues[queue.name].limit[row] + EPSILON

    def preemptive(self, queue: QueueInfo, tasks: Sequence[Task]) -> bool:
        """Return whether the queue would stay within its due with these tasks."""
        if not queue.is_open:
            return False
        attr = self.queues[queue.name]
        asked = np.zeros(len(self.names))
        for task in tasks:
            asked = plus(asked, task.cls.req)
        return not over_limit(plus(np.array(attr.allocated), asked), attr.deserved, asked)

    def enqueueable(self, queue: QueueInfo, job: JobInfo) -> tuple[Vote, Reason | None]:
        """Vote on whether the group's minimum stays within what the queue can ever have."""
        if not queue.is_open:
            reason = Reason("enqueue", NAME, f"queue {queue.name} is not open")
            return Vote.REJECT, reason
        least = job.min_resources
        if least is None:
            return Vote.PERMIT, None
        attr = self.queues[queue.name]
        held = minus(plus(np.array(attr.allocated), attr.inqueue), attr.elastic)
        why = insufficient(NAME, queue.name, least, held, attr.capability, self.names)
        return (Vote.REJECT if why else Vote.PERMIT), why

    def enqueued(self, job: JobInfo) -> None:
        """Count a group that was let in."""
        if job.min_resources is not None:
            attr = self.queues[job.queue]
            attr.inqueue = plus(attr.inqueue, without_gated(job, job.min_resources))

    def victims(self, ssn: Session, candidates: Sequence[Task]) -> list[Task]:
        """Return the tasks of queues that hold more than their due, until they do not."""
        left: dict[str, Floats] = {}
        victims = []
        for task in candidates:
            job = ssn.job(task.job)
            if job is None:
                continue
            attr = self.queues[job.queue]
            held = left.setdefault(job.queue, np.array(attr.allocated))
            if not fits(held, attr.deserved):
                left[job.queue] = minus(held, task.cls.req)
                victims.append(task)
        return victims


def attributes(queue: QueueInfo, usage: QueueSums, free: Floats) -> Attributes:
    """Return a queue's attributes; `free` is what nobody has a guarantee for."""
    size = free.size
    guarantee = pad(queue.guarantee, size)
    capability = np.minimum(free + guarantee, queue.bound(size))
    return Attributes(
        weight=queue.weight,
        guarantee=guarantee,
        capability=capability,
        request=pad(usage.request, size),
        inqueue=pad(usage.inqueue, size),
        elastic=pad(usage.elastic, size),
        allocated=pad(usage.allocated, size).tolist(),
        deserved=np.zeros(size),
    )


def fill(queues: Sequence[Attributes], total: Floats) -> None:
    """
    Work out what each queue deserves.

    In each round all queues that are not met see the same rest. A queue is met when it has what
    it asks for, or when a round has brought it nothing.
    """
    _pour(queues, total)
    for queue in queues:
        # What a queue may have is compared strictly: its last task must not fail by the rounding
        # of thirds and sevenths.
        queue.deserved = whole_units(queue.deserved)


def _pour(queues: Sequence[Attributes], total: Floats) -> None:
    remaining = total
    unmet = list(queues)
    while weights := sum(queue.weight for queue in unmet):
        more, less = np.zeros(total.size), np.zeros(total.size)
        still = []
        for queue in unmet:
            before = queue.deserved
            raised = np.minimum(before + remaining * (queue.weight / weights), queue.capability)
            queue.deserved = np.maximum(np.minimum(raised, queue.request), queue.guarantee)
            if fits(queue.request, queue.deserved):
                # Within the tolerance of its request: it gets all of it, or its last task
                # would fail by a rounding error.
                queue.deserved = np.maximum(queue.deserved, queue.request)
            elif not np.array_equal(queue.deserved, before):
                still.append(queue)
            more += np.maximum(queue.deserved - before, 0.0)
            less += np.maximum(before - queue.deserved, 0.0)
        left = np.maximum(remaining + less - more, 0.0)
        if is_empty(left) or np.array_equal(left, remaining):
            return
        remaining, unmet = left, still
