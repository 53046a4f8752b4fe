"""
The phase of a group, by what its tasks are doing.

A group is Running when so many of its tasks as it needs have been scheduled, Completed when all
of them are finished, Unknown when tasks run although the gang is below its minimum. Otherwise it
stays Inqueue or is Pending. Only *enqueue* moves a group from Pending to Inqueue.
"""

from __future__ import annotations

from pumice.core.api.scheduling import PodGroupPhase
from pumice.core.model.jobs import JobInfo
from pumice.core.model.tasks import COMPLETED_STATUSES, SCHEDULED_STATUSES, Status


def scheduled(job: JobInfo) -> int:
    """Return how many tasks have been scheduled, those that leave their node included."""
    return job.counts.total.count(SCHEDULED_STATUSES) + leaving(job)


def leaving(job: JobInfo) -> int:
    """Return how many tasks are on their way off a node."""
    if not job.counts.total.by_status.get(Status.RELEASING):
        return 0
    return sum(t.status is Status.RELEASING and bool(t.node) for t in job.tasks.values())


def phase_of(job: JobInfo, *, unschedulable: bool) -> PodGroupPhase:
    """
    Return the group's phase; `unschedulable` says that this session could not place its gang.

    Completed means that every task is finished, so a group that has reached its minimum by
    finished tasks while others wait is Running. A group without a minimum is Running from the
    moment it is let in, tasks or no tasks.
    """
    total = job.counts.total
    if unschedulable and total.by_status.get(Status.RUNNING):
        return "Unknown"
    done, reached = total.count(COMPLETED_STATUSES), scheduled(job)
    if reached >= job.min_available and not (reached == 0 and job.is_pending):
        return "Completed" if done and done == total.total else "Running"
    return "Inqueue" if job.phase == "Inqueue" else "Pending"
