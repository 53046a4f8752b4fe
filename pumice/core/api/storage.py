"""
The parts of Kubernetes' storage kinds that decide where a pod's volumes can be.

Core: PersistentVolumeClaim and PersistentVolume. Of storage.k8s.io: StorageClass, CSINode,
CSIDriver and CSIStorageCapacity.
"""

from __future__ import annotations

import msgspec

from pumice.core.api.core import NodeSelector, ResourceList
from pumice.core.api.meta import LabelSelector, ObjectMeta, Quantity, Struct


class VolumeResources(Struct):
    """How much storage is asked for, under the name `storage`."""

    requests: ResourceList | None = None


class PersistentVolumeClaimSpec(Struct):
    """What is asked of a volume, and which one it is."""

    access_modes: list[str] | None = None
    selector: LabelSelector | None = None
    resources: VolumeResources = msgspec.field(default_factory=VolumeResources)
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(Struct):
    """Pending, Bound or Lost."""

    phase: str = ""


class PersistentVolumeClaim(Struct):
    """A claim."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PersistentVolumeClaimSpec = msgspec.field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = msgspec.field(default_factory=PersistentVolumeClaimStatus)


class ClaimReference(Struct):
    """The claim that a volume belongs to, or is kept for while there is no uid."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class CSISource(Struct):
    """What a volume is to its driver."""

    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Struct):
    """The nodes from which a volume can be reached; all of them where nothing is said."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Struct):
    """What a volume is, where, and whose."""

    capacity: ResourceList | None = None
    access_modes: list[str] | None = None
    claim_ref: ClaimReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSISource | None = None


class PersistentVolumeStatus(Struct):
    """Pending, Available, Bound, Released or Failed."""

    phase: str = ""


class PersistentVolume(Struct):
    """A volume."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PersistentVolumeSpec = msgspec.field(default_factory=PersistentVolumeSpec)
    status: PersistentVolumeStatus = msgspec.field(default_factory=PersistentVolumeStatus)


class TopologyLabel(Struct):
    """A label that nodes must have, with one of some values."""

    key: str = ""
    values: list[str] | None = None


class TopologySelectorTerm(Struct):
    """A conjunction of labels."""

    match_label_expressions: list[TopologyLabel] | None = None


class StorageClass(Struct):
    """A kind of storage: who makes volumes of it, when, and for which nodes."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] | None = None


class VolumeLimit(Struct):
    """How many volumes of a driver a node takes; unlimited where there is no count."""

    count: int | None = None


class CSINodeDriver(Struct):
    """A driver on a node."""

    name: str = ""
    allocatable: VolumeLimit | None = None


class CSINodeSpec(Struct):
    """The drivers on a node."""

    drivers: list[CSINodeDriver] | None = None


class CSINode(Struct):
    """What the CSI drivers on the node of the same name say of it."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: CSINodeSpec = msgspec.field(default_factory=CSINodeSpec)


class CSIDriverSpec(Struct):
    """Whether the driver tells how much storage is left where."""

    storage_capacity: bool | None = None


class CSIDriver(Struct):
    """A CSI driver."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: CSIDriverSpec = msgspec.field(default_factory=CSIDriverSpec)


class CSIStorageCapacity(Struct):
    """How much storage of a class is left for the nodes that a selector over labels means."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None
