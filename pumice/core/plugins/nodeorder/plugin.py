"""
The plugin: kube-scheduler's scores, weighted and added up.

What depends on the node alone is a node order. A ranking compares the candidates and so belongs
to the batch order, but for one case: where nodes have at most two different raw figures, any two
of them are apart by the same or not at all, whoever the candidates are. Then the ranking puts
nodes in the same order as a score that is fixed for each node, and is treated as one; so a taint
on some nodes, or one preferred label, does not cost the placement of many pods at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pumice.core import extension
from pumice.core.conf import Arguments
from pumice.core.extension import BatchNodeOrder
from pumice.core.model.signatures import PodTerm, Signature
from pumice.core.model.tasks import TaskClass
from pumice.core.plugins.nodeorder import load, ranking
from pumice.core.resources import CPU, MEMORY, PODS, Floats, Ints, pad
from pumice.core.session import Session

NAME = "nodeorder"
GPU = "nvidia.com/gpu"
"""The one device whose balance counts."""

Rank = Callable[[Ints], Floats]


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each scorer counts; 0 switches it off."""

    least: int
    most: int
    balanced: int
    node_affinity: int
    pod_affinity: int
    taints: int
    spread: int
    images: int

    @classmethod
    def parse(cls, args: Arguments) -> Weights:
        """Read the weights."""
        return cls(
            least=args.integer("leastrequested.weight", 1),
            most=args.integer("mostrequested.weight", 0),
            balanced=args.integer("balancedresource.weight", 1),
            node_affinity=args.integer("nodeaffinity.weight", 2),
            pod_affinity=args.integer("podaffinity.weight", 2),
            taints=args.integer("tainttoleration.weight", 3),
            spread=args.integer("podtopologyspread.weight", 2),
            images=args.integer("imagelocality.weight", 1),
        )


class NodeOrder:
    """Registers the scores."""

    name = NAME
    steady = True

    def __init__(self, args: Arguments) -> None:
        self.weights = Weights.parse(args)

    def on_session_open(self, ssn: Session) -> None:
        """Register both orders."""
        scores = Scores(ssn, self.weights)
        ssn.points.node_order[NAME] = extension.NodeOrder(scores.alone)
        ssn.points.batch_node_order[NAME] = BatchNodeOrder(scores.applies, scores.ranked)

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to tell."""


@dataclass(frozen=True, slots=True)
class Static:
    """What a signature is worth on each node, whatever is placed."""

    #: the part that is fixed (N,)
    fixed: Floats
    #: rankings over the candidates: weight, raw figures (N,), rule
    ranked: tuple[tuple[int, Ints, Rank], ...]


class Scores:
    """The scores of one session."""

    def __init__(self, ssn: Session, weights: Weights) -> None:
        self._ssn = ssn
        self._weights = weights
        self._nodes = ssn.nodes
        self._columns = ssn.nodes.columns
        self._peers = ssn.peers
        self._static: dict[Signature, Static] = {}
        self._wishes: tuple[PodTerm, ...] | None = None
        gpu = [row for row, name in enumerate(ssn.names) if name == GPU]
        self._balanced_rows = (CPU, MEMORY, *gpu)

    def alone(self, cls: TaskClass, at: Ints, alloc: Floats, used: Floats) -> Floats:
        """Return what nodes score by themselves; shapes as in `extension.NodeOrder`."""
        weights = self._weights
        total: Floats = self._of(cls.signature).fixed[at, None] + np.zeros(used.shape[1:])
        if weights.least or weights.most:
            padded = self._padded(cls, at, used)
            if weights.least:
                total += weights.least * load.least_allocated(alloc, padded)
            if weights.most:
                total += weights.most * load.most_allocated(alloc, padded)
        if weights.balanced and any(row in cls.rows for row in self._balanced_rows):
            req = pad(cls.req, self._nodes.rows)
            balanced = load.balanced(alloc, used, req, self._balanced_rows)
            total += weights.balanced * balanced
        return total

    def applies(self, cls: TaskClass) -> bool:
        """Return whether the class has rankings that placements, or candidates, can change."""
        signature = cls.signature
        return bool(
            self._of(signature).ranked
            or (self._weights.spread and signature.soft_spread)
            or (self._weights.pod_affinity and self._is_wished(signature))
        )

    def ranked(self, cls: TaskClass, at: Ints) -> Floats:
        """Return the ranks of the candidates `at`."""
        signature, weights = cls.signature, self._weights
        total = np.zeros(at.size)
        for weight, raw, rank in self._of(signature).ranked:
            total += weight * rank(raw[at])
        if weights.pod_affinity and self._is_wished(signature):
            raw = ranking.pod_affinity(signature, self._peers)
            total += weights.pod_affinity * ranking.between_extremes(raw[at])
        if weights.spread and signature.soft_spread:
            candidates = np.zeros(self._columns.size, bool)
            candidates[at] = True
            even = ranking.evenness(signature, self._peers, candidates)
            total += weights.spread * even[at]
        return total

    def _padded(self, cls: TaskClass, at: Ints, used: Floats) -> Floats:
        """Return cpu and memory in use with the padding of all pods, the task's included."""
        padding = [self._peers.padding(cpu=cpu)[at, None] for cpu in (True, False)]
        padded: Floats = used[: MEMORY + 1] + np.array(padding)
        own = cls.signature.presence.padding
        if any(own):
            held = self._nodes.used[PODS, at] + self._nodes.pipelined[PODS, at]
            copies = used[PODS] - held[:, None]
            padded += np.reshape(own, (2, 1, 1)) * copies
        return padded

    def _of(self, signature: Signature) -> Static:
        found = self._static.get(signature)
        if found is None:
            found = self._static[signature] = self._settle(signature)
        return found

    def _settle(self, signature: Signature) -> Static:
        """Work out what does not change in the session."""
        weights, columns, selection = self._weights, self._columns, signature.selection
        fixed = np.zeros(columns.size)
        if weights.images:
            fixed += weights.images * ranking.images_present(signature, columns)
        rankings: list[tuple[int, Ints, Rank]] = []
        if weights.node_affinity and selection.preferred:
            preferred = ranking.preferred_by_pod(selection, columns)
            rankings.append((weights.node_affinity, preferred, ranking.of_highest))
        if weights.taints:
            disliked = columns.disliked(selection.tolerations)
            rankings.append((weights.taints, disliked, ranking.reversed_of_highest))
        moving = []
        for weight, raw, rank in rankings:
            if np.unique(raw).size <= 2:
                fixed += weight * rank(raw)
            else:
                moving.append((weight, raw, rank))
        return Static(fixed, tuple(moving))

    def _is_wished(self, signature: Signature) -> bool:
        """Return whether preferred terms tie the pod to others, or others to it."""
        presence = signature.presence
        return bool(presence.preferred) or any(map(presence.matched_by, self._wishing_terms()))

    def _wishing_terms(self) -> tuple[PodTerm, ...]:
        """Return the preferred terms of pods on nodes and of those that may get there."""
        if self._wishes is None:
            presences = {
                task.cls.signature.presence
                for job in self._ssn.unsettled
                for task in job.tasks.values()
            }
            terms = {wish.term: None for p in presences for wish in p.preferred}
            self._wishes = tuple({**terms, **dict.fromkeys(self._peers.wishing)})
        return self._wishes
