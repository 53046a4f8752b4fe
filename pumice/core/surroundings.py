"""
Surroundings: what is on nodes already, for the waves of a gang.

Made of pods that kube-scheduler has seen on their nodes; what is planned and not yet there would
make a gang trust in pods that kube-scheduler knows nothing of.
"""

from __future__ import annotations

from collections.abc import Mapping

from pumice.core.model.columns import Columns
from pumice.core.model.peers import Peers
from pumice.core.model.population import Headcount
from pumice.core.model.signatures import PodTerm, Signature, Spread
from pumice.core.model.spreading import spread_tally


class Surroundings:
    """Answers `pumice.core.waves.Outside` from the counts of the pods that are there."""

    def __init__(self, columns: Columns, headcount: Headcount) -> None:
        self._peers = Peers(columns, headcount)

    def satisfies(self, terms: tuple[PodTerm, ...], topology_key: str, domain: str) -> bool:
        """Return whether a pod that all the terms mean is in the domain."""
        column = self._peers.columns.label(topology_key)
        if domain not in column.values:
            return False
        tally = self._peers.matching(terms, topology_key)
        return bool(tally.counts[column.values.index(domain)])

    def counts(self, signature: Signature, constraint: Spread) -> Mapping[str, int]:
        """Return how many pods a constraint counts in each of its domains, empty ones too."""
        keys = frozenset(c.topology_key for c in signature.spread)
        tally = spread_tally(self._peers, constraint, signature, keys)
        values = self._peers.columns.label(constraint.topology_key).values
        counted = zip(values, tally.counts.tolist(), tally.inhabited.tolist(), strict=True)
        return {value: count for value, count, inhabited in counted if inhabited}
