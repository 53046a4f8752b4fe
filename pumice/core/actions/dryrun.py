"""
Trying evictions out on several nodes before one is chosen.

On each node as many are sent off as it takes, and let stay if they may; then all is undone. Of the
nodes the one is taken whose victims matter least: whose most important one has the lowest priority;
then by the sum of all priorities, shifted so that one more victim always counts; then the fewest
victims; then the youngest, by the oldest of the most important ones; then the first node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pumice.core.actions.victims import Evictor
from pumice.core.class_views import ClassView
from pumice.core.conf import Arguments
from pumice.core.model.queues import QueueInfo
from pumice.core.model.tasks import Task
from pumice.core.resources import Ints
from pumice.core.statement import Operation, Statement

SHIFT = 2**31
Cost = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many nodes are compared: a percentage of those there are, between two bounds."""

    percentage: int
    least: int
    most: int

    @classmethod
    def parse(cls, args: Arguments) -> Comparison:
        """Read the arguments. That for the number of workers means nothing here."""
        return cls(
            args.integer("minCandidateNodesPercentage", 10),
            args.integer("minCandidateNodesAbsolute", 1),
            args.integer("maxCandidateNodesAbsolute", 100),
        )

    def of(self, n: int) -> int:
        """Return how many of `n` nodes are compared."""
        return max(min(max(n * self.percentage // 100, self.least), self.most, n), 1)


@dataclass(slots=True, kw_only=True)
class DryRun(Evictor):
    """Makes room where it costs least."""

    comparison: Comparison

    def search(
        self, statement: Statement, task: Task, queue: QueueInfo, view: ClassView, at: Ints
    ) -> bool:
        """Make room on the best of a few of the nodes `at`."""
        found: list[tuple[Cost, int, list[Operation]]] = []
        wanted = self.comparison.of(at.size)
        for i in at.tolist():
            part = self.ssn.statement()
            gone = self.clear(part, task, i, partial(self._fits, view, queue, i))
            if gone:
                found.append((cost(gone), i, part.save()))
            part.discard()
            if len(found) == wanted:
                break
        if not found:
            return False
        _, i, operations = min(found, key=lambda entry: entry[:2])
        statement.replay(operations)
        statement.pipeline([task], [i], evicted=True)
        return True

    def _fits(self, view: ClassView, queue: QueueInfo, i: int) -> bool:
        ssn, cls = self.ssn, view.cls
        return (
            view.takes(i)
            and ssn.simulate_allocatable(queue, cls, 1) > 0
            and all(bool(check(cls).mask[i]) for check in ssn.points.simulate_predicate)
        )


def cost(victims: Sequence[Task]) -> Cost:
    """Return how much it would cost to evict these; less is better."""
    highest = max(task.priority for task in victims)
    eldest = min(task.created for task in victims if task.priority == highest)
    total = sum(task.priority + SHIFT for task in victims)
    return (highest, total, len(victims), -eldest)
