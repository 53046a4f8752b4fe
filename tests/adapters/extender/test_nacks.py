"""Members that kube-scheduler cannot place, and gangs that wait for one in vain."""

from __future__ import annotations

import asyncio
from typing import Any

from extender import answers as texts
from extender.model import LAG_S
from extender.nacks import Nacks
from pumice.core.ids import PodUid
from tests.adapters.extender.world import GANG, World, a_node, a_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NAMED = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
TAINT = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "taint"}


def a_pair() -> tuple[World, Nacks]:
    world = World.make(a_node("n1"), a_node("n2"), pods=(a_pod("a"), a_pod("b")))
    world.apply({"a": "n1", "b": "n2"})
    return world, Nacks(world.model, world.releases, world.barrier)


def refuse(world: World, name: str, **status: Any) -> None:
    pod = world.model.pending[PodUid(name)]
    world.sent.show(pod, {"status": {"conditions": [TAINT], **status}})


def replaced(world: World) -> list[str]:
    mark = "volcano.sh/controller-out-of-sync"
    return [
        name
        for name, patch in world.sent.patches
        if mark in patch.get("metadata", {}).get("annotations", {})
    ]


def replaced_only_after(seconds: float, world: World, nacks: Nacks) -> None:
    """See that `a` is replaced, and nobody else, once so much time has passed."""
    world.time += seconds - 0.1
    nacks.check()
    assert replaced(world) == []

    world.time += 0.2
    nacks.check()
    assert replaced(world) == ["a"]


def test_a_refusal_counts_after_three_seconds_and_only_that_member_is_replaced() -> None:
    world, nacks = a_pair()
    refuse(world, "a")
    world.time += 2.9
    nacks.check()
    assert replaced(world) == []

    world.time += 0.2
    nacks.check()
    nacks.check()

    assert replaced(world) == ["a"]
    assert world.model.avoided_nodes() == {GANG: {"n1"}}


def test_a_node_that_changed_a_moment_ago_is_tried_once_more() -> None:
    world, nacks = a_pair()
    world.model.set_node(a_node("n1", fast="yes"))
    refuse(world, "a")
    world.time += 3.1
    nacks.check()
    assert replaced(world) == ["a"]
    assert world.model.avoided_nodes() == {}

    world.time += LAG_S - 1
    world.model.set_node(a_node("n1", fast="no"))
    world.time += 1
    world.model.avoid(GANG, "n1")
    assert world.model.avoided_nodes() == {GANG: {"n1"}}


def test_an_error_says_nothing_of_the_node_and_is_slept_over() -> None:
    world, nacks = a_pair()
    refuse(world, "a", conditions=[{**TAINT, "reason": "SchedulerError"}])
    world.time += 14.9
    nacks.check()
    assert replaced(world) == []

    refuse(world, "a")
    replaced_only_after(3, world, nacks)


def test_an_error_that_lasts_is_a_refusal() -> None:
    world, nacks = a_pair()
    refuse(world, "a", conditions=[{**TAINT, "reason": "SchedulerError"}])
    world.time += 15.1
    nacks.check()
    assert replaced(world) == ["a"]


def test_what_kube_scheduler_says_late_of_a_pod_that_it_had_before_it_was_planned() -> None:
    world, nacks = a_pair()
    loose = a_pod("loose", gates=[])
    world.model.set_pod(loose)
    world.apply({"loose": "n1"})
    refuse(world, "loose")
    world.time += 14.9
    nacks.check()
    assert world.states()["loose"] == ("Released", "n1")

    world.time += 0.2
    nacks.check()
    assert replaced(world) == ["loose"]


def test_a_member_that_nobody_could_be_asked_to_replace_is_refused_again() -> None:
    world, nacks = a_pair()
    refuse(world, "a")
    world.sent.hold_back = True
    world.time += 3.1
    nacks.check()
    failed = world.sent.failures[-1]
    assert failed is not None
    failed(RuntimeError("403"))

    nacks.check()
    assert replaced(world) == ["a"]
    world.time += 3.1
    nacks.check()
    assert replaced(world) == ["a", "a"]


def test_our_own_words_on_a_pod_are_no_refusal_however_late_they_come() -> None:
    world = World.make(a_node("n1"), a_node("n2"), pods=(a_pod("a"), a_pod("b")))
    nacks = Nacks(world.model, world.releases, world.barrier)
    world.sent.hold_back = True
    world.apply({"a": "n1", "b": "n2"})
    ours = {"status": {"conditions": [{**TAINT, "message": "no room"}]}}
    for name in "ab":
        world.sent.show(world.model.pending[PodUid(name)], ours)
        pod = world.model.pending[PodUid(name)]
        world.sent.show(pod, dict(world.sent.patches)[name])

    nacks.check()
    world.time += 10
    nacks.check()

    assert replaced(world) == []


def test_the_last_refusal_of_a_job_is_forgotten_with_it() -> None:
    world, nacks = a_pair()
    refuse(world, "a")
    world.time += 3.1
    nacks.check()
    assert list(nacks.last) == [GANG]

    world.model.cluster.remove_pod_group(GANG)
    nacks.check()

    assert nacks.last == {}


async def test_members_whose_group_is_gone_do_not_hold_room_for_ever() -> None:
    world, nacks = a_pair()
    waiting = asyncio.create_task(world.barrier.bind(PodUid("a"), "n1"))
    await asyncio.sleep(0)
    world.model.cluster.remove_pod_group(GANG)

    nacks.check()
    world.time += 61
    nacks.check()

    assert await waiting == texts.REPLACED


def test_a_refusal_that_passes_is_none() -> None:
    world, nacks = a_pair()
    refuse(world, "a")
    world.time += 2
    world.model.ledger.arrive(PodUid("a"), "n1", world.time)

    world.time += 2
    nacks.check()

    assert replaced(world) == []


def test_volumes_that_are_being_bound_are_progress() -> None:
    world, nacks = a_pair()
    refuse(world, "a", nominatedNodeName="n1")
    world.time += 10
    nacks.check()
    assert replaced(world) == []


def test_a_pod_that_stays_silent_while_others_arrive_is_refused_in_the_end() -> None:
    world, nacks = a_pair()
    world.time += 1
    world.model.ledger.arrive(PodUid("b"), "n2", world.time)
    nacks.check()
    replaced_only_after(60, world, nacks)


def test_after_a_pause_of_kube_scheduler_those_that_wait_have_their_time_anew() -> None:
    world, nacks = a_pair()
    nacks.check()
    world.time += 200
    world.model.ledger.arrive(PodUid("b"), "n2", world.time)
    for _ in range(59):
        world.time += 1
        nacks.check()
    assert replaced(world) == []

    world.time += 2
    nacks.check()
    assert replaced(world) == ["a"]


def test_a_pod_that_was_found_refused_is_refused_though_nothing_more_is_said_of_it() -> None:
    world = World.make(a_node("n1"), a_node("n2"), minimum=1)
    spec = {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [NAMED]}}}}
    world.model.set_pod(a_pod("a", gates=None, spec=spec, status={"conditions": [TAINT]}))
    nacks = Nacks(world.model, world.releases, world.barrier)
    assert world.states() == {"a": ("Released", "n1")}
    replaced_only_after(60, world, nacks)


def test_the_same_refusal_again_after_a_lost_call_is_not_waited_out_for_ever() -> None:
    world, nacks = a_pair()
    refuse(world, "a")
    for name, node in (("a", "n1"), ("b", "n2")):
        world.model.ledger.arrive(PodUid(name), node, world.time)
    # kube-scheduler starts anew, takes b again, and refuses a in the words that stand there.
    for name in "ab":
        world.model.ledger.lose(PodUid(name), world.time)
    world.time += 5
    world.model.ledger.arrive(PodUid("b"), "n2", world.time)

    nacks.check()
    world.time += 61
    nacks.check()

    assert replaced(world) == ["a"]


def test_a_release_that_is_held_up_is_no_silence() -> None:
    world = World.make(a_node("n1"), a_node("n2"), pods=(a_pod("a"), a_pod("b")))
    nacks = Nacks(world.model, world.releases, world.barrier)
    world.sent.hold_back = True
    world.apply({"a": "n1", "b": "n2"})
    late, *rest = (world.model.pending[PodUid(name)] for name in "ab")
    patches = dict(world.sent.patches)
    for pod in rest:
        world.sent.show(pod, patches[pod.metadata.name])
    world.time += 1
    world.model.ledger.arrive(PodUid("b"), "n2", world.time)
    world.time += 100
    nacks.check()
    world.sent.show(late, patches["a"])
    nacks.check()
    world.time += 59
    nacks.check()

    assert replaced(world) == []


async def test_a_gang_that_waits_in_vain_for_a_minute_returns_its_room() -> None:
    world, nacks = a_pair()
    waiting = asyncio.create_task(world.barrier.bind(PodUid("a"), "n1"))
    await asyncio.sleep(0)
    world.model.remove_pod(PodUid("b"))
    world.model.set_pod(a_pod("b", uid="b2"))

    nacks.check()
    world.time += 59
    nacks.check()
    assert not waiting.done()
    world.time += 2
    nacks.check()

    assert await waiting == texts.REPLACED
    assert world.refused == [("a", texts.REPLACED)]


def test_a_gang_that_finds_its_member_in_time_keeps_its_room() -> None:
    world, nacks = a_pair()
    world.model.remove_pod(PodUid("b"))
    world.model.set_pod(a_pod("b", uid="b2"))
    nacks.check()
    world.time += 59
    assert world.apply({"b2": "n2"}) == (1, 0)

    nacks.check()
    world.time += 2
    nacks.check()

    assert replaced(world) == []
