"""
enqueue: let groups into their queues.

A group waits as Pending, without pods where our controller makes them, until the plugins vote
that what it needs at least can be had. Then it is Inqueue. A group that names no minimum of
resources is let in without a vote.
"""

from __future__ import annotations

from pumice.core.actions.turns import Turns
from pumice.core.model.jobs import JobInfo
from pumice.core.plan import Reason
from pumice.core.session import Session

NAME = "enqueue"


class Enqueue:
    """The action."""

    name = NAME
    steady = True

    def execute(self, ssn: Session) -> None:
        """Give every group that waits one try, queues taking turns."""
        turns = Turns(ssn, (job for job in ssn.active if job.is_pending))
        while (queue := turns.next_queue()) is not None:
            job = turns.next_job(queue)
            if job is None:
                continue
            if job.min_resources is None:
                ssn.enqueue(job, _UNCONDITIONAL)
            elif ssn.is_enqueueable(job):
                ssn.enqueue(job, _admitted(ssn, job))
            turns.put_queue(queue)


_UNCONDITIONAL = Reason(NAME, "", "the group names no minimum of resources")


def _admitted(ssn: Session, job: JobInfo) -> Reason:
    least = job.min_resources
    amounts = zip(ssn.names, () if least is None else least.tolist(), strict=False)
    numbers = {f"minimum {name}": amount for name, amount in amounts if amount}
    return Reason(NAME, "", "the minimum of resources can be had", numbers)
