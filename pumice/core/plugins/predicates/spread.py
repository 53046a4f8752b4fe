"""
Even spreading over domains (kube-scheduler's PodTopologySpread, DoNotSchedule constraints).

A node is refused when one pod more in its domain would leave that domain more than `maxSkew`
above the emptiest one; what is counted, and where, says `pumice.core.model.spreading`. With
fewer domains than `minDomains` the emptiest counts as 0.
"""

from __future__ import annotations

import numpy as np

from pumice.core.extension import Code, Refusal
from pumice.core.model.peers import Peers
from pumice.core.model.signatures import Signature, Spread
from pumice.core.model.spreading import spread_tally
from pumice.core.resources import Bools

SKEWED = "node(s) didn't match pod topology spread constraints"
NO_DOMAIN = "node(s) didn't match pod topology spread constraints (missing required label)"


def refuse_uneven(signature: Signature, peers: Peers) -> list[Refusal]:
    """Refuse nodes for the first constraint that they break."""
    refusals: list[Refusal] = []
    left = peers.columns.all()
    for constraint in signature.spread:
        present = peers.columns.label(constraint.topology_key).present
        skewed = _skewed(constraint, signature, peers)
        refusals.append(Refusal(Code.UNRESOLVABLE, NO_DOMAIN, left & ~present))
        refusals.append(Refusal(Code.UNSCHEDULABLE, SKEWED, left & present & skewed))
        left &= present & ~skewed
    return refusals


def _skewed(constraint: Spread, signature: Signature, peers: Peers) -> Bools:
    topology_keys = frozenset(c.topology_key for c in signature.spread)
    tally = spread_tally(peers, constraint, signature, topology_keys)
    counts = tally.counts[tally.inhabited]
    emptiest = counts.min() if counts.size >= max(constraint.min_domains, 1) else 0
    itself = int(constraint.selector.matches(signature.labels))
    return np.asarray(tally.at_nodes() + itself - emptiest > constraint.max_skew)
