"""HyperNodes follow what their source finds; all others are left alone."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core import names
from pumice.core.api.topology import HyperNode
from pumice.core.hypernodes import labels
from pumice.core.hypernodes.reconcile import is_of, reconcile
from pumice.core.hypernodes.types import (
    Complain,
    CreateHyperNode,
    DeleteHyperNode,
    Effect,
    Found,
    PatchHyperNode,
)
from tests.effort import examples
from tests.unit.hypernodes.builders import a_hypernode, a_topology, below, node

RACKS = a_topology("rack", "rack", "zone")
LABELS = {"rack": "r0", names.TOPOLOGY_SOURCE: "label"}
R0 = Found(("rack", "r0"), "hypernode-rack-tier1", 1, "rack", {"rack": "r0"}, frozenset({"n0"}))
Z = Found(("zone", "z"), "hypernode-rack-tier2", 2, "zone", {"zone": "z"}, below=frozenset({R0.id}))
LEAF = Found(("leaf", "0"), "leaf-hn-0", 1, nodes=frozenset({"n0"}), is_named=True)


def a_rack(
    name: str = "hypernode-rack-tier1-old",
    *nodes: str,
    source: str = "label",
    deleted: str | None = None,
) -> HyperNode:
    """Return rack r0 as it stands, of node n0 where no other is given."""
    members = [node(member) for member in nodes or ("n0",)]
    marks = {"rack": "r0"}
    return a_hypernode(
        name, *members, tier_name="rack", labels=marks, source=source, deleted=deleted
    )


def applied(effects: list[Effect], existing: Mapping[str, HyperNode]) -> dict[str, HyperNode]:
    """Return what there is when the effects are carried out."""
    after = dict(existing)
    for effect in effects:
        match effect:
            case CreateHyperNode(hypernode=new):
                assert new.metadata.name not in after
                after[new.metadata.name] = new
            case PatchHyperNode():
                old = after[effect.name]
                marks = {**(old.metadata.labels or {}), **effect.labels}
                meta = msgspec.structs.replace(old.metadata, labels=marks)
                after[effect.name] = HyperNode(metadata=meta, spec=effect.spec, status=old.status)
            case DeleteHyperNode(name=name):
                del after[name]
            case Complain():
                raise AssertionError(effect)
    return after


def test_what_is_found_is_created_lower_tiers_first() -> None:
    first, second = reconcile("label", [Z, R0], [])

    assert isinstance(first, CreateHyperNode)
    assert isinstance(second, CreateHyperNode)
    rack, zone = first.hypernode, second.hypernode
    assert rack.metadata.name.startswith("hypernode-rack-tier1-")
    assert len(rack.metadata.name) == len("hypernode-rack-tier1-") + 5
    assert rack.metadata.labels == LABELS
    assert (rack.spec.tier, rack.spec.tier_name, rack.spec.members) == (1, "rack", [node("n0")])
    assert (zone.spec.tier, zone.spec.tier_name) == (2, "zone")
    assert zone.spec.members == [below(rack.metadata.name)]


def test_whoever_creates_it_a_second_time_creates_the_same() -> None:
    assert reconcile("label", [R0, Z], []) == reconcile("label", [Z, R0], [])


def test_one_that_is_there_is_kept_whatever_its_name() -> None:
    assert reconcile("label", [R0], [a_rack()]) == []


def test_of_several_the_first_name_is_kept() -> None:
    assert reconcile("label", [R0], [a_rack(), a_rack("hypernode-rack-tier1-a")]) == [
        DeleteHyperNode("hypernode-rack-tier1-old", "uid-hypernode-rack-tier1-old")
    ]


def test_one_that_differs_gets_the_specification_and_keeps_its_other_labels() -> None:
    (effect,) = reconcile("label", [R0], [a_rack("hypernode-rack-tier1-old", "n0", "n9")])
    assert isinstance(effect, PatchHyperNode)
    assert effect.spec.members == [node("n0")]
    assert effect.labels == LABELS


def test_what_is_not_found_any_more_goes_higher_tiers_first() -> None:
    zone = a_hypernode("z", below("r"), tier=2, source="label")
    assert reconcile("label", [], [a_rack("r"), zone]) == [
        DeleteHyperNode("z", "uid-z"),
        DeleteHyperNode("r", "uid-r"),
    ]


def test_hypernodes_of_others_are_left_alone() -> None:
    mine, theirs = a_hypernode("by-hand", node("n0")), a_rack("r", source="ufm")
    assert reconcile("label", [], [mine, theirs]) == []


def test_one_that_is_being_deleted_is_made_anew_under_another_name() -> None:
    (made,) = reconcile("label", [R0], [])
    assert isinstance(made, CreateHyperNode)
    name = made.hypernode.metadata.name
    (again,) = reconcile("label", [R0], [a_rack(name, deleted="2026-01-01T00:00:00Z")])
    assert isinstance(again, CreateHyperNode)
    assert again.hypernode.metadata.name != name


def test_a_name_that_is_taken_is_told_and_the_others_go_on() -> None:
    other = Found(("leaf", "1"), "leaf-hn-1", 1, nodes=frozenset({"n1"}), is_named=True)
    spine = Found(("spine",), "spine-hn", 2, below=frozenset({LEAF.id, other.id}), is_named=True)
    taken = a_hypernode("leaf-hn-0", node("n0"))

    told, *made = reconcile("ufm", [LEAF, other, spine], [taken])

    assert told == Complain("leaf-hn-0: the name is taken by another HyperNode")
    created = {
        e.hypernode.metadata.name: e.hypernode for e in made if isinstance(e, CreateHyperNode)
    }
    assert list(created) == ["leaf-hn-1", "spine-hn"]
    assert created["spine-hn"].spec.members == [below("leaf-hn-1")]


def test_one_that_would_have_no_members_is_not_made() -> None:
    spine = Found(("spine",), "spine-hn", 2, below=frozenset({LEAF.id}), is_named=True)
    taken = a_hypernode("leaf-hn-0", node("n0"))
    assert [type(e) for e in reconcile("ufm", [LEAF, spine], [taken])] == [Complain]


_SOME = st.dictionaries(
    st.sampled_from(["n0", "n1", "n2", "n3"]),
    st.dictionaries(st.sampled_from(["rack", "zone"]), st.sampled_from(["a", "b", "c"])),
)


@settings(max_examples=examples(200))
@given(before=_SOME, after=_SOME)
def test_a_change_of_labels_is_settled_by_its_effects(
    before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]
) -> None:
    by_hand = {"by-hand": a_hypernode("by-hand", node("n0"))}
    there = applied(reconcile("label", labels.discover([RACKS], before), by_hand.values()), by_hand)
    found = labels.discover([RACKS], after)

    there = applied(reconcile("label", found, there.values()), there)

    assert reconcile("label", found, there.values()) == []
    mine = [h for h in there.values() if is_of("label", h)]
    assert len(mine) == len(found)
    known = set(there)
    for hypernode in mine:
        lower = [m for m in hypernode.spec.members or () if m.type == "HyperNode"]
        assert all(m.selector.exact_match and m.selector.exact_match.name in known for m in lower)
    assert there["by-hand"] == by_hand["by-hand"]
