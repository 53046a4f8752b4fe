"""
Numpy kernels over the node table. Axis 0 is the resource, axis 1 the node, axis 2 the copy.

The greedy rule places identical tasks one after the other, each on the node with the best score
and the lowest column among equals. For a score that depends on the node alone the whole sequence
can be had at once: a node's later copy is reached only through its earlier ones, so a copy's
rank is the running minimum of its node's scores, and the greedy sequence is all copies by that
rank, then by column, then by copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pumice.core.resources import CPU, EPSILON, MEMORY, Bools, Floats, Ints

Score = Callable[[Ints, Ints], Floats]
"""(columns (n,), numbers of copies (T,)) -> scores (n, T)."""


def copies_that_fit(room: Floats, req: Floats, rows: Sequence[int]) -> Floats:
    """
    Return how many tasks asking for `req` fit into each column of `room`; infinity without rows.

    A task fits where it asks for less than EPSILON more than there is. Where cpu or memory is
    over-committed not even one fits that asks for none of it.
    """
    fit = np.full(room.shape[1], np.inf)
    for row in rows:
        np.minimum(fit, np.ceil((room[row] + EPSILON) / req[row]) - 1, out=fit)
    for row in (CPU, MEMORY):
        if row not in rows:
            fit[room[row] <= -EPSILON] = 0.0
    fits: Floats = np.maximum(fit, 0.0)
    return fits


def only(mask: Bools, within: Ints | None) -> Bools:
    """Return the nodes of a mask that are among some columns; all of them where none are given."""
    if within is None:
        return mask
    inside = np.zeros(mask.size, bool)
    inside[within] = mask[within]
    return inside


def nodes_to_find(n: int, percentage: int, least: int = 100, least_percentage: int = 5) -> int:
    """
    Return how many of `n` nodes to find room on before a search node by node may stop.

    A percentage of 0 adapts to the size of the cluster. Views look at all nodes at once and need
    no such limit; it is for what is tried out on one node after the other.
    """
    if n <= least or percentage >= 100:
        return n
    if percentage <= 0:
        percentage = max(50 - n // 125, least_percentage)
    return max(n * percentage // 100, least)


def greedy(first: Floats, copies: Floats, m: int, score: Score, *, fills: bool) -> Ints:
    """
    Return the columns of the first `m` picks, in the order of picking.

    `first` is each column's score for one copy, -inf where none fits; `copies` says how many
    fit. `fills` promises that no column's score falls as it fills, so that a column, once
    picked, is filled to the end.
    """
    columns = _contenders(first, m)
    if columns.size == 0:
        return columns
    fit = np.minimum(copies[columns], m)
    if fills:
        order = np.argsort(-first[columns], kind="stable")
        counts = fit[order]
        counts = np.clip(m - (np.cumsum(counts) - counts), 0, counts)
        return np.repeat(columns[order], counts.astype(np.int64))
    return _by_rank(columns, fit.astype(np.int64), m, score)


def _contenders(first: Floats, m: int) -> Ints:
    """
    Return the columns that the first `m` picks can fall on, ascending.

    Each of m columns with a better first score, or the same and a lower index, would be picked
    before.
    """
    open_columns: Ints = np.flatnonzero(first > -np.inf)
    if open_columns.size <= m:
        return open_columns
    scores = first[open_columns]
    bar = np.partition(scores, scores.size - m)[scores.size - m]
    better = open_columns[scores > bar]
    equal = open_columns[scores == bar][: m - better.size]
    return np.sort(np.concatenate((better, equal)))


def _by_rank(columns: Ints, fit: Ints, m: int, score: Score) -> Ints:
    """Rank copies, looking only as far ahead on each column as turns out to be needed."""
    most = int(fit.max())
    depth = min(most, max(4, 2 * m // columns.size))
    while True:
        ranks = score(columns, np.arange(1, depth + 1))
        ranks = np.minimum.accumulate(np.broadcast_to(ranks, (columns.size, depth)), axis=1)
        ranks = np.where(np.arange(1, depth + 1) <= fit[:, None], ranks, -np.inf)
        picked = _best(ranks.ravel(), min(m, int(np.minimum(fit, depth).sum()))) // depth
        if depth == most:
            break
        used_up = np.bincount(picked, minlength=columns.size) == depth
        if not (used_up & (fit > depth)).any():
            break
        depth = min(most, depth * 2)
    return columns[picked]


def _best(ranks: Floats, n: int) -> Ints:
    """Return the positions of the `n` best ranks, best first, then by position."""
    if n < ranks.size:
        bar = np.partition(ranks, ranks.size - n)[ranks.size - n]
        better = np.flatnonzero(ranks > bar)
        equal = np.flatnonzero(ranks == bar)[: n - better.size]
        chosen = np.sort(np.concatenate((better, equal)))
    else:
        chosen = np.arange(ranks.size)
    return chosen[np.argsort(-ranks[chosen], kind="stable")]
