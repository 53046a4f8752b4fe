"""The parts of Kubernetes' own kinds that Pumice reads: Pod, Node, PriorityClass."""

from __future__ import annotations

import msgspec

from pumice.core.api.meta import LabelSelector, ObjectMeta, Quantity, Struct, Time

ResourceList = dict[str, Quantity]


class ResourceRequirements(Struct):
    """Requests and limits of a container or of a whole pod."""

    requests: ResourceList | None = None
    limits: ResourceList | None = None


class ContainerPort(Struct):
    """A port of a container; only host ports matter to placement."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class Container(Struct):
    """What placement needs of a container; `restart_policy` Always marks a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements | None = None
    ports: list[ContainerPort] | None = None
    restart_policy: str | None = None


class NodeSelectorRequirement(Struct):
    """One expression over node labels or fields."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class NodeSelectorTerm(Struct):
    """A conjunction of expressions."""

    match_expressions: list[NodeSelectorRequirement] | None = None
    match_fields: list[NodeSelectorRequirement] | None = None


class NodeSelector(Struct):
    """A disjunction of terms."""

    node_selector_terms: list[NodeSelectorTerm] | None = None


class PreferredSchedulingTerm(Struct):
    """A node preference with its weight."""

    weight: int = 0
    preference: NodeSelectorTerm = msgspec.field(default_factory=NodeSelectorTerm)


class NodeAffinity(Struct):
    """Required and preferred node affinity."""

    required: NodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[PreferredSchedulingTerm] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Struct):
    """Pods to be near to, or away from, within a topology domain."""

    label_selector: LabelSelector | None = None
    topology_key: str = ""
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class WeightedPodAffinityTerm(Struct):
    """A preferred pod affinity term with its weight."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = msgspec.field(default_factory=PodAffinityTerm)


class PodAffinity(Struct):
    """Required and preferred pod affinity (or anti-affinity)."""

    required: list[PodAffinityTerm] | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[WeightedPodAffinityTerm] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Struct):
    """All affinity of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Struct):
    """How evenly matching pods spread over the domains of a topology key."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class Toleration(Struct):
    """A taint that the pod tolerates."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class SchedulingGate(Struct):
    """A gate that keeps a pod out of the scheduling queue."""

    name: str = ""


class PersistentVolumeClaimSource(Struct):
    """A volume's claim."""

    claim_name: str = ""


class EphemeralVolumeSource(Struct):
    """A claim that is made for the pod alone; what is in it stands on the claim once it is made."""


class Volume(Struct):
    """A volume; only claims matter to placement."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimSource | None = None
    ephemeral: EphemeralVolumeSource | None = None


class PodSpec(Struct):
    """What placement and the controllers need of a pod's specification."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    resources: ResourceRequirements | None = None
    overhead: ResourceList | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    active_deadline_seconds: int | None = None
    volumes: list[Volume] | None = None
    resource_claims: list[dict[str, object]] | None = None
    host_network: bool | None = None


class PodCondition(Struct):
    """A condition of a pod."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None
    last_probe_time: Time | None = None
    observed_generation: int = 0


class ContainerStateTerminated(Struct):
    """How a container ended."""

    exit_code: int = 0
    reason: str = ""


class ContainerState(Struct):
    """The state of a container; at most one is set."""

    terminated: ContainerStateTerminated | None = None
    running: dict[str, object] | None = None


class ContainerStatus(Struct):
    """The status of a container."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState | None = None
    allocated_resources: ResourceList | None = None
    resources: ResourceRequirements | None = None


class PodStatus(Struct):
    """The status of a pod; `phase` empty means Pending."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    nominated_node_name: str = ""
    start_time: Time | None = None
    conditions: list[PodCondition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class Pod(Struct):
    """A pod."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class Taint(Struct):
    """A taint of a node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Struct):
    """What placement needs of a node's specification."""

    unschedulable: bool = False
    taints: list[Taint] | None = None


class ContainerImage(Struct):
    """An image that a node holds."""

    names: list[str] | None = None
    size_bytes: int = 0


class NodeStatus(Struct):
    """Capacity, allocatable and images of a node."""

    capacity: ResourceList | None = None
    allocatable: ResourceList | None = None
    images: list[ContainerImage] | None = None


class Node(Struct):
    """A node."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class PriorityClass(Struct):
    """A priority class of scheduling.k8s.io/v1."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None
