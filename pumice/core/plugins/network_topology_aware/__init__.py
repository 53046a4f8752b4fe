"""
network-topology-aware: keep the pods of a job close to each other, and HyperNodes well filled.

It says which HyperNodes to try for a job (`gradients` below), prefers those that the job fills
most, and scores nodes by how near they are to the rest of the job (`scores`).
"""

from pumice.core.plugins.network_topology_aware.plugin import NAME, NetworkTopologyAware

__all__ = ["NAME", "NetworkTopologyAware"]
