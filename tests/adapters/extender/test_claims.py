"""Members with claims that kube-scheduler settles: released first, and wherever it takes them."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from extender.adopting import check_adopted
from extender.answers import NO_ROOM, TOO_FAR
from extender.nacks import Nacks
from pumice.core.api.core import Node
from pumice.core.api.scheduling import NetworkTopology
from pumice.core.ids import JobKey, PodUid
from pumice.core.ledger import Arm, State
from tests.adapters.extender.test_nacks import refuse, replaced
from tests.adapters.extender.test_topology import HARD, a_rack
from tests.adapters.extender.world import GANG, World, a_group, a_node, a_pod
from tests.volumes import HOST, SELECTED, a_claim, a_class, a_volume, store

CLAIM = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]}
VOLUME = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}
OTHER = JobKey("ns/other")
GATE_OFF = {"spec": {"schedulingGates": None}}


def a_gang(*others: str, claims: tuple[str, ...] = ("x",), minimum: int = 0, **more: Any) -> World:
    """Return a gang of which some have a claim, and two nodes with room for four pods each."""
    pods = [
        *(a_pod(name, spec=CLAIM) for name in claims),
        *(a_pod(name, **more) for name in others),
    ]
    nodes = [a_node("n1", zone="a"), a_node("n2", zone="b")]
    return World.make(*nodes, minimum=minimum or len(pods), pods=tuple(pods))


def a_host(name: str) -> Node:
    node = a_node(name)
    node.metadata.labels = {HOST: name}
    return node


def entry_of(world: World, name: str) -> Any:
    return world.model.ledger.get(PodUid(name))


def released(world: World) -> set[str]:
    return {entry.name for entry in world.model.ledger if entry.state is not State.HELD}


async def call(world: World, name: str, node: str) -> asyncio.Task[str]:
    """Call `bind`, and let it come to rest."""
    task = asyncio.create_task(world.barrier.bind(PodUid(name), node))
    await asyncio.sleep(0)
    return task


# The first wave.


async def test_members_with_claims_are_nominated_and_the_rest_waits_for_them() -> None:
    world = a_gang("a", "b")
    world.apply({"x": "n1", "a": "n1", "b": "n2"})

    assert world.sent.patches == [("x", {"status": {"nominatedNodeName": "n1"}}), ("x", GATE_OFF)]
    assert world.states() == {"x": ("Released", "n1"), "a": ("Held", "n1"), "b": ("Held", "n2")}
    assert entry_of(world, "x").arm is Arm.NOMINATE

    calls = [await call(world, "x", "n1")]
    assert [entry_of(world, name).arm for name in "ab"] == [Arm.PIN, Arm.PIN]
    calls += [await call(world, "a", "n1"), await call(world, "b", "n2")]
    assert await asyncio.gather(*calls) == ["", "", ""]


async def test_a_gang_that_waits_for_claims_leaves_the_window_to_others() -> None:
    world = a_gang("a", "b")
    world.releases.window = 2
    world.model.cluster.set_pod_group(a_group(1, "other"))
    for name in "op":
        world.model.set_pod(a_pod(name, group="other"))
    world.apply({"x": "n1", "a": "n1", "b": "n2"})
    for name in "op":
        world.apply({name: "n2"}, OTHER)
    assert released(world) == {"x", "o"}

    # One that has begun is seen through.
    await call(world, "x", "n1")
    assert released(world) == {"x", "o", "a", "b"}


async def test_where_one_is_enough_nobody_waits_for_the_claims_of_others() -> None:
    world = a_gang("a", minimum=1)
    world.apply({"x": "n1", "a": "n2"})
    assert {name: state for name, (state, _) in world.states().items()} == {
        "x": "Released",
        "a": "Released",
    }


async def test_those_that_share_a_claim_follow_the_volume() -> None:
    pods = tuple(a_pod(name, spec=VOLUME) for name in "ab")
    world = World.make(a_host("n1"), a_host("n2"), pods=pods)
    store(world.model.cluster, a_class("local"), a_claim("data"), a_volume("v", on="n1"))
    world.apply({"a": "n1", "b": "n2"})
    assert world.states() == {"a": ("Released", "n1"), "b": ("Held", "n2")}

    store(world.model.cluster, a_claim("data", volume="v"))
    first = await call(world, "a", "n1")

    # The volume cannot be reached from where the other was planned.
    assert world.states() == {"a": ("Arrived", "n1"), "b": ("Held", "")}
    world.apply({"b": "n1"})
    assert entry_of(world, "b").arm is Arm.PIN
    second = await call(world, "b", "n1")
    assert [*await asyncio.gather(first, second)] == ["", ""]


async def test_where_it_can_do_without_a_refused_member_the_rest_waits_no_longer() -> None:
    world = a_gang("a", "b", minimum=2)
    world.apply({"x": "n1", "a": "n1", "b": "n2"})
    assert entry_of(world, "a").planned

    world.releases.replan(PodUid("x"), "n1")
    world.releases.pump()

    assert world.states() == {"a": ("Released", "n1"), "b": ("Released", "n2")}


# After a restart.


async def test_a_pod_that_was_let_go_before_a_restart_is_waited_for() -> None:
    """Its nomination is read back; the rest is planned anew and comes after it."""
    status = {"nominatedNodeName": "n1"}
    pods = (a_pod("x", gates=None, spec=CLAIM, status=status), a_pod("a"))
    world = World.make(a_node("n1"), a_node("n2"), pods=pods)
    assert check_adopted(world.model, world.releases, lambda task: True) == 0
    world.apply({"a": "n2"})
    assert world.states() == {"x": ("Released", "n1"), "a": ("Held", "n2")}

    await call(world, "x", "n1")
    assert world.states() == {"x": ("Arrived", "n1"), "a": ("Released", "n2")}


async def test_a_pod_whose_nomination_was_lost_is_planned_with_the_rest_and_goes_first() -> None:
    pods = (a_pod("x", gates=None, spec=CLAIM), a_pod("a"))
    world = World.make(a_node("n1"), a_node("n2"), pods=pods)
    world.apply({"x": "n1", "a": "n2"})
    assert entry_of(world, "a").planned
    assert world.sent.names() == ["x"]

    await call(world, "x", "n2")
    assert world.states() == {"x": ("Arrived", "n2"), "a": ("Released", "n2")}


def test_an_adopted_pod_that_cannot_stay_is_planned_again_and_not_replaced() -> None:
    status = {"nominatedNodeName": "gone"}
    world = World.make(a_node("n1"), pods=(a_pod("x", gates=None, spec=CLAIM, status=status),))
    assert check_adopted(world.model, world.releases, lambda task: True) == 1
    assert (world.states(), replaced(world)) == ({}, [])


# Another node than the planned one.


async def test_another_node_is_accepted_where_it_has_room() -> None:
    world = a_gang("a")
    world.apply({"x": "n1", "a": "n1"})
    await call(world, "x", "n2")
    assert world.states() == {"x": ("Arrived", "n2"), "a": ("Released", "n1")}
    assert world.model.cluster.check() == []


async def test_held_members_of_its_gang_give_way_as_few_as_it_takes() -> None:
    world = a_gang("a", "b", "c", "d", "e")
    world.apply({"x": "n1"} | dict.fromkeys("abcd", "n2") | {"e": "n1"})
    woken = world.woken

    await call(world, "x", "n2")

    assert entry_of(world, "x").node == "n2"
    assert sorted(entry_of(world, name).node for name in "abcd") == ["", "n2", "n2", "n2"]
    assert entry_of(world, "e").node == "n1"
    assert world.woken > woken
    assert world.model.cluster.check() == []


async def test_members_that_are_hinted_at_a_node_do_not_keep_others_of_their_gang_off() -> None:
    pods = tuple(a_pod(name, cpu="4", spec=CLAIM) for name in "xy")
    world = World.make(a_node("n1"), a_node("n2"), pods=pods)
    world.apply({"x": "n1", "y": "n2"})

    calls = [await call(world, "x", "n2"), await call(world, "y", "n1")]

    assert await asyncio.gather(*calls) == ["", ""]
    assert world.model.cluster.check() == []


async def test_members_that_have_come_and_other_gangs_keep_their_room() -> None:
    world = a_gang("a", "b", claims=("x", "y"))
    world.model.cluster.set_pod_group(a_group(1, "rival"))
    for i in range(3):
        world.model.set_pod(a_pod(f"r{i}", group="rival"))
        world.model.plan(PodUid(f"r{i}"), "n2")
    world.apply({"x": "n1", "y": "n2", "a": "n1", "b": "n1"})
    await call(world, "y", "n2")

    assert await (await call(world, "x", "n2")) == NO_ROOM

    # It is planned again as it is; the others keep what they have.
    assert "x" not in world.states()
    assert replaced(world) == []
    assert [entry_of(world, name).node for name in "yab"] == ["n2", "n1", "n1"]
    assert world.model.cluster.check() == []


async def test_held_members_keep_their_plans_where_giving_way_would_not_help() -> None:
    world = a_gang("a")
    for i in range(3):
        filler = a_pod(f"f{i}", gates=None, node="n2", scheduler="other", group="")
        world.model.set_pod(filler)
    world.model.set_pod(a_pod("x", cpu="2", spec=CLAIM))
    world.apply({"x": "n1", "a": "n2"})

    assert await (await call(world, "x", "n2")) == NO_ROOM

    assert world.states() == {"a": ("Held", "n2")}
    assert world.model.cluster.check() == []


async def test_held_members_whose_place_depends_on_others_are_planned_anew() -> None:
    term = {"labelSelector": {"matchLabels": {"role": "x"}}, "topologyKey": "zone"}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    world = a_gang("a", spec={"affinity": near})
    world.model.set_pod(a_pod("x", spec=CLAIM, labels={"role": "x"}))
    world.apply({"x": "n1", "a": "n1"})

    await call(world, "x", "n2")

    assert world.states() == {"x": ("Arrived", "n2"), "a": ("Held", "")}


def a_bounded_gang(*others: str, claims: tuple[str, ...] = ("x",)) -> World:
    world = a_gang(*others, claims=claims)
    group = a_group(len(others) + len(claims))
    group.spec.network_topology = msgspec.convert(HARD, NetworkTopology)
    world.model.cluster.set_pod_group(group)
    for rack, node in (("a", "n1"), ("b", "n2")):
        world.model.set_hypernode(a_rack(rack, node))
    return world


async def test_outside_of_the_hypernode_of_its_gang_it_is_refused() -> None:
    world = a_bounded_gang("a", claims=("x", "y"))
    world.apply({"x": "n1", "y": "n1", "a": "n1"})
    await call(world, "y", "n1")

    assert await (await call(world, "x", "n2")) == TOO_FAR

    assert "x" not in world.states()
    assert entry_of(world, "a").node == "n1"


async def test_a_gang_that_is_merely_planned_follows_it_to_another_hypernode() -> None:
    world = a_bounded_gang("a", "b")
    world.apply({"x": "n1", "a": "n1", "b": "n1"})

    await call(world, "x", "n2")

    assert [entry_of(world, name).node for name in "xab"] == ["n2", "", ""]
    assert world.apply({"a": "n2", "b": "n2"}) == (2, 0)


# While the claims are being settled.


def show(world: World, name: str, **status: Any) -> None:
    world.sent.show(world.model.pending[PodUid(name)], {"status": status})


def test_the_charge_goes_where_kube_scheduler_is_about_to_bind_a_pod() -> None:
    world = a_gang("a")
    world.apply({"x": "n1", "a": "n1"})

    show(world, "x", nominatedNodeName="n2")

    assert world.states() == {"x": ("Released", "n2"), "a": ("Held", "n1")}
    assert world.model.cluster.nodes.tasks_on("n2").keys() == {"x"}
    assert world.model.cluster.check() == []


async def test_where_that_node_is_full_as_yet_the_call_decides() -> None:
    world = a_gang("a")
    for i in range(4):
        world.model.set_pod(a_pod(f"f{i}", gates=None, node="n2", scheduler="o", group=""))
    world.apply({"x": "n1", "a": "n1"})
    show(world, "x", nominatedNodeName="n2")
    assert entry_of(world, "x").node == "n1"

    world.model.remove_pod(PodUid("f0"))
    await call(world, "x", "n2")
    assert world.states() == {"x": ("Arrived", "n2"), "a": ("Released", "n1")}


async def silence(world: World, seconds: float) -> Nacks:
    """Let a pod that is no member arrive, and time pass."""
    nacks = Nacks(world.model, world.releases, world.barrier)
    nacks.check()
    world.time += 1
    world.model.cluster.set_pod_group(a_group(2, "rival"))
    world.model.set_pod(a_pod("r", group="rival"))
    world.model.plan(PodUid("r"), "n2")
    world.releases.steer(entry_of(world, "r").job, [[PodUid("r")]])
    await call(world, "r", "n2")
    world.time += seconds - 1
    nacks.check()
    return nacks


async def test_ten_minutes_of_silence_while_claims_are_settled_are_no_refusal() -> None:
    world = a_gang("a")
    world.apply({"x": "n1", "a": "n1"})
    await silence(world, 650)
    assert world.states()["x"] == ("Released", "n1")


async def test_but_longer_than_kube_scheduler_takes_is_one() -> None:
    world = a_gang("a")
    world.apply({"x": "n1", "a": "n1"})
    await silence(world, 670)
    assert "x" not in world.states()
    assert replaced(world) == []


def test_a_pod_that_kube_scheduler_refuses_everywhere_is_planned_again_as_it_is() -> None:
    world = a_gang("a")
    nacks = Nacks(world.model, world.releases, world.barrier)
    world.apply({"x": "n1", "a": "n1"})
    refuse(world, "x")
    nacks.check()
    world.time += 3.1
    nacks.check()

    assert (world.states(), replaced(world)) == ({"a": ("Held", "n1")}, [])
    assert world.model.avoided_nodes() == {GANG: {"n1"}}


async def refused_for_good(world: World, name: str) -> Nacks:
    """Have kube-scheduler refuse a pod, and go on refusing it in the same words."""
    nacks = Nacks(world.model, world.releases, world.barrier)
    refuse(world, name)
    nacks.check()
    world.time += 3.1
    nacks.check()
    world.apply({name: "n2"})
    nacks.check()
    world.time += 58
    nacks.check()
    return nacks


async def test_a_gang_of_which_a_member_is_wanted_nowhere_gives_up_after_a_minute() -> None:
    world = a_gang("a", claims=("x", "y"))
    world.apply({"x": "n1", "y": "n1", "a": "n1"})
    parked = await call(world, "y", "n1")
    await refused_for_good(world, "x")

    assert await parked
    assert sorted(replaced(world)) == ["x", "y"]
    assert entry_of(world, "a").node == ""
    assert world.model.avoided_nodes() == {GANG: {"n1", "n2"}}


def with_a_volume_being_bound() -> tuple[World, Nacks]:
    """Return a gang of which kube-scheduler refused a member before it took it."""
    world = World.make(a_node("n1"), a_node("n2"), pods=(a_pod("x", spec=VOLUME), a_pod("a")))
    store(world.model.cluster, a_class("local"), a_claim("data"))
    world.apply({"x": "n1", "a": "n1"})
    refuse(world, "x")
    store(world.model.cluster, a_claim("data", annotations={SELECTED: "n1"}))
    return world, Nacks(world.model, world.releases, world.barrier)


def test_a_refusal_is_over_when_a_volume_is_being_bound() -> None:
    world, nacks = with_a_volume_being_bound()
    for _ in range(10):
        nacks.check()
        world.time += 65
    assert world.states() == {"x": ("Released", "n1"), "a": ("Held", "n1")}


def test_but_not_for_longer_than_kube_scheduler_tries() -> None:
    world, nacks = with_a_volume_being_bound()
    world.time += 661
    nacks.check()
    assert "x" not in world.states()

    world.time += 61
    nacks.check()
    assert world.states() == {"a": ("Held", "")}
    assert replaced(world) == ["x"]


def test_a_gang_whose_first_wave_finds_no_node_returns_the_room_of_the_rest() -> None:
    world = a_gang("a")
    nacks = Nacks(world.model, world.releases, world.barrier)
    world.apply({"x": "n1", "a": "n1"})
    world.releases.replan(PodUid("x"), "n1")
    nacks.check()
    assert entry_of(world, "a").node == "n1"

    world.time += 61
    nacks.check()

    assert entry_of(world, "a").node == ""
    # It would go on to settle claims for a gang that has none of its room.
    assert replaced(world) == ["x"]
