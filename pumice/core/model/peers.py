"""
Peers: which pods are where, as far as other pods care.

Rules between pods (affinity, anti-affinity, spreading) ask how many pods of some kind are in a
topology domain: the nodes that share a value of a label. Such a question is a `Tally`. It is
counted once, over all pods, when it is first asked, and from then on follows every pod that is
placed or taken away, so a later answer costs one lookup per node. Undoing a placement brings
every tally back to what it was.

Pods are known by their presence alone (see `pumice.core.model.signatures`): those that others
cannot tell apart are counted together. Host ports are answered from the same record.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pumice.core.model.columns import Column, Columns
from pumice.core.model.signatures import HostPort, PodTerm, Presence
from pumice.core.resources import Bools, Ints

Weigh = Callable[[Presence], int]


class Peer(NamedTuple):
    """One pod on a node, as the record is first filled."""

    presence: Presence
    node: int
    #: on its way out: it still repels and attracts, but no longer counts in spreading
    leaving: bool


@dataclass(slots=True, eq=False)
class Tally:
    """How much a kind of pod weighs in each domain, the values of a column."""

    weigh: Weigh
    domains: Ints  # (N,) the domain of each node, -1 for none
    counts: Ints  # (D,)
    #: nodes whose pods count; None for all
    within: Bools | None
    #: whether pods on their way out are left out
    staying_only: bool

    def at_nodes(self) -> Ints:
        """Return the count of each node's domain; 0 where the node is in none."""
        padded = np.append(self.counts, 0)
        spread: Ints = padded[self.domains]
        return spread

    @property
    def empty(self) -> bool:
        """Return whether no pod counts anywhere."""
        return not self.counts.any()

    def add(self, node: int, weight: int) -> None:
        """Count `weight` at a node."""
        domain = self.domains[node]
        if domain >= 0 and (self.within is None or self.within[node]):
            self.counts[domain] += weight


@dataclass(slots=True, eq=False)
class _Kind:
    """The pods of one presence: how many on which node, and the tallies that they weigh in."""

    staying: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    leaving: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    watchers: list[tuple[Tally, int]] = field(default_factory=list)


class Peers:
    """The record of pods on nodes, and the tallies kept over it."""

    def __init__(self, columns: Columns, peers: Iterable[Peer]) -> None:
        self.columns = columns
        self._kinds: dict[Presence, _Kind] = {}
        self._tallies: dict[Hashable, Tally] = {}
        self._repelled: dict[Presence, tuple[int, list[Tally]]] = {}
        #: required anti-affinity terms that some pod here has had -> how many have them, where
        self.repelling: dict[PodTerm, Tally] = {}
        #: preferred terms that some pod here has had -> the sum of their weights, where
        self.wishing: dict[PodTerm, Tally] = {}
        for presence, node, leaving in peers:
            kind = self._kinds.get(presence)
            if kind is None:
                kind = self._kinds[presence] = _Kind()
            (kind.leaving if leaving else kind.staying)[node] += 1
        for presence in list(self._kinds):
            self._learn_terms(presence)

    def place(self, presence: Presence, node: int, times: int = 1) -> None:
        """Put so many pods on a node; a negative number takes them away."""
        kind = self._kinds.get(presence)
        if kind is None:
            kind = self._kinds[presence] = _Kind()
            for tally in self._tallies.values():
                if weight := tally.weigh(presence):
                    kind.watchers.append((tally, weight))
            self._learn_terms(presence)
        kind.staying[node] += times
        for tally, weight in kind.watchers:
            tally.add(node, weight * times)

    def holding(self, port: HostPort) -> Tally:
        """Return the tally, node by node, of pods with a host port that conflicts with this one."""

        def weigh(presence: Presence) -> int:
            return int(any(held.conflicts(port) for held in presence.ports))

        return self.tally(("holding", port), weigh, self.columns.names)

    def matching(self, terms: tuple[PodTerm, ...], topology_key: str) -> Tally:
        """Return the tally of pods that all the terms mean, by domain of `topology_key`."""

        def weigh(presence: Presence) -> int:
            return int(all(presence.matched_by(term) for term in terms))

        column = self.columns.label(topology_key)
        return self.tally(("matching", terms, topology_key), weigh, column)

    def repelling_pod(self, presence: Presence) -> list[Tally]:
        """Return the tallies of those anti-affinity terms of pods here that mean the given pod."""
        seen, tallies = self._repelled.get(presence, (0, []))
        if seen < len(self.repelling):
            new = list(self.repelling.items())[seen:]
            tallies = [*tallies, *(tally for term, tally in new if presence.matched_by(term))]
            self._repelled[presence] = (len(self.repelling), tallies)
        return tallies

    def tally(
        self,
        key: Hashable,
        weigh: Weigh,
        column: Column,
        *,
        within: Bools | None = None,
        staying_only: bool = False,
    ) -> Tally:
        """Return the tally known by `key`, counted now if this is the first time."""
        found = self._tallies.get(key)
        if found is None:
            counts = np.zeros(len(column.values), np.int64)
            found = Tally(weigh, column.codes, counts, within, staying_only)
            self._tallies[key] = found
            for presence, kind in self._kinds.items():
                if weight := weigh(presence):
                    self._count(found, kind, weight)
        return found

    @staticmethod
    def _count(tally: Tally, kind: _Kind, weight: int) -> None:
        kind.watchers.append((tally, weight))
        for node, number in kind.staying.items():
            tally.add(node, weight * number)
        for node, number in kind.leaving.items() if not tally.staying_only else ():
            tally.add(node, weight * number)

    def _learn_terms(self, presence: Presence) -> None:
        """Keep a tally of each term that pods of this presence hold against, or for, others."""
        for term in presence.anti_affinity:
            if term not in self.repelling:
                self.repelling[term] = self._owners(term)
        for wish in presence.preferred:
            if wish.term not in self.wishing:
                self.wishing[wish.term] = self._wishers(wish.term)

    def _owners(self, term: PodTerm) -> Tally:
        column = self.columns.label(term.topology_key)
        return self.tally(("repelling", term), lambda p: p.anti_affinity.count(term), column)

    def _wishers(self, term: PodTerm) -> Tally:
        def weigh(presence: Presence) -> int:
            return sum(wish.weight for wish in presence.preferred if wish.term == term)

        return self.tally(("wishing", term), weigh, self.columns.label(term.topology_key))
