"""
API objects as JSON → facts; fields that no rule looks at are skipped while decoding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Literal

import msgspec

from tests.auditor.facts import Gang, Node, Object, Pod, Requirement, SubGroups
from tests.auditor.requests import PodResources, amounts, pod_requests

GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
ROLE_KEY = "volcano.sh/task-spec"
NODE_NAME_FIELD = "metadata.name"


class Wire(msgspec.Struct, rename="camel"):
    """A decoded object: camelCase names, unknown fields ignored."""


class Meta(Wire):
    """ObjectMeta."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = "0"
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []


class Expression(Wire):
    """A requirement of a label or node selector."""

    key: str
    operator: str
    values: list[str] = []


class Term(Wire):
    """A term of required node affinity."""

    match_fields: list[Expression] = []


class NodeSelector(Wire):
    """Required node affinity."""

    node_selector_terms: list[Term] = []


class NodeAffinity(Wire):
    """The required half of node affinity."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class Affinity(Wire):
    """Affinity, as far as a pin goes."""

    node_affinity: NodeAffinity | None = None


class Gate(Wire):
    """A scheduling gate."""

    name: str


class PodSpec(PodResources, rename="camel"):
    """Spec of a pod."""

    scheduler_name: str = ""
    node_name: str = ""
    scheduling_gates: list[Gate] = msgspec.field(default_factory=list)
    affinity: Affinity | None = None


class PodStatus(Wire):
    """Status of a pod."""

    phase: str = "Pending"


class PodWire(Wire):
    """A pod."""

    metadata: Meta
    spec: PodSpec
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class NodeStatus(Wire):
    """Status of a node."""

    allocatable: dict[str, str | int | float] = {}


class NodeWire(Wire):
    """A node."""

    metadata: Meta
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class LabelSelector(Wire):
    """A label selector."""

    match_labels: dict[str, str] = {}
    match_expressions: list[Expression] = []


class SubGroupPolicy(Wire):
    """A PodGroup's policy on sub-groups."""

    name: str = ""
    sub_group_size: int | None = None
    min_sub_groups: int | None = None
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] = []


class GroupSpec(Wire):
    """Spec of a PodGroup."""

    min_member: int = 0
    min_task_member: dict[str, int] = {}
    sub_group_policy: list[SubGroupPolicy] = []


class GroupWire(Wire):
    """A PodGroup."""

    metadata: Meta
    spec: GroupSpec = msgspec.field(default_factory=GroupSpec)


class EventWire(Wire):
    """A line of a watch stream."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: msgspec.Raw


class ListMeta(Wire):
    """Metadata of a list."""

    resource_version: str = "0"
    continue_: str = msgspec.field(default="", name="continue")


class ListWire(Wire):
    """A list, its items still undecoded."""

    metadata: ListMeta
    items: list[msgspec.Raw] = []


class BookmarkWire(Wire):
    """What of a bookmark or an error matters: how far the watch is, or the code."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    code: int = 0


@dataclass(frozen=True, slots=True)
class Kind(Generic[Object]):
    """A resource that the auditor watches and how one of its objects becomes a fact."""

    name: str
    path: str
    decode: Callable[[bytes | msgspec.Raw], tuple[Object, int]]


def pod(raw: bytes | msgspec.Raw) -> tuple[Pod, int]:
    """Return the pod and its resourceVersion."""
    wire = _POD.decode(raw)
    meta, spec = wire.metadata, wire.spec
    fact = Pod(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        scheduler=spec.scheduler_name,
        group=meta.annotations.get(GROUP_ANNOTATION, ""),
        role=meta.annotations.get(ROLE_KEY) or meta.labels.get(ROLE_KEY, ""),
        labels=meta.labels,
        deleting=meta.deletion_timestamp is not None,
        node=spec.node_name,
        phase=wire.status.phase,
        requests=pod_requests(spec),
        gates=tuple(gate.name for gate in spec.scheduling_gates),
        pin=_pin(spec.affinity),
    )
    return fact, int(meta.resource_version)


def node(raw: bytes | msgspec.Raw) -> tuple[Node, int]:
    """Return the node and its resourceVersion."""
    wire = _NODE.decode(raw)
    fact = Node(wire.metadata.uid, wire.metadata.name, amounts(wire.status.allocatable))
    return fact, int(wire.metadata.resource_version)


def gang(raw: bytes | msgspec.Raw) -> tuple[Gang, int]:
    """Return the PodGroup and its resourceVersion."""
    wire = _GROUP.decode(raw)
    meta, spec = wire.metadata, wire.spec
    fact = Gang(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        minimum=spec.min_member,
        roles=spec.min_task_member,
        sub_groups=tuple(_sub_groups(policy) for policy in spec.sub_group_policy),
    )
    return fact, int(meta.resource_version)


PODS = Kind("pods", "/api/v1/pods", pod)
NODES = Kind("nodes", "/api/v1/nodes", node)
GANGS = Kind("podgroups", "/apis/scheduling.volcano.sh/v1beta1/podgroups", gang)


def _pin(affinity: Affinity | None) -> str:
    """Return the one node that every term of required node affinity names, or nothing."""
    required = affinity and affinity.node_affinity
    selector = required and required.required_during_scheduling_ignored_during_execution
    if not selector:
        return ""
    named = {_named_node(term) for term in selector.node_selector_terms}
    return named.pop() if len(named) == 1 else ""


def _named_node(term: Term) -> str:
    for field in term.match_fields:
        if (field.key, field.operator, len(field.values)) == (NODE_NAME_FIELD, "In", 1):
            return field.values[0]
    return ""


def _sub_groups(policy: SubGroupPolicy) -> SubGroups:
    selector = policy.label_selector or LabelSelector()
    equal = [Requirement(k, "In", frozenset({v})) for k, v in selector.match_labels.items()]
    others = [_requirement(expression) for expression in selector.match_expressions]
    return SubGroups(
        name=policy.name,
        size=1 if policy.sub_group_size is None else policy.sub_group_size,
        least=policy.min_sub_groups or 0,
        selector=(*equal, *others),
        split_by=tuple(policy.match_label_keys),
    )


def _requirement(wire: Expression) -> Requirement:
    match wire.operator:
        case "In" | "NotIn" | "Exists" | "DoesNotExist":
            return Requirement(wire.key, wire.operator, frozenset(wire.values))
        case other:
            raise ValueError(f"unknown operator in a label selector: {other!r}")


_POD = msgspec.json.Decoder(PodWire)
_NODE = msgspec.json.Decoder(NodeWire)
_GROUP = msgspec.json.Decoder(GroupWire)
EVENT = msgspec.json.Decoder(EventWire)
LIST = msgspec.json.Decoder(ListWire)
BOOKMARK = msgspec.json.Decoder(BookmarkWire)
