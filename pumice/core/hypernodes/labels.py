"""
Discovery from labels of nodes: one HyperNode for each value of each label.

    node labels   rack=r1 block=b1 │ rack=r2 block=b1 │ rack=r3
    tier 1        r1 {node}          r2 {node}          r3 {node}
    tier 2        b1 {r1, r2}                           (r3 is in no block)

A node is in the tiers from the lowest up to the first label that it lacks. Types that name the
same label share its HyperNodes; the first of them gives the name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from pumice.core.hypernodes.configuration import Topology
from pumice.core.hypernodes.types import Found, Id

_UNFIT = re.compile(r"[^a-z0-9.-]")


def discover(topologies: Sequence[Topology], nodes: Mapping[str, Mapping[str, str]]) -> list[Found]:
    """Return what the labels of the nodes, by name, say; lower tiers first."""
    heads: dict[Id, tuple[Topology, int]] = {}
    members: dict[Id, set[str]] = {}
    below: dict[Id, set[Id]] = {}
    for topology in topologies:
        for name in sorted(nodes):
            lower: Id | None = None
            for tier, key in enumerate(topology.labels, start=1):
                value = nodes[name].get(key)
                if not value:
                    break
                here = (key, value)
                heads.setdefault(here, (topology, tier))
                if lower is None:
                    members.setdefault(here, set()).add(name)
                else:
                    below.setdefault(here, set()).add(lower)
                lower = here
    found = [
        _found(here, topology, tier, members.get(here, set()), _lower(heads, tier, below.get(here)))
        for here, (topology, tier) in heads.items()
    ]
    return sorted(found, key=lambda one: (one.tier, one.id))


def relevant(topologies: Sequence[Topology], labels: Mapping[str, str]) -> dict[str, str]:
    """Return those labels of a node that matter."""
    keys = {key for topology in topologies for key in topology.labels}
    return {key: labels[key] for key in keys & labels.keys()}


def _lower(
    heads: Mapping[Id, tuple[Topology, int]], tier: int, ids: Collection[Id] | None
) -> frozenset[Id]:
    """Return those that are of a lower tier: types that disagree must not make a circle."""
    return frozenset(id_ for id_ in ids or () if heads[id_][1] < tier)


def _found(
    here: Id, topology: Topology, tier: int, nodes: Collection[str], below: frozenset[Id]
) -> Found:
    key, value = here
    kind = _UNFIT.sub("-", topology.name.lower())
    return Found(
        id=here,
        prefix=f"hypernode-{kind}-tier{tier}",
        tier=tier,
        tier_name=key,
        labels={key: value},
        nodes=frozenset(nodes) if tier == 1 else frozenset(),
        below=below,
    )
