"""
How well volumes of the stock fit what is asked for (kube-scheduler's score of VolumeBinding).

For each class: what the pod's claims ask for, as a percentage of what the volumes hold that they
would get. A line through the points of the shape makes a score of it, 0 to 100, and the mean over
the classes is the score of the node:

    shape 0 -> 0, 100 -> 10 (the default: the tightest volume is the best)
    a claim of 30 Gi that gets a volume of 40 Gi: 75 %, score 75
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from pumice.core.plugins.predicates.volumes.needs import Ask
from pumice.core.plugins.predicates.volumes.stock import FreeVolume
from pumice.core.plugins.predicates.volumes.switches import FULL, Shape


def fullness(chosen: Iterable[tuple[Ask, FreeVolume]], shape: Shape) -> int:
    """Return the score of a node that gives these volumes, 0 where it gives none."""
    sums: dict[str, list[int]] = {}
    for ask, volume in chosen:
        entry = sums.setdefault(ask.of, [0, 0])
        entry[0] += math.ceil(ask.bytes)
        entry[1] += math.ceil(volume.size)
    if not sums:
        return 0
    scores = [
        _on_line(asked * FULL // held if held else FULL, shape) for asked, held in sums.values()
    ]
    return math.floor(sum(scores) / len(scores) + 0.5)


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
