"""
Bundles: what is evicted for a whole gang, in the pieces in which its victims can be had.

Of each job the tasks that may go form at most two bundles. The safe one holds those that the job
can spare and still run: it stays at its minima, of tasks, of each role and of sub-jobs. Taking
from the whole one breaks the job, so it is taken as one or not at all.

A job that is below its minimum already loses nothing more: all of it is safe. And once a sub-job
is broken, the rest of it may go too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pumice.core.ids import PodUid
from pumice.core.model.jobs import JobInfo
from pumice.core.model.tasks import READY_STATUSES, Task
from pumice.core.readiness import looks_at_roles, ready_sub_jobs, sub_job_ready
from pumice.core.resources import PODS, Floats, pad


@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """Tasks of one job that may go together, by priority; `whole` breaks the job."""

    job: JobInfo
    tasks: tuple[Task, ...]
    whole: bool

    def frees(self, size: int) -> Floats:
        """Return what the tasks hold, in `size` rows."""
        return total(self.tasks, size)

    def worth(self, need: Floats) -> float:
        """
        Return how much of what is needed the bundle frees for what its job loses.

            sum of min(freed, needed) / needed  ÷  sum of lost / needed

        over the resources that are needed, pod slots aside. A whole bundle costs the job all that
        it asks for, also what is elsewhere; a safe one costs nothing and is worth infinitely much.
        With 4 cpu and 8Gi needed, a job of 8 cpu and 8Gi of which 4 cpu and 4Gi can be freed is
        worth (1 + 0.5) / (2 + 1) = 0.5.
        """
        if not self.whole:
            return math.inf
        rows = np.flatnonzero(need > 0)
        rows = rows[rows != PODS]
        freed, lost = self.frees(need.size)[rows], pad(self.job.total_request, need.size)[rows]
        cost = float((lost / need[rows]).sum())
        gain = float((np.minimum(freed, need[rows]) / need[rows]).sum())
        return gain / cost if cost else math.inf

    def among(self, allowed: Collection[PodUid]) -> Bundle | None:
        """Return what is left of the bundle where only some may go; a whole one needs all."""
        tasks = tuple(task for task in self.tasks if task.uid in allowed)
        if not tasks or (self.whole and len(tasks) < len(self.tasks)):
            return None
        return replace(self, tasks=tasks)


def total(tasks: Sequence[Task], size: int) -> Floats:
    """Return what tasks ask for together, in `size` rows."""
    amount = np.zeros(size)
    for task in tasks:
        amount[: task.cls.req.size] += task.cls.req
    return amount


def bundles_of(job: JobInfo, tasks: Sequence[Task]) -> Iterator[Bundle]:
    """Yield the bundles of those tasks of a job that may go."""
    tasks = sorted(tasks, key=lambda task: (task.priority, task.uid))
    spare = Surplus(job)
    safe = [task for task in tasks if spare.take(task)]
    rest = [task for task in tasks if task not in safe]
    for part, whole in ((safe, False), (rest, True)):
        if part:
            yield Bundle(job, tuple(part), whole)


class Surplus:
    """What a job has beyond its minima, and can do without."""

    def __init__(self, job: JobInfo) -> None:
        counts = job.counts
        self._tasks = counts.total.ready - job.min_available
        #: the job runs below its minimum: nothing of it can be spoilt
        self._broken = self._tasks < 0
        least = job.task_min_available if looks_at_roles(job) else {}
        ready = {role: tally.count(READY_STATUSES) for role, tally in counts.roles.items()}
        self._roles = {role: ready.get(role, 0) - n for role, n in least.items()}
        self._policies = {
            policy.name: ready_sub_jobs(job, counts, policy.name) - policy.min_sub_groups
            for policy in job.policies
            if policy.min_sub_groups
        }
        #: the sub-jobs that are whole, with the policies that they count for
        self._intact = {
            sub_job.id: sub_job.policy
            for sub_job in job.sub_jobs.values()
            if sub_job_ready(sub_job, counts)
        }

    def take(self, task: Task) -> bool:
        """Take a task off what can be spared; return whether it could be."""
        if self._broken:
            return True
        policy = self._intact.get(task.sub_job)
        left = (self._tasks, self._roles.get(task.role, 1), self._policies.get(policy or "", 1))
        if min(left) <= 0:
            return False
        self._tasks -= 1
        if task.role in self._roles:
            self._roles[task.role] -= 1
        if policy is not None:
            del self._intact[task.sub_job]
            if policy in self._policies:
                self._policies[policy] -= 1
        return True
