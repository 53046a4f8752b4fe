"""
task-topology: tasks of a job that belong together go to one node, others apart.

Annotations of the group name roles that attract (`volcano.sh/task-topology-affinity`) or repel
(`...-anti-affinity`) each other: groups with `;` between them, of roles with `,` between them. A
role that stands alone means its own tasks. `...-task-order` says which roles go first.

Tasks are dealt into buckets, one after the other: a placed task into that of its node, a waiting
one where it finds most roles that attract it, less those that repel it, the smaller bucket among
equals; where only repelling ones are, into a new one. Of a bucket with b tasks on a node and w
waiting, the node scores

    (b - roles placed there in this session that repel the task
       + w - so many waiting ones as do not fit) * 100 * task-topology.weight / largest bucket

and nothing where the task itself does not fit what will be idle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from pumice.core import names
from pumice.core.conf import Arguments
from pumice.core.extension import BatchNodeOrder, Event, EventHandler, SortKey
from pumice.core.ids import JobKey, PodUid
from pumice.core.model.jobs import JobInfo
from pumice.core.model.tasks import ALLOCATED_STATUSES, Status, Task, TaskClass
from pumice.core.resources import CPU, EPSILON, MEMORY, PODS, Bools, Floats, Ints, pad
from pumice.core.session import Session

NAME = "task-topology"
MAX_SCORE: Final = 100.0
_MIB: Final = 1024.0 * 1024.0


@dataclass(frozen=True, slots=True)
class Topology:
    """Which roles attract and repel each other, both ways, and in which order they go."""

    near: frozenset[tuple[str, str]]
    far: frozenset[tuple[str, str]]
    order: Sequence[str]

    @classmethod
    def of(cls, job: JobInfo) -> Topology | None:
        """Read the group's annotations; None where it has none, or they make no sense."""
        notes = job.group.metadata.annotations or {}
        known = {role_of(task) for task in job.tasks.values()} | job.task_min_available.keys()
        near = _groups(notes.get(names.TASK_AFFINITY, ""))
        far = _groups(notes.get(names.TASK_ANTI_AFFINITY, ""))
        order = _roles(notes.get(names.TASK_ORDER, ""))
        everything = [*near, *far, order]
        if any(len(set(group)) < len(group) or not known.issuperset(group) for group in everything):
            return None
        return cls(_pairs(near), _pairs(far), order) if near or far else None

    def priority(self, role: str) -> int:
        """Return how much the role insists: 4 repels itself, 3 attracts others, 2 itself, 1, 0."""
        if (role, role) in self.far:
            return 4
        if any(role == a != b for a, b in self.near):
            return 3
        if (role, role) in self.near:
            return 2
        return 1 if any(role == a for a, _ in self.far) else 0

    def rank(self, task: Task) -> tuple[int, int, str]:
        """Return the place of a task among those of its job."""
        role = role_of(task)
        place = self.order.index(role) if role in self.order else len(self.order)
        return (place, -self.priority(role), task.name)

    def pull(self, role: str, others: Counter[str]) -> int:
        """Return how much tasks of these roles attract one of `role`; below 0 they repel it."""
        near = sum(n for other, n in others.items() if (role, other) in self.near)
        return near - self.push(role, others)

    def push(self, role: str, others: Counter[str]) -> int:
        """Return how many tasks of these roles repel one of `role`."""
        return sum(n for other, n in others.items() if (role, other) in self.far)


@dataclass(slots=True)
class Bucket:
    """Tasks that belong together."""

    index: int
    roles: Counter[str] = field(default_factory=Counter)
    waiting: dict[PodUid, Task] = field(default_factory=dict)
    placed: Counter[str] = field(default_factory=Counter)
    size: float = 0.0

    def __len__(self) -> int:
        return len(self.waiting) + self.placed.total()

    def add(self, task: Task) -> None:
        """Take a task in."""
        self.roles[role_of(task)] += 1
        if task.node:
            self.placed[task.node] += 1
        else:
            self.waiting[task.uid] = task
            self.size += _size(task.cls.req)


@dataclass(slots=True)
class Plan:
    """The buckets of one job, and what the session has placed of it: node -> roles."""

    topology: Topology
    buckets: list[Bucket]
    of: dict[PodUid, Bucket]
    largest: int
    here: dict[str, Counter[str]] = field(default_factory=dict)

    @classmethod
    def make(cls, job: JobInfo, topology: Topology) -> Plan:
        """Deal the job's tasks into buckets."""
        buckets: list[Bucket] = []
        nodes: dict[str, Bucket] = {}
        found: dict[PodUid, Bucket] = {}
        for task in sorted(_concerned(job, topology), key=lambda t: _turn(topology, t)):
            bucket = nodes.get(task.node) if task.node else _best(topology, buckets, task)
            if bucket is None:
                bucket = Bucket(len(buckets))
                buckets.append(bucket)
            if task.node:
                nodes[task.node] = bucket
            bucket.add(task)
            found[task.uid] = bucket
        return cls(topology, buckets, found, max(map(len, buckets), default=1))

    def follow(self, event: Event, sign: int) -> None:
        """Follow what the session does with tasks of the job."""
        for task in event.tasks:
            bucket = self.of.get(task.uid)
            if bucket is None:
                continue
            bucket.placed[task.node] += sign
            if task.status & (Status.ALLOCATED | Status.PIPELINED):
                self.here.setdefault(task.node, Counter())[role_of(task)] += sign
                if sign > 0:
                    bucket.waiting.pop(task.uid, None)
                else:
                    bucket.waiting[task.uid] = task


class TaskTopology:
    """The plugin."""

    name = NAME

    def __init__(self, args: Arguments) -> None:
        self.weight = args.integer("task-topology.weight", 1)
        self.plans: dict[JobKey, Plan] = {}

    def on_session_open(self, ssn: Session) -> None:
        """Make a plan for each job that waits and names a topology."""
        for job in ssn.active:
            topology = Topology.of(job) if job.counts.total.pending else None
            if topology is not None:
                self.plans[job.key] = Plan.make(job, topology)
        if not self.plans:
            return

        def score(cls: TaskClass, at: Ints) -> Floats:
            assert cls.example is not None  # noqa: S101 - it applies to no other class
            return self.score(ssn, cls.example, at)

        def follow(event: Event, sign: int) -> None:
            if event.job.key in self.plans:
                self.plans[event.job.key].follow(event, sign)

        ssn.points.distinction[NAME] = self.distinction
        ssn.points.task_order[NAME] = self.order
        ssn.points.batch_node_order[NAME] = BatchNodeOrder(
            lambda cls: cls.example is not None and self._bucket(cls.example) is not None, score
        )
        ssn.listen(EventHandler(lambda e: follow(e, 1), lambda e: follow(e, -1)))

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""

    def _bucket(self, task: Task) -> Bucket | None:
        plan = self.plans.get(task.job) if task.job is not None else None
        return plan.of.get(task.uid) if plan else None

    def distinction(self, task: Task) -> Hashable:
        """Tell tasks apart by bucket and role."""
        bucket = self._bucket(task)
        return (task.job, bucket.index, role_of(task)) if bucket else None

    def order(self, task: Task) -> SortKey:
        """Put tasks in buckets first, large buckets before small ones."""
        bucket = self._bucket(task)
        if bucket is None or task.job is None:
            return (True, 0, 0, (0, 0, ""))
        rank = self.plans[task.job].topology.rank(task)
        return (False, -len(bucket.waiting), bucket.index, rank)

    def score(self, ssn: Session, task: Task, at: Ints) -> Floats:
        """Return what the nodes in the columns `at` score for a task in a bucket."""
        plan, bucket = self.plans[task.job or JobKey("")], self._bucket(task)
        assert bucket is not None  # noqa: S101 - it applies to no other task
        nodes, role = ssn.nodes, role_of(task)
        room = (nodes.alloc - nodes.used + nodes.releasing)[:, at]
        nobody: Counter[str] = Counter()
        counts = np.zeros(at.size)
        for k, i in enumerate(at):
            name = nodes.names[int(i)]
            counts[k] = bucket.placed[name] - plan.topology.push(role, plan.here.get(name, nobody))
        counts += _fitting(task, bucket, room)
        counts[~_fits(task.cls.req, room)] = 0.0
        return counts * (self.weight * MAX_SCORE / plan.largest)


def role_of(task: Task) -> str:
    """Return the role by the pod's annotation, the only place where this plugin looks."""
    return (task.pod.metadata.annotations or {}).get(names.TASK_SPEC, "")


def _fitting(task: Task, bucket: Bucket, room: Floats) -> Floats:
    """Return how many waiting tasks of the bucket, the task among them, fit each node at once."""
    others = [t.cls.req for uid, t in bucket.waiting.items() if uid != task.uid]
    need = pad(task.cls.req, room.shape[0]).copy()
    for req in others:
        need[: req.size] += req
    number = np.zeros(room.shape[1])
    for left in range(len(others), -1, -1):
        number = np.where((number == 0) & _fits(need, room), left + 1.0, number)
        if left:
            need[: others[left - 1].size] -= others[left - 1]
    return number


def _fits(need: Floats, room: Floats) -> Bools:
    rows = np.flatnonzero(need > 0)
    enough: Bools = need[rows, None] - room[rows] < EPSILON
    fits: Bools = np.logical_and.reduce(enough, axis=0)
    return fits


def _concerned(job: JobInfo, topology: Topology) -> list[Task]:
    """Return the tasks whose role has a topology, and that wait or are somewhere."""
    statuses = ALLOCATED_STATUSES | Status.PENDING
    tasks = (t for t in job.tasks.values() if t.status & statuses)
    return [task for task in tasks if topology.priority(role_of(task))]


def _turn(topology: Topology, task: Task) -> tuple[bool, str, tuple[int, int, str]]:
    return (not task.node, task.node, topology.rank(task))


def _best(topology: Topology, buckets: Sequence[Bucket], task: Task) -> Bucket | None:
    """Return the bucket that attracts the task most, None where all repel it."""
    role = role_of(task)
    scored = [(topology.pull(role, b.roles), -b.size, -b.index, b) for b in buckets]
    best = max(scored, key=lambda row: row[:3], default=None)
    return best[3] if best and best[0] >= 0 else None


def _size(req: Floats) -> float:
    """Return one number for a request: thousandths of cpu, mebibytes, and scalars."""
    amounts = pad(req, PODS + 1)
    return float(amounts[CPU] + amounts[MEMORY] / _MIB + amounts[PODS + 1 :].sum())


def _groups(text: str) -> list[list[str]]:
    return [roles for part in text.split(";") if (roles := _roles(part))]


def _roles(text: str) -> list[str]:
    return [role for part in text.split(",") if (role := part.strip())]


def _pairs(groups: Sequence[Sequence[str]]) -> frozenset[tuple[str, str]]:
    found = {(g[0], g[0]) for g in groups if len(g) == 1}
    found |= {(a, b) for g in groups for a in g for b in g if a != b}
    return frozenset(found)
