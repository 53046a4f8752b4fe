"""priority: jobs and tasks go by their priority, and only lower ones may be evicted for them."""

from __future__ import annotations

from collections.abc import Sequence

from pumice.core.conf import Arguments
from pumice.core.extension import Victims, Vote
from pumice.core.ids import JobKey
from pumice.core.model.jobs import JobInfo, SubJob
from pumice.core.model.tasks import Task
from pumice.core.session import Session

NAME = "priority"


class Priority:
    """The plugin. It has no arguments."""

    name = NAME
    steady = True

    def __init__(self, args: Arguments) -> None:
        #: the highest priority in each sub-job, by job
        self.highest: dict[JobKey, dict[str, int]] = {}

    def on_session_open(self, ssn: Session) -> None:
        """Register orders and protection."""
        points = ssn.points
        points.task_order[NAME] = lambda task: -task.priority
        points.job_order[NAME] = lambda job: -job.priority
        points.sub_job_order[NAME] = self.sub_job_order
        points.job_starving[NAME] = is_starving

        def lower(preemptor: Task, candidates: Sequence[Task]) -> Victims:
            return lower_tasks(ssn, preemptor, candidates), Vote.PERMIT

        def lower_jobs(action: str, job: JobInfo, candidates: Sequence[Task]) -> Victims:
            if action == "gangreclaim":
                return candidates, Vote.PERMIT
            return _of_lower_jobs(ssn, job, candidates), Vote.PERMIT

        points.preemptable[NAME] = lower
        points.unified_evictable[NAME] = lower_jobs

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""

    def sub_job_order(self, job: JobInfo, sub_job: SubJob) -> int:
        """Return the highest task priority of a sub-job, turned round."""
        highest = self.highest.get(job.key)
        if highest is None:
            highest = self.highest[job.key] = {}
            for task in job.tasks.values():
                highest[task.sub_job] = max(highest.get(task.sub_job, 0), task.priority)
        return -highest.get(sub_job.id, 0)


def is_starving(job: JobInfo) -> bool:
    """Return whether any task of the job still waits for room."""
    total = job.counts.total
    return total.ready + total.waiting < total.total


def lower_tasks(ssn: Session, preemptor: Task, candidates: Sequence[Task]) -> list[Task]:
    """Return tasks of jobs below the preemptor's; of its own job, tasks below itself."""
    own = ssn.job(preemptor.job)
    if own is None:
        return []
    below = []
    for task in candidates:
        job = ssn.job(task.job)
        if job is None:
            continue
        if job.key == own.key:
            lower = task.priority < preemptor.priority
        else:
            lower = job.priority < own.priority
        if lower:
            below.append(task)
    return below


def _of_lower_jobs(ssn: Session, own: JobInfo, candidates: Sequence[Task]) -> list[Task]:
    jobs = ((task, ssn.job(task.job)) for task in candidates)
    return [task for task, job in jobs if job is not None and job.priority < own.priority]
