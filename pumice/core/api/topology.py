"""The HyperNode of topology.volcano.sh/v1alpha1: nodes that are close to each other."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from pumice.core.api.meta import LabelSelector, NonNegative, ObjectMeta, Struct, Time
from pumice.core.api.scheduling import Name

MemberName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=253,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    ),
]


class ExactMatch(Struct):
    """One member."""

    name: MemberName


class RegexMatch(Struct):
    """The members whose names an expression is found in."""

    #: RE2 syntax, not anchored.
    pattern: Annotated[str, Meta(min_length=1, max_length=1024)]


class MemberSelector(Struct):
    """Who the members are, in one of three ways."""

    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    #: Only for members of type Node; an empty one selects nothing.
    label_match: LabelSelector | None = None


class Member(Struct):
    """Some nodes, or HyperNodes of the tier below."""

    type: Literal["Node", "HyperNode"]
    selector: MemberSelector = msgspec.field(default_factory=MemberSelector)


class HyperNodeSpec(Struct):
    """A set of nodes, and how close they are."""

    #: The lower, the closer.
    tier: NonNegative
    tier_name: Name = ""
    members: Annotated[list[Member], Meta(min_length=1, max_length=8192)] | None = None


class Condition(Struct):
    """A condition as Kubernetes has them."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None
    observed_generation: int = 0


class HyperNodeStatus(Struct):
    """What is; written by the HyperNode controller alone."""

    conditions: list[Condition] | None = None
    #: How many nodes are in it.
    node_count: Annotated[int, Meta(ge=0, extra_json_schema={"format": "int64"})] = 0


class HyperNode(Struct):
    """Nodes, or HyperNodes, behind one switch, rack or block."""

    spec: HyperNodeSpec
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    status: HyperNodeStatus = msgspec.field(default_factory=HyperNodeStatus)
