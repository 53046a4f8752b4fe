"""
deviceshare: pods get parts of cards.

`states` looks ahead for identical pods, one after the other on the cards of a node, once for all
nodes whose cards are alike; `cards` is the session's own copy of the table of devices, and `plugin`
asks both: how many of a class a node takes, what it scores, and which cards a pod that is placed
there gets.
"""

from pumice.core.plugins.deviceshare.plugin import NAME, DeviceShare

__all__ = ["NAME", "DeviceShare"]
