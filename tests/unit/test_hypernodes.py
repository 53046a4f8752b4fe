"""HyperNodes: which nodes each holds, how they lie above each other, and what makes no tree."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pumice.core.api.topology import HyperNode, HyperNodeStatus
from pumice.core.model.hypernodes import NOWHERE, TOP, HyperTree
from tests.builders import a_cluster, a_hypernode, a_node, hypernodes

RACKS = {"n1": "a", "n2": "a", "n3": "b", "n4": "b", "n5": ""}
NODES = [a_node(name, labels={"rack": rack} if rack else {}) for name, rack in RACKS.items()]
TREE = hypernodes(s0="1 n1 n2", s1="1 n3 n4", s2="2 @s0 @s1", lone="1")


def tree_of(*made: HyperNode) -> HyperTree:
    return a_cluster(NODES, made).tree


def held(tree: HyperTree, name: str) -> str:
    """Return the nodes of a HyperNode."""
    return " ".join(f"n{i + 1}" for i in tree.columns[tree.index[name]])


def selecting(**selector: Any) -> HyperNode:
    body = {
        "metadata": {"name": "h"},
        "spec": {"tier": 1, "members": [{"type": "Node", "selector": selector}]},
    }
    return msgspec.convert(body, HyperNode)


SELECTORS: dict[str, tuple[dict[str, Any], str]] = {
    "by name": ({"exactMatch": {"name": "n2"}}, "n2"),
    "by a name that no node has": ({"exactMatch": {"name": "n9"}}, ""),
    "by an expression, anywhere in the name": ({"regexMatch": {"pattern": "[23]"}}, "n2 n3"),
    "by an anchored expression": ({"regexMatch": {"pattern": "^n4$"}}, "n4"),
    "by labels": ({"labelMatch": {"matchLabels": {"rack": "b"}}}, "n3 n4"),
    "by the lack of a label": (
        {"labelMatch": {"matchExpressions": [{"key": "rack", "operator": "DoesNotExist"}]}},
        "n5",
    ),
    "an empty selector of labels selects nothing": ({"labelMatch": {}}, ""),
}


@pytest.mark.parametrize(("selector", "want"), SELECTORS.values(), ids=SELECTORS.keys())
def test_members(selector: dict[str, Any], want: str) -> None:
    tree = tree_of(selecting(**selector))
    assert held(tree, "h") == want
    assert not tree.faults


def test_the_tree_is_made_anew_only_when_what_it_depends_on_changes() -> None:
    by_label = selecting(labelMatch={"matchLabels": {"rack": "b"}})
    cluster = a_cluster(NODES, by_label)
    tree = cluster.tree
    cluster.set_node(a_node("n5", labels={"zone": "z"}))
    counted = msgspec.structs.replace(by_label, status=HyperNodeStatus(node_count=2))
    cluster.set_hypernode(counted)
    assert cluster.tree is tree
    cluster.set_node(a_node("n5", labels={"rack": "b"}))
    assert held(cluster.tree, "h") == "n3 n4 n5"
    cluster.remove_node("n3")
    assert held(cluster.tree, "h") == "n3 n4"  # columns: n4 and n5 have moved up
    cluster.set_hypernode(selecting(exactMatch={"name": "n1"}))
    assert held(cluster.tree, "h") == "n1"


def test_a_hypernode_holds_what_those_below_it_hold() -> None:
    tree = tree_of(*TREE)
    assert tree.names == ("lone", "s0", "s1", "s2", TOP)
    assert tree.tiers.tolist() == [1, 1, 1, 2, 3]
    assert {name: held(tree, name) for name in tree.names} == {
        "lone": "",
        "s0": "n1 n2",
        "s1": "n3 n4",
        "s2": "n1 n2 n3 n4",
        TOP: "n1 n2 n3 n4 n5",
    }
    assert [[tree.names[h] for h in above] for above in tree.above] == [
        ["s0", "s2", TOP],
        ["s0", "s2", TOP],
        ["s1", "s2", TOP],
        ["s1", "s2", TOP],
        [TOP],
    ]
    assert tree.leaves.tolist() == [1, 1, 2, 2, NOWHERE]
    assert [tree.names[h] for h in tree.under[tree.index["s2"]]] == ["s0", "s1", "s2"]


def test_the_lowest_hypernode_above_two() -> None:
    tree = tree_of(*TREE)
    at = tree.index
    pairs = {("s0", "s1"): "s2", ("s2", "s0"): "s2", ("s1", "s1"): "s1", ("s0", "lone"): TOP}
    for (a, b), want in pairs.items():
        assert tree.names[tree.common(at[a], at[b])] == want
        assert tree.names[tree.common(at[b], at[a])] == want
    assert tree.common(NOWHERE, at["s1"]) == tree.common(at["s1"], NOWHERE) == at["s1"]
    assert tree.common(NOWHERE, NOWHERE) == NOWHERE


def test_without_hypernodes_there_is_the_top_alone() -> None:
    tree = tree_of()
    assert tree.is_bare
    assert (tree.names, tree.tiers.tolist()) == ((TOP,), [1])


UNREADABLE = "member 0 cannot be read: error parsing regexp:"
FAULTS: dict[str, tuple[list[HyperNode], dict[str, str], dict[str, str]]] = {
    "a ring: the member that is no lower is left out": (
        hypernodes(a="1 n1 @b", b="2 n2 @a"),
        {"a": "member b is of tier 2, which is not below 1"},
        {"a": "n1", "b": "n1 n2"},
    ),
    "a member of itself": (
        hypernodes(a="1 n1 @a"),
        {"a": "member a is of tier 1, which is not below 1"},
        {"a": "n1"},
    ),
    "a second parent": (
        hypernodes(a="1 n1", p="2 @a", q="2 @a n5"),
        {"q": "member a is a member of p already"},
        {"p": "n1", "q": "n5"},
    ),
    "the same member twice is no second parent": (
        hypernodes(a="1 n1", p="2 @a @a"),
        {},
        {"p": "n1"},
    ),
    "a member that does not exist may still come": (hypernodes(p="2 @a n5"), {}, {"p": "n5"}),
    "an expression that is none": (
        [selecting(regexMatch={"pattern": "("}), *hypernodes(a="1 n1")],
        {"h": f"{UNREADABLE} missing ), unterminated subpattern at position 0"},
        {"h": "", "a": "n1"},
    ),
    "a tier with the name of another": (
        [a_hypernode("a", 1, "n1", tier_name="rack"), a_hypernode("b", 2, "@a", tier_name="rack")],
        {"b": "tier name rack stands for tier 1 already"},
        {"b": "n1"},
    ),
}


@pytest.mark.parametrize(("made", "faults", "want"), FAULTS.values(), ids=FAULTS.keys())
def test_what_makes_no_tree_is_left_out_and_told(
    made: list[HyperNode], faults: dict[str, str], want: dict[str, str]
) -> None:
    tree = tree_of(*made)
    assert tree.faults == faults
    assert {name: held(tree, name) for name in want} == want


def test_the_tree_follows_hypernodes_and_nodes() -> None:
    cluster = a_cluster(NODES, TREE)
    before = cluster.tree
    assert cluster.tree is before
    cluster.remove_node("n1")
    assert [cluster.nodes.names[i] for i in cluster.tree.columns[1]] == ["n2"]
    cluster.set_hypernode(a_hypernode("s0", 1, "n2", "n5"))
    assert [cluster.nodes.names[i] for i in cluster.tree.columns[1]] == ["n2", "n5"]
    cluster.remove_hypernode("s0")
    assert cluster.tree.names == ("lone", "s1", "s2", TOP)
    assert before.names == ("lone", "s0", "s1", "s2", TOP)


def test_faults_are_told_by_the_session() -> None:
    snapshot = a_cluster(NODES, hypernodes(a="1 @a")).snapshot()
    assert snapshot.faults == {
        "hypernode a": "member a is of tier 1, which is not below 1",
    }
