"""
Pod slots: a node takes as many pods as it says it does.

All pods that are on a node count, those on their way out as well, but for those that were sent
off in this session; so do pods that are merely promised room.
"""

from __future__ import annotations

import numpy as np

from pumice.core.extension import Event
from pumice.core.model.nodes import NodeTable
from pumice.core.model.tasks import TaskClass
from pumice.core.resources import PODS, Floats, Ints

SLOTS_TAKEN = "node(s) pod number exceeded"


class Slots:
    """The pods on each node."""

    def __init__(self, nodes: NodeTable) -> None:
        self._offered = nodes.alloc[PODS]
        self._taken: Floats = nodes.used[PODS] + nodes.pipelined[PODS]

    def free(self, cls: TaskClass, at: Ints) -> Floats:
        """Return how many pods more the nodes in columns `at` take."""
        free: Floats = np.maximum(self._offered[at] - self._taken[at], 0.0)
        return free

    def placed(self, event: Event) -> None:
        """Count pods that were placed."""
        np.add.at(self._taken, np.asarray(event.nodes), 1.0)

    def removed(self, event: Event) -> None:
        """Count pods no more that were taken away."""
        np.add.at(self._taken, np.asarray(event.nodes), -1.0)
