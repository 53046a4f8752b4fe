"""
pdb: nobody is evicted against a PodDisruptionBudget.

Candidates are gone through in order; each takes one from every budget that covers it, and stays
where a budget has nothing left, though what it took from the others stays taken, as in Volcano.
A pod without any label is never evicted.

Some rules differ from Volcano's, whose scheduler hears of budgets that are used up from the API
server only. Whoever is evicted in a session is taken from the budgets for the rest of it, and they
hold for those who go for whole gangs, too. And where `shuffle` asks who should be somewhere else,
Volcano's names everybody whom the budgets let go, so that all pods would be evicted again and
again; here it keeps whom they do not let go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pumice.core.api.limits import PodDisruptionBudget
from pumice.core.conf import Arguments
from pumice.core.extension import Event, EventHandler, Vote
from pumice.core.model.tasks import PREEMPTABLE_STATUSES, Task
from pumice.core.selectors import Selector, SelectorError, label_selector
from pumice.core.session import Session

NAME = "pdb"


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget, read once for the session."""

    namespace: str
    selector: Selector
    allowed: int
    #: names of pods that are on their way out already, and counted
    disrupted: frozenset[str]

    @classmethod
    def of(cls, budget: PodDisruptionBudget) -> Budget:
        """Read a budget; raise SelectorError for a malformed one."""
        status = budget.status
        return cls(
            budget.metadata.namespace,
            label_selector(budget.spec.selector),
            status.disruptions_allowed,
            frozenset(status.disrupted_pods or ()),
        )

    def covers(self, task: Task) -> bool:
        """Return whether evicting the task would take from the budget."""
        return (
            task.namespace == self.namespace
            and task.name not in self.disrupted
            and bool(self.selector.requirements)
            and self.selector.matches(task.labels)
        )


class Pdb:
    """The plugin. It has no arguments."""

    name = NAME
    steady = True

    def __init__(self, args: Arguments) -> None:
        self.budgets: list[Budget] = []
        #: how many more each budget lets go
        self.left: list[int] = []

    def on_session_open(self, ssn: Session) -> None:
        """Read the budgets, and register who may be evicted by them."""
        for key, budget in ssn.snapshot.inputs.budgets.items():
            try:
                self.budgets.append(Budget.of(budget))
            except SelectorError as fault:
                ssn.findings.warnings.append(f"poddisruptionbudget {key}: {fault}")
        self.left = [budget.allowed for budget in self.budgets]
        if self.budgets:
            ssn.listen(EventHandler(lambda e: self._follow(e, 1), lambda e: self._follow(e, -1)))
        points = ssn.points
        points.unified_evictable[NAME] = lambda _, job, tasks: (self.allowed(tasks), Vote.PERMIT)
        points.preemptable[NAME] = lambda task, tasks: (self.allowed(tasks), Vote.PERMIT)
        points.reclaimable[NAME] = lambda task, tasks: (self.allowed(tasks), Vote.PERMIT)
        points.victim_limits[NAME] = self.allowed

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""

    def _follow(self, event: Event, n: int) -> None:
        """Take note of who is evicted, or let stay after all."""
        for task in event.tasks:
            if task.status & PREEMPTABLE_STATUSES:
                for i, budget in enumerate(self.budgets):
                    self.left[i] += n * budget.covers(task)

    def allowed(self, candidates: Sequence[Task]) -> list[Task]:
        """Return the candidates that the budgets let go, one after the other."""
        left = list(self.left)
        chosen = []
        for task in candidates:
            covering = [i for i, budget in enumerate(self.budgets) if budget.covers(task)]
            for i in covering:
                left[i] -= 1
            if task.labels and all(left[i] >= 0 for i in covering):
                chosen.append(task)
        return chosen
