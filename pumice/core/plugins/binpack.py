"""
binpack: prefer the nodes that the task fills most.

The score of a node is the weighted mean, over the resources that the task asks for and that have
a weight, of the share in use once the task is there, times 100 and the plugin's weight: Volcano's
`BinPackingScore`, for all nodes at once. A node that would be over-committed scores 0. Room that
is merely promised counts as free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pumice.core.conf import Arguments
from pumice.core.extension import NodeOrder
from pumice.core.model.tasks import TaskClass
from pumice.core.resources import Floats, Ints
from pumice.core.session import Session

NAME = "binpack"
MAX_SCORE = 100.0


@dataclass(frozen=True, slots=True)
class Weights:
    """How much the plugin counts, and each resource within it."""

    plugin: int
    resources: Mapping[str, int]

    @classmethod
    def parse(cls, args: Arguments) -> Weights:
        """Read the weights; a negative resource weight counts as 1, as in Volcano."""
        keys = {"cpu": "binpack.cpu", "memory": "binpack.memory"}
        keys |= {r: f"binpack.resources.{r}" for r in args.names("binpack.resources")}
        weights = {r: args.integer(key, 1) for r, key in keys.items()}
        resources = {r: w if w >= 0 else 1 for r, w in weights.items()}
        return cls(args.integer("binpack.weight", 1), resources)


class Binpack:
    """Registers the score; holds the weights and nothing else."""

    name = NAME
    steady = True

    def __init__(self, args: Arguments) -> None:
        self.weights = Weights.parse(args)

    def on_session_open(self, ssn: Session) -> None:
        """Register the score unless its weight is zero."""
        if not self.weights.plugin:
            return
        rows = {row: self.weights.resources.get(name) for row, name in enumerate(ssn.names)}
        per_row = {row: float(weight) for row, weight in rows.items() if weight is not None}

        def order(cls: TaskClass, at: Ints, alloc: Floats, used: Floats) -> Floats:
            asked = {row: per_row[row] for row in cls.rows if row in per_row}
            charged = used - ssn.nodes.pipelined[:, at, None]
            return score(asked, alloc, charged) * self.weights.plugin

        ssn.points.node_order[NAME] = NodeOrder(order, fills=True)

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to tell."""


def score(weights: Mapping[int, float], alloc: Floats, used: Floats) -> Floats:
    """
    Return 0..100 for nodes by their resources in rows; `used` already holds the task.

    A resource that a node does not offer adds nothing, but its weight counts; nor can it, or one
    without a weight, be over-committed.
    """
    total = np.zeros(used.shape[1:])
    over = np.zeros(used.shape[1:], bool)
    for row, weight in weights.items():
        over |= (used[row] > alloc[row]) & (alloc[row] > 0) & (weight > 0)
        total += used[row] * weight / np.where(alloc[row] > 0, alloc[row], np.inf)
    if whole := sum(weights.values()):
        total /= whole
    total[over] = 0.0
    return total * MAX_SCORE
