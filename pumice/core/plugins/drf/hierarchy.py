"""
Fair shares in a tree of queues (hierarchical dominant resource fairness).

    volcano.sh/hierarchy: root/sci/dev        volcano.sh/hierarchy-weights: 1/2/8

A queue's annotations name the branches that lead to it, with a weight for each; jobs are leaves
below the last. Of two queues that one goes first whose branch has the smaller share by weight,
where their ways part; on equal terms the branches below are compared. Branches that cannot grow
any more come after those that can.

A leaf is saturated, cannot grow any more, once it holds all that it asks for of a resource, or
something of a resource of which nothing is left. A branch is once all below it are.

What a branch holds is not the plain sum, or one greedy child would make all of its kin wait.
Children that can still grow count as if each had only the smallest share among them; saturated ones
count in full. Two children of which one holds 2 cpu and 1Gi of 10 and 10 (share 0.2), the
other 1 cpu and 4Gi (0.4, so it counts by half): 2.5 cpu and 3Gi, a share of 0.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np

from pumice.core import names
from pumice.core.ids import JobKey
from pumice.core.model.jobs import JobInfo
from pumice.core.model.queues import QueueInfo
from pumice.core.model.tasks import TaskClass
from pumice.core.resources import EPSILON, Bools, Floats

DIGITS = 9
"""Shares that differ by less than rounding does are equal."""


@dataclass(slots=True, eq=False)
class Branch:
    """A part of the way to a queue. `share` is by weight."""

    weight: float = 1.0
    branches: dict[str, Branch] = field(default_factory=dict)
    #: rows of the jobs right below
    jobs: list[int] = field(default_factory=list)
    share: float = 0.0
    saturated: bool = True


class Hierarchy:
    """The tree over all jobs that hold or want something. It follows what the session does."""

    def __init__(
        self, queues: Mapping[str, QueueInfo], jobs: Iterable[JobInfo], total: Floats
    ) -> None:
        self._total = total
        self._root = Branch()
        self._ways = {name: self._grow(queues[name]) for name in sorted(queues)}
        there = [job for job in jobs if job.queue in queues and _has_a_part(job)]
        there.sort(key=lambda job: job.key)  # sums of floats depend on the order
        self._rows = {job.key: row for row, job in enumerate(there)}
        self._held = np.zeros((len(there), total.size))
        self._asked = np.zeros((len(there), total.size))
        for row, job in enumerate(there):
            self._held[row, : job.allocated.size] = job.allocated
            self._asked[row, : job.total_request.size] = job.total_request
            self._ways[job.queue][-1].jobs.append(row)
        self._settled = False

    def _grow(self, queue: QueueInfo) -> list[Branch]:
        """Return the branches from the root to a queue; those that are missing are made."""
        notes = queue.queue.metadata.annotations or {}
        path = notes.get(names.HIERARCHY, "").split("/")[1:]
        weights = notes.get(names.HIERARCHY_WEIGHTS, "").split("/")[1:]
        way = [self._root]
        for name, weight in zip_longest(path, weights[: len(path)], fillvalue=""):
            way.append(way[-1].branches.setdefault(name, Branch(_weight(weight))))
        return way

    def add(self, job: JobKey, cls: TaskClass, n: int) -> None:
        """Count `n` tasks more that a job holds, or fewer."""
        row = self._rows.get(job)
        if row is not None:
            self._held[row, : cls.req.size] += n * cls.req
            self._settled = False

    def compare(self, queue: str, other: str) -> int:
        """Return -1 if a queue goes before another, 1 if it comes after it, else 0."""
        if not self._settled:
            self._settle()
        for a, b in zip(self._ways[queue], self._ways[other], strict=False):
            mine, theirs = (a.saturated, a.share), (b.saturated, b.share)
            if mine != theirs:
                return -1 if mine < theirs else 1
        return 0

    def _settle(self) -> None:
        left = self._held.sum(axis=0) < self._total
        something = (self._held >= EPSILON) & (self._asked != 0)
        saturated = (something & ((self._held >= self._asked) | ~left)).any(axis=1)
        self._sum_up(self._root, self._dominant(self._held), saturated)
        self._settled = True

    def _sum_up(self, branch: Branch, shares: Floats, saturated: Bools) -> tuple[Floats, float]:
        """Work out a branch from what is below; return what it holds, and its plain share."""
        below = [self._sum_up(child, shares, saturated) for child in branch.branches.values()]
        rows = branch.jobs
        share = np.array([*shares[rows], *(s for _, s in below)])
        full = np.array([*saturated[rows], *(c.saturated for c in branch.branches.values())], bool)
        held = np.array([*self._held[rows], *(h for h, _ in below)]).reshape(-1, self._total.size)
        scale = (share > 0).astype(float)
        grows = (share > 0) & ~full
        if grows.any():
            scale[grows] = min(1.0, share[grows].min()) / share[grows]
        sum_of = scale @ held
        plain = float(self._dominant(sum_of[None, :])[0])
        branch.share = round(plain / branch.weight, DIGITS)
        branch.saturated = bool(full.all())
        return sum_of, plain

    def _dominant(self, held: Floats) -> Floats:
        """Return the largest part of anything, for each row of (n, R)."""
        rows = np.flatnonzero(self._total >= EPSILON)
        parts: Floats = (held[:, rows] / self._total[rows]).max(axis=1, initial=0.0)
        return parts


def _has_a_part(job: JobInfo) -> bool:
    """Return whether a job holds anything, or waits for it."""
    return bool(job.allocated.any()) or job.counts.total.pending > 0


def _weight(text: str) -> float:
    """Read a weight; what is no number, or less than 1, counts as 1."""
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return weight if 1.0 <= weight < float("inf") else 1.0
