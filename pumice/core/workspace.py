"""
The workspace: the session's own copy of what it changes, and who hears of the changes.

Nodes are a copy of the snapshot's table, active jobs are clones. Every change goes through
`place`, `take_back`, `evict` or `restore`; each has its exact inverse, so a statement can undo
what it did. `changed` logs the columns that were touched: views on the table bring themselves up
to date by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pumice.core.devices.notes import Choice
from pumice.core.extension import Event, EventHandler
from pumice.core.ids import JobKey, PodUid
from pumice.core.model.jobs import JobInfo
from pumice.core.model.nodes import NodeTable
from pumice.core.model.tasks import Status, Task
from pumice.core.plan import Reason


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of a task in the last statement that was undone."""

    status: Status
    node: str


@dataclass(frozen=True, slots=True)
class Commitment:
    """Tasks of a job that were committed together, with their nodes."""

    job: JobKey
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True)
class Evicted:
    """A task was sent off its node: it goes, or stays, together with all of its unit."""

    before: Task
    reason: Reason
    unit: PodUid


@dataclass(frozen=True, slots=True)
class Dismissal:
    """What an action did for a job: whom it sent off, and the tasks of the job it promised room."""

    action: str
    job: JobKey
    victims: tuple[Evicted, ...]
    claims: tuple[Task, ...]


@dataclass(slots=True)
class Workspace:
    """What one session changes. `jobs` must be asked anew after a change to a settled job."""

    nodes: NodeTable
    jobs: dict[JobKey, JobInfo]
    #: jobs that are clones already
    own: set[JobKey]
    handlers: list[EventHandler] = field(default_factory=list)
    #: columns touched, in order, with repetitions
    changed: list[int] = field(default_factory=list)
    last: dict[PodUid, Trial] = field(default_factory=dict)
    committed: list[Commitment] = field(default_factory=list)
    dismissed: list[Dismissal] = field(default_factory=list)
    #: promised pods, whose nomination is worth telling since something was evicted for them
    evicted_for: set[PodUid] = field(default_factory=set)
    #: which cards placed tasks get, written down by the plugin that shares them
    choices: dict[PodUid, Choice] = field(default_factory=dict)
    #: tasks placed in this session by node
    placed: dict[str, dict[PodUid, Task]] = field(default_factory=dict)

    def job(self, key: JobKey) -> JobInfo:
        """Return a job that may be changed."""
        if key not in self.own:
            self.jobs[key] = self.jobs[key].clone()
            self.own.add(key)
        return self.jobs[key]

    def tasks_on(self, node: str) -> Iterator[Task]:
        """Yield the tasks on a node as they are now, those placed in this session included."""
        for task in self.nodes.tasks_on(node).values():
            job = self.jobs.get(task.job) if task.job is not None else None
            yield job.tasks.get(task.uid, task) if job is not None else task
        yield from self.placed.get(node, {}).values()

    def place(self, tasks: Sequence[Task], nodes: Sequence[int], status: Status) -> list[Task]:
        """
        Put waiting tasks that are alike on nodes; return them as they are then.

        `status` is Allocated, which takes what is idle, or Pipelined, which takes a promise.
        """
        names = self.nodes.names
        moved = [task.at(status, names[i]) for task, i in zip(tasks, nodes, strict=True)]
        job = self.job(_job_of(moved[0]))
        job.restate(moved)
        for task in moved:
            self.placed.setdefault(task.node, {})[task.uid] = task
        self._charge(moved[0], nodes, 1.0)
        event = Event(job, moved[0].cls, moved, nodes)
        for handler in self.handlers:
            handler.allocate(event)
        return moved

    def take_back(self, tasks: Sequence[Task], nodes: Sequence[int]) -> list[Task]:
        """Let placed tasks wait again; the inverse of `place`."""
        job = self.job(_job_of(tasks[0]))
        waiting = [task.at(Status.PENDING, "") for task in tasks]
        for task in tasks:
            del self.placed[task.node][task.uid]
        job.restate(waiting)
        self._charge(tasks[0], nodes, -1.0)
        event = Event(job, tasks[0].cls, tasks, nodes)
        for handler in self.handlers:
            handler.deallocate(event)
        return waiting

    def settle(self, tasks: Sequence[Task]) -> None:
        """Call allocated tasks Binding: they are decided, and will not be taken back."""
        bound = [task.at(Status.BINDING, task.node) for task in tasks]
        self.job(_job_of(bound[0])).restate(bound)
        for task in bound:
            self.placed[task.node][task.uid] = task
            self.last.pop(task.uid, None)

    def evict(self, task: Task) -> Task:
        """Send a task off its node: it keeps its room until it is gone."""
        job, i = self.job(_job_of(task)), self.nodes.index[task.node]
        leaving = task.at(Status.RELEASING, task.node)
        job.restate([leaving])
        self._promise(leaving, i, 1.0)
        event = Event(job, task.cls, (task,), (i,))
        for handler in self.handlers:
            handler.deallocate(event)
        return leaving

    def restore(self, task: Task) -> None:
        """Let a task that was sent off stay, as it was; the inverse of `evict`."""
        job, i = self.job(_job_of(task)), self.nodes.index[task.node]
        job.restate([task])
        self._promise(task, i, -1.0)
        event = Event(job, task.cls, (task,), (i,))
        for handler in self.handlers:
            handler.allocate(event)

    def _charge(self, task: Task, nodes: Sequence[int], sign: float) -> None:
        req = task.cls.req
        promised = task.status is Status.PIPELINED
        table = self.nodes.pipelined if promised else self.nodes.used
        if len(nodes) == 1:
            table[: req.size, nodes[0]] += req * sign
        else:
            for row in task.cls.rows:
                np.add.at(table[row], np.asarray(nodes), req[row] * sign)
        self.changed.extend(nodes)

    def _promise(self, task: Task, i: int, sign: float) -> None:
        req = task.cls.req
        self.nodes.releasing[: req.size, i] += req * sign
        self.changed.append(i)


def _job_of(task: Task) -> JobKey:
    if task.job is None:
        raise ValueError(f"{task.key} belongs to no job")
    return task.job


def workspace(
    nodes: NodeTable, jobs: Mapping[JobKey, JobInfo], active: Iterable[JobKey]
) -> Workspace:
    """Return a workspace in which the active jobs are clones already."""
    own = set(active)
    mine = dict(jobs)
    for key in own:
        mine[key] = jobs[key].clone()
    return Workspace(nodes.copy(), mine, own)
