"""The status of a HyperNode: how many nodes, and which members are missing."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from pumice.core.api.topology import Condition, HyperNode, HyperNodeStatus
from pumice.core.hypernodes.status import reconcile
from pumice.core.hypernodes.types import PatchStatus
from tests.unit.hypernodes.builders import a_hypernode, below, labelled, named_like, node

NOW = "2026-01-01T00:00:00Z"
EARLIER = "2025-01-01T00:00:00Z"
NODES = {"n0": {"gpu": "a"}, "n1": {"gpu": "a"}, "m0": {}}


@dataclass(frozen=True)
class Case:
    hypernode: HyperNode
    count: int
    message: str
    reason: str = "AllFound"
    others: list[HyperNode] = field(default_factory=list)


CASES = {
    "nodes by their names": Case(
        a_hypernode("h", node("n0"), node("n1"), node("n0")), 2, "2 nodes"
    ),
    "a name counts though there is no such node": Case(
        a_hypernode("h", node("n0"), node("n9")), 2, "1 node; not found: Node n9", "NotFound"
    ),
    "nodes by an expression, which need not match from the start": Case(
        a_hypernode("h", named_like("0$")), 2, "2 nodes"
    ),
    "nodes by their labels": Case(a_hypernode("h", labelled(gpu="a")), 2, "2 nodes"),
    "an empty selector selects nothing": Case(a_hypernode("h", labelled()), 0, "0 nodes"),
    "the members of several kinds are one set": Case(
        a_hypernode("h", node("n0"), named_like("^n"), labelled(gpu="a")), 2, "2 nodes"
    ),
    "HyperNodes count by name; the nodes below them stand in the condition": Case(
        a_hypernode("top", below("a"), below("b"), tier=2),
        2,
        "3 nodes",
        others=[a_hypernode("a", node("n0"), node("n1")), a_hypernode("b", node("m0"))],
    ),
    "a HyperNode that is not there": Case(
        a_hypernode("top", below("a"), tier=2),
        1,
        "0 nodes; not found: HyperNode a",
        "NotFound",
    ),
    "of many that are not there the first are named": Case(
        a_hypernode("h", *(node(f"x{i}") for i in range(5))),
        5,
        "0 nodes; not found: Node x0, Node x1, Node x2 and 2 more",
        "NotFound",
    ),
    "an expression that is none selects nothing": Case(
        a_hypernode("h", node("n0"), named_like("(")),
        1,
        "1 node; error parsing regexp: missing ), unterminated subpattern at position 0",
        "InvalidSelector",
    ),
    "one that contains itself is gone through once": Case(
        a_hypernode("top", below("top"), node("n0"), tier=2),
        2,
        "1 node",
        others=[a_hypernode("top", below("top"), node("n0"), tier=2)],
    ),
}


def condition(message: str, reason: str = "AllFound", since: str = NOW) -> Condition:
    return Condition(
        type="MembersFound",
        status="True" if reason == "AllFound" else "False",
        reason=reason,
        message=message,
        last_transition_time=since,
        observed_generation=1,
    )


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_status(case: Case) -> None:
    others = {h.metadata.name: h for h in case.others}
    found = reconcile(case.hypernode, NODES, others, NOW)

    assert found is not None
    truth = HyperNodeStatus(
        node_count=case.count, conditions=[condition(case.message, case.reason)]
    )
    assert found.status == truth


def test_a_status_that_is_true_is_not_written() -> None:
    true = a_hypernode(
        "h", node("n0"), node_count=1, conditions=[condition("1 node", since=EARLIER)]
    )
    assert reconcile(true, NODES, {}, NOW) is None


def test_the_time_changes_only_when_the_condition_turns_and_others_stay() -> None:
    theirs = Condition(type="Healthy", status="Unknown")
    was = [condition("2 nodes", since=EARLIER), theirs]
    found = reconcile(a_hypernode("h", node("n0"), conditions=was), NODES, {}, NOW)
    assert isinstance(found, PatchStatus)
    assert found.status.conditions == [theirs, condition("1 node", since=EARLIER)]

    turned = reconcile(a_hypernode("h", node("n9"), conditions=was), NODES, {}, NOW)
    assert isinstance(turned, PatchStatus)
    assert turned.status.conditions == [
        theirs,
        condition("0 nodes; not found: Node n9", "NotFound"),
    ]


def test_one_that_is_being_deleted_is_left_alone() -> None:
    assert reconcile(a_hypernode("h", node("n0"), deleted=NOW), NODES, {}, NOW) is None
