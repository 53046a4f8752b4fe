"""The barrier: who waits, who is bound, who is refused, and that nobody is told too early."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from extender import answers as texts
from pumice.core.ids import PodUid
from pumice.core.ledger import Arm
from tests.adapters.extender.world import World, a_group, a_node, a_pod

ON_N1 = {"a": "n1", "b": "n1"}


def a_pair(**more: Any) -> World:
    world = World.make(a_node("n1"), a_node("n2"), pods=(a_pod("a"), a_pod("b")), **more)
    world.apply(ON_N1)
    return world


async def call(world: World, pod: str, node: str = "n1") -> asyncio.Task[str]:
    """Open a bind call and let it come to rest."""
    task = asyncio.create_task(world.barrier.bind(PodUid(pod), node))
    await settle()
    return task


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_nobody_is_bound_before_the_gang_is_whole() -> None:
    world = a_pair()

    first = await call(world, "a")
    assert world.posted == []
    second = await call(world, "b")

    assert [await first, await second] == ["", ""]
    assert world.posted == [("a", "n1"), ("b", "n1")]
    assert world.states() == {"a": ("Bound", "n1"), "b": ("Bound", "n1")}


async def test_released_members_do_not_count_only_arrived_ones_do() -> None:
    world = a_pair()
    waiting = await call(world, "a")
    assert not waiting.done()
    assert world.states() == {"a": ("Arrived", "n1"), "b": ("Released", "n1")}
    waiting.cancel()


async def test_success_is_answered_only_after_the_api_server_has_accepted() -> None:
    world = a_pair(minimum=1)
    accepted = asyncio.Event()

    async def slow(entry: object, node: str) -> str:
        await accepted.wait()
        return ""

    world.barrier.post = slow
    answer = await call(world, "a")
    assert not answer.done()

    accepted.set()
    assert await answer == ""


async def test_waiting_best_effort_members_count_towards_the_minimum() -> None:
    pods = (a_pod("a"), a_pod("b"), a_pod("c", cpu=""), a_pod("d", cpu=""))
    world = World.make(a_node("n1"), minimum=4, pods=pods)
    world.apply(ON_N1)

    answers = [await call(world, "a"), await call(world, "b")]

    assert [await answer for answer in answers] == ["", ""]


async def test_a_member_beyond_the_minimum_is_bound_as_it_comes() -> None:
    pods = (a_pod("a"), a_pod("b"), a_pod("c"))
    world = World.make(a_node("n1"), minimum=2, pods=pods)
    world.apply({**ON_N1, "c": "n1"})
    first, second = await call(world, "a"), await call(world, "b")
    await asyncio.gather(first, second)

    assert await (await call(world, "c")) == ""


ADMISSION = {
    "a pod that nobody planned": ("x", "n1", texts.NOT_PLANNED),
    "a pinned pod on another node than its pin": ("a", "n2", texts.OTHER_NODE),
}


@pytest.mark.parametrize(("pod", "node", "want"), ADMISSION.values(), ids=ADMISSION.keys())
async def test_refused_at_once(pod: str, node: str, want: str) -> None:
    world = a_pair()
    assert await (await call(world, pod, node)) == want


async def test_an_unplanned_pod_asks_for_a_session() -> None:
    world = a_pair()
    before = world.woken
    await (await call(world, "x"))
    assert world.woken == before + 1


async def test_a_second_call_for_a_bound_pod_is_a_success_and_posts_nothing() -> None:
    world = a_pair(minimum=1)
    await (await call(world, "a"))

    assert await (await call(world, "a")) == ""
    assert await (await call(world, "a", "n2")) == texts.OTHER_NODE
    assert world.posted == [("a", "n1")]


async def test_a_lost_call_leaves_the_member_released_and_the_others_waiting() -> None:
    world = a_pair()
    lost = await call(world, "a")
    lost.cancel()
    await settle()
    assert world.states()["a"] == ("Released", "n1")

    second = await call(world, "b")
    assert not second.done()
    again = await call(world, "a")
    assert [await again, await second] == ["", ""]


async def test_a_newer_call_for_the_same_pod_takes_over() -> None:
    world = a_pair()
    older = await call(world, "a")
    newer = await call(world, "a")
    assert await older == texts.SUPERSEDED

    await (await call(world, "b"))
    assert await newer == ""


async def test_a_member_whose_node_has_filled_is_refused_alone() -> None:
    world = a_pair()
    first = await call(world, "a", "n1")
    world.model.set_pod(a_pod("x", cpu="4", gates=None, node="n1", scheduler="other", group=""))

    second = await call(world, "b", "n1")

    assert [await first, await second] == [texts.NO_ROOM, texts.NO_ROOM]
    assert world.posted == []
    assert world.refused == [("a", texts.NO_ROOM), ("b", texts.NO_ROOM)]


async def test_one_bad_member_does_not_cost_the_others_their_place() -> None:
    world = World.make(a_node("n1"), a_node("n2"), pods=(a_pod("a"), a_pod("b")))
    world.apply({"a": "n1", "b": "n2"})
    first = await call(world, "a", "n1")
    world.model.set_node(a_node("n2", cpu=0))

    second = await call(world, "b", "n2")

    assert await second == texts.NO_ROOM
    assert not first.done()
    assert world.states()["a"] == ("Arrived", "n1")
    first.cancel()


async def test_two_members_cannot_both_take_the_last_room_of_a_node() -> None:
    world = a_pair()
    first = await call(world, "a")
    world.model.set_node(a_node("n1", cpu=1))

    second = await call(world, "b")

    assert await second == texts.NO_ROOM
    assert not first.done()
    first.cancel()


async def test_a_member_that_is_deleted_gets_an_answer() -> None:
    world = a_pair()
    answer = await call(world, "a")
    world.model.remove_pod(PodUid("a"))
    assert await answer == texts.GONE


async def test_members_that_wait_for_a_node_which_is_gone_are_refused() -> None:
    world = a_pair()
    answer = await call(world, "a")
    world.model.cluster.remove_node("n1")
    world.barrier.node_gone("n1")
    assert await answer == texts.NO_ROOM
    assert world.refused == [("a", texts.NO_ROOM)]


async def test_a_minimum_that_is_lowered_opens_the_barrier() -> None:
    world = a_pair()
    answer = await call(world, "a")
    world.model.cluster.set_pod_group(a_group(1))
    world.model.changed(next(iter(world.model.cluster.jobs)))
    assert await answer == ""


async def test_a_binding_that_is_refused_for_good_is_told_and_counts_for_nothing() -> None:
    world = a_pair(minimum=1)

    async def refuse(entry: object, node: str) -> str:
        return "refused"

    world.barrier.post = refuse
    assert await (await call(world, "a")) == "refused"
    assert world.states()["a"] == ("Released", "n1")


async def test_a_call_that_is_lost_while_its_binding_is_posted_is_bound_all_the_same() -> None:
    world = a_pair(minimum=1)
    accepted = asyncio.Event()

    async def slow(entry: object, node: str) -> str:
        await accepted.wait()
        return ""

    world.barrier.post = slow
    lost = await call(world, "a")
    lost.cancel()
    await settle()
    again = await call(world, "a")
    accepted.set()

    assert await again == ""
    assert world.states()["a"] == ("Bound", "n1")


async def test_a_call_for_another_node_is_no_success_because_of_the_one_before() -> None:
    world = a_pair(minimum=1)
    accepted = asyncio.Event()

    async def slow(entry: object, node: str) -> str:
        await accepted.wait()
        return ""

    world.barrier.post = slow
    first = await call(world, "a", "n1")
    second = await call(world, "a", "n2")
    accepted.set()

    assert [await first, await second] == ["", texts.OTHER_NODE]


async def test_a_call_that_comes_while_a_binding_fails_is_tried_by_itself() -> None:
    world = a_pair(minimum=1)
    looked = asyncio.Event()
    answers = iter(["refused", ""])

    async def fail_once(entry: object, node: str) -> str:
        await looked.wait()
        return next(answers)

    world.barrier.post = fail_once
    first, second = await call(world, "a"), await call(world, "a")
    looked.set()

    assert [await first, await second] == ["refused", ""]
    assert world.states()["a"] == ("Bound", "n1")


async def test_a_binding_that_goes_wrong_unforeseen_is_answered_all_the_same() -> None:
    world = a_pair(minimum=1)

    async def explode(entry: object, node: str) -> str:
        raise RuntimeError("secret address")

    world.barrier.post = explode

    assert await (await call(world, "a")) == texts.FAILED
    assert world.states()["a"] == ("Released", "n1")
    assert world.barrier.parked == {}


async def test_a_pod_without_a_group_is_answered_when_its_node_is_full() -> None:
    world = World.make(a_node("n1", cpu=1))
    spec = {"affinity": {"nodeAffinity": PINNED}}
    world.model.set_pod(a_pod("x", gates=None, group="", spec=spec))
    world.model.set_node(a_node("n1", cpu=0))

    assert await (await call(world, "x")) == texts.NO_ROOM


PINNED = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
        ]
    }
}


async def test_a_member_that_was_refused_is_not_bound_when_it_comes_again() -> None:
    world = a_pair()
    first = await call(world, "a")
    world.model.set_node(a_node("n1", cpu=0))
    second = await call(world, "b")
    assert [await first, await second] == [texts.NO_ROOM, texts.NO_ROOM]

    world.model.set_node(a_node("n1"))

    assert await (await call(world, "a")) == texts.REPLACED
    assert await (await call(world, "b")) == texts.REPLACED
    assert world.posted == []


async def test_a_waiting_member_that_is_to_be_replaced_gets_an_answer() -> None:
    world = a_pair()
    waiting = await call(world, "a")

    world.releases.replace(PodUid("a"))

    assert await waiting == texts.REPLACED
    assert world.states()["a"] == ("Released", "n1")


async def test_a_member_that_is_being_bound_is_not_refused_any_more() -> None:
    world = a_pair(minimum=1)
    accepted = asyncio.Event()

    async def slow(entry: object, node: str) -> str:
        await accepted.wait()
        return ""

    world.barrier.post = slow
    answer = await call(world, "a")
    world.barrier.node_gone("n1")
    world.barrier.refuse(PodUid("a"), texts.REPLACED)
    accepted.set()

    assert await answer == ""
    assert world.refused == []


async def test_best_effort_members_on_their_way_count_as_waiting_ones_do() -> None:
    pods = (a_pod("a"), a_pod("b"), a_pod("c", cpu=""), a_pod("d", cpu=""))
    world = World.make(a_node("n1"), minimum=4, pods=pods)
    world.apply({**ON_N1, "c": "n1", "d": "n1"})

    answers = [await call(world, "a"), await call(world, "b")]

    assert [await answer for answer in answers] == ["", ""]


async def test_members_that_are_being_bound_count_for_those_that_come_after() -> None:
    pods = (a_pod("a"), a_pod("b"), a_pod("c"))
    world = World.make(a_node("n1"), minimum=2, pods=pods)
    world.apply({**ON_N1, "c": "n1"})
    accepted = asyncio.Event()

    async def slow(entry: object, node: str) -> str:
        await accepted.wait()
        return ""

    world.barrier.post = slow
    answers = [await call(world, name) for name in "abc"]
    assert len(world.barrier.commits) == 3
    accepted.set()

    assert [await answer for answer in answers] == ["", "", ""]
    assert (world.barrier.parked, world.barrier.by_job) == ({}, {})


async def test_shutting_down_answers_everyone() -> None:
    world = a_pair()
    answer = await call(world, "a")
    await world.barrier.close()
    assert await answer == texts.SHUTTING_DOWN
    assert await (await call(world, "b")) == texts.SHUTTING_DOWN


async def test_with_the_barrier_off_everyone_is_bound_as_he_comes() -> None:
    world = a_pair(barrier=False)
    assert await (await call(world, "a")) == ""


class TestPodsOfOtherOwners:
    """They were nominated or ungated: kube-scheduler may have taken them elsewhere."""

    def world(self, arm: Arm) -> World:
        pods = (a_pod("a", owner=None), a_pod("b", owner=None))
        minimum = 2 if arm is Arm.NOMINATE else 1
        world = World.make(a_node("n1"), a_node("n2"), minimum=minimum, pods=pods)
        world.apply(ON_N1)
        return world

    async def test_another_node_with_room_is_accepted_and_the_charge_moves(self) -> None:
        world = self.world(Arm.UNGATE)

        assert await (await call(world, "a", "n2")) == ""

        assert world.posted == [("a", "n2")]
        assert world.model.cluster.nodes.tasks_on("n2").keys() == {"a"}
        assert world.model.cluster.check() == []

    async def test_another_node_without_room_is_refused_and_the_pod_planned_again(self) -> None:
        world = self.world(Arm.NOMINATE)
        world.model.set_pod(a_pod("x", cpu="4", gates=None, node="n2", scheduler="o", group=""))

        assert await (await call(world, "a", "n2")) == texts.NO_ROOM

        assert "a" not in world.states()
        assert world.woken

    async def test_a_queue_at_its_limit_refuses_at_once(self) -> None:
        world = self.world(Arm.UNGATE)
        world.barrier.within_queue = lambda task: False

        assert await (await call(world, "a")) == texts.QUEUE_FULL
