"""
Columns: what nodes are, turned sideways, so that a rule is evaluated for all nodes at once.

A label becomes a column: a vocabulary of the values that occur and, for each node, the index of
its value in it, -1 where the node lacks the label. A requirement is then asked once for each
value, not once for each node, and spread over the nodes by indexing. Taints are treated alike:
nodes with the same taints share an entry. A column is made when it is first asked for.

The columns describe one list of nodes as it is; a list that changed needs new ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from pumice.core.api.core import Taint, Toleration
from pumice.core.resources import Bools, Ints
from pumice.core.selectors import NodeChoice, NodeTerm, Requirement, tolerates

HARD_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})


class NodeFacts(Protocol):
    """What the columns read of a node."""

    @property
    def name(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def taints(self) -> Sequence[Taint]: ...
    @property
    def unschedulable(self) -> bool: ...
    @property
    def images(self) -> Mapping[str, int]:
        """Image name with tag -> size in bytes."""


@dataclass(frozen=True, slots=True)
class Column:
    """One label over all nodes: `values[codes[n]]` is node n's value, code -1 its absence."""

    values: tuple[str, ...]
    codes: Ints  # (N,)

    def accepted_by(self, requirement: Requirement) -> Bools:
        """Return the nodes whose value, or lack of one, the requirement accepts."""
        verdicts = [requirement.accepts(value) for value in (*self.values, None)]
        return np.array(verdicts, bool)[self.codes]  # code -1 is the last entry: absence

    @property
    def present(self) -> Bools:
        """Return the nodes that have the label."""
        return self.codes >= 0

    def is_equal(self, other: Column) -> bool:
        """Return whether every node has the same value, or lacks the label, in both."""
        return self.values == other.values and np.array_equal(self.codes, other.codes)


class Columns:
    """The columns of a list of nodes."""

    def __init__(self, nodes: Sequence[NodeFacts]) -> None:
        self._nodes = nodes
        self.size = len(nodes)
        self.index = {node.name: i for i, node in enumerate(nodes)}
        self._names: Column | None = None
        self._labels: dict[str, Column] = {}
        self._taints: tuple[list[Sequence[Taint]], Ints] | None = None
        self._unschedulable: Bools | None = None
        self._images: dict[str, tuple[int, Ints]] = {}

    def label(self, key: str) -> Column:
        """Return the column of a label."""
        column = self._labels.get(key)
        if column is None:
            code: dict[str | None, int] = {None: -1}
            found = (node.labels.get(key) for node in self._nodes)
            codes = np.array([code.setdefault(v, len(code) - 1) for v in found], np.int64)
            values = tuple(v for v in code if v is not None)
            column = self._labels[key] = Column(values, codes)
        return column

    def agrees(self, other: Columns, labels: Iterable[str]) -> bool:
        """Return whether these are the same nodes in the same order, alike in some labels."""
        return [*self.index] == [*other.index] and all(
            self.label(key).is_equal(other.label(key)) for key in labels
        )

    @property
    def names(self) -> Column:
        """Return the column in which every node is a domain of its own."""
        if self._names is None:
            self._names = Column(tuple(self.index), np.arange(self.size))
        return self._names

    def all(self) -> Bools:
        """Return a fresh mask of all nodes."""
        return np.ones(self.size, bool)

    def chosen(self, choice: NodeChoice) -> Bools:
        """Return the nodes that the node selector and required affinity allow."""
        mask = self.all()
        for requirement in choice.selector.requirements:
            mask &= self.label(requirement.key).accepted_by(requirement)
        if choice.terms is not None:
            any_term = np.zeros(self.size, bool)
            for term in choice.terms:
                any_term |= self.matching(term)
            mask &= any_term
        return mask

    def matching(self, term: NodeTerm) -> Bools:
        """Return the nodes that a node selector term matches."""
        mask = self.all()
        for requirement in term.labels:
            mask &= self.label(requirement.key).accepted_by(requirement)
        for requirement in term.names:
            named = np.zeros(self.size, bool)
            named[[self.index[v] for v in requirement.values if v in self.index]] = True
            mask &= named if requirement.operator == "In" else ~named
        return mask

    @property
    def unschedulable(self) -> Bools:
        """Return the cordoned nodes."""
        if self._unschedulable is None:
            self._unschedulable = np.array([node.unschedulable for node in self._nodes], bool)
        return self._unschedulable

    def untolerated(self, tolerations: Sequence[Toleration]) -> Bools:
        """Return the nodes with a NoSchedule or NoExecute taint that is not tolerated."""
        return self._count_taints(tolerations, HARD_EFFECTS) > 0

    def disliked(self, tolerations: Sequence[Toleration]) -> Ints:
        """Return how many PreferNoSchedule taints of each node are not tolerated."""
        relevant = [t for t in tolerations if t.effect in ("", "PreferNoSchedule")]
        return self._count_taints(relevant, {"PreferNoSchedule"})

    def _count_taints(self, tolerations: Sequence[Toleration], effects: Iterable[str]) -> Ints:
        if self._taints is None:
            self._taints = self._taint_sets()
        distinct, codes = self._taints
        counts = [
            sum(t.effect in effects and not tolerates(tolerations, t) for t in taints)
            for taints in distinct
        ]
        return np.array(counts, np.int64)[codes]

    def _taint_sets(self) -> tuple[list[Sequence[Taint]], Ints]:
        """Return the distinct sets of taints, and which of them each node has."""
        distinct: list[Sequence[Taint]] = []
        seen: dict[tuple[tuple[str, str, str], ...], int] = {}
        codes = np.empty(self.size, np.int64)
        for i, node in enumerate(self._nodes):
            key = tuple((t.key, t.value, t.effect) for t in node.taints)
            if key not in seen:
                seen[key] = len(distinct)
                distinct.append(node.taints)
            codes[i] = seen[key]
        return distinct or [()], codes

    def image(self, name: str) -> tuple[int, Ints]:
        """Return an image's size in bytes, and the indices of the nodes that hold it."""
        found = self._images.get(name)
        if found is None:
            holders = [i for i, node in enumerate(self._nodes) if name in node.images]
            size = self._nodes[holders[0]].images[name] if holders else 0
            found = self._images[name] = (size, np.array(holders, np.int64))
        return found
