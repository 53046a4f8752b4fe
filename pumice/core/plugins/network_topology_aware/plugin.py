"""The plugin `network-topology-aware`: its arguments, and what it registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pumice.core.bounds import Bound
from pumice.core.conf import Arguments
from pumice.core.domains import Domains
from pumice.core.extension import BatchNodeOrder, Gradients, Purpose
from pumice.core.model.hypernodes import NOWHERE
from pumice.core.model.jobs import JobInfo, SubJob
from pumice.core.model.tasks import Task, TaskClass
from pumice.core.plugins.network_topology_aware.scores import (
    Levels,
    fading,
    filling,
    nearness,
    with_bonus,
)
from pumice.core.resources import Bools, Floats, Ints
from pumice.core.session import Session

NAME = "network-topology-aware"
MAX_SCORE = 100.0
BINPACK = "hypernode.binpack"


@dataclass(frozen=True, slots=True)
class Settings:
    """The arguments of the plugin."""

    weight: int
    resources: Mapping[str, int]
    normal_pods: bool
    fade: float
    #: how many HyperNodes are tried at most where room is to be made
    evict_at_most: int

    @classmethod
    def parse(cls, args: Arguments) -> Settings:
        """Read the arguments; negative weights count as 1, a negative fading as 0.8."""
        keys = {"cpu": f"{BINPACK}.cpu", "memory": f"{BINPACK}.memory"}
        keys |= {r: f"{BINPACK}.resources.{r}" for r in args.names(f"{BINPACK}.resources")}
        weights = {r: args.integer(key, 1) for r, key in keys.items()}
        fade = args.number(f"{BINPACK}.normal-pod.fading", 0.8)
        return cls(
            args.integer("weight", 1),
            {r: w if w >= 0 else 1 for r, w in weights.items()},
            args.boolean(f"{BINPACK}.normal-pod.enable", True),
            fade if fade >= 0 else 0.8,
            args.integer("hypernode.gradient.evict.max-hypernodes", 8),
        )


class NetworkTopologyAware:
    """Registers gradients and scores; of sessions without HyperNodes it stays out."""

    name = NAME
    steady = True

    def __init__(self, args: Arguments) -> None:
        self.settings = Settings.parse(args)

    def on_session_open(self, ssn: Session) -> None:
        """Register what there is to say of the session's HyperNodes."""
        if ssn.snapshot.tree.is_bare:
            return
        policy = Policy(ssn, self.settings)
        points = ssn.points
        points.hyper_node_gradient_for_job[NAME] = policy.for_job
        points.hyper_node_gradient_for_sub_job[NAME] = policy.for_sub_job
        if self.settings.weight:
            points.hyper_node_order[NAME] = policy.hypernodes
            points.batch_node_order[NAME] = BatchNodeOrder(
                lambda cls: True, policy.nodes, policy.differs
            )

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to tell."""


class Policy:
    """What the plugin has to say in one session."""

    def __init__(self, ssn: Session, settings: Settings) -> None:
        self._ssn = ssn
        self._settings = settings
        self._domains: Domains = ssn.domains
        self._tree = ssn.domains.tree
        self._levels = Levels.of(self._tree)
        self._near: dict[int, Floats] = {}
        self._weights = {
            row: float(settings.resources[name])
            for row, name in enumerate(ssn.names)
            if name in settings.resources
        }

    # Which HyperNodes to try.

    def for_job(self, job: JobInfo, within: str, purpose: Purpose) -> Gradients:
        """Return those that keep the job's bound and have room for its minimum."""
        bound = self._domains.standings(job).bounds.whole
        need = job.min_resources
        return self._gradients(
            job, "", bound, np.zeros(0) if need is None else need, within, purpose
        )

    def for_sub_job(
        self, job: JobInfo, sub_job: SubJob | None, within: str, purpose: Purpose
    ) -> Gradients:
        """
        Return those that keep the sub-job's bound and have room for all of its waiting tasks.

        So a sub-job starts where all of it fits, or not at all, even if fewer tasks would do.
        """
        name = sub_job.id if sub_job is not None else ""
        bound = self._domains.standings(job).bound(name)
        need = self._domains.asked(job, name).pending
        return self._gradients(job, name, bound, need, within, purpose)

    def _gradients(
        self,
        job: JobInfo,
        name: str,
        bound: Bound | None,
        need: Floats,
        within: str,
        purpose: Purpose,
    ) -> Gradients:
        if bound is None:
            return [[within]]
        standing = self._domains.standings(job).part(name)
        reach = self._domains.reach(standing, bound, self._tree.index[within])
        if not standing.total:
            # A job that is there already must stay, whether or not its HyperNode has room.
            room = self._has_room(need, purpose)
            room[self._tree.index[within]] |= not bound.hard  # a wish keeps nobody from starting
            reach = reach[room[reach]]
        gradients = self._domains.by_tier(reach.tolist())
        if purpose == "evict":
            return for_evictions(gradients, self._settings.evict_at_most)
        return gradients

    def _has_room(self, need: Floats, purpose: Purpose) -> Bools:
        """Return the HyperNodes (H,) with room, now or later; to make room it must be theirs."""
        domains = self._domains
        if not need.size:
            return np.ones(len(self._tree), bool)
        if purpose == "evict":
            return domains.holding(need, domains.alloc)
        return domains.holding(need, domains.idle) | domains.holding(need, domains.future_idle)

    # Scores.

    def hypernodes(self, job: JobInfo, sub_job: SubJob | None, names: Sequence[str]) -> list[float]:
        """Return how full the sub-job, as a whole, would make each HyperNode."""
        domains, name = self._domains, sub_job.id if sub_job is not None else ""
        at = [self._tree.index[hypernode] for hypernode in names]
        asked = domains.asked(job, name)
        filled = filling(self._weights, asked.total, domains.used[:, at], domains.alloc[:, at])
        there = domains.standings(job).part(name).held[at]
        scores: list[float] = self._scaled(with_bonus(filled, there, asked.tasks)).tolist()
        return scores

    def nodes(self, cls: TaskClass, at: Ints) -> Floats:
        """Return how near nodes are to the task's kin, or for others how full their HyperNodes."""
        job, name = self._kin()
        if job is None:
            return self._scaled(self._by_filling(cls, at))
        domains, leaves = self._domains, self._tree.leaves[at]
        standing = domains.standings(job).part(name)
        if standing.lowest == NOWHERE:
            return np.zeros(at.size)
        near = self._nearness(standing.lowest)[leaves]
        there = np.where(leaves == NOWHERE, 0, standing.held[leaves])
        return self._scaled(with_bonus(near, there, domains.asked(job, name).tasks))

    def _nearness(self, allocated: int) -> Floats:
        found = self._near.get(allocated)
        if found is None:
            found = self._near[allocated] = nearness(self._tree, allocated)
        return found

    def differs(self, cls: TaskClass, within: Ints | None) -> bool:
        """Return whether nodes score differently: never those of one leaf, for who is bound."""
        if self._kin()[0] is None:
            return self._settings.normal_pods
        if within is None or not within.size:
            return within is None
        leaves = self._tree.leaves[within]
        return bool((leaves != leaves[0]).any())

    def _kin(self) -> tuple[JobInfo | None, str]:
        """Return job and sub-job of the task that is being placed; no job if it has no bound."""
        task: Task | None = self._ssn.views.subject
        job = self._ssn.space.jobs.get(task.job) if task is not None and task.job else None
        if task is None or job is None or not _may_be_bound(job):
            return None, ""
        bounded = self._domains.standings(job).bound(task.sub_job) is not None
        return (job, task.sub_job) if bounded else (None, "")

    def _by_filling(self, cls: TaskClass, at: Ints) -> Floats:
        """Return how full the HyperNodes of nodes are, the farther ones counted less and less."""
        if not self._settings.normal_pods:
            return np.zeros(at.size)
        domains = self._domains
        filled = filling(self._weights, cls.req, domains.used, domains.alloc)
        levels = self._levels.hypernodes[:, at]
        return fading(list(levels), filled, self._settings.fade)

    def _scaled(self, scores: Floats) -> Floats:
        return scores * (MAX_SCORE * self._settings.weight)


def _may_be_bound(job: JobInfo) -> bool:
    return job.group.spec.network_topology is not None or bool(job.policies)


def for_evictions(gradients: Gradients, at_most: int) -> Gradients:
    """Return gradients turned round, and no more HyperNodes than so many: the last of a tier."""
    left, turned = at_most, []
    for tier in reversed(gradients):
        kept = tier[max(len(tier) - left, 0) :] if left > 0 else []
        if kept:
            turned.append(kept)
        left -= len(kept)
    return turned
