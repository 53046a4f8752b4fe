"""
Peers: which pods are where, as far as other pods care.

Rules between pods (affinity, anti-affinity, spreading) ask how many pods of some kind are in a
topology domain: the nodes that share a value of a label. Such a question is a `Tally`. It is
counted once, over all pods, when it is first asked, and from then on follows every pod that is
placed or taken away, so a later answer costs one lookup per node. Undoing a placement brings
every tally back to what it was.

Pods are known by their presence alone (see `pumice.core.model.signatures`): those that others
cannot tell apart are counted together. Host ports are a question like the others, where every
node is a domain of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pumice.core.model.columns import Column, Columns
from pumice.core.model.population import Headcount
from pumice.core.model.signatures import HostPort, PodTerm, Presence
from pumice.core.resources import Bools, Ints

Weigh = Callable[[Presence], int]


@dataclass(slots=True, eq=False)
class Tally:
    """How much a kind of pod weighs in each domain, the values of a column."""

    weigh: Weigh
    domains: Ints  # (N,) the domain of each node, -1 for none
    counts: Ints  # (D,)
    #: whether a node is among those whose pods count
    within: Bools  # (N,)
    #: whether a domain has such a node
    inhabited: Bools  # (D,)
    #: whether pods on their way out are left out
    staying_only: bool

    def at_nodes(self) -> Ints:
        """Return the count of each node's domain; 0 where the node is in none."""
        spread: Ints = np.append(self.counts, 0)[self.domains]
        return spread

    @property
    def empty(self) -> bool:
        """Return whether no pod counts anywhere."""
        return not self.counts.any()

    def add(self, node: int, weight: int) -> None:
        """Count `weight` at a node."""
        if self.within[node]:
            self.counts[self.domains[node]] += weight


@dataclass(slots=True, eq=False)
class _Kind:
    """The pods of one presence: where they moved in the session, and the tallies they weigh in."""

    moved: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    watchers: list[tuple[Tally, int]] = field(default_factory=list)


class Peers:
    """The record of pods on nodes, and the tallies kept over it."""

    def __init__(self, columns: Columns, headcount: Headcount) -> None:
        self.columns = columns
        self._start = headcount
        self._kinds: dict[Presence, _Kind] = {presence: _Kind() for presence in headcount}
        self._tallies: dict[Hashable, Tally] = {}
        #: required anti-affinity terms, and preferred terms, that some pod here has had
        self.repelling: dict[PodTerm, None] = {}
        self.wishing: dict[PodTerm, None] = {}
        self._meaning: dict[tuple[Presence, str], tuple[int, list[Tally]]] = {}
        for presence in headcount:
            self._learn_terms(presence)

    def place(self, presence: Presence, nodes: Sequence[int], times: int = 1) -> None:
        """Put so many pods on each of the nodes; a negative number takes them away."""
        kind = self._kinds.get(presence)
        if kind is None:
            kind = self._kinds[presence] = _Kind()
            for tally in self._tallies.values():
                if weight := tally.weigh(presence):
                    kind.watchers.append((tally, weight))
            self._learn_terms(presence)
        for node in nodes:
            kind.moved[node] += times
        for tally, weight in kind.watchers:
            for node in nodes:
                tally.add(node, weight * times)

    def tally(
        self,
        key: Hashable,
        weigh: Weigh,
        column: Column,
        *,
        within: Callable[[], Bools] | None = None,
        staying_only: bool = False,
    ) -> Tally:
        """
        Return the tally known by `key`, counted now if this is the first time.

        Pods count on all nodes, or on those of `within`; with `staying_only`, pods on their way
        out don't.
        """
        found = self._tallies.get(key)
        if found is None:
            nodes = column.present & within() if within else column.present
            counts = np.zeros(len(column.values), np.int64)
            inhabited = np.zeros(counts.size, bool)
            inhabited[column.codes[nodes]] = True
            found = Tally(weigh, column.codes, counts, nodes, inhabited, staying_only)
            self._tallies[key] = found
            for presence, kind in self._kinds.items():
                if weight := weigh(presence):
                    kind.watchers.append((found, weight))
                    for node, number in self._whereabouts(presence, kind, staying_only):
                        found.add(node, weight * number)
        return found

    def matching(self, terms: tuple[PodTerm, ...], topology_key: str) -> Tally:
        """Return the tally of pods that all the terms mean, by domain of `topology_key`."""

        def weigh(presence: Presence) -> int:
            return int(all(presence.matched_by(term) for term in terms))

        column = self.columns.label(topology_key)
        return self.tally(("matching", terms, topology_key), weigh, column)

    def holding(self, port: HostPort) -> Tally:
        """Return the tally, node by node, of pods with a host port that conflicts with this one."""

        def weigh(presence: Presence) -> int:
            return int(any(held.conflicts(port) for held in presence.ports))

        return self.tally(("holding", port), weigh, self.columns.names)

    def padding(self, cpu: bool) -> Ints:
        """Return, node by node, what scores add to the pods' requests of cpu or of memory."""

        def weigh(presence: Presence) -> int:
            return int(presence.padding.cpu if cpu else presence.padding.memory)

        return self.tally(("padding", cpu), weigh, self.columns.names).counts

    def repelling_pod(self, presence: Presence) -> list[Tally]:
        """Return, for each anti-affinity term here that means the pod, how many have it, where."""
        return self._tallies_of(presence, "repelling", self.repelling, self._owners)

    def wishing_pod(self, presence: Presence) -> list[Tally]:
        """Return, for each preferred term here that means the pod, the sum of weights, where."""
        return self._tallies_of(presence, "wishing", self.wishing, self._wishers)

    def _tallies_of(
        self,
        presence: Presence,
        kind: str,
        terms: Mapping[PodTerm, None],
        tally: Callable[[PodTerm], Tally],
    ) -> list[Tally]:
        """Look only at the terms that came up since the last time; there may be many."""
        seen, tallies = self._meaning.get((presence, kind), (0, []))
        if seen < len(terms):
            new = list(terms)[seen:]
            tallies = [*tallies, *(tally(term) for term in new if presence.matched_by(term))]
            self._meaning[presence, kind] = (len(terms), tallies)
        return tallies

    def _whereabouts(
        self, presence: Presence, kind: _Kind, staying_only: bool
    ) -> Iterator[tuple[int, int]]:
        """Yield nodes and numbers of pods; a node may come twice."""
        index = self.columns.index
        for (name, leaving), number in self._start.get(presence, {}).items():
            node = index.get(name)
            if node is not None and not (leaving and staying_only):
                yield node, number
        yield from kind.moved.items()

    def _learn_terms(self, presence: Presence) -> None:
        """Take note of the terms that pods of this presence hold against, or for, others."""
        self.repelling.update(dict.fromkeys(presence.anti_affinity))
        self.wishing.update(dict.fromkeys(wish.term for wish in presence.preferred))

    def _owners(self, term: PodTerm) -> Tally:
        column = self.columns.label(term.topology_key)
        return self.tally(("repelling", term), lambda p: p.anti_affinity.count(term), column)

    def _wishers(self, term: PodTerm) -> Tally:
        def weigh(presence: Presence) -> int:
            return sum(wish.weight for wish in presence.preferred if wish.term == term)

        return self.tally(("wishing", term), weigh, self.columns.label(term.topology_key))
