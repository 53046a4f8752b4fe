"""
Domains: the HyperNodes of a session, what each offers and holds, and where jobs are in them.

The amounts are sums over the columns of the node table. They follow the workspace's log of changed
columns, so that a placement costs as much as the node has HyperNodes above it, however many nodes
there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import numpy as np

from pumice.core.bounds import Bound, Standing, Standings
from pumice.core.extension import Event, EventHandler, Gradients
from pumice.core.ids import JobKey
from pumice.core.model.hypernodes import NOWHERE, TOP, HyperTree
from pumice.core.model.jobs import JobInfo, SubJob
from pumice.core.model.tasks import Status
from pumice.core.resources import CPU, EPSILON, MEMORY, Bools, Floats, Ints, pad, plus
from pumice.core.workspace import Workspace

_NEW = Status.ALLOCATED | Status.PIPELINED


class Asked:
    """What the tasks of a sub-job ask for: all together, and those that wait."""

    __slots__ = ("pending", "tasks", "total")

    def __init__(self) -> None:
        self.tasks = 0
        self.total: Floats = np.zeros(0)
        self.pending: Floats = np.zeros(0)


class Domains:
    """The HyperNodes of one session."""

    def __init__(self, tree: HyperTree, space: Workspace) -> None:
        self.tree = tree
        self._space = space
        self._mirror = space.nodes.amounts.copy()  # (4, R, N)
        # Counted from what was changed before anybody asked.
        self._seen = len(space.changed)
        self._sums = np.stack(
            [self._mirror[:, :, columns].sum(axis=2) for columns in tree.columns], axis=-1
        )  # (4, R, H)
        self._standings: dict[JobKey, Standings] = {}
        self._asked: dict[JobKey, dict[str, Asked]] = {}
        space.handlers.append(
            EventHandler(
                lambda event: self._follow(event, 1), lambda event: self._follow(event, -1)
            )
        )

    # Amounts, (R, H) each.

    @property
    def alloc(self) -> Floats:
        """Return what the nodes of each HyperNode offer."""
        offered: Floats = self._fresh()[0]
        return offered

    @property
    def used(self) -> Floats:
        """Return what is charged to them, promises included, less what is on its way out."""
        _, used, releasing, pipelined = self._fresh()
        held: Floats = used - releasing + pipelined
        return held

    @property
    def idle(self) -> Floats:
        """Return what is free now."""
        alloc, used, _, _ = self._fresh()
        free: Floats = alloc - used
        return free

    @property
    def future_idle(self) -> Floats:
        """Return what will be free when the tasks on their way out are gone."""
        alloc, used, releasing, pipelined = self._fresh()
        free: Floats = alloc - used + releasing - pipelined
        return free

    def _fresh(self) -> Floats:
        changed = self._space.changed
        if self._seen < len(changed):
            now, before = self._space.nodes.amounts, self._mirror
            for i in set(changed[self._seen :]):
                self._sums[:, :, self.tree.above[i]] += (now[:, :, i] - before[:, :, i])[:, :, None]
                before[:, :, i] = now[:, :, i]
            self._seen = len(changed)
        return self._sums

    def holding(self, need: Floats, room: Floats) -> Bools:
        """Return the HyperNodes whose `room` (R, H) takes `need` as a whole."""
        need = pad(need, room.shape[0])
        rows = sorted({CPU, MEMORY, *np.flatnonzero(need).tolist()})
        enough: Bools = np.logical_and.reduce(need[rows, None] - room[rows] < EPSILON)
        return enough

    # Where jobs are.

    def standings(self, job: JobInfo) -> Standings:
        """Return where the tasks of a job are; it follows what the session does."""
        found = self._standings.get(job.key)
        if found is None:
            index = self._space.nodes.index
            found = self._standings[job.key] = Standings(job, self.tree, index)
        return found

    def within(self, job: JobInfo, sub_job: str) -> Ints | None:
        """Return the nodes where a task more breaks no hard bound; None where there is none."""
        allowed = self.standings(job).allowed(sub_job)
        return None if allowed is None else np.flatnonzero(allowed)

    def asked(self, job: JobInfo, sub_job: str) -> Asked:
        """Return what the tasks of a sub-job ask for; it follows what the session does."""
        parts = self._asked.get(job.key)
        if parts is None:
            parts = self._asked[job.key] = {}
            for task in job.tasks.values():
                part = parts.setdefault(task.sub_job, Asked())
                part.tasks += 1
                part.total = plus(part.total, task.cls.req)
                if task.status is Status.PENDING:
                    part.pending = plus(part.pending, task.cls.req)
        return parts.setdefault(sub_job, Asked())

    def _follow(self, event: Event, n: int) -> None:
        key, sub_job = event.job.key, event.tasks[0].sub_job
        standings = self._standings.get(key)
        if standings is not None:
            standings.move(sub_job, event.nodes, n)
        if key in self._asked and event.tasks[0].status & _NEW:
            part = self.asked(event.job, sub_job)
            part.pending = plus(part.pending, event.cls.req * (-n * len(event.nodes)))

    # What to try.

    def reach(self, standing: Standing, bound: Bound, within: int) -> Ints:
        """
        Return the HyperNodes inside `within` that keep the bound, lowest first.

        Where tasks are placed already these are the highest HyperNode that holds them and that
        the bound allows, and all below it.
        """
        tree, root = self.tree, within
        if standing.total:
            over = [h for h in tree.ancestors(standing.lowest) if tree.tiers[h] <= bound.tier]
            root = self._inner(over[-1], within) if over else NOWHERE
        if root == NOWHERE or (tree.is_bare and bound.hard):
            return np.zeros(0, np.int64)
        under = tree.under[root]
        return under[tree.tiers[under] <= bound.tier]

    def _inner(self, a: int, b: int) -> int:
        """Return the lower of two HyperNodes if the other one is above it, else NOWHERE."""
        if a in self.tree.ancestors(b):
            return b
        return a if b in self.tree.ancestors(a) else NOWHERE

    def gradients(self, job: JobInfo, sub_job: SubJob | None, within: str) -> Gradients:
        """Return the HyperNodes inside `within` that keep a hard bound; without one, `within`."""
        name = sub_job.id if sub_job is not None else ""
        standings = self.standings(job)
        bound = standings.bound(name)
        if bound is None or not bound.hard:
            return [[within]]
        reach = self.reach(standings.part(name), bound, self.tree.index[within])
        return self.by_tier(reach.tolist())

    def by_tier(self, chosen: Iterable[int]) -> Gradients:
        """Return HyperNodes, numbered lowest first, in one list of names for each tier."""
        tree = self.tree
        return [
            [tree.names[h] for h in group]
            for _, group in groupby(chosen, key=lambda h: int(tree.tiers[h]))
        ]

    def columns(self, name: str) -> Ints | None:
        """Return the nodes of a HyperNode; None where these are all nodes."""
        return None if name == TOP else self.tree.columns[self.tree.index[name]]
