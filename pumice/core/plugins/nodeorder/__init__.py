"""
nodeorder: which of the nodes that take a pod is best.

The scores are kube-scheduler's of 1.36, 0..100 and whole numbers each. `load` holds those of a
node's load, `ranking` those that compare nodes and that of images; `plugin` weighs and adds them.
"""

from pumice.core.plugins.nodeorder.plugin import NAME, NodeOrder

__all__ = ["NAME", "NodeOrder"]
