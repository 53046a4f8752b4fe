"""
Residents: who is on which node, and what that takes of it.

A snapshot shares what is known of nodes; the next change to one works on a copy.
"""

from __future__ import annotations

from pumice.core.ids import PodUid
from pumice.core.model.nodes import NodeTable
from pumice.core.model.population import Population
from pumice.core.model.tasks import Task


class Residents:
    """The tasks that occupy nodes; the sums over them are always up to date."""

    def __init__(self, resources: int) -> None:
        self.nodes = NodeTable(resources)
        self.population = Population()
        #: nodes whose residents no snapshot shares
        self._own: set[str] = set()

    def add(self, task: Task) -> None:
        """Charge a task to its node, if it occupies one."""
        if task.occupies:
            self._of(task.node)[task.uid] = task
            self.nodes.charge(task)
            self.population.add(task, 1)

    def remove(self, task: Task) -> None:
        """Give back what was charged for a task."""
        if task.occupies:
            residents = self._of(task.node)
            del residents[task.uid]
            if not residents:
                del self.nodes.residents[task.node]
            self.nodes.charge(task, -1.0)
            self.population.add(task, -1)

    def renew(self, task: Task) -> None:
        """Let a task take the place of one that was charged alike."""
        if task.occupies:
            self._of(task.node)[task.uid] = task

    def share(self) -> NodeTable:
        """Return the table as it is now; its residents are not changed any more."""
        self._own.clear()
        return self.nodes.copy()

    def _of(self, node: str) -> dict[PodUid, Task]:
        residents = self.nodes.residents
        if node not in self._own or node not in residents:
            residents[node] = dict(residents.get(node, {}))
            self._own.add(node)
        return residents[node]
