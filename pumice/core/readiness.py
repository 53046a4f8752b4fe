"""
When a gang may start: the one definition, shared by the session and by the barrier in `bind`.

The session asks it of the job as it has planned it; the barrier asks it with its own view of
each task's status, in which a pod counts only once kube-scheduler has accepted it. Pending tasks
that ask for nothing count as there: they are placed as soon as the others are.
"""

from __future__ import annotations

from collections.abc import Collection

from pumice.core.model.jobs import Counts, JobInfo, StatusOf, SubJob, Tally, count
from pumice.core.model.tasks import READY_STATUSES, Status


def job_ready(job: JobInfo, status_of: StatusOf | None = None) -> bool:
    """
    Return whether the job has its minimum: of tasks, of each role, and of sub-jobs.

    `status_of` replaces the status that the tasks have in the job.
    """
    counts = job.counts if status_of is None else count(job.tasks.values(), status_of)
    return is_ready(job, counts.total) and roles_ready(job, counts) and sub_jobs_ready(job, counts)


def job_pipelined(job: JobInfo) -> bool:
    """Return whether the job will have its minimum once what it waits for is free."""
    counts = job.counts
    return (
        is_ready(job, counts.total, counts.total.waiting)
        and roles_ready(job, counts, READY_STATUSES | Status.PIPELINED)
        and sub_jobs_ready(job, counts, pipelined=True)
    )


def is_ready(job: JobInfo, tally: Tally, more: int = 0) -> bool:
    """Return whether enough tasks are ready, `more` of them counted besides."""
    return tally.ready + tally.pending_best_effort + more >= job.min_available


def is_starving(job: JobInfo) -> bool:
    """Return whether the job lacks tasks even when what it waits for becomes free."""
    total = job.counts.total
    return total.ready + total.waiting < job.min_available


def roles_ready(job: JobInfo, counts: Counts, mask: int = READY_STATUSES) -> bool:
    """
    Return whether each role has its minimum.

    As in Volcano, minima that add up to more than the job's own minimum are not looked at.
    """
    if not looks_at_roles(job):
        return True
    return all(_has(counts, role, mask) >= least for role, least in job.task_min_available.items())


def looks_at_roles(job: JobInfo) -> bool:
    """Return whether the minima of roles count: not where they add up to more than the job's."""
    least = job.task_min_available
    return bool(least) and job.min_available >= sum(least.values())


def needs_only_number(job: JobInfo) -> bool:
    """Return whether the job's own minimum is all that it takes: it is ready when `is_ready`."""
    return not job.policies and not looks_at_roles(job)


def _has(counts: Counts, role: str, mask: int) -> int:
    tally = counts.roles.get(role)
    return tally.count(mask) + tally.pending_best_effort if tally else 0


def roles_valid(job: JobInfo) -> bool:
    """Return whether each role has so many tasks that its minimum can be reached."""
    if not looks_at_roles(job):
        return True
    roles = job.counts.roles
    return all(
        (roles[role].valid if role in roles else 0) >= least
        for role, least in job.task_min_available.items()
    )


def sub_jobs_ready(job: JobInfo, counts: Counts, *, pipelined: bool = False) -> bool:
    """Return whether each policy has its minimum of ready (or at least pipelined) sub-jobs."""
    for policy in job.policies:
        least = policy.min_sub_groups or 0
        if least and ready_sub_jobs(job, counts, policy.name, pipelined=pipelined) < least:
            return False
    return True


def ready_sub_jobs(job: JobInfo, counts: Counts, policy: str, *, pipelined: bool = False) -> int:
    """Return how many sub-jobs of a policy are ready."""
    return sum(
        sub_job_ready(sub_job, counts, pipelined=pipelined)
        for sub_job in job.sub_jobs.values()
        if sub_job.policy == policy
    )


def sub_job_ready(sub_job: SubJob, counts: Counts, *, pipelined: bool = False) -> bool:
    """Return whether enough tasks of the sub-job are ready (or at least pipelined)."""
    tally = counts.sub_jobs.get(sub_job.id)
    if tally is None:
        return sub_job.min_available <= 0
    more = tally.waiting if pipelined else 0
    return tally.ready + tally.pending_best_effort + more >= sub_job.min_available


def sub_jobs_valid(job: JobInfo) -> bool:
    """Return whether each policy has so many sub-jobs that its minimum can be reached."""
    for policy in job.policies:
        found = sum(sub_job.policy == policy.name for sub_job in job.sub_jobs.values())
        if found < (policy.min_sub_groups or 0):
            return False
    return True


def worth_continuing(job: JobInfo, sub_job: SubJob | None, failed_roles: Collection[str]) -> bool:
    """
    Return whether to try the other tasks after one found no node (`NeedContinueAllocating`).

    `failed_roles` are the roles of which a task has failed in this sub-job.
    """
    counts = job.counts
    part = counts.total if sub_job is None else counts.sub_jobs.get(sub_job.id, Tally())
    least = job.min_available if sub_job is None else sub_job.min_available
    if job.min_available == counts.total.total or least >= part.total:
        return False
    if job.policies:
        return True
    if job.min_available < sum(job.task_min_available.values()):
        others = sum(t.pending for role, t in counts.roles.items() if role not in failed_roles)
        return counts.total.ready + others >= job.min_available
    least_of = job.task_min_available
    return all(_has(counts, role, READY_STATUSES) >= least_of.get(role, 0) for role in failed_roles)
