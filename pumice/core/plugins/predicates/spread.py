"""
Even spreading over domains (kube-scheduler's PodTopologySpread, DoNotSchedule constraints).

A constraint counts the pods that its selector means, in the pod's namespace, per domain. A node
is refused when one pod more in its domain would leave that domain more than `maxSkew` above the
emptiest one. Only eligible nodes make domains and lend their pods to the count: those that have
the topology keys of all the pod's constraints, that the pod's node selector and affinity allow
(unless the constraint ignores them), and whose taints it tolerates (if the constraint asks).
With fewer domains than `minDomains` the emptiest counts as 0. An empty selector counts no pod.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pumice.core.model.columns import Columns
from pumice.core.model.peers import Peers, Tally, Weigh
from pumice.core.model.signatures import Presence, Selection, Signature, Spread
from pumice.core.plugins.predicates.refusals import UNRESOLVABLE, UNSCHEDULABLE, Refusal
from pumice.core.resources import Bools

SKEWED = "node(s) didn't match pod topology spread constraints"
NO_DOMAIN = "node(s) didn't match pod topology spread constraints (missing required label)"


@dataclass(frozen=True, slots=True)
class Counted:
    """A constraint with its tally."""

    tally: Tally
    #: which domains have an eligible node
    domains: Bools  # (D,)


class SpreadFilter:
    """The filter, with the tallies of the constraints seen so far."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._counted: dict[tuple[object, ...], Counted] = {}

    def __call__(self, signature: Signature) -> list[Refusal]:
        """Refuse nodes for the first constraint that they break."""
        refusals: list[Refusal] = []
        left = self._peers.columns.all()
        for constraint in signature.spread:
            present = self._peers.columns.label(constraint.topology_key).present
            broken = self._skewed(constraint, signature) & present
            refusals.append(Refusal(UNRESOLVABLE, NO_DOMAIN, left & ~present))
            refusals.append(Refusal(UNSCHEDULABLE, SKEWED, left & broken))
            left &= present & ~broken
        return refusals

    def _skewed(self, constraint: Spread, signature: Signature) -> Bools:
        counted = self._count(constraint, signature)
        counts = counted.tally.counts[counted.domains]
        enough = counts.size >= max(constraint.min_domains, 1)
        emptiest = counts.min() if enough else 0
        itself = constraint.selector.matches(signature.labels)
        skew = counted.tally.at_nodes() + int(itself) - emptiest
        return np.asarray(skew > constraint.max_skew)

    def _count(self, constraint: Spread, signature: Signature) -> Counted:
        topology_keys = frozenset(c.topology_key for c in signature.spread)
        selective = constraint.honor_affinity or constraint.honor_taints
        selection = signature.selection if selective else None
        key = (signature.namespace, constraint, topology_keys, selection)
        found = self._counted.get(key)
        if found is None:
            columns = self._peers.columns
            nodes = eligible(columns, constraint, signature.selection, sorted(topology_keys))
            column = columns.label(constraint.topology_key)
            weigh = _weigher(signature.namespace, constraint)
            tally = self._peers.tally(key, weigh, column, within=nodes, staying_only=True)
            domains = np.zeros(len(column.values), bool)
            domains[column.codes[nodes]] = True
            found = self._counted[key] = Counted(tally, domains)
        return found


def eligible(
    columns: Columns, constraint: Spread, selection: Selection, topology_keys: Sequence[str]
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


def _weigher(namespace: str, constraint: Spread) -> Weigh:
    """Return the weight of a pod in the constraint's count."""
    selector = constraint.selector

    def weigh(presence: Presence) -> int:
        meant = presence.namespace == namespace and not selector.everything
        return int(meant and selector.matches(presence.labels))

    return weigh
