"""
Refusals: why no node takes a task of a class, node by node or counted.

A node that lacks resources is refused for the first that is short and for nothing else. What
predicates and limits have against a node is told of those that lack none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pumice.core.extension import Code, LivePredicate, PredicateResult, Refusal, Room
from pumice.core.fitness import FitErrors
from pumice.core.kernels import only
from pumice.core.model.nodes import NodeTable
from pumice.core.model.tasks import TaskClass
from pumice.core.resources import CPU, EPSILON, MEMORY, Bools, Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Refusals:
    """What keeps tasks of one class off the nodes, as things stand when it is asked for."""

    cls: TaskClass
    #: what a task asks for, by all rows of the table
    req: Floats
    nodes: NodeTable
    #: resource names by row
    names: Sequence[str]
    #: what all predicates say that depend on constraints alone
    static: PredicateResult
    live: Sequence[LivePredicate]
    rooms: Sequence[Room]

    def listed(self) -> list[Refusal]:
        """Return why nodes refuse a task."""
        return self._listed(self._shortages())

    def counted(self, *, resources: bool, within: Ints | None, hypernode: str) -> FitErrors:
        """
        Return for each reason how many nodes refuse a task for it.

        Only those `within` are counted, where columns are given; `hypernode` is their name. A
        shortage counts as none where `resources` are not to be looked at.
        """
        short = self._shortages() if resources else {}
        reasons: dict[str, int] = {}
        hopeless = np.zeros(len(self.nodes), bool)
        for refusal in self._listed(short):
            refused = only(refusal.nodes, within)
            _count(reasons, refusal.message, refused)
            if refusal.code is not Code.UNSCHEDULABLE:
                hopeless |= refused
        room = self.nodes.future_idle
        lacking = {row: only(at, within) for row, at in short.items()}
        most = {
            self.names[row]: max(float(room[row, at].max()), 0.0)
            for row, at in lacking.items()
            if at.any()
        }
        n = len(self.nodes) if within is None else within.size
        return FitErrors(n, reasons, "", hypernode, hopeless, most)

    def _shortages(self) -> dict[int, Bools]:
        """Return by row the nodes where it is short and none before it is."""
        room = self.nodes.future_idle
        enough = np.ones(len(self.nodes), bool)
        short = {}
        for row in sorted({CPU, MEMORY, *self.cls.rows}):
            fits = room[row] + EPSILON > self.req[row]
            if not fits[enough].all():
                short[row] = enough & ~fits
                enough &= fits
        return short

    def _listed(self, short: Mapping[int, Bools]) -> list[Refusal]:
        left = np.ones(len(self.nodes), bool)
        found = []
        for row, nodes in short.items():
            message = f"Insufficient {self.names[row]}"
            found.append(Refusal(Code.UNSCHEDULABLE, message, nodes))
            left &= ~nodes
        verdicts = [predicate.check(self.cls) for predicate in self.live]
        others = [*self.static.reasons, *(r for v in verdicts for r in v.reasons)]
        everywhere = np.arange(len(self.nodes))
        for room in self.rooms:
            full = room.later(self.cls, everywhere) < 1
            others.append(Refusal(room.code, room.message, full))
        return found + [Refusal(r.code, r.message, r.nodes & left) for r in others]


def curable_nodes(verdict: PredicateResult) -> Bools:
    """Return the nodes that pass, or are refused for nothing but what evictions may cure."""
    passing = verdict.mask.copy()
    for refusal in verdict.reasons:
        if refusal.code is Code.UNSCHEDULABLE:
            passing |= refusal.nodes
    for refusal in verdict.reasons:
        if refusal.code is not Code.UNSCHEDULABLE:
            passing &= ~refusal.nodes
    return passing


def _count(reasons: dict[str, int], message: str, nodes: Bools) -> None:
    number = int(np.count_nonzero(nodes))
    if number:
        reasons[message] = reasons.get(message, 0) + number
