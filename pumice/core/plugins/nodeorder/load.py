"""
Scores of a node's load: least allocated, most allocated, balanced.

Each gives 0..100, whole numbers, rounded down where kube-scheduler does. `alloc` is what nodes
offer and `used` what they hold once the task is there; the first axis of both is the resource,
the others are whatever the caller scores at once: nodes, or nodes and copies of the task. For
least and most allocated `used` holds the padding of pods as well (`pumice.core.model.padding`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pumice.core.resources import CPU, MEMORY, Bools, Floats

MAX_SCORE = 100.0

_BOTH = slice(CPU, MEMORY + 1)


def least_allocated(alloc: Floats, used: Floats) -> Floats:
    """Return the mean over cpu and memory of the share left free; 0 where it is over-committed."""
    alloc, used = alloc[_BOTH], used[_BOTH]
    return _mean(alloc, alloc - np.minimum(used, alloc))


def most_allocated(alloc: Floats, used: Floats) -> Floats:
    """Return the mean over cpu and memory of the share in use; what is over-committed is full."""
    alloc, used = alloc[_BOTH], used[_BOTH]
    return _mean(alloc, np.minimum(used, alloc))


def balanced(alloc: Floats, used: Floats, req: Floats, rows: Sequence[int]) -> Floats:
    """
    Return how much the task improves the balance between resources: 75 where it changes nothing.

    The balance is 1 minus the standard deviation of the shares in use, with the task and without
    it. cpu and memory always take part, of `rows` those further resources that are asked for.
    """
    asked = [r for r in rows if r in (CPU, MEMORY) or req[r] > 0]
    req = req[asked].reshape(-1, *(1,) * (used.ndim - 1))
    alloc, used = alloc[asked], used[asked]
    before, after = _balance(alloc, used - req), _balance(alloc, used)
    score: Floats = MAX_SCORE / 2 + np.trunc((MAX_SCORE / 2 + after - before) / 2)
    return score


def _mean(alloc: Floats, part: Floats) -> Floats:
    """Return the mean share that `part` is of `alloc`; what is not offered is left out."""
    offered = alloc > 0
    shares = np.floor(part * MAX_SCORE / np.where(offered, alloc, 1.0)) * offered
    mean: Floats = np.floor(shares.sum(axis=0) / np.maximum(offered.sum(axis=0), 1))
    return mean


def _balance(alloc: Floats, used: Floats) -> Floats:
    """Return 0..100 for the standard deviation of the shares in use, of those that are offered."""
    offered = alloc > 0
    shares = np.minimum(used / np.where(offered, alloc, 1.0), 1.0)
    if alloc.shape[0] == 2:
        deviation = np.abs(shares[0] - shares[1]) / 2 * (offered[0] & offered[1])
    else:
        deviation = _deviation(shares, np.broadcast_to(offered, used.shape))
    balance: Floats = np.trunc((1 - deviation) * MAX_SCORE)
    return balance


def _deviation(shares: Floats, offered: Bools) -> Floats:
    """
    Return the standard deviation of the shares that are offered.

    That of two is half their difference, without the rounding of the general formula.
    """
    count = offered.sum(axis=0)
    kept = np.where(offered, shares, 0.0)
    mean = kept.sum(axis=0) / np.maximum(count, 1)
    squares = np.where(offered, (shares - mean) ** 2, 0.0).sum(axis=0)
    lowest = np.where(offered, shares, np.inf).min(axis=0)
    half = (kept.max(axis=0) - np.minimum(lowest, 1.0)) / 2
    many = np.sqrt(squares / np.maximum(count, 1))
    deviation: Floats = np.where(count > 2, many, np.where(count == 2, half, 0.0))
    return deviation
