"""
reclaim: take back from other queues what they hold beyond their due.

Queues take turns, poorest first, and each has one; one that has all that it may have is passed
over. Jobs that starve go in order. Nodes are tried as they stand, unscored. Only pods that run may
go, of queues that lend (`reclaimable`).

Four rules are stricter than Volcano's, which would evict in vain: room that is free is taken
before anybody is sent off, on whatever node it is; the queue must be allowed the task, and every
predicate agree, once the victims are gone; nobody goes whom the plugin that shares the cluster out
leaves his room, be it in a tier below the one that decides; and nobody who could take the room
back (see `rivals`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial

from pumice.core.actions.occupants import Occupants
from pumice.core.actions.reprieves import reprieve
from pumice.core.actions.rivals import rivals
from pumice.core.actions.turns import Turns
from pumice.core.actions.victims import Evictor, claims_held, conclude, starving, waiting
from pumice.core.model.jobs import JobInfo
from pumice.core.model.queues import QueueInfo
from pumice.core.model.tasks import Status, Task
from pumice.core.session import Session
from pumice.core.statement import Statement

NAME = "reclaim"


class Reclaim:
    """The action."""

    name = NAME

    def execute(self, ssn: Session) -> None:
        """Make room for the jobs that starve, at the cost of other queues."""
        with claims_held(ssn):
            jobs = starving(ssn)
            if jobs:
                _serve(ssn, jobs)


def _serve(ssn: Session, jobs: Sequence[JobInfo]) -> None:
    with Occupants.followed(ssn, Status.RUNNING) as occupants:
        turns = Turns(ssn, jobs)
        reclaimer = Reclaimer(ssn, occupants)
        while (queue := turns.next_queue()) is not None:
            if ssn.is_overused(queue):
                continue
            while (job := turns.next_job(queue)) is not None:
                reclaimer.serve(job, queue)
        reprieve(ssn)


class Reclaimer:
    """Serves one job after the other."""

    def __init__(self, ssn: Session, occupants: Occupants) -> None:
        self._ssn = ssn
        self._occupants = occupants
        lenders = partial(_lenders, ssn, occupants)
        self._evictor = Evictor(ssn, NAME, ssn.points.reclaimable, lenders, ssn.beyond_due)

    def serve(self, job: JobInfo, queue: QueueInfo) -> None:
        """Make room for the tasks that a job lacks; keep it if the job can start then."""
        tasks = waiting(self._ssn, job)
        while found := self._try(job, queue, deque(tasks)):
            self._evictor.passed |= found
        passed, self._evictor.passed = self._evictor.passed, frozenset()
        if tasks and self._ssn.is_starving(job):
            if passed:
                self._evictor.give_up(tasks[0], passed)
            rivals = self._evictor.rivals_of(tasks[0])
            if rivals:
                self._ssn.trouble(job).rivals = tuple(sorted(rivals))

    def _try(self, job: JobInfo, queue: QueueInfo, tasks: deque[Task]) -> frozenset[str]:
        """Make room and keep it, if there are no rivals for it; return their queues."""
        ssn, statement = self._ssn, self._ssn.statement()
        while tasks and ssn.is_starving(job):
            task = tasks.popleft()
            if ssn.is_preemptive(queue, [task]):
                held = self._occupants.lent_to(queue.name)
                self._evictor.make_room(statement, task, queue, held)
        return conclude(ssn, NAME, job, statement, self._rivals)

    def _rivals(self, ssn: Session, statement: Statement) -> frozenset[str]:
        def takes(loser: Task, promised: Sequence[Task]) -> bool:
            return bool(ssn.reclaimable(loser, promised))

        return rivals(ssn, statement, takes)


def _lenders(ssn: Session, occupants: Occupants, task: Task, i: int) -> list[Task]:
    """Return the tasks on a node whose queue lends to that of `task`."""
    own = ssn.job(task.job)
    found = []
    for other in occupants.on(i):
        job = ssn.job(other.job)
        if job is None or own is None or job.queue == own.queue:
            continue
        if ssn.queues[job.queue].reclaimable:
            found.append(other)
    return found
