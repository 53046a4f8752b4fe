"""HyperNodes."""

from __future__ import annotations

from typing import Any

from pumice.core import names
from tests.unit.admission.rows.row import Object, Row, an_object


def a_hypernode(*selectors: Object) -> Object:
    """Return a HyperNode of tier 1 with one member for each selector."""
    members = [{"type": "Node", "selector": selector} for selector in selectors]
    return an_object(names.TOPOLOGY_API, "HyperNode", {"tier": 1, "members": members})


def exact(name: str) -> Object:
    return {"exactMatch": {"name": name}}


def regex(pattern: str) -> Object:
    return {"regexMatch": {"pattern": pattern}}


def labels(**wanted: Any) -> Object:
    return {"labelMatch": {"matchLabels": wanted}}


NO_MEMBERS = an_object(names.TOPOLOGY_API, "HyperNode", {"tier": 1})

ROWS = {
    "one node by its name": Row(a_hypernode(exact("node-0"))),
    "nodes by an expression": Row(a_hypernode(regex("^node-[0-9]+$"))),
    "nodes by their labels": Row(a_hypernode(labels(rack="r1"))),
    "an empty name": Row(
        a_hypernode(exact("")),
        ("spec.members[0].selector.exactMatch.name", "should be at least 1 chars long"),
    ),
    "an empty expression": Row(
        a_hypernode(regex("")),
        ("spec.members[0].selector.regexMatch.pattern", "should be at least 1 chars long"),
    ),
    "an expression with a bracket that stays open": Row(
        a_hypernode(regex("node-[0-9")),
        ("missing closing ]", "member regexMatch pattern is invalid"),
    ),
    "an expression that looks back": Row(
        a_hypernode(regex(r"(a)\1")), ("member regexMatch pattern is invalid",)
    ),
    "no members": Row(NO_MEMBERS, ("member must have at least one member",)),
    "an empty list of members": Row(a_hypernode(), ("members",)),
    "a name that no node has": Row(
        a_hypernode(exact("Node_0")),
        ("spec.members[0].selector.exactMatch.name", "should match"),
    ),
    "a member that is selected in no way": Row(
        a_hypernode({}), ("Either ExactMatch or RegexMatch or LabelMatch must be specified",)
    ),
    "a member that is selected in two ways": Row(
        a_hypernode({**exact("node-0"), **regex("node")}),
        ("Only one of ExactMatch, RegexMatch, or LabelMatch can be specified",),
    ),
    "other members": Row(
        a_hypernode(exact("node-0")), change=a_hypernode(exact("node-0"), regex("node-1.*"))
    ),
    "members that are all taken away": Row(
        a_hypernode(exact("node-0")),
        ("member must have at least one member",),
        change=NO_MEMBERS,
    ),
    "an empty list in place of its members": Row(
        a_hypernode(exact("node-0")), ("members",), change=a_hypernode()
    ),
}
