"""What labels of nodes and the ports of a fabric say about the network."""

from __future__ import annotations

import msgspec
import pytest

from pumice.core.hypernodes import labels, ufm
from pumice.core.hypernodes.types import Found
from tests.unit.hypernodes.builders import a_topology

RACKS = a_topology("rack", "rack", "zone")


def test_each_value_of_each_label_is_one_hypernode() -> None:
    nodes = {
        "n0": {"rack": "r0", "zone": "z"},
        "n1": {"rack": "r0", "zone": "z"},
        "n2": {"rack": "r1", "zone": "z"},
        "n3": {"rack": "r2"},
        "n4": {"zone": "z"},
    }

    assert labels.discover([RACKS], nodes) == [
        rack("r0", "n0", "n1"),
        rack("r1", "n2"),
        rack("r2", "n3"),
        Found(
            ("zone", "z"),
            "hypernode-rack-tier2",
            2,
            "zone",
            {"zone": "z"},
            below=frozenset({("rack", "r0"), ("rack", "r1")}),
        ),
    ]


def test_types_that_name_the_same_label_share_its_hypernodes() -> None:
    nodes = {"n0": {"rack": "r0", "zone": "z"}}
    found = labels.discover([a_topology("A_b", "rack"), RACKS], nodes)
    assert [(one.prefix, one.id) for one in found] == [
        ("hypernode-a-b-tier1", ("rack", "r0")),
        ("hypernode-rack-tier2", ("zone", "z")),
    ]


def test_types_that_disagree_about_the_tiers_make_no_circle() -> None:
    nodes = {"n0": {"a": "1", "x": "1", "y": "1", "b": "1"}}
    types = [a_topology("one", "a", "x", "y"), a_topology("two", "b", "y", "x")]
    found = {one.id: one for one in labels.discover(types, nodes)}
    assert all(found[lower].tier < one.tier for one in found.values() for lower in one.below)


def test_only_labels_that_are_configured_matter() -> None:
    assert labels.relevant([RACKS], {"rack": "r", "other": "x"}) == {"rack": "r"}


def rack(value: str, *nodes: str) -> Found:
    return Found(
        ("rack", value), "hypernode-rack-tier1", 1, "rack", {"rack": value}, frozenset(nodes)
    )


def ports(*links: tuple[str, str], description: str = "Computer IB Port") -> bytes:
    return msgspec.json.encode(
        [
            {"description": description, "tier": 1, "system_name": node, "peer_node_name": leaf}
            for leaf, node in links
        ]
    )


def test_leaves_that_share_a_node_are_one_group() -> None:
    body = ports(("l9", "n0"), ("l2", "n0"), ("l2", "n1"), ("l5", "n1"), ("l3", "n2"))

    assert ufm.discover(body) == [
        leaf(0, "n0", "n1"),
        leaf(1, "n2"),
        Found(
            ("spine",),
            "spine-hn",
            2,
            below=frozenset({("leaf", "0"), ("leaf", "1")}),
            is_named=True,
        ),
    ]


def test_ports_of_switches_say_nothing() -> None:
    assert ufm.discover(ports(("l0", "n0"), description="Switch IB Port")) == []


@pytest.mark.parametrize("body", [b"", b"{}", b"[1]", b"<html>"])
def test_an_answer_that_is_no_list_of_ports_is_refused(body: bytes) -> None:
    with pytest.raises(ufm.UfmError):
        ufm.discover(body)


def leaf(number: int, *nodes: str) -> Found:
    name = f"leaf-hn-{number}"
    return Found(("leaf", str(number)), name, 1, nodes=frozenset(nodes), is_named=True)
