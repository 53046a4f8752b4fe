"""
Jobs: one for each PodGroup, with its tasks and running sums over them.

Sums are kept as tasks come, go and change, so that a job whose tasks all run costs a session
nothing. They are counted three times: over the whole job, for each role (task spec), and, where
the group splits its pods into sub-groups, for each sub-job. A job without sub-group policies has
no sub-jobs: it is its own.

A JobInfo that was handed to a session is not changed any more; whoever must change it takes a
`clone` first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pumice.core import names
from pumice.core.api.meta import LabelSelector
from pumice.core.api.scheduling import PodGroup, PodGroupPhase, SubGroupPolicy
from pumice.core.ids import JobKey, PodUid
from pumice.core.model.tasks import (
    ALLOCATED_STATUSES,
    READY_STATUSES,
    VALID_STATUSES,
    Status,
    Task,
    is_preemptable,
)
from pumice.core.resources import Floats, excess, plus
from pumice.core.selectors import label_selector
from pumice.core.timestamps import moment

StatusOf = Callable[[Task], Status]

_MAX_SUB_JOB_ID = 128


class Tally:
    """How many tasks are in each status, and how many of the waiting ones ask for nothing."""

    __slots__ = ("best_effort", "by_status", "pending_best_effort", "ready", "total")

    def __init__(self) -> None:
        self.by_status: dict[Status, int] = {}
        #: tasks that ask for nothing; those of them that wait
        self.best_effort = 0
        self.pending_best_effort = 0
        #: tasks that are on a node or have succeeded
        self.ready = 0
        self.total = 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        return self.by_status == other.by_status and (
            self.pending_best_effort == other.pending_best_effort
        )

    __hash__ = None  # type: ignore[assignment]

    def clone(self) -> Tally:
        """Return a tally of its own."""
        other = Tally.__new__(Tally)
        other.by_status = dict(self.by_status)
        other.best_effort = self.best_effort
        other.pending_best_effort = self.pending_best_effort
        other.ready = self.ready
        other.total = self.total
        return other

    def add(self, status: Status, best_effort: bool, n: int) -> None:
        """Count `n` tasks more, or fewer where `n` is negative."""
        left = self.by_status.get(status, 0) + n
        if left:
            self.by_status[status] = left
        else:
            del self.by_status[status]
        self.total += n
        if best_effort:
            self.best_effort += n
        if status & READY_STATUSES:
            self.ready += n
        elif best_effort and status is Status.PENDING:
            self.pending_best_effort += n

    def move(self, old: Status, new: Status, best_effort: bool, n: int) -> None:
        """Count `n` tasks under a new status."""
        by_status = self.by_status
        left = by_status[old] - n
        if left:
            by_status[old] = left
        else:
            del by_status[old]
        by_status[new] = by_status.get(new, 0) + n
        if old & READY_STATUSES:
            self.ready -= n
        if new & READY_STATUSES:
            self.ready += n
        if best_effort:
            self.pending_best_effort += n * ((new is Status.PENDING) - (old is Status.PENDING))

    def count(self, mask: int) -> int:
        """Return the number of tasks whose status is in the mask."""
        # No sum() over a generator: this is asked many times of every job that waits.
        found = 0
        for status, n in self.by_status.items():
            if status & mask:
                found += n
        return found

    @property
    def pending(self) -> int:
        """Return the tasks that wait."""
        return self.by_status.get(Status.PENDING, 0)

    @property
    def waiting(self) -> int:
        """Return the tasks that wait for something on its way out."""
        return self.by_status.get(Status.PIPELINED, 0)

    @property
    def valid(self) -> int:
        """Return the tasks that may still count towards a minimum."""
        return self.count(VALID_STATUSES)


@dataclass(frozen=True, slots=True)
class SubJob:
    """Tasks of a job that form a unit. `policy` is empty for those that no policy takes."""

    id: str
    policy: str
    min_available: int
    match_index: int


@dataclass(slots=True)
class Counts:
    """The tallies of a job. Sub-jobs appear where the group has sub-group policies."""

    total: Tally = field(default_factory=Tally)
    roles: dict[str, Tally] = field(default_factory=dict)
    sub_jobs: dict[str, Tally] = field(default_factory=dict)

    def clone(self) -> Counts:
        """Return counts of their own."""
        return Counts(
            self.total.clone(),
            {role: tally.clone() for role, tally in self.roles.items()},
            {sub_job: tally.clone() for sub_job, tally in self.sub_jobs.items()},
        )

    def add(self, task: Task, status: Status, n: int) -> None:
        """Count `n` tasks like `task`, in `status`."""
        best_effort = task.cls.best_effort
        self.total.add(status, best_effort, n)
        _tally(self.roles, task.role).add(status, best_effort, n)
        if task.sub_job:
            _tally(self.sub_jobs, task.sub_job).add(status, best_effort, n)
            _forget_empty(self.sub_jobs, task.sub_job)
        _forget_empty(self.roles, task.role)

    def move(self, task: Task, old: Status, new: Status, n: int) -> None:
        """Count `n` tasks like `task` under a new status."""
        best_effort = task.cls.best_effort
        self.total.move(old, new, best_effort, n)
        self.roles[task.role].move(old, new, best_effort, n)
        if task.sub_job:
            self.sub_jobs[task.sub_job].move(old, new, best_effort, n)


def _tally(tallies: dict[str, Tally], key: str) -> Tally:
    tally = tallies.get(key)
    if tally is None:
        tally = tallies[key] = Tally()
    return tally


def _forget_empty(tallies: dict[str, Tally], key: str) -> None:
    if not tallies[key].total:
        del tallies[key]


def count(tasks: Iterable[Task], status_of: StatusOf) -> Counts:
    """Count tasks by the status that `status_of` gives them."""
    counts = Counts()
    for task in tasks:
        counts.add(task, status_of(task), 1)
    return counts


_NOTHING = np.zeros(0)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a group's specification comes to in this cluster."""

    queue: str
    priority: int = 0
    #: the minimum of resources; None where the group names none
    least: Floats | None = None
    #: why the group cannot be scheduled as it is written
    fault: str = ""
    #: what is odd about it, and what is done instead
    remarks: tuple[str, ...] = ()


class JobInfo:
    """A job. Its own methods alone change it."""

    __slots__ = (
        "allocated",
        "counts",
        "created",
        "gated",
        "group",
        "key",
        "leaving_request",
        "min_available",
        "pending_request",
        "phase",
        "policies",
        "preemptable",
        "promised",
        "sub_jobs",
        "task_min_available",
        "tasks",
        "terms",
        "total_request",
        "uid",
    )

    def __init__(self, group: PodGroup, terms: Terms) -> None:
        self.tasks: dict[PodUid, Task] = {}
        self.counts = Counts()
        self.sub_jobs: dict[str, SubJob] = {}
        #: sums of requests: of tasks in allocated statuses, of those that are promised room, of
        #: those on their way out, of waiting ones, of those of them that a gate holds, and of all
        self.allocated = _NOTHING
        self.promised = _NOTHING
        self.leaving_request = _NOTHING
        self.pending_request = _NOTHING
        self.gated = _NOTHING
        self.total_request = _NOTHING
        self.describe(group, terms)

    def describe(self, group: PodGroup, terms: Terms) -> None:
        """Take over what the group says, and what that comes to."""
        meta, spec = group.metadata, group.spec
        self.key = JobKey(meta.key)
        self.uid = meta.uid
        self.group = group
        self.terms = terms
        self.min_available = max(spec.min_member, 0)
        self.task_min_available: Mapping[str, int] = spec.min_task_member or {}
        self.policies: tuple[SubGroupPolicy, ...] = tuple(spec.sub_group_policy or ())
        self.created = moment(meta.creation_timestamp)
        self.preemptable = is_preemptable(meta.annotations or {}, meta.labels or {}, default=False)
        self.phase: PodGroupPhase = group.status.phase

    def __repr__(self) -> str:
        return f"JobInfo({self.key})"

    @property
    def name(self) -> str:
        """Return the group's name."""
        return self.group.metadata.name

    @property
    def queue(self) -> str:
        """Return the queue that the job is charged to."""
        return self.terms.queue

    @property
    def priority(self) -> int:
        """Return the value of the group's priority class."""
        return self.terms.priority

    @property
    def min_resources(self) -> Floats | None:
        """Return the minimum of resources; None where the group names none."""
        return self.terms.least

    @property
    def order(self) -> tuple[float, str]:
        """Return the sort key among jobs that no plugin tells apart: by age, then by name."""
        return (self.created, self.key)

    @property
    def is_pending(self) -> bool:
        """Return whether the group waits to be let into its queue."""
        return self.phase in ("", "Pending")

    def clone(self) -> JobInfo:
        """Return a job of its own, to be changed."""
        # Written out since a session clones every job that waits.
        other = JobInfo.__new__(JobInfo)
        other.key, other.uid, other.group, other.terms = self.key, self.uid, self.group, self.terms
        other.min_available, other.task_min_available = self.min_available, self.task_min_available
        other.policies, other.preemptable = self.policies, self.preemptable
        other.created, other.phase = self.created, self.phase
        other.tasks, other.counts = dict(self.tasks), self.counts.clone()
        other.sub_jobs = dict(self.sub_jobs)
        other.allocated, other.promised = self.allocated, self.promised
        other.leaving_request = self.leaving_request
        other.pending_request, other.gated = self.pending_request, self.gated
        other.total_request = self.total_request
        return other

    def assign(self, task: Task) -> Task:
        """Return the task as a member of the sub-job that the policies put it in."""
        sub_job = _sub_job(self.key, self.policies, task.labels) if self.policies else None
        if sub_job is not None:
            self.sub_jobs[sub_job.id] = sub_job
        sub_job_id = sub_job.id if sub_job else ""
        return task if task.sub_job == sub_job_id else _with_sub_job(task, sub_job_id)

    def put(self, task: Task) -> None:
        """Add a task, or take over its new state. `assign` must have been asked before."""
        old = self.tasks.get(task.uid)
        if old is not None and _sums_alike(old, task):
            self.restate((task,))
            return
        if old is not None:
            self._account(old, -1)
        self.tasks[task.uid] = task
        self._account(task, 1)
        if old is not None and old.sub_job != task.sub_job:
            self._forget_sub_job(old.sub_job)

    def drop(self, uid: PodUid) -> Task | None:
        """Remove a task; return it if there was one."""
        task = self.tasks.pop(uid, None)
        if task is not None:
            self._account(task, -1)
            self._forget_sub_job(task.sub_job)
        return task

    def restate(self, tasks: Sequence[Task]) -> None:
        """
        Take over the new state of tasks that are alike: same requests, role, sub-job and status.

        They must also have been alike before. The cost in sums is that of one task.
        """
        first, n = tasks[0], len(tasks)
        old = self.tasks[first.uid]
        self.counts.move(first, old.status, first.status, n)
        if not (old.status & ALLOCATED_STATUSES and first.status & ALLOCATED_STATUSES):
            amount = first.cls.req * n
            self._charge(old, -amount)
            self._charge(first, amount)
        for task in tasks:
            self.tasks[task.uid] = task

    def _account(self, task: Task, n: int) -> None:
        self.counts.add(task, task.status, n)
        amount = task.cls.req if n == 1 else task.cls.req * n
        self.total_request = plus(self.total_request, amount)
        self._charge(task, amount)

    def _charge(self, task: Task, amount: Floats) -> None:
        if task.status & ALLOCATED_STATUSES:
            self.allocated = plus(self.allocated, amount)
        elif task.status is Status.PIPELINED:
            self.promised = plus(self.promised, amount)
        elif task.status is Status.RELEASING:
            self.leaving_request = plus(self.leaving_request, amount)
        elif task.status is Status.PENDING:
            self.pending_request = plus(self.pending_request, amount)
            if task.gates and is_held_back(task):
                self.gated = plus(self.gated, amount)

    def _forget_sub_job(self, sub_job: str) -> None:
        if sub_job and sub_job not in self.counts.sub_jobs:
            self.sub_jobs.pop(sub_job, None)


def _sums_alike(one: Task, other: Task) -> bool:
    """Return whether two states of a task add the same to the same sums, but for the status."""
    return one.role == other.role and one.sub_job == other.sub_job and one.cls.asks_like(other.cls)


def is_held_back(task: Task) -> bool:
    """Return whether a gate other than the queue's own keeps the task from being placed."""
    return any(gate != names.QUEUE_ALLOCATION_GATE for gate in task.gates)


def elastic(job: JobInfo) -> Floats:
    """Return what the job holds beyond its minimum: all of it where no minimum is named."""
    return job.allocated if job.min_resources is None else excess(job.allocated, job.min_resources)


def without_gated(job: JobInfo, amount: Floats) -> Floats:
    """Return the amount less what gated tasks ask for, never below zero."""
    return excess(amount, job.gated)[: max(amount.size, 1)] if job.gated.any() else amount


def _with_sub_job(task: Task, sub_job: str) -> Task:
    values = {name: getattr(task, name) for name in Task.__slots__}
    return Task(**{**values, "sub_job": sub_job})


def _sub_job(job: JobKey, policies: Sequence[SubGroupPolicy], labels: Mapping[str, str]) -> SubJob:
    """Return the sub-job of the first policy that takes a pod with these labels."""
    for policy in policies:
        values = _matched_values(policy, labels)
        if values is None:
            continue
        text = "-".join(values)
        group = f"{job}/{policy.name}"
        sub_job = f"{group}-{text}"
        if len(sub_job) > _MAX_SUB_JOB_ID:
            sub_job = f"{group}-{_fnv1a(text)}"
        index = int(values[0]) if values[0].isdecimal() else 0
        size = 1 if policy.sub_group_size is None else policy.sub_group_size
        return SubJob(sub_job, policy.name, size, index)
    return SubJob(job, "", 1, 0)


def _matched_values(policy: SubGroupPolicy, labels: Mapping[str, str]) -> list[str] | None:
    values = [labels.get(key, "") for key in policy.match_label_keys or ()]
    if not values or not all(values):
        return None
    selector = label_selector(policy.label_selector or LabelSelector())
    return values if selector.matches(labels) else None


def _fnv1a(text: str) -> str:
    """Return the 32-bit FNV-1a hash: a short name that never changes."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return str(value)
