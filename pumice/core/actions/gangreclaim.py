"""
gangreclaim: take back from other queues the room for whole gangs.

Where `reclaim` looks at one node for one task, this looks at a whole domain for all that waits of a
gang (see `gangs`), and asks for all of it whether the queue may take it back. Of queues that lend
the one that comes last gives first; but before any job breaks all queues are asked for what their
jobs can spare, and with `allowWholeBundle: false` no job breaks at all. Nobody goes who could take
the room back (see `rivals`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pumice.core.actions.bundles import Bundle
from pumice.core.actions.gangs import Extent, GangEvictor, may_lose, waiting_parts
from pumice.core.actions.occupants import Occupants
from pumice.core.actions.reprieves import reprieve
from pumice.core.actions.rivals import rivals
from pumice.core.actions.turns import Turns
from pumice.core.actions.victims import claims_held, starving
from pumice.core.model.jobs import JobInfo
from pumice.core.model.queues import QueueInfo
from pumice.core.model.tasks import Status, Task
from pumice.core.orders import OrderKey
from pumice.core.session import Session
from pumice.core.statement import Statement

NAME = "gangreclaim"


class GangReclaim:
    """The action."""

    name = NAME

    def execute(self, ssn: Session) -> None:
        """Make room for the jobs that starve, at the cost of other queues."""
        extent = Extent.of(ssn, NAME)
        with claims_held(ssn), Occupants.followed(ssn, Status.RUNNING) as occupants:

            def lenders(job: JobInfo, i: int) -> list[Task]:
                return [
                    task
                    for task in occupants.on(i)
                    if (other := ssn.job(task.job)) is not None
                    and other.queue != job.queue
                    and ssn.queues[other.queue].reclaimable
                    and may_lose(other)
                ]

            def by_queue(bundle: Bundle, job: JobInfo) -> OrderKey:
                return ssn.victim_queue_key(ssn.queues[bundle.job.queue], ssn.queues[job.queue])

            evictor = GangEvictor(ssn, NAME, extent, lenders, by_queue, _rivals)
            turns = Turns(ssn, starving(ssn))
            while (queue := turns.next_queue()) is not None:
                if ssn.is_overused(queue):
                    continue
                while (job := turns.next_job(queue)) is not None:
                    if _may_take(ssn, job, queue):
                        evictor.serve(job, queue, occupants.lent_to(queue.name))
            reprieve(ssn)


def _may_take(ssn: Session, job: JobInfo, queue: QueueInfo) -> bool:
    """Return whether the queue may take room from others for all that waits of a job."""
    return ssn.is_preemptive(queue, [t for _, part in waiting_parts(ssn, job) for t in part])


def _rivals(ssn: Session, statement: Statement) -> frozenset[str]:
    def takes(loser: Task, promised: Sequence[Task]) -> bool:
        job = ssn.job(loser.job)
        return job is not None and bool(ssn.unified_evictable(NAME, job, promised))

    return rivals(ssn, statement, takes)
