"""Gangs that must stay within a HyperNode: no decision, call or restart takes a pod out of it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from extender.adopting import check_adopted
from extender.answers import TOO_FAR
from extender.model import Urgency
from pumice.core import names
from pumice.core.api.scheduling import PodGroup
from pumice.core.api.topology import HyperNode
from pumice.core.ids import PodUid
from pumice.core.ledger import Arm
from pumice.core.room import straying
from pumice.kube.resources import HYPERNODES, POD_GROUPS, PODS
from tests.adapters.extender.bed import Bed
from tests.adapters.extender.world import World, a_node, a_pod

HARD = {"mode": "hard", "highestTierAllowed": 1}
NODES = [a_node(name) for name in ("a1", "a2", "b1", "b2")]


def a_rack(name: str, *nodes: str) -> HyperNode:
    return msgspec.convert({"metadata": {"name": name}, "spec": members(*nodes)}, HyperNode)


def members(*nodes: str) -> dict[str, Any]:
    selectors = [{"exactMatch": {"name": node}} for node in nodes]
    return {"tier": 1, "members": [{"type": "Node", "selector": s} for s in selectors]}


def a_world(*pods: str, minimum: int = 2, gates: Any = ..., **more: Any) -> World:
    """Return two racks, and a gang that must be within one of them."""
    if gates is not ...:
        more["gates"] = gates
    world = World.make(*NODES, minimum=minimum, pods=tuple(a_pod(name, **more) for name in pods))
    body = {
        "metadata": {"name": "gang", "namespace": "ns", "uid": "gang"},
        "spec": {"minMember": minimum, "queue": "default", "networkTopology": HARD},
        "status": {"phase": "Inqueue"},
    }
    world.model.cluster.set_pod_group(msgspec.convert(body, PodGroup))
    world.model.set_hypernode(a_rack("a", "a1", "a2"))
    world.model.set_hypernode(a_rack("b", "b1", "b2"))
    return world


def test_a_gang_within_a_rack_is_released() -> None:
    world = a_world("x", "y")
    assert world.apply({"x": "a1", "y": "a2"}) == (2, 0)


def test_one_that_is_spread_over_two_gets_nothing() -> None:
    world = a_world("x", "y")
    assert world.apply({"x": "a1", "y": "b1"}) == (0, 2)
    assert world.states() == {"x": ("Held", ""), "y": ("Held", "")}


def test_a_member_more_must_go_where_the_others_are() -> None:
    world = a_world("x", "y", "z")
    world.apply({"x": "a1", "y": "a2"})
    assert world.apply({"z": "b1"}) == (0, 1)
    assert world.apply({"z": "a1"}) == (1, 0)


def test_a_decision_for_a_rack_that_has_changed_is_dropped() -> None:
    world = a_world("x", "y")
    world.model.set_hypernode(a_rack("a", "a1"))
    assert world.apply({"x": "a1", "y": "a2"}) == (0, 2)


def test_without_hypernodes_nothing_is_near() -> None:
    world = a_world("x", "y")
    for name in ("a", "b"):
        world.model.cluster.remove_hypernode(name)
    assert world.apply({"x": "a1", "y": "a1"}) == (0, 2)


async def test_a_nominated_pod_may_take_another_node_of_the_rack_and_none_outside() -> None:
    world = a_world("x", "y", owner=None)
    world.apply({"x": "a1", "y": "a2"})

    near = asyncio.create_task(world.barrier.bind(PodUid("x"), "a2"))
    await asyncio.sleep(0)
    assert await world.barrier.bind(PodUid("y"), "b1") == TOO_FAR

    # What it was given is taken back, and it is planned anew; the other one waits for it.
    assert world.states() == {"x": ("Arrived", "a2")}
    assert straying(world.model.cluster, PodUid("y"), "b2")
    assert not straying(world.model.cluster, PodUid("y"), "a1")
    near.cancel()


def test_a_pod_that_may_not_go_everywhere_is_nominated_even_where_one_is_enough() -> None:
    world = a_world("x", minimum=1, owner=None)
    assert world.apply({"x": "a1"}) == (1, 0)
    assert [entry.arm for entry in world.model.ledger] == [Arm.NOMINATE]


def test_pins_that_were_found_are_given_up_where_they_lie_too_far_apart() -> None:
    for nodes, given_up in ((("a1", "a2"), 0), (("a1", "b1"), 2)):
        world = a_world()
        for name, node in zip("xy", nodes, strict=True):
            status = {"nominatedNodeName": node}
            world.model.set_pod(a_pod(name, gates=None, owner=None, status=status))
        assert check_adopted(world.model, world.releases, lambda task: True) == given_up


def test_a_hypernode_is_looked_at_again_when_its_members_change() -> None:
    world = a_world()
    rack = a_rack("a", "a1", "a2")
    rack.status.node_count = 2
    assert world.model.set_hypernode(rack) is Urgency.NEVER
    assert world.model.set_hypernode(a_rack("a", "a1")) is Urgency.NOW


async def test_a_gang_goes_to_one_rack_which_its_group_names() -> None:
    bed = Bed()
    bed.nodes(4)
    for rack, nodes in {"a": ("n0", "n1"), "b": ("n2", "n3")}.items():
        bed.api.add(HYPERNODES, {"metadata": {"name": rack}, "spec": members(*nodes)})
    bed.gang("small", 1, cpu="2")
    group = {"minMember": 4, "queue": "default", "networkTopology": HARD}
    bed.api.add(POD_GROUPS, {"metadata": {"name": "wide"}, "spec": group}, "ns")
    for i in range(4):
        bed.pod(f"wide-{i}", group="wide", cpu="2")

    def named() -> str:
        stored = bed.api.get(POD_GROUPS, "ns", "wide") or {}
        notes: dict[str, str] = stored["metadata"].get("annotations", {})
        return notes.get(names.ALLOCATED_HYPERNODE, "")

    async with bed.extender(), bed.scheduler() as scheduler:
        await bed.until(lambda: len(bed.bound("wide")) == 4 and named())
        await bed.quiet()

        assert set(bed.bound("wide").values()) == {"n2", "n3"}
        assert named() == "b"
        assert scheduler.errors() == []

        # One comes in place of another while the other rack has most room.
        bed.api.objects.delete(PODS, bed.stored("wide-0"), {"gracePeriodSeconds": 0})
        bed.pod("wide-4", group="wide", cpu="2")
        await bed.until(lambda: "wide-4" in bed.bound())
        assert set(bed.bound("wide").values()) == {"n2", "n3"}


async def test_members_on_their_way_stay_where_hypernodes_let_them_when_it_starts_anew() -> None:
    bed = Bed()
    bed.nodes(4)
    for rack, nodes in {"a": ("n0", "n1"), "b": ("n2", "n3")}.items():
        bed.api.add(HYPERNODES, {"metadata": {"name": rack}, "spec": members(*nodes)})
    group = {"minMember": 4, "queue": "default", "networkTopology": HARD}
    bed.api.add(POD_GROUPS, {"metadata": {"name": "wide"}, "spec": group}, "ns")
    for i in range(4):
        bed.pod(f"wide-{i}", group="wide", cpu="2")
    async with bed.extender(kill=True):
        await bed.until(lambda: len(bed.released()) == 4)
    bed.api.delay(0.2, times=1, path="hypernodes")
    async with bed.extender() as extender:
        await extender.synced.wait()
        await bed.quiet()
        assert extender.releases.replaced == 0
        assert len(extender.model.ledger.in_flight_entries()) == 4
