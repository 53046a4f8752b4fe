"""Storage: the claims, the volumes and what else decides where a pod's volumes can be."""

from __future__ import annotations

from dataclasses import dataclass, field

from pumice.core.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)

Stored = (
    PersistentVolumeClaim
    | PersistentVolume
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
)


@dataclass(slots=True)
class Storage:
    """The objects by key: `namespace/name`, or the name alone of a cluster-scoped one."""

    claims: dict[str, PersistentVolumeClaim] = field(default_factory=dict)
    volumes: dict[str, PersistentVolume] = field(default_factory=dict)
    classes: dict[str, StorageClass] = field(default_factory=dict)
    #: by the name of the node
    csi_nodes: dict[str, CSINode] = field(default_factory=dict)
    drivers: dict[str, CSIDriver] = field(default_factory=dict)
    capacities: dict[str, CSIStorageCapacity] = field(default_factory=dict)
    #: claims, volumes or classes cannot be read: that none is known says nothing
    unread: bool = False

    def copy(self) -> Storage:
        """Return storage of its own; the objects themselves are never changed."""
        return Storage(
            dict(self.claims),
            dict(self.volumes),
            dict(self.classes),
            dict(self.csi_nodes),
            dict(self.drivers),
            dict(self.capacities),
            self.unread,
        )
