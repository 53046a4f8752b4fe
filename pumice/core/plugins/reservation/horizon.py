"""What will be free when: who leaves which node at what time, and when a gang fits at last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pumice.core.ids import JobKey
from pumice.core.kernels import copies_that_fit
from pumice.core.model.nodes import NodeTable
from pumice.core.model.tasks import Status, TaskClass
from pumice.core.resources import EPSILON, Bools, Floats, Ints
from pumice.core.run_times import end_of
from pumice.core.workspace import Workspace

_TRIED: Final = Status.ALLOCATED | Status.PIPELINED
Needs = dict[int, Floats]
"""Column -> what a gang takes there, (R,)."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Tasks of a gang that are alike, and the nodes that their constraints allow."""

    cls: TaskClass
    number: int
    suits: Bools  # (N,)


@dataclass(frozen=True, slots=True)
class Horizon:
    """The pods that hold room, by the time at which they are gone, the first ones first."""

    nodes: NodeTable
    ends: Floats  # (P,)
    columns: Ints  # (P,)
    amounts: Floats  # (R, P)

    @classmethod
    def of(cls, space: Workspace, now: float, but: JobKey) -> Horizon:
        """Look at all pods on nodes, but for those of a job that were placed just now."""
        held = sorted(
            (
                (end_of(task, now), i, task)
                for i, name in enumerate(space.nodes.names)
                for task in space.tasks_on(name)
                if task.job != but or not task.status & _TRIED
            ),
            key=lambda row: row[:2],
        )
        amounts = np.zeros((space.nodes.rows, len(held)))
        for column, (_, _, task) in enumerate(held):
            amounts[: task.cls.req.size, column] = task.cls.req
        return cls(
            space.nodes,
            np.array([end for end, _, _ in held]),
            np.array([i for _, i, _ in held], np.int64),
            amounts,
        )

    def free_at(self, time: float) -> Floats:
        """Return what is free on each node once all are gone that leave by then: (R, N)."""
        stay = slice(int(np.searchsorted(self.ends, time, side="right")), None)
        free = self.nodes.alloc.copy()
        for row in range(free.shape[0]):
            np.subtract.at(free[row], self.columns[stay], self.amounts[row, stay])
        return free

    def earliest(self, gang: Sequence[Wanted], now: float) -> tuple[float, Needs] | None:
        """
        Return when a gang fits at last, and where; None where it never will.

        More room only comes with time, so the times at which pods leave are searched by halves.
        """
        times = [now, *np.unique(self.ends[(self.ends > now) & np.isfinite(self.ends)]).tolist()]
        found = place(gang, self.free_at(times[-1]))
        if found is None:
            return None
        low, high = 0, len(times) - 1
        while low < high:
            middle = (low + high) // 2
            needs = place(gang, self.free_at(times[middle]))
            if needs is None:
                low = middle + 1
            else:
                high, found = middle, needs
        return times[high], found


def place(gang: Sequence[Wanted], free: Floats) -> Needs | None:
    """
    Return what a gang takes on each node, None where it does not fit.

    Each kind of task fills the nodes first that take most of it: so it takes few of them.
    """
    free = free.copy()
    needs: Needs = {}
    for wanted in gang:
        req, rows = wanted.cls.req, wanted.cls.rows
        copies = np.where(wanted.suits, copies_that_fit(free, req, rows), 0.0)
        left = wanted.number
        for i in np.argsort(-copies, kind="stable").tolist():
            n = int(min(copies[i], left))
            if not n:
                break
            taken = np.zeros(free.shape[0])
            taken[: req.size] = req * n
            free[:, i] -= taken
            needs[i] = needs.get(i, 0.0) + taken
            left -= n
        if left:
            return None
    return needs


def holds(free: Floats, needs: Needs) -> bool:
    """Return whether what is free has room for all that is needed."""
    return all((free[:, i] + EPSILON >= amount).all() for i, amount in needs.items())
