"""
Statements: changes that are kept together or undone together.

A statement writes a journal of what it does to the workspace. `commit` makes its allocations and
evictions final; `discard` undoes everything, newest first, and remembers where each task would
have gone. A statement that is neither committed nor discarded keeps its effect for the rest of the
session: its tasks hold their room, and nothing is sent out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from pumice.core.ids import JobKey, PodUid
from pumice.core.model.jobs import JobInfo
from pumice.core.model.tasks import Status, Task
from pumice.core.plan import Reason
from pumice.core.workspace import Commitment, Dismissal, Evicted, Trial, Workspace


@dataclass(frozen=True, slots=True)
class Placed:
    """Tasks that are alike were allocated, or promised room."""

    before: tuple[Task, ...]
    after: tuple[Task, ...]
    nodes: tuple[int, ...]
    status: Status
    evicted: bool = False


Operation = Placed | Evicted


@dataclass(slots=True)
class Statement:
    """A journal over the workspace."""

    space: Workspace
    operations: list[Operation] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.operations)

    def allocate(self, tasks: Sequence[Task], nodes: Sequence[int]) -> None:
        """Put tasks that are alike on idle nodes."""
        self._place(tasks, nodes, Status.ALLOCATED, evicted=False)

    def pipeline(self, tasks: Sequence[Task], nodes: Sequence[int], *, evicted: bool) -> None:
        """Promise tasks that are alike room that will be free; `evicted` for their sake."""
        self._place(tasks, nodes, Status.PIPELINED, evicted=evicted)

    def evict(self, task: Task, reason: Reason, unit: PodUid | None = None) -> None:
        """Send a task off its node; those of one `unit` go, or stay, together."""
        self.space.evict(task)
        self.operations.append(Evicted(task, reason, task.uid if unit is None else unit))

    def spare(self, task: Task) -> None:
        """Let a task that was sent off stay after all."""
        self.space.restore(task)
        self.forget({task.uid})

    def forget(self, stay: Collection[PodUid]) -> None:
        """Know no more of those who were sent off and were let stay since."""
        self.operations = [
            operation
            for operation in self.operations
            if not (isinstance(operation, Evicted) and operation.before.uid in stay)
        ]

    def _place(
        self, tasks: Sequence[Task], nodes: Sequence[int], status: Status, *, evicted: bool
    ) -> None:
        after = self.space.place(tasks, nodes, status)
        if evicted:
            self.space.evicted_for.update(task.uid for task in tasks)
        self.operations.append(Placed(tuple(tasks), tuple(after), tuple(nodes), status, evicted))

    def discard(self) -> None:
        """Undo everything, newest first."""
        for operation in reversed(self.operations):
            match operation:
                case Placed():
                    self._undo(operation)
                case Evicted():
                    self.space.restore(operation.before)
        self.operations.clear()

    def _undo(self, placed: Placed) -> None:
        for task in placed.after:
            self.space.last[task.uid] = Trial(placed.status, task.node)
        if placed.evicted:
            self.space.evicted_for.difference_update(task.uid for task in placed.after)
        self.space.take_back(placed.after, placed.nodes)

    @property
    def evicted(self) -> list[Evicted]:
        """Return who was sent off."""
        return [op for op in self.operations if isinstance(op, Evicted)]

    @property
    def promised(self) -> list[Task]:
        """Return the tasks that were promised room."""
        placed = (op for op in self.operations if isinstance(op, Placed))
        return [task for op in placed if op.status is Status.PIPELINED for task in op.after]

    def commit(self, action: str = "") -> None:
        """
        Make allocations and evictions final. Promises stay what they are, for this session.

        With the name of an `action` all that the job is to start with is claimed: it is to have
        that room in later sessions, too.
        """
        decided: list[Task] = []
        promised, victims = self.promised, tuple(self.evicted)
        for operation in self.operations:
            match operation:
                case Placed(status=Status.ALLOCATED):
                    decided += operation.after
                    self.space.settle(operation.after)
                case Placed():
                    for task in operation.after:
                        self.space.last.pop(task.uid, None)
                case Evicted():
                    self.space.last.pop(operation.before.uid, None)
        commit_by_job(self.space, decided)
        if action and (victims or promised):
            key = (promised[0] if promised else victims[0].before).job
            assert key is not None  # noqa: S101 - only tasks of jobs are placed and evicted
            members = self.space.jobs[key].tasks.values() if promised else ()
            claims = tuple(t for t in members if t.status & (Status.ALLOCATED | Status.PIPELINED))
            self.space.evicted_for.update(task.uid for task in claims)
            self.space.dismissed.append(Dismissal(action, key, victims, claims))
        self.operations.clear()

    def merge(self, other: Statement) -> None:
        """Take over what another statement did, as if this one had done it after its own."""
        self.operations += other.operations
        other.operations = []

    def save(self) -> list[Operation]:
        """Return what was done, to be done again later by `replay`."""
        return list(self.operations)

    def replay(self, operations: Sequence[Operation]) -> None:
        """Do again what was saved before it was discarded."""
        for operation in operations:
            match operation:
                case Placed():
                    evicted = operation.evicted
                    self._place(
                        operation.before, operation.nodes, operation.status, evicted=evicted
                    )
                case Evicted():
                    self.evict(operation.before, operation.reason, operation.unit)


def commit_by_job(space: Workspace, tasks: Sequence[Task]) -> None:
    """Record decided tasks, those of one job together."""
    for key, members in groupby(tasks, key=_job_of):
        if key is not None:
            space.committed.append(Commitment(key, tuple(members)))


def _job_of(task: Task) -> JobKey | None:
    return task.job


def dispatch(space: Workspace, job: JobInfo) -> None:
    """Make every allocated task of a job final."""
    allocated = [t for t in job.tasks.values() if t.status is Status.ALLOCATED]
    for task in allocated:
        space.settle([task])
    commit_by_job(space, allocated)
