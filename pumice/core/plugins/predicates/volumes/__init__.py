"""
The filters over claims and volumes, and the score of volumes.

They are kube-scheduler's VolumeBinding, VolumeZone and NodeVolumeLimits, and of its
VolumeRestrictions the access mode ReadWriteOncePod. What a pod's claims come to is read once a
session (`needs`), and pods for which it is the same are treated alike. `binding` says which nodes
reach the volumes, or have some to give (`stock`), or can have some made (`provisioning`); `zones`
compares zones; `usage` counts what is attached and who uses what. `filter` puts them together.

In-tree volumes that CSI drivers have taken over count as volumes without a driver.
"""

from pumice.core.plugins.predicates.volumes.filter import VolumeFilter
from pumice.core.plugins.predicates.volumes.switches import VolumeSwitches

__all__ = ["VolumeFilter", "VolumeSwitches"]
