"""
Placing the tasks of one job, or of one of its sub-jobs, in one statement.

The rule is that of one task after the other: each goes to the best node that is idle enough, or,
where none is, waits for one that will be; when the job is ready, the statement is full. Tasks
that are alike and stand together in task order are placed by one call with the same result.

A task that must be near other pods may depend on members of its own gang that come later. When
it finds no node it is put off until the others had their turn, and only then counts as failed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from pumice.core.class_views import ClassView
from pumice.core.fitness import FitErrors, Limit
from pumice.core.model.jobs import JobInfo, SubJob
from pumice.core.model.queues import QueueInfo
from pumice.core.model.tasks import Status, Task
from pumice.core.readiness import worth_continuing
from pumice.core.resources import Ints
from pumice.core.session import Session
from pumice.core.statement import Statement


@dataclass(slots=True)
class Attempt:
    """One try at a job or sub-job. What is placed is taken out of `tasks`, as is what failed."""

    ssn: Session
    job: JobInfo
    sub_job: SubJob | None
    queue: QueueInfo
    tasks: deque[Task]
    statement: Statement
    #: roles of which a task has found no node; the others of them are not tried
    failed_roles: set[str]
    #: the HyperNode that the tasks are to stay in, and its nodes, where these are not all
    hypernode: str = ""
    within: Ints | None = None
    put_off: deque[Task] = field(default_factory=deque)
    placed: int = 0
    #: how many were placed when tasks were last put off until the end
    mark: int = 0
    final: bool = False
    ready: bool = False

    def run(self) -> Statement | None:
        """Place tasks until the job is ready; give all back where it cannot become so."""
        self._place_all()
        self.tasks.extend(self.put_off)
        self.ready = self.ready or self._is_ready()
        if self.ready or self.ssn.is_sub_job_pipelined(self.job, self.sub_job):
            return self.statement
        self.statement.discard()
        return None

    def _place_all(self) -> None:
        while self.tasks or self.put_off:
            if not self.tasks:
                self._recall()
            alike = self._next_alike()
            if alike[0].role and alike[0].role in self.failed_roles:
                self._skip(alike)
            elif self._place(alike):
                return

    def _recall(self) -> None:
        """Bring back what was put off; for the last time, where nothing was placed since."""
        self.final = self.placed == self.mark
        self.mark = self.placed
        self.tasks, self.put_off = self.put_off, self.tasks

    def _next_alike(self) -> list[Task]:
        """Take out the next task and those behind it that are like it."""
        first = self.tasks.popleft()
        alike = [first]
        if not self.tasks or first.nominated or self._is_ready():
            return alike  # the last one, or one that leaves the job ready
        while self.tasks and self._are_alike(first, self.tasks[0]):
            alike.append(self.tasks.popleft())
        return alike

    def _place(self, alike: list[Task]) -> bool:
        """Place tasks that are alike; return whether to stop."""
        allowed = self.ssn.allocatable(self.queue, alike[0].cls, len(alike))
        if allowed < len(alike):
            self._over_limit(alike[allowed:])
            del alike[allowed:]
        if not alike:
            return False
        view = self.ssn.views.of_task(alike[0])
        if alike[0].nominated and self._follow_nomination(view, alike[0]):
            self.ready = self._is_ready()
            return self.ready
        if view.is_full():
            return self._fail(view, alike)
        wanted = self._until_ready(alike)
        number = self._on_idle_nodes(view, alike[:wanted])
        self.ready = number == wanted and self._is_ready()
        if self.ready:
            self.tasks.extendleft(reversed(alike[number:]))
            return True
        return self._on_promised_nodes(view, alike[number:])

    def _on_idle_nodes(self, view: ClassView, tasks: Sequence[Task]) -> int:
        """Allocate as many as fit; return how many."""
        if view.groups(self.within):
            picks = view.picks(len(tasks), self.within)
            if picks:
                self.statement.allocate(tasks[: len(picks)], picks)
                self.placed += len(picks)
            return len(picks)
        for number, task in enumerate(tasks):
            picks = view.picks(1, self.within)
            if not picks:
                return number
            self.statement.allocate([task], picks)
            self.placed += 1
        return len(tasks)

    def _on_promised_nodes(self, view: ClassView, tasks: list[Task]) -> bool:
        """Promise the rest what is on its way out; return whether to stop."""
        for number, task in enumerate(tasks):
            picks = view.promise(self.within)
            if not picks:
                return self._fail(view, tasks[number:])
            self.statement.pipeline([task], picks, evicted=False)
            self.placed += 1
            self.ready = self._is_ready()
            if self.ready or not view.groups(self.within):
                # The job was ready before; or beside this one the next may find an idle node.
                self.tasks.extendleft(reversed(tasks[number + 1 :]))
                return self.ready
        return False

    def _follow_nomination(self, view: ClassView, task: Task) -> bool:
        """Place a task on the node that it is nominated to, if it still may go there."""
        i = self.ssn.nodes.index.get(task.nominated)
        if i is None or not view.allows(i, promised=True):
            return False
        if self.within is not None and i not in self.within:
            return False
        if view.allows(i, promised=False):
            self.statement.allocate([task], [i])
        else:
            self.statement.pipeline([task], [i], evicted=False)
        self.placed += 1
        return True

    def _fail(self, view: ClassView, tasks: list[Task]) -> bool:
        """Write down that tasks found no node; return whether to stop."""
        if not self.final and tasks[0].cls.signature.affinity:
            self.put_off.extend(tasks)
            return False
        errors = view.errors(within=self.within, hypernode=self.hypernode)
        trouble = self.ssn.trouble(self.job)
        trouble.tasks[tasks[0].uid] = errors
        self.failed_roles.add(tasks[0].role)
        if not worth_continuing(self.job, self.sub_job, self.failed_roles):
            trouble.tasks.update((task.uid, errors) for task in tasks)
            return True
        if tasks[0].role:
            self._skip(tasks[1:])
        else:
            trouble.tasks.update((task.uid, errors) for task in tasks)
        return False

    def _skip(self, tasks: Sequence[Task]) -> None:
        """Pass over tasks whose role has failed already."""
        trouble = self.ssn.trouble(self.job)
        for task in tasks:
            words = f"Task {task.name} with role spec {task.role}"
            error = f"{words} has already predicated failed, skip"
            trouble.tasks[task.uid] = FitErrors(error=error)

    def _over_limit(self, tasks: Sequence[Task]) -> None:
        """Write down that the queue may not have these."""
        name = self.queue.name
        limit = self.ssn.findings.limits.get(name) or Limit(f"queue {name} may not have more")
        trouble = self.ssn.trouble(self.job)
        trouble.over_limit.update((task.uid, limit) for task in tasks)

    def _is_ready(self) -> bool:
        return self.ssn.is_sub_job_ready(self.job, self.sub_job)

    def _are_alike(self, a: Task, b: Task) -> bool:
        views = self.ssn.views
        alike = a.cls is b.cls and a.role == b.role and not b.nominated
        return alike and views.distinct(a) is views.distinct(b)

    def _until_ready(self, alike: Sequence[Task]) -> int:
        """Return how many of the tasks, placed, first make the job ready; all if none do."""
        low, high = 1, len(alike)
        while low < high:
            middle = (low + high) // 2
            if self._would_be_ready(alike[0], middle):
                high = middle
            else:
                low = middle + 1
        return low

    def _would_be_ready(self, task: Task, n: int) -> bool:
        counts = self.job.counts
        counts.move(task, Status.PENDING, Status.ALLOCATED, n)
        ready = self._is_ready()
        counts.move(task, Status.ALLOCATED, Status.PENDING, n)
        return ready
