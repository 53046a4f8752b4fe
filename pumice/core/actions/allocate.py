"""
allocate: give idle resources to the jobs that may have them.

Queues take turns, and after each job the order of the queues is looked at again; within a queue
jobs go in order. A job is placed in one statement. When the plugins then call it ready, the
statement is kept, and the job waits for another turn with what is left of it; otherwise it holds
what it was promised until the session ends, or, where even that is not enough, nothing. Jobs with
sub-groups, or that are bound to HyperNodes, are placed as `searching` has it.

When all have had their turns, pods are let out of the gate of their queue as far as the queue may
have them.

Ahead of all turns come the jobs for which somebody was evicted: their tasks are nominated to nodes
that have, or will have, room for them, and nobody is to take it before.
"""

from __future__ import annotations

from collections.abc import Mapping

from pumice.core.actions.admitting import admit
from pumice.core.actions.placing import Attempt
from pumice.core.actions.searching import Search
from pumice.core.actions.turns import Turns
from pumice.core.actions.worksheets import Worksheet, worksheet
from pumice.core.fitness import Limit, Trouble
from pumice.core.ids import JobKey
from pumice.core.model.jobs import JobInfo
from pumice.core.model.queues import QueueInfo
from pumice.core.plan import Reason
from pumice.core.session import Session

NAME = "allocate"


class Allocate:
    """The action."""

    name = NAME
    steady = True

    def execute(self, ssn: Session) -> None:
        """Go round the queues until none has a job left to try."""
        sheets = _collect(ssn)
        _keep_promises(ssn, sheets)
        turns = Turns(ssn, (job for job in ssn.active if job.key in sheets))
        while (queue := turns.next_queue()) is not None:
            if ssn.is_overused(queue):
                _hold(ssn, queue, turns.left(queue))
                continue
            job = turns.next_job(queue)
            if job is None:
                continue
            sheet = sheets[job.key]
            if _try(ssn, job, queue, sheet) and sheet:
                turns.put_job(job)
            turns.put_queue(queue)
        admit(ssn)


def _collect(ssn: Session) -> dict[JobKey, Worksheet]:
    """Return the worksheets of the jobs that may be tried."""
    sheets = {}
    admits = "enqueue" in ssn.conf.actions
    for job in ssn.active:
        if job.is_pending:
            if admits:
                continue
            ssn.enqueue(job, _UNASKED)
        if not ssn.is_valid(job):
            continue
        sheet = worksheet(ssn, job)
        if not sheet:
            continue
        sheets[job.key] = sheet
    return sheets


def _keep_promises(ssn: Session, sheets: dict[JobKey, Worksheet]) -> None:
    """Give the jobs their turn first whose tasks are nominated to nodes that take them."""
    claimants = [job for job in ssn.active if job.key in sheets and _has_claim(ssn, job, sheets)]
    for job in sorted(claimants, key=ssn.job_key):
        queue, sheet = ssn.queues[job.queue], sheets[job.key]
        if not ssn.is_overused(queue) and not (_try(ssn, job, queue, sheet) and sheet):
            del sheets[job.key]


def _has_claim(ssn: Session, job: JobInfo, sheets: Mapping[JobKey, Worksheet]) -> bool:
    """Return whether a task of the job may go, now or soon, to the node it is nominated to."""
    for task in sheets[job.key].nominated:
        i = ssn.nodes.index.get(task.nominated)
        if i is not None and ssn.views.of_task(task).takes(i):
            return True
    return False


_UNASKED = Reason(NAME, "", "no enqueue action is configured")


def _hold(ssn: Session, queue: QueueInfo, jobs: list[JobInfo]) -> None:
    """Write down that the queue has had all that it may have."""
    known = ssn.findings.limits.get(queue.name)
    limit = known or Limit(f"queue {queue.name} is overused")
    for job in jobs:
        trouble = ssn.trouble(job)
        if not trouble.message:
            trouble.message, trouble.by_queue = limit.message, not limit.by_capacity
            trouble.limit = known
        if limit.by_capacity:
            ssn.unplaced(job)


def _try(ssn: Session, job: JobInfo, queue: QueueInfo, sheet: Worksheet) -> bool:
    """Give a job its turn; return whether it is ready, and what was placed committed."""
    if job.policies or job.group.spec.network_topology is not None:
        statement = Search(ssn, job, queue, sheet).run()
        ready = statement is not None and ssn.is_ready(job)
    else:
        attempt = Attempt(ssn, job, None, queue, sheet.tasks, ssn.statement(), sheet.failed_roles)
        statement, ready = attempt.run(), attempt.ready
    if statement is not None and ready:
        statement.commit()
    elif _lacks_room(ssn.trouble(job)):
        ssn.unplaced(job)
    return ready


def _lacks_room(trouble: Trouble) -> bool:
    """Return whether nothing but room keeps the job's tasks from being placed."""
    return all(limit.by_capacity for limit in trouble.over_limit.values())
