"""
How well volumes of the stock fit what is asked for (kube-scheduler's score of VolumeBinding).

For each class: what the pod's claims ask for, as a percentage of what the volumes hold that they
would get. A line through the points of the shape makes a score of it, 0 to 100, and the mean over
the classes is the score of the node:

    shape 0 -> 0, 100 -> 10 (the default: the tightest volume is the best)
    a claim of 30 Gi that gets a volume of 40 Gi: 75 %, score 75
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from pumice.core.plugins.predicates.volumes.switches import FULL, Shape
from pumice.core.resources import Floats, Ints


def scores(shape: Shape, fullness: Sequence[Ints], at: Ints) -> Floats:
    """
    Return the scores of the nodes in columns `at`, 0 for those that give nothing.

    `fullness` is, for each class and node, in percent, -1 where it gives nothing.
    """
    line = _line(shape)
    total, classes = np.zeros((2, at.size))
    for full in fullness:
        gives = full[at] >= 0
        total += np.where(gives, line[full[at]], 0.0)
        classes += gives
    rounded: Floats = np.floor(total / np.maximum(classes, 1) + 0.5)
    return rounded


@lru_cache(maxsize=8)
def _line(shape: Shape) -> Floats:
    """Return the score for each percentage in use."""
    return np.array([_on_line(used, shape) for used in range(FULL + 1)], float)


def _on_line(used: int, shape: Shape) -> int:
    low = shape[0]
    for high in shape:
        if used <= high[0]:
            if high is low:
                return low[1]
            rise, run = high[1] - low[1], high[0] - low[0]
            return low[1] + int(rise * (used - low[0]) / run)  # rounds towards zero
        low = high
    return low[1]
