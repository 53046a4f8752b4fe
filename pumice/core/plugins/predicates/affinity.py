"""
Required affinity and anti-affinity between pods (kube-scheduler's InterPodAffinity).

Three rules, in this order, a node being refused for the first that it breaks:

* affinity: for every term, pods that all of the pod's terms mean are in the node's domain. The
  first pod of a series that has affinity to itself may go to any node that has the topology
  labels: when no pod anywhere is meant, and the pod is meant by its own terms.
* anti-affinity: no pod that a term means is in the node's domain.
* the anti-affinity of the pods that are there: none of their terms means this pod.
"""

from __future__ import annotations

from pumice.core.extension import Code, Refusal
from pumice.core.model.peers import Peers
from pumice.core.model.signatures import Signature
from pumice.core.plugins.predicates.masks import all_of, any_of
from pumice.core.resources import Bools

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"


def refuse_by_affinity(signature: Signature, peers: Peers) -> list[Refusal]:
    """Refuse the nodes that break a rule; usually there is none to break."""
    rules = []
    if signature.affinity:
        rules.append((Code.UNRESOLVABLE, AFFINITY, ~_near(signature, peers)))
    if signature.anti_affinity:
        rules.append((Code.UNSCHEDULABLE, ANTI_AFFINITY, _too_near(signature, peers)))
    if tallies := peers.repelling_pod(signature.presence):
        repelled = any_of(tally.at_nodes() > 0 for tally in tallies)
        rules.append((Code.UNSCHEDULABLE, EXISTING_ANTI_AFFINITY, repelled))
    refusals: list[Refusal] = []
    left = peers.columns.all()
    for code, message, broken in rules:
        refusals.append(Refusal(code, message, broken & left))
        left &= ~broken
    return refusals


def _near(signature: Signature, peers: Peers) -> Bools:
    terms = signature.affinity
    tallies = [peers.matching(terms, term.topology_key) for term in terms]
    if all(tally.empty for tally in tallies) and _means_itself(signature):
        columns = peers.columns
        return all_of(columns.label(t.topology_key).present for t in terms)
    return all_of(tally.at_nodes() > 0 for tally in tallies)


def _means_itself(signature: Signature) -> bool:
    return all(signature.presence.matched_by(term) for term in signature.affinity)


def _too_near(signature: Signature, peers: Peers) -> Bools:
    tallies = [peers.matching((t,), t.topology_key) for t in signature.anti_affinity]
    return any_of(tally.at_nodes() > 0 for tally in tallies)
