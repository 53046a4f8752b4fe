"""The Numatopology of nodeinfo.volcano.sh/v1alpha1: the cpus of one node and who has them."""

from __future__ import annotations

import msgspec

from pumice.core.api.meta import NonNegative, ObjectMeta, Struct


class NumaResource(Struct):
    """What a node has of a resource; of cpu, `allocatable` is a set such as `0,2-4`."""

    allocatable: str = ""
    capacity: int = 0


class CpuInfo(Struct):
    """Where a cpu is."""

    numa: NonNegative = 0
    socket: NonNegative = 0
    core: NonNegative = 0


class ContainerAllocation(Struct):
    """What a container has; of cpu a set, of anything else an amount."""

    name: str = ""
    allocations: dict[str, str] | None = None


class PodAllocation(Struct):
    """What a pod has."""

    uid: str = ""
    name: str = ""
    namespace: str = ""
    container_allocations: list[ContainerAllocation] | None = None


class NumatopologySpec(Struct):
    """The state of a node, as its exporter writes it."""

    #: `CPUManagerPolicy` and `TopologyManagerPolicy` of the kubelet.
    policies: dict[str, str] | None = None
    #: What the kubelet keeps for the node itself.
    res_reserved: dict[str, str] | None = None
    numares: dict[str, NumaResource] | None = None
    #: Where each cpu is, by its number.
    cpu_detail: dict[str, CpuInfo] | None = None
    pod_allocations: list[PodAllocation] | None = None


class Numatopology(Struct):
    """The NUMA topology of the node of this name."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: NumatopologySpec = msgspec.field(default_factory=NumatopologySpec)
