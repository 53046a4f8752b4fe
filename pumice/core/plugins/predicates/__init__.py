"""
predicates: which nodes may take a pod at all, requests aside.

The filters mirror kube-scheduler's of 1.36 well enough to plan by, down to their texts, in one
module each: `slots`, `nodes` (cordons, node affinity, taints), `ports`, `affinity`, `spread`,
`volumes`. kube-scheduler has the last word. `plugin` puts them together. Resource claims will be a
further module.
"""

from pumice.core.plugins.predicates.plugin import NAME, Predicates

__all__ = ["NAME", "Predicates"]
