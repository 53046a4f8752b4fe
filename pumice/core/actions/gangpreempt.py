"""
gangpreempt: make room for whole gangs within a queue, from jobs of lower priority.

Where `preempt` looks at one node for one task, this looks at a whole domain for all that waits of a
gang (see `gangs`). Jobs that still run without what they lose are asked first, the last in job
order before the others; jobs that would break come after them, or, with `allowWholeBundle: false`,
not at all. A group that says of itself that it is not to be preempted is left alone.
"""

from __future__ import annotations

from pumice.core.actions.bundles import Bundle
from pumice.core.actions.gangs import Extent, GangEvictor, may_lose
from pumice.core.actions.occupants import Occupants
from pumice.core.actions.reprieves import reprieve
from pumice.core.actions.turns import Turns
from pumice.core.actions.victims import claims_held, starving
from pumice.core.model.jobs import JobInfo
from pumice.core.model.tasks import PREEMPTABLE_STATUSES, Task
from pumice.core.orders import OrderKey, Reversed
from pumice.core.session import Session

NAME = "gangpreempt"


class GangPreempt:
    """The action."""

    name = NAME

    def execute(self, ssn: Session) -> None:
        """Make room for the jobs that starve, at the cost of lower ones in their queues."""
        extent = Extent.of(ssn, NAME)
        with claims_held(ssn), Occupants.followed(ssn, PREEMPTABLE_STATUSES) as occupants:

            def lower(job: JobInfo, i: int) -> list[Task]:
                return [
                    task
                    for task in occupants.on(i)
                    if (other := ssn.job(task.job)) is not None
                    and other.queue == job.queue
                    and other.priority < job.priority
                    and may_lose(other)
                ]

            def last_first(bundle: Bundle, _: JobInfo) -> OrderKey:
                return (Reversed(tuple(key(bundle.job) for key in ssn.points.job_order)),)

            evictor = GangEvictor(ssn, NAME, extent, lower, last_first)
            turns = Turns(ssn, starving(ssn))
            while (queue := turns.next_queue()) is not None:
                while (job := turns.next_job(queue)) is not None:
                    evictor.serve(job, queue, occupants.of(queue.name))
            reprieve(ssn)
