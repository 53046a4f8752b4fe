"""
Discovery from the ports that a Unified Fabric Manager lists.

Ports of computers tell which node hangs on which leaf switch. Leaves that share a node form one
group, transitively: a HyperNode of tier 1. All of them together are the one of tier 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from pumice.core.hypernodes.types import Found

COMPUTER: Final = "Computer"


class UfmError(ValueError):
    """The answer is not a list of ports."""


class Port(msgspec.Struct):
    """What is read of a port."""

    description: str = ""
    #: the node
    system_name: str = ""
    #: the leaf that it hangs on
    peer_node_name: str = ""


_ports = msgspec.json.Decoder(list[Port]).decode


def discover(body: bytes) -> list[Found]:
    """Return what the answer says, lower tiers first; raise UfmError where it says nothing."""
    try:
        ports = _ports(body)
    except msgspec.DecodeError as error:
        raise UfmError(f"not a list of ports: {error}") from error
    groups = _groups(
        (port.peer_node_name, port.system_name)
        for port in ports
        if COMPUTER in port.description and port.peer_node_name and port.system_name
    )
    leaves = [
        Found(("leaf", str(i)), f"leaf-hn-{i}", tier=1, nodes=nodes, is_named=True)
        for i, nodes in enumerate(groups)
    ]
    if not leaves:
        return []
    below = frozenset(leaf.id for leaf in leaves)
    return [*leaves, Found(("spine",), "spine-hn", tier=2, below=below, is_named=True)]


def _groups(links: Iterable[tuple[str, str]]) -> list[frozenset[str]]:
    """Return the nodes of each group of leaves, in the order of each group's first leaf."""
    nodes_of: dict[str, set[str]] = {}
    leaves_of: dict[str, set[str]] = {}
    for leaf, node in links:
        nodes_of.setdefault(leaf, set()).add(node)
        leaves_of.setdefault(node, set()).add(leaf)
    groups = []
    seen: set[str] = set()
    for first in sorted(nodes_of):
        if first in seen:
            continue
        seen.add(first)
        reached, nodes = [first], set[str]()
        for leaf in reached:  # grows meanwhile
            nodes |= nodes_of[leaf]
            fresh = {other for node in nodes_of[leaf] for other in leaves_of[node]} - seen
            seen |= fresh
            reached += sorted(fresh)
        groups.append(frozenset(nodes))
    return groups
