"""
backfill: place the tasks that ask for nothing.

They take no resources but a pod slot, so predicates alone decide where they may go, and no limit
of the queue concerns them. As soon as their job is ready, all of it that is allocated is sent out.
One that was promised a place by an action before is placed on what there is now.
"""

from __future__ import annotations

from collections.abc import Iterator

from pumice.core.actions.turns import Turns
from pumice.core.model.jobs import JobInfo
from pumice.core.model.tasks import Status, Task
from pumice.core.session import Session
from pumice.core.statement import dispatch

NAME = "backfill"


class Backfill:
    """The action."""

    name = NAME
    steady = True

    def execute(self, ssn: Session) -> None:
        """Place every task that asks for nothing, in order of queues, jobs and tasks."""
        for job, task in list(ordered(ssn)):
            view, within = ssn.views.of_task(task), ssn.within(task)
            picks = view.free_of_resources(within)
            if not picks:
                ssn.trouble(job).tasks[task.uid] = view.errors(resources=False, within=within)
                continue
            ssn.space.place([task], picks, Status.ALLOCATED)
            if ssn.is_ready(job):
                dispatch(ssn.space, job)


def ordered(ssn: Session) -> Iterator[tuple[JobInfo, Task]]:
    """Yield the tasks to place. The order of the queues is settled once."""
    candidates = [job for job in ssn.active if _has_any(job) and ssn.is_valid(job)]
    for candidate in candidates:
        _take_back_promises(ssn, candidate)
    turns = Turns(ssn, candidates)
    while (queue := turns.next_queue()) is not None:
        while (job := turns.next_job(queue)) is not None:
            for task in sorted(filter(_is_eligible, job.tasks.values()), key=ssn.task_key):
                yield job, task


def _has_any(job: JobInfo) -> bool:
    total = job.counts.total
    return not job.is_pending and total.best_effort > 0 and total.pending + total.waiting > 0


def _take_back_promises(ssn: Session, job: JobInfo) -> None:
    for task in list(job.tasks.values()):
        if task.status is Status.PIPELINED and task.cls.best_effort:
            ssn.space.take_back([task], [ssn.nodes.index[task.node]])


def _is_eligible(task: Task) -> bool:
    return task.status is Status.PENDING and task.cls.best_effort and not task.gates
