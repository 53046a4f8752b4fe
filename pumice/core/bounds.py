"""
Bounds: how far apart the pods of a job, and of each of its sub-jobs, may be.

A bound is a tier: all pods must lie within one HyperNode of that tier or below. A soft wish is
carried out as a bound that refuses nothing, at the tier of TOP: the lowest HyperNode that has the
room is taken. For a sub-job of a job with a hard bound it is the tier of that.

A hard bound that names a tier which no HyperNode has cannot be kept anywhere: its pods wait until
there is such a HyperNode. Volcano would drop the bound and let them go anywhere.

The same definition serves the session, whoever applies its decisions, and `bind`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from pumice.core.api.scheduling import NetworkTopology
from pumice.core.model.hypernodes import NOWHERE, HyperTree
from pumice.core.model.jobs import JobInfo
from pumice.core.model.tasks import ALLOCATED_STATUSES, Status, Task
from pumice.core.resources import Bools, Ints

PLACED = ALLOCATED_STATUSES | Status.PIPELINED


@dataclass(frozen=True, slots=True)
class Bound:
    """The highest tier that pods may span; `hard` where they must not go beyond it."""

    tier: int
    hard: bool
    #: the tier as the job names it
    text: str = ""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a job: of all its pods, and of those of one sub-job by policy."""

    whole: Bound | None
    #: of the sub-jobs of a policy; "" are those that no policy takes
    parts: Mapping[str, Bound | None]

    def __bool__(self) -> bool:
        return self.whole is not None or any(self.parts.values())

    @property
    def hard(self) -> bool:
        """Return whether there is a place where a pod must not go."""
        return any(bound is not None and bound.hard for bound in (self.whole, *self.parts.values()))


UNBOUND = Bounds(None, {})


def bounds_of(job: JobInfo, tree: HyperTree) -> Bounds:
    """Return the bounds of a job; of one that is its own sub-job there are no parts."""
    asked = job.group.spec.network_topology
    if asked is None and not job.policies:
        return UNBOUND
    whole = _bound(asked, tree)
    if not job.policies:
        return Bounds(whole, {})
    outer = whole if whole is not None and whole.hard else None
    parts = {policy.name: policy.network_topology for policy in job.policies}
    return Bounds(
        whole, {name: _bound(part, tree, outer) for name, part in {**parts, "": asked}.items()}
    )


def _bound(
    asked: NetworkTopology | None, tree: HyperTree, outer: Bound | None = None
) -> Bound | None:
    if asked is None:
        return None
    if asked.mode == "soft":
        return Bound(outer.tier if outer else int(tree.tiers[tree.top]), hard=False)
    if asked.highest_tier_allowed is not None:
        return Bound(asked.highest_tier_allowed, True, f"tier {asked.highest_tier_allowed}")
    name = asked.highest_tier_name
    return Bound(tree.tier_names.get(name, NOWHERE), True, f"tier {name}") if name else None


@dataclass(slots=True)
class Standing:
    """Where tasks are: how many of them each HyperNode holds."""

    tree: HyperTree
    total: int = 0
    held: Ints = field(init=False)  # (H,)

    def __post_init__(self) -> None:
        self.held = np.zeros(len(self.tree), np.int64)

    def move(self, column: int, n: int) -> None:
        """Count `n` tasks more on a node, or fewer."""
        self.held[self.tree.above[column]] += n
        self.total += n

    @property
    def lowest(self) -> int:
        """Return the lowest HyperNode that holds all tasks; NOWHERE where there are no tasks."""
        return int((self.held == self.total).argmax()) if self.total else NOWHERE

    def open_to(self, bound: Bound) -> Bools:
        """Return the HyperNodes (H,) in which a task more keeps the bound."""
        found: Bools = (self.held == self.total) & (self.tree.tiers <= bound.tier)
        if self.tree.is_bare and bound.hard:
            found[:] = False  # where nothing is known of the network nothing is near
        return found


class Standings:
    """Where the tasks of a job are, as a whole and by sub-job, beside its bounds."""

    def __init__(self, job: JobInfo, tree: HyperTree, index: Mapping[str, int]) -> None:
        self.tree = tree
        self.bounds = bounds_of(job, tree)
        self.whole = Standing(tree)
        self._parts: dict[str, Standing] = {}
        self._policies = {sub_job.id: sub_job.policy for sub_job in job.sub_jobs.values()}
        for task in job.tasks.values():
            if task.status & PLACED and task.node in index:
                self.move(task.sub_job, (index[task.node],), 1)

    def move(self, sub_job: str, columns: Iterable[int], n: int) -> None:
        """Count tasks of a sub-job on nodes, `n` on each time that one is named."""
        part = self.part(sub_job) if sub_job else None
        for column in columns:
            self.whole.move(column, n)
            if part is not None:
                part.move(column, n)

    def part(self, sub_job: str) -> Standing:
        """Return where the tasks of a sub-job are; a job that is its own has one without name."""
        if not sub_job:
            return self.whole
        if sub_job not in self._parts:
            self._parts[sub_job] = Standing(self.tree)
        return self._parts[sub_job]

    def bound(self, sub_job: str) -> Bound | None:
        """Return the bound of a sub-job, or of the job that is its own."""
        if not sub_job:
            return self.bounds.whole
        return self.bounds.parts.get(self._policies.get(sub_job, ""))

    def allowed(self, sub_job: str) -> Bools | None:
        """Return the nodes (N,) where a task more breaks no hard bound; None where all are."""
        masks = [
            self.tree.mask(np.flatnonzero(standing.open_to(bound)))
            for bound, standing in self.hard(sub_job)
        ]
        return np.logical_and.reduce(masks) if masks else None

    def admits(self, sub_job: str, column: int) -> bool:
        """Return whether a task more on a node breaks no hard bound."""
        above = self.tree.above[column]
        return all(
            bool(standing.open_to(bound)[above].any()) for bound, standing in self.hard(sub_job)
        )

    def hold(self) -> bool:
        """Return whether all tasks are as close to each other as they must be."""
        placed = {"": self.whole, **self._parts}
        return all(
            not standing.total or bool(standing.open_to(bound).any())
            for name, standing in placed.items()
            if (bound := self.bound(name)) is not None and bound.hard
        )

    def hard(self, sub_job: str) -> Iterable[tuple[Bound, Standing]]:
        """Yield the hard bounds that tasks of a sub-job must keep, the job's own first."""
        if self.bounds.whole is not None and self.bounds.whole.hard:
            yield self.bounds.whole, self.whole
        bound = self.bound(sub_job) if sub_job else None
        if bound is not None and bound.hard:
            yield bound, self.part(sub_job)

    def innermost(self, sub_job: str) -> tuple[Bound, Standing] | None:
        """Return the narrowest of the hard bounds, if there are any."""
        return max(self.hard(sub_job), key=lambda bound: -bound[0].tier, default=None)


def refusal(standings: Standings, task: Task, column: int) -> str:
    """Return why a task must not go to a node; empty where it may."""
    if standings.admits(task.sub_job, column):
        return ""
    bound = standings.innermost(task.sub_job)
    return f"not within one HyperNode of {bound[0].text} with its gang" if bound else ""
