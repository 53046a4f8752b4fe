"""
HyperNodes: nodes that are close to each other, as a tree over the columns of the node table.

A HyperNode holds nodes, or HyperNodes of lower tiers; the lower the tier, the closer. One more,
TOP, stands above all others and holds every node. HyperNodes are numbered by tier, then by name,
so the first of several is the lowest, and TOP is the last.

What makes no tree is left out and named in `faults`, and the rest serves: a member of no lower
tier (so there are no cycles), a member that another HyperNode has already, a selector that cannot
be read. A HyperNode with fewer members makes a bound tighter, never wider.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from pumice.core import re2
from pumice.core.api.topology import HyperNode, Member
from pumice.core.model.columns import Columns
from pumice.core.resources import Bools, Ints
from pumice.core.selectors import SelectorError, label_selector

TOP: Final = "<cluster-top-hypernode>"
NOWHERE: Final = -1


@dataclass(frozen=True, slots=True, eq=False)
class HyperTree:
    """H HyperNodes, TOP among them, over N nodes."""

    names: tuple[str, ...]
    index: Mapping[str, int]
    tiers: Ints  # (H,)
    #: the HyperNode above each, NOWHERE for TOP
    parents: Ints  # (H,)
    #: the nodes of each, those of HyperNodes below it included
    columns: tuple[Ints, ...]
    #: each and the HyperNodes below it, lowest first
    under: tuple[Ints, ...]
    #: the HyperNodes of each node, lowest first
    above: tuple[Ints, ...]
    #: of the lowest tier the HyperNode that holds the node; NOWHERE for one that none does
    leaves: Ints  # (N,)
    tier_names: Mapping[str, int]
    #: HyperNode -> what is wrong with it
    faults: Mapping[str, str]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def top(self) -> int:
        """Return the number of TOP."""
        return len(self.names) - 1

    @property
    def is_bare(self) -> bool:
        """Return whether there is nothing but TOP."""
        return len(self.names) == 1

    def ancestors(self, h: int) -> Iterable[int]:
        """Yield a HyperNode and those above it, lowest first."""
        while h != NOWHERE:
            yield h
            h = int(self.parents[h])

    def common(self, a: int, b: int) -> int:
        """Return the lowest HyperNode above both; the other one where one is NOWHERE."""
        if NOWHERE in (a, b):
            return max(a, b)
        over_a = set(self.ancestors(a))
        return next(h for h in self.ancestors(b) if h in over_a)

    def mask(self, chosen: Iterable[int]) -> Bools:
        """Return the nodes of any of the chosen HyperNodes."""
        nodes = np.zeros(len(self.above), bool)
        for h in chosen:
            nodes[self.columns[h]] = True
        return nodes


def hyper_tree(objects: Mapping[str, HyperNode], columns: Columns) -> HyperTree:
    """Return the tree of these HyperNodes over the nodes of a table."""
    order = sorted(objects.values(), key=lambda h: (h.spec.tier, h.metadata.name))
    return _Builder(order, columns).build()


def selecting_labels(objects: Iterable[HyperNode]) -> frozenset[str]:
    """Return the keys of the labels by which HyperNodes select nodes."""
    members = (member for h in objects for member in h.spec.members or ())
    selectors = [m.selector.label_match for m in members if m.selector.label_match is not None]
    pairs = (key for selector in selectors for key in selector.match_labels or ())
    terms = (e.key for selector in selectors for e in selector.match_expressions or ())
    return frozenset((*pairs, *terms))


class _Builder:
    """HyperNodes by number, and what is found of them one after the other."""

    def __init__(self, order: list[HyperNode], columns: Columns) -> None:
        self._order = order
        self._columns = columns
        self._index = {h.metadata.name: i for i, h in enumerate(order)}
        self._parents = [NOWHERE] * len(order)
        self._faults: dict[str, str] = {}

    def build(self) -> HyperTree:
        nodes = [self._own_nodes(h) for h in self._order]
        for i, hypernode in enumerate(self._order):
            self._adopt(i, hypernode)
        top = len(self._order)
        parents = [top if parent == NOWHERE else parent for parent in self._parents]
        under: list[list[int]] = [[] for _ in self._order]
        for i, parent in enumerate(parents):  # those below a HyperNode are numbered lower
            under[i].append(i)
            if parent != top:
                nodes[parent] |= nodes[i]
                under[parent] += under[i]
        lowest = self._order[0].spec.tier if self._order else 1
        tiers = [h.spec.tier for h in self._order]
        return HyperTree(
            names=(*self._index, TOP),
            index={**self._index, TOP: top},
            tiers=np.array([*tiers, max([*tiers, 0]) + 1], np.int64),
            parents=np.array([*parents, NOWHERE], np.int64),
            columns=(*map(np.flatnonzero, nodes), np.arange(self._columns.size)),
            under=(*(np.array(sorted(below)) for below in under), np.arange(top + 1)),
            above=self._above(nodes),
            leaves=self._leaves(nodes, lowest),
            tier_names=self._tier_names(),
            faults=self._faults,
        )

    def _own_nodes(self, hypernode: HyperNode) -> Bools:
        """Return the nodes that a HyperNode names itself."""
        found = np.zeros(self._columns.size, bool)
        for number, member in enumerate(hypernode.spec.members or ()):
            if member.type == "Node":
                try:
                    found |= self._selected(member)
                except (re2.PatternError, SelectorError) as error:
                    self._blame(hypernode, f"member {number} cannot be read: {error}")
        return found

    def _selected(self, member: Member) -> Bools:
        selector, columns = member.selector, self._columns
        found = np.zeros(columns.size, bool)
        if selector.exact_match is not None:
            i = columns.index.get(selector.exact_match.name)
            if i is not None:
                found[i] = True
        elif selector.regex_match is not None:
            search = re2.compiled(selector.regex_match.pattern).search
            found[:] = [search(name) is not None for name in columns.index]
        elif selector.label_match is not None:
            requirements = label_selector(selector.label_match).requirements
            found[:] = bool(requirements)  # an empty selector selects nothing
            for requirement in requirements:
                found &= columns.label(requirement.key).accepted_by(requirement)
        return found

    def _adopt(self, i: int, hypernode: HyperNode) -> None:
        """Become the parent of the HyperNodes that one names, as far as a tree allows it."""
        for number, member in enumerate(hypernode.spec.members or ()):
            if member.type == "Node":
                continue
            if member.selector.exact_match is None:
                self._blame(hypernode, f"member {number}: HyperNodes are selected by exactMatch")
                continue
            name = member.selector.exact_match.name
            child = self._index.get(name, NOWHERE)
            if child == NOWHERE:
                continue  # it may still come
            tier, own = self._order[child].spec.tier, hypernode.spec.tier
            if tier >= own:
                self._blame(hypernode, f"member {name} is of tier {tier}, which is not below {own}")
            elif self._parents[child] not in (NOWHERE, i):
                other = self._order[self._parents[child]].metadata.name
                self._blame(hypernode, f"member {name} is a member of {other} already")
            else:
                self._parents[child] = i

    def _above(self, nodes: list[Bools]) -> tuple[Ints, ...]:
        everything = np.ones(self._columns.size, bool)
        table = np.array([*nodes, everything])  # (H, N)
        shared: dict[bytes, Ints] = {}
        return tuple(
            shared.setdefault(column.tobytes(), np.flatnonzero(column)) for column in table.T.copy()
        )

    def _leaves(self, nodes: list[Bools], lowest: int) -> Ints:
        leaves = np.full(self._columns.size, NOWHERE if nodes else 0)
        for i in reversed(range(len(nodes))):
            if self._order[i].spec.tier == lowest:
                leaves[nodes[i]] = i
        return leaves

    def _tier_names(self) -> dict[str, int]:
        names: dict[str, int] = {}
        for hypernode in self._order:
            name, tier = hypernode.spec.tier_name, hypernode.spec.tier
            if name and names.setdefault(name, tier) != tier:
                self._blame(hypernode, f"tier name {name} stands for tier {names[name]} already")
        return names

    def _blame(self, hypernode: HyperNode, fault: str) -> None:
        """Note what is wrong with a HyperNode; the first fault is told."""
        self._faults.setdefault(hypernode.metadata.name, fault)
