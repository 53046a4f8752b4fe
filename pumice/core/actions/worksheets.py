"""
Worksheets: what allocate has to do for one job.

A worksheet holds the job's tasks that may be placed, in task order: those that wait, have no
gate and ask for something. Where the group has sub-group policies, the tasks lie in stacks by
sub-job; sub-jobs that the policies require come first.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pumice.core.model.jobs import JobInfo, SubJob
from pumice.core.model.tasks import Status, Task
from pumice.core.orders import OrderKey
from pumice.core.session import Session

Row = tuple[tuple[bool, OrderKey], SubJob, deque[Task]]


@dataclass(slots=True)
class Worksheet:
    """The tasks of a job that are to be placed."""

    #: of a job that is its own sub-job; roles that have failed stay so for all of its turns
    tasks: deque[Task] = field(default_factory=deque)
    failed_roles: set[str] = field(default_factory=set)
    #: of a job with sub-jobs: a heap by whether required, then by order
    sub_jobs: list[Row] = field(default_factory=list)
    required: frozenset[str] = frozenset()
    #: those of the tasks that are nominated to nodes
    nominated: Sequence[Task] = ()

    def __bool__(self) -> bool:
        return bool(self.tasks or self.sub_jobs)

    def copy(self) -> Worksheet:
        """Return a worksheet of its own."""
        rows = [(key, sub_job, deque(tasks)) for key, sub_job, tasks in self.sub_jobs]
        return replace(self, tasks=deque(self.tasks), sub_jobs=rows)

    def adopt(self, other: Worksheet) -> None:
        """Take over what is left to do on a copy."""
        self.tasks, self.sub_jobs = other.tasks, other.sub_jobs

    def next_sub_job(self) -> tuple[SubJob, deque[Task]]:
        """Take out the first sub-job."""
        _, sub_job, tasks = heapq.heappop(self.sub_jobs)
        return sub_job, tasks

    def put_sub_job(self, ssn: Session, job: JobInfo, sub_job: SubJob, tasks: deque[Task]) -> None:
        """Let a sub-job wait for its next turn."""
        key = (sub_job.id not in self.required, ssn.sub_job_key(job, sub_job))
        heapq.heappush(self.sub_jobs, (key, sub_job, tasks))


def worksheet(ssn: Session, job: JobInfo) -> Worksheet:
    """Return what there is to do for a job; empty when there is nothing."""
    total = job.counts.total
    if total.pending == total.pending_best_effort:
        return Worksheet()
    waiting = [t for t in job.tasks.values() if is_eligible(t)]
    if len(waiting) > 1:
        waiting.sort(key=ssn.task_key)
    nominated = [t for t in waiting if t.nominated]
    if nominated:
        # They go first: what they were promised must not go to their own kin.
        waiting.sort(key=lambda t: not t.nominated)
    if not job.policies:
        return Worksheet(tasks=deque(waiting), nominated=nominated)
    sheet = Worksheet(nominated=nominated, required=_required(ssn, job))
    stacks: dict[str, deque[Task]] = {}
    for task in waiting:
        stacks.setdefault(task.sub_job, deque()).append(task)
    for name, tasks in stacks.items():
        sheet.put_sub_job(ssn, job, job.sub_jobs[name], tasks)
    return sheet


def is_eligible(task: Task) -> bool:
    """Return whether allocate may place the task; those that ask for nothing are backfilled."""
    return task.status is Status.PENDING and not task.gates and not task.cls.best_effort


def _required(ssn: Session, job: JobInfo) -> frozenset[str]:
    """Return the sub-jobs that, with those ready already, make up the policies' minima."""
    ready: dict[str, int] = {}
    others = []
    for sub_job in job.sub_jobs.values():
        if ssn.is_sub_job_ready(job, sub_job):
            ready[sub_job.policy] = ready.get(sub_job.policy, 0) + 1
        else:
            others.append(sub_job)
    least = {policy.name: policy.min_sub_groups or 0 for policy in job.policies}
    required = set()
    for sub_job in sorted(others, key=lambda s: ssn.sub_job_key(job, s)):
        if ready.get(sub_job.policy, 0) < least.get(sub_job.policy, 0):
            ready[sub_job.policy] = ready.get(sub_job.policy, 0) + 1
            required.add(sub_job.id)
    return frozenset(required)
