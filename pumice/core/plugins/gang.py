"""
gang: a job starts with its minimum of tasks or not at all.

It decides when a job is ready, who may be evicted without a gang falling below its minimum, and
writes the conditions that tell why a gang waits.
"""

from __future__ import annotations

from collections.abc import Sequence

from pumice.core.closing import NOT_ENOUGH_RESOURCES
from pumice.core.conf import Arguments
from pumice.core.extension import Validity, Victims, Vote
from pumice.core.ids import JobKey
from pumice.core.model.jobs import JobInfo, SubJob
from pumice.core.model.tasks import Status, Task
from pumice.core.phases import leaving, scheduled
from pumice.core.readiness import (
    is_ready,
    is_starving,
    job_pipelined,
    job_ready,
    roles_valid,
    sub_job_ready,
    sub_jobs_valid,
)
from pumice.core.session import Session

NAME = "gang"


class Gang:
    """The plugin. It has no arguments."""

    name = NAME
    steady = True

    def __init__(self, args: Arguments) -> None:
        """Take no arguments."""

    def on_session_open(self, ssn: Session) -> None:
        """Register readiness, order, validity and protection."""
        points = ssn.points
        points.job_valid[NAME] = validity
        points.job_ready[NAME] = job_ready
        points.job_pipelined[NAME] = lambda job: _vote(job_pipelined(job))
        points.sub_job_ready[NAME] = _sub_job_ready
        points.sub_job_pipelined[NAME] = lambda job, sub_job: _vote(
            sub_job_ready(sub_job, job.counts, pipelined=True)
        )
        points.job_order[NAME] = lambda job: is_ready(job, job.counts.total)
        points.sub_job_order[NAME] = _sub_job_ready
        points.job_starving[NAME] = is_starving

        def spare(_: Task, candidates: Sequence[Task]) -> Victims:
            return surplus(ssn, candidates), Vote.PERMIT

        points.preemptable[NAME] = spare
        points.reclaimable[NAME] = spare
        points.unified_evictable[NAME] = lambda action, job, tasks: (tasks, Vote.PERMIT)

    def on_session_close(self, ssn: Session) -> None:
        """Write down which gangs are ready, and which could not be placed."""
        for job in ssn.active:
            total = job.counts.total
            if is_ready(job, total):
                ssn.findings.schedulable.add(job.key)
            elif total.total and not is_only_leaving(job):
                trouble = ssn.findings.troubles.get(job.key)
                reason = trouble.invalid if trouble else ""
                ssn.findings.unschedulable[job.key] = reason or NOT_ENOUGH_RESOURCES


def validity(job: JobInfo) -> Validity | None:
    """Return why the job cannot reach its minimum with the tasks it has, if so."""
    if not roles_valid(job):
        return Validity(
            "NotEnoughPodsOfTask", "Not enough valid pods of each task for gang-scheduling"
        )
    if not sub_jobs_valid(job):
        return Validity(
            "NotEnoughPodsOfTask", "Not enough valid subGroups of each task for gang-scheduling"
        )
    valid, least = job.counts.total.valid, job.min_available
    if valid < least:
        message = f"Not enough valid tasks for gang-scheduling, valid: {valid}, min: {least}"
        return Validity("NotEnoughTasks", message)
    return None


def surplus(ssn: Session, candidates: Sequence[Task]) -> list[Task]:
    """Return the candidates that their jobs can spare, in the given order."""
    left: dict[JobKey, int] = {}
    victims = []
    for task in candidates:
        job = ssn.job(task.job)
        if job is None:
            continue
        ready = left.setdefault(job.key, job.counts.total.ready)
        if ready > job.min_available:
            left[job.key] = ready - 1
            victims.append(task)
    return victims


def is_only_leaving(job: JobInfo) -> bool:
    """Return whether the gang is short only because members are on their way out."""
    total = job.counts.total
    return (
        leaving(job) > 0
        and not total.count(Status.PENDING | Status.PIPELINED)
        and scheduled(job) >= job.min_available
    )


def _sub_job_ready(job: JobInfo, sub_job: SubJob) -> bool:
    return sub_job_ready(sub_job, job.counts)


def _vote(accepts: bool) -> Vote:
    return Vote.PERMIT if accepts else Vote.REJECT
