"""
numa-aware: containers get whole cpus that are close to each other.

A node's exporter tells of its cpus and of the kubelet's policies in a Numatopology. `cpus` is the
kubelet's own arithmetic: which sets of NUMA nodes would do for a container, which of them a
policy admits, and which cpus it would get. `plugin` asks it for each node, and remembers who has
got what.
"""

from pumice.core.plugins.numa_aware.plugin import NAME, NumaAware

__all__ = ["NAME", "NumaAware"]
