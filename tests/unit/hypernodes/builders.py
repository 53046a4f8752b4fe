"""HyperNodes in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pumice.core import names
from pumice.core.api.meta import LabelSelector, ObjectMeta
from pumice.core.api.topology import (
    Condition,
    ExactMatch,
    HyperNode,
    HyperNodeSpec,
    HyperNodeStatus,
    Member,
    MemberSelector,
    RegexMatch,
)
from pumice.core.hypernodes.configuration import Topology


def node(name: str) -> Member:
    return Member(type="Node", selector=MemberSelector(exact_match=ExactMatch(name=name)))


def below(name: str) -> Member:
    return Member(type="HyperNode", selector=MemberSelector(exact_match=ExactMatch(name=name)))


def named_like(pattern: str) -> Member:
    return Member(type="Node", selector=MemberSelector(regex_match=RegexMatch(pattern=pattern)))


def labelled(**labels: str) -> Member:
    wanted = LabelSelector(match_labels=labels or None)
    return Member(type="Node", selector=MemberSelector(label_match=wanted))


def a_hypernode(
    name: str,
    *members: Member,
    tier: int = 1,
    tier_name: str = "",
    source: str | None = None,
    labels: Mapping[str, str] | None = None,
    node_count: int = 0,
    conditions: Sequence[Condition] = (),
    deleted: str | None = None,
) -> HyperNode:
    marks = {**(labels or {}), **({names.TOPOLOGY_SOURCE: source} if source else {})}
    return HyperNode(
        metadata=ObjectMeta(
            name=name,
            uid=f"uid-{name}",
            resource_version="7",
            generation=1,
            labels=marks or None,
            deletion_timestamp=deleted,
        ),
        spec=HyperNodeSpec(tier=tier, tier_name=tier_name, members=list(members)),
        status=HyperNodeStatus(node_count=node_count, conditions=list(conditions) or None),
    )


def a_topology(name: str, *labels: str) -> Topology:
    """Return a topology of these labels, those of the lowest tier first."""
    return Topology(name, labels)
