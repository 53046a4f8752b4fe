"""Host ports: a node gives each out once (kube-scheduler's NodePorts)."""

from __future__ import annotations

from pumice.core.extension import Code, Refusal
from pumice.core.model.peers import Peers
from pumice.core.model.signatures import Signature
from pumice.core.plugins.predicates.masks import any_of

PORT_TAKEN = "node(s) didn't have free ports for the requested pod ports"


def refuse_ports(signature: Signature, peers: Peers) -> list[Refusal]:
    """Refuse the nodes where a pod holds a port that conflicts with one of the pod's own."""
    ports = signature.presence.ports
    if not ports:
        return []
    taken = any_of(peers.holding(port).at_nodes() > 0 for port in ports)
    return [Refusal(Code.UNSCHEDULABLE, PORT_TAKEN, taken)]
