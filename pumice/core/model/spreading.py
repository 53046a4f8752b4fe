"""
Spreading: the pods that a topology spread constraint counts, by domain.

A constraint counts the pods that its selector means, in the namespace of the pod that has it;
pods on their way out don't count, and an empty selector counts none. Only eligible nodes make
domains and lend their pods to the count: those that have the topology keys of all constraints
of the same kind, that the pod's node selector and affinity allow (unless the constraint ignores
them), and whose taints the pod tolerates (if the constraint asks).
"""

from __future__ import annotations

from collections.abc import Iterable

from pumice.core.model.columns import Columns
from pumice.core.model.peers import Peers, Tally, Weigh
from pumice.core.model.signatures import Presence, Selection, Signature, Spread
from pumice.core.resources import Bools


def eligible(
    columns: Columns, constraint: Spread, selection: Selection, topology_keys: Iterable[str]
) -> Bools:
    """Return the nodes that make domains for the constraint, and whose pods count."""
    nodes = columns.all()
    for key in topology_keys:
        nodes &= columns.label(key).present
    if constraint.honor_affinity and not selection.choice.anywhere:
        nodes &= columns.chosen(selection.choice)
    if constraint.honor_taints:
        nodes &= ~columns.untolerated(selection.tolerations)
    return nodes


def spread_tally(
    peers: Peers, constraint: Spread, signature: Signature, topology_keys: frozenset[str]
) -> Tally:
    """Return the tally of a constraint of `signature`; `topology_keys` as in `eligible`."""
    selective = constraint.honor_affinity or constraint.honor_taints
    selection = signature.selection if selective else None
    key = ("spread", signature.namespace, constraint, topology_keys, selection)

    def nodes() -> Bools:
        return eligible(peers.columns, constraint, signature.selection, topology_keys)

    column = peers.columns.label(constraint.topology_key)
    weigh = _weigher(signature.namespace, constraint)
    return peers.tally(key, weigh, column, within=nodes, staying_only=True)


def node_tally(peers: Peers, constraint: Spread, signature: Signature) -> Tally:
    """Return the tally of the same pods node by node, whichever nodes are eligible."""
    key = ("spread on node", signature.namespace, constraint.selector)
    weigh = _weigher(signature.namespace, constraint)
    return peers.tally(key, weigh, peers.columns.names, staying_only=True)


def _weigher(namespace: str, constraint: Spread) -> Weigh:
    """Return the weight of a pod in the constraint's count."""
    selector = constraint.selector

    def weigh(presence: Presence) -> int:
        meant = presence.namespace == namespace and not selector.everything
        return int(meant and selector.matches(presence.labels))

    return weigh
