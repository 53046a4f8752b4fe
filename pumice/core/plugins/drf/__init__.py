"""
drf: jobs in the order of their dominant shares; with `enableHierarchy` queues, too, as a tree.

`plugin` puts it together, `hierarchy` works out the shares of the tree.
"""

from pumice.core.plugins.drf.plugin import NAME, Drf

__all__ = ["NAME", "Drf"]
