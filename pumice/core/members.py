"""
Members: the jobs of the cluster, and the tasks of groups that are not there (yet).

A snapshot shares the jobs; the next change to one works on a copy.
"""

from __future__ import annotations

from collections.abc import Mapping

from pumice.core.api.scheduling import PodGroup
from pumice.core.ids import JobKey, PodUid
from pumice.core.model.jobs import JobInfo, Terms
from pumice.core.model.snapshots import QueueSums
from pumice.core.model.tasks import Task
from pumice.core.resources import Floats
from pumice.core.usage import QueueUsage


class Members:
    """Which task is of which job."""

    def __init__(self) -> None:
        self._jobs: dict[JobKey, JobInfo] = {}
        self._orphans: dict[JobKey, dict[PodUid, Task]] = {}
        self._usage = QueueUsage()
        #: jobs that no snapshot shares
        self._own: set[JobKey] = set()

    @property
    def jobs(self) -> Mapping[JobKey, JobInfo]:
        """Return the jobs by the key of their group."""
        return self._jobs

    def join(self, task: Task) -> Task:
        """Enter a task in its job, if it names one; return it as a member."""
        key = task.job
        if key is None:
            return task
        if key not in self._jobs:
            self._orphans.setdefault(key, {})[task.uid] = task
            return task
        job = self._own_job(key)
        task = job.assign(task)
        job.put(task)
        return task

    def leave(self, task: Task) -> None:
        """Take a task out of its job."""
        key = task.job
        if key is None:
            return
        if key in self._jobs:
            self._own_job(key).drop(task.uid)
            return
        members = self._orphans[key]
        del members[task.uid]
        if not members:
            del self._orphans[key]

    def describe(self, group: PodGroup, terms: Terms) -> list[Task]:
        """Take over a group as it is now; return the tasks that have another place in it."""
        key = JobKey(group.metadata.key)
        if key in self._jobs:
            job = self._own_job(key)
            regroup = job.group.spec.sub_group_policy != group.spec.sub_group_policy
            members = dict(job.tasks) if regroup else {}
            job.describe(group, terms)
        else:
            job = self._jobs[key] = JobInfo(group, terms)
            self._own.add(key)
            self._usage.touch(key)
            members = self._orphans.pop(key, {})
        moved = []
        for task in members.values():
            joined = job.assign(task)
            job.put(joined)
            if joined is not task:
                moved.append(joined)
        return moved

    def remove(self, key: JobKey) -> None:
        """Forget a group. Its tasks wait for one of that name."""
        job = self._jobs.pop(key, None)
        if job is None:
            return
        self._own.discard(key)
        self._usage.touch(key)
        if job.tasks:
            self._orphans[key] = dict(job.tasks)

    def set_terms(self, key: JobKey, terms: Terms) -> None:
        """Let a group's specification come to something else."""
        self._own_job(key).terms = terms

    def allocated(self, queue: str) -> Floats:
        """Return what the jobs of a queue hold now, what is merely held for them included."""
        self._usage.settle(self._jobs)
        return self._usage.of(queue).allocated

    def usage(self) -> Mapping[str, QueueSums]:
        """Return the sums by queue."""
        self._usage.settle(self._jobs)
        return self._usage.by_queue()

    def active(self) -> frozenset[JobKey]:
        """Return the jobs of which something waits or is to be told."""
        self._usage.settle(self._jobs)
        return self._usage.active()

    def share(self) -> Mapping[JobKey, JobInfo]:
        """Return the jobs as they are now; they are not changed any more."""
        self._own.clear()
        return dict(self._jobs)

    def _own_job(self, key: JobKey) -> JobInfo:
        """Return a job that may be changed in place."""
        self._usage.touch(key)
        if key not in self._own:
            self._jobs[key] = self._jobs[key].clone()
            self._own.add(key)
        return self._jobs[key]
