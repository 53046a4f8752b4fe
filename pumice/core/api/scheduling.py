"""PodGroup and Queue of scheduling.volcano.sh/v1beta1."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from pumice.core.api.core import ResourceList
from pumice.core.api.meta import LabelSelector, NonNegative, ObjectMeta, Positive, Struct, Time

DnsName = Annotated[
    str,
    Meta(
        max_length=253,
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$",
    ),
]
Name = Annotated[str, Meta(max_length=253)]
Resources = Annotated[ResourceList, Meta(max_length=128)]
PodGroupPhase = Literal["", "Pending", "Running", "Unknown", "Inqueue", "Completed"]
QueueState = Literal["", "Open", "Closed", "Closing", "Unknown"]


class NetworkTopology(Struct):
    """How far the pods of a group may be apart, in tiers of HyperNodes."""

    #: hard is a constraint, soft a preference.
    mode: Literal["hard", "soft"] = "hard"
    #: The highest tier that the pods may span.
    highest_tier_allowed: NonNegative | None = None
    #: The same by the tier's name; not together with the number.
    highest_tier_name: Name = ""


class SubGroupPolicy(Struct):
    """How the pods of a group form sub-groups."""

    name: Name = ""
    network_topology: NetworkTopology | None = None
    #: Pods of one sub-group.
    sub_group_size: Positive | None = 1
    #: How many sub-groups must run together.
    min_sub_groups: Annotated[int, Meta(ge=0, extra_json_schema={"default": 0})] | None = 0
    #: Which pods the policy is for; the first policy that matches counts.
    label_selector: LabelSelector | None = None
    #: Pods with the same values of these labels form one sub-group.
    match_label_keys: list[str] | None = None


class PodGroupSpec(Struct):
    """The minimum that must run together, and where it is charged."""

    #: How many pods must run together.
    min_member: NonNegative = 0
    #: How many pods of each task must run together.
    min_task_member: dict[str, int] | None = None
    queue: DnsName = "default"
    priority_class_name: Name = ""
    #: What must be free before the group may enter; nothing is asked where absent.
    min_resources: ResourceList | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: list[SubGroupPolicy] | None = None


class PodGroupCondition(Struct):
    """A condition of a group; one entry for each type."""

    type: Literal["Unschedulable", "Scheduled"]
    status: str = ""
    transition_id: str = msgspec.field(default="", name="transitionID")
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class PodGroupStatus(Struct):
    """The phase and counts of a group; written by the extender alone."""

    phase: PodGroupPhase = ""
    conditions: list[PodGroupCondition] | None = None
    running: NonNegative = 0
    succeeded: NonNegative = 0
    failed: NonNegative = 0


class PodGroup(Struct):
    """A group of pods. It has no status subresource: status is written with the object."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)
    status: PodGroupStatus = msgspec.field(default_factory=PodGroupStatus)


class Guarantee(Struct):
    """Resources kept for a queue."""

    resource: Resources | None = None


class ExtendCluster(Struct):
    """Another cluster that a queue may use."""

    name: str = ""
    weight: int = 0
    capacity: Resources | None = None


class NodeGroupRules(Struct):
    """Node groups that must, or should, be used or avoided."""

    required: list[str] | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[str] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class QueueAffinity(Struct):
    """Which node groups a queue's pods go to."""

    node_group_affinity: NodeGroupRules | None = None
    node_group_anti_affinity: NodeGroupRules | None = None


class QueueSpec(Struct):
    """The share and the limits of a queue."""

    #: The share of the cluster, relative to the other queues.
    weight: Annotated[int, Meta(ge=1, le=65535)] = 1
    #: What the queue may never exceed.
    capability: Resources | None = None
    #: Whether other queues may take back what the queue holds beyond its share.
    reclaimable: bool | None = None
    extend_clusters: list[ExtendCluster] | None = None
    #: What is kept for the queue even while it does not use it; part of `deserved`.
    guarantee: Guarantee | None = None
    affinity: QueueAffinity | None = None
    #: Accepted, and read by nothing, as in Volcano.
    type: Name = ""
    #: The queue above this one; `root` where absent.
    parent: DnsName = ""
    #: What the queue may hold without having to give it back.
    deserved: Resources | None = None
    #: Queues of higher priority go first.
    priority: NonNegative = 0
    #: fifo stops at the first job that does not fit, traverse goes on to the next.
    dequeue_strategy: Literal["fifo", "traverse"] = "traverse"


class Reservation(Struct):
    """Nodes held for a queue; accepted and never written, as in Volcano."""

    nodes: list[str] | None = None
    resource: Resources | None = None


class QueueStatus(Struct):
    """State (queue controller), counts (queue controller) and allocated (extender) of a queue."""

    state: QueueState = ""
    unknown: NonNegative = 0
    pending: NonNegative = 0
    running: NonNegative = 0
    inqueue: NonNegative = 0
    completed: NonNegative = 0
    reservation: Reservation | None = None
    allocated: Resources | None = None


class Queue(Struct):
    """A share of the cluster."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: QueueSpec = msgspec.field(default_factory=QueueSpec)
    status: QueueStatus = msgspec.field(default_factory=QueueStatus)
