"""
The formulas of the plugin, each for all HyperNodes or nodes at once.

Scores are 0 to 1, and more where a bonus comes to it.

    filling    sum of w_r * (used_r + asked_r) / allocatable_r over the asked-for resources, by the
               sum of their weights w_r; 0 where any of them would be over-committed
    nearness   (highest tier - tier of the lowest one above both) / (highest - lowest tier)
    fading     sum of f^(tier - lowest) * filling of the node's HyperNode of that tier, by the sum
               of the f^(tier - lowest)
    bonus      where several share the highest score, the part of the sub-job's tasks that is there
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pumice.core.model.hypernodes import NOWHERE, HyperTree
from pumice.core.resources import Floats, Ints


@dataclass(frozen=True, slots=True)
class Levels:
    """Of each node, the HyperNode that it has on each tier: the first, where there are several."""

    lowest: int
    #: NOWHERE where a node has none on the tier, (T, N)
    hypernodes: Ints

    @classmethod
    def of(cls, tree: HyperTree) -> Levels:
        """Return the levels of a tree, those of tiers that no HyperNode has included."""
        lowest, highest = int(tree.tiers[0]), int(tree.tiers[-1])
        levels = np.full((highest - lowest + 1, len(tree.above)), NOWHERE)
        for h in reversed(range(len(tree))):
            levels[int(tree.tiers[h]) - lowest, tree.columns[h]] = h
        return cls(lowest, levels)


def filling(weights: Mapping[int, float], asked: Floats, used: Floats, alloc: Floats) -> Floats:
    """Return how full HyperNodes are (H,) once `asked` is there; `weights` are by row."""
    rows = [row for row in weights if row < asked.size and asked[row] > 0]
    total, over = np.zeros(alloc.shape[1]), np.zeros(alloc.shape[1], bool)
    for row in rows:
        then = used[row] + asked[row]
        over |= then > alloc[row]
        total += weights[row] * then / np.where(alloc[row] > 0, alloc[row], np.inf)
    whole = sum(weights[row] for row in rows)
    total = total / whole if whole else total
    total[over] = 0.0
    return total


def fading(levels: Sequence[Ints], filled: Floats, fade: float) -> Floats:
    """Return the faded mean over tiers, lowest first, of how full a node's HyperNodes are."""
    total, whole = np.zeros(levels[0].size), 0.0
    for height, hypernodes in enumerate(levels):
        weight = fade**height
        total += weight * np.where(hypernodes == NOWHERE, 1.0, filled[hypernodes])
        whole += weight
    mean: Floats = total / whole
    return mean


def nearness(tree: HyperTree, allocated: int) -> Floats:
    """Return how near HyperNodes are to the one that holds the rest; 0 at the end, for NOWHERE."""
    lowest, highest = int(tree.tiers[0]), int(tree.tiers[-1])
    span = highest - lowest
    near = np.zeros(len(tree) + 1)
    for h in range(len(tree)):
        tier = int(tree.tiers[tree.common(h, allocated)])
        near[h] = 1.0 if h == allocated or not span else (highest - tier) / span
    return near


def with_bonus(scores: Floats, there: Ints, tasks: int) -> Floats:
    """Add to those that share the highest score the part of the tasks that is there already."""
    if scores.size and tasks:
        best = scores == scores.max()
        if np.count_nonzero(best) > 1:
            more: Floats = scores + best * (there / tasks)
            return more
    return scores
