"""
capacity: queues share the cluster by amounts, flat or as a tree.

A queue may take up to its *capability*, keeps its *guarantee* even while it does not use it, and
takes back from others what it lacks of what it *deserves*. `attributes` works these out, for
queues side by side or in a tree; `reclaiming` says who must give; `plugin` puts it together.
"""

from pumice.core.plugins.capacity.plugin import NAME, Capacity

__all__ = ["NAME", "Capacity"]
