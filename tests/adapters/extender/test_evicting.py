"""Evictions: who is told to go, in which order, when it is called off, and who gets the room."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import pytest

from extender.evicting import SHOWN_S, SPARED_S, Evictions
from pumice.core.api.limits import PodDisruptionBudget
from pumice.core.ids import JobKey, PodUid
from pumice.core.model.tasks import Status
from pumice.core.plan import Evict, Placement, Plan, Reason, Victim
from pumice.kube.errors import (
    ApiError,
    Conflict,
    Disconnected,
    Forbidden,
    NotFound,
    ServerError,
    TooManyRequests,
)
from pumice.kube.events import Recorder
from pumice.kube.resources import BUDGETS, POD_GROUPS, PODS, QUEUES
from tests.adapters.extender.bed import Bed, Json
from tests.adapters.extender.world import GANG, World, a_group, a_node, a_pod
from tests.fakeapi import FakeApi, ManualClock

LOW = JobKey("ns/low")
WINNERS = (a_pod("a"), a_pod("b"))
RUNNING = {"phase": "Running"}
RECLAIM = """
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""


@dataclass
class Told:
    """An eviction API that answers as it is told, and keeps who was asked to go."""

    names: list[str] = field(default_factory=list)
    answers: dict[str, list[Exception]] = field(default_factory=dict)

    async def evict(self, namespace: str, name: str, *, uid: str) -> None:
        assert uid == name
        self.names.append(name)
        if self.answers.get(name):
            raise self.answers[name].pop(0)
        await asyncio.sleep(0)


@dataclass
class Scene:
    """A full node, a gang that waits, and what was decided for it."""

    world: World
    evictions: Evictions
    told: Told
    clock: ManualClock

    @classmethod
    def make(cls, victims: int = 2) -> Scene:
        clock, told = ManualClock(), Told()
        world = World.make(a_node("n1", cpu=victims), pods=WINNERS)
        world.model.now = clock.monotonic
        world.model.cluster.set_pod_group(a_group(0, "low"))
        for i in range(victims):
            world.model.set_pod(
                a_pod(f"low-{i}", group="low", gates=None, node="n1", status=RUNNING)
            )
        recorder = Recorder(FakeApi(clock).client(), "extender", clock=clock)
        evictions = Evictions(world.model, told, world.sent, recorder, clock)
        return cls(world, evictions, told, clock)

    def decision(self, *victims: str) -> Plan:
        why = Reason("preempt", "gang", "")
        gone = tuple(Victim(PodUid(v), LOW, "n1", why) for v in victims or ("low-0", "low-1"))
        claims = tuple(Placement(PodUid(pod.metadata.name), "n1") for pod in WINNERS)
        return Plan("s1", 0.0, evictions=(Evict(GANG, "gang", gone, claims, "preempt"),))

    async def carry_out(self) -> None:
        """Enter the decision, and tell everybody who is to go."""
        assert self.evictions.enter(self.decision()) == 1
        async with asyncio.TaskGroup() as group:
            running = group.create_task(self.evictions.run(), name="evictions")
            await self.clock.advance(60)
            running.cancel()

    def cover(self, name: str) -> None:
        """Let a budget cover a pod."""
        pod = self.world.model.cluster.pods[PodUid(name)]
        labelled = msgspec.structs.replace(pod.metadata, labels={"app": name})
        self.world.model.set_pod(msgspec.structs.replace(pod, metadata=labelled))
        budget = {
            "metadata": {"name": name, "namespace": "ns"},
            "spec": {"selector": {"matchLabels": {"app": name}}},
        }
        self.world.model.cluster.inputs.set_budget(msgspec.convert(budget, PodDisruptionBudget))

    def leaving(self) -> list[str]:
        """Return who counts as on the way out."""
        tasks = (self.world.model.cluster.task(uid) for uid in self.world.model.cluster.pods)
        return sorted(t.name for t in tasks if t is not None and t.status is Status.RELEASING)

    def nominated(self) -> dict[str, str]:
        """Return the nominations that sessions see."""
        tasks = {n: self.world.model.cluster.task(PodUid(n)) for n in ("a", "b")}
        return {n: t.nominated for n, t in tasks.items() if t is not None and t.nominated}


async def test_victims_are_told_and_the_winners_nominated() -> None:
    scene = Scene.make()
    await scene.carry_out()
    assert sorted(scene.told.names) == ["low-0", "low-1"]
    assert scene.leaving() == ["low-0", "low-1"]
    assert scene.nominated() == {"a": "n1", "b": "n1"}
    nomination = {"status": {"nominatedNodeName": "n1"}}
    assert scene.world.sent.patches == [("a", nomination), ("b", nomination)]


def test_from_the_first_moment_victims_count_as_leaving_and_winners_as_nominated() -> None:
    scene = Scene.make()
    scene.world.sent.hold_back = True
    scene.evictions.enter(scene.decision())
    assert scene.leaving() == ["low-0", "low-1"]
    assert scene.nominated() == {"a": "n1", "b": "n1"}
    assert scene.world.model.cluster.check() == []
    # Whatever comes of them meanwhile.
    for pod in list(scene.world.model.cluster.pods.values()):
        scene.world.model.set_pod(pod)
    assert scene.leaving() == ["low-0", "low-1"]
    assert scene.nominated() == {"a": "n1", "b": "n1"}


async def test_a_refusal_of_the_covered_one_leaves_the_others_alone() -> None:
    scene = Scene.make()
    scene.cover("low-1")
    scene.told.answers = {"low-1": [TooManyRequests(429)]}
    await scene.carry_out()
    assert scene.told.names == ["low-1"]
    assert scene.leaving() == []
    assert scene.nominated() == {}
    assert scene.world.sent.patches[-1] == ("b", {"status": {"nominatedNodeName": ""}})


async def test_who_was_refused_is_not_tried_again_for_a_while() -> None:
    scene = Scene.make()
    scene.world.model.spare(PodUid("low-1"), SPARED_S)
    assert scene.world.model.spared_pods() == {"low-1"}
    await scene.clock.advance(SPARED_S + 1)
    assert scene.world.model.spared_pods() == frozenset()


@pytest.mark.parametrize("error", [NotFound(404), Conflict(409)], ids=str)
async def test_one_that_is_not_there_any_more_counts_as_gone(error: ApiError) -> None:
    scene = Scene.make()
    scene.told.answers = {"low-0": [error]}
    await scene.carry_out()
    assert sorted(scene.told.names) == ["low-0", "low-1"]
    assert scene.leaving() == ["low-0", "low-1"]
    assert scene.nominated() == {"a": "n1", "b": "n1"}


async def test_an_eviction_without_an_answer_is_sent_again() -> None:
    scene = Scene.make()
    scene.told.answers = {"low-0": [Disconnected("away"), Disconnected("away")]}
    await scene.carry_out()
    assert scene.told.names.count("low-0") == 3
    assert scene.leaving() == ["low-0", "low-1"]


@pytest.mark.parametrize("error", [Forbidden(403), ValueError("a bug")], ids=str)
async def test_what_fails_for_good_is_called_off_and_others_go_on(error: Exception) -> None:
    scene = Scene.make()
    scene.cover("low-0")
    scene.told.answers = {"low-0": [error]}
    await scene.carry_out()
    assert scene.told.names == ["low-0"]
    assert (scene.leaving(), scene.nominated()) == ([], {})
    await scene.carry_out()
    assert scene.leaving() == ["low-0", "low-1"]


async def test_nobody_goes_for_a_winner_that_has_gone_itself() -> None:
    scene = Scene.make()
    scene.evictions.enter(scene.decision())
    scene.world.model.remove_pod(PodUid("a"))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(scene.evictions.run(), name="evictions")
        await scene.clock.advance(1)
        running.cancel()
    assert scene.told.names == []
    assert scene.leaving() == []
    assert scene.nominated() == {}


async def test_the_rest_stays_once_the_winner_has_another_place() -> None:
    scene = Scene.make(victims=3)
    scene.cover("low-0")
    scene.evictions.enter(scene.decision("low-0", "low-1"))
    scene.world.model.set_node(a_node("n2"))
    evict = scene.told.evict

    async def and_place(namespace: str, name: str, *, uid: str) -> None:
        await evict(namespace, name, uid=uid)
        scene.world.apply({"a": "n2", "b": "n2"})

    scene.told.evict = and_place  # type: ignore[method-assign]
    async with asyncio.TaskGroup() as group:
        running = group.create_task(scene.evictions.run(), name="evictions")
        await scene.clock.advance(1)
        running.cancel()
    assert scene.told.names == ["low-0"]
    assert scene.leaving() == ["low-0"]


STALE = {
    "the victim is gone": lambda world: world.model.remove_pod(PodUid("low-0")),
    "the victim has finished": lambda world: world.model.set_pod(
        a_pod("low-0", group="low", gates=None, node="n1", status={"phase": "Succeeded"})
    ),
    "the winner is gone": lambda world: world.model.remove_pod(PodUid("a")),
    "the winner has a plan": lambda world: world.model.plan(PodUid("a"), "n1"),
    "the group is another one": lambda world: world.model.cluster.remove_pod_group(GANG),
    "the node is gone": lambda world: world.model.cluster.remove_node("n1"),
    "somebody else took the room": lambda world: world.model.set_pod(
        a_pod("other", gates=None, node="n1", group="other", scheduler="default", status=RUNNING)
    ),
}


@pytest.mark.parametrize("happens", STALE.values(), ids=STALE.keys())
def test_a_decision_that_no_longer_holds_is_dropped(happens: object) -> None:
    scene = Scene.make()
    assert callable(happens)
    happens(scene.world)
    assert scene.evictions.enter(scene.decision()) == 0
    assert scene.leaving() == []
    assert scene.world.sent.patches == []


def test_two_decisions_do_not_share_what_one_victim_leaves() -> None:
    scene = Scene.make()
    one = scene.decision().evictions
    assert scene.evictions.enter(Plan("s1", 0.0, evictions=one * 2)) == 1


def test_one_decision_may_rest_on_what_the_victims_of_another_leave() -> None:
    scene = Scene.make()
    [both] = scene.decision().evictions
    one, other = both.claims
    rests = replace(both, victims=(), claims=(one,))
    leaves = replace(both, claims=(other,))
    assert scene.evictions.enter(Plan("s1", 0.0, evictions=(rests, leaves))) == 2
    assert (scene.leaving(), scene.nominated()) == (["low-0", "low-1"], {"a": "n1", "b": "n1"})


def test_of_two_that_want_the_same_room_the_first_has_it() -> None:
    scene = Scene.make()
    [both] = scene.decision().evictions
    half = [
        replace(both, victims=both.victims[i : i + 1], claims=both.claims[i : i + 1])
        for i in range(2)
    ]
    somebody = a_pod("o", gates=None, node="n1", group="o", scheduler="default", status=RUNNING)
    scene.world.model.remove_pod(PodUid("low-1"))
    scene.world.model.set_pod(somebody)
    rests = replace(half[1], victims=())
    assert scene.evictions.enter(Plan("s1", 0.0, evictions=(half[0], rests))) == 1
    assert (scene.leaving(), scene.nominated()) == (["low-0"], {"a": "n1"})


async def test_one_that_was_told_and_does_not_go_is_there_again_after_a_while() -> None:
    scene = Scene.make()
    await scene.carry_out()
    await scene.clock.advance(SHOWN_S)
    scene.evictions.enter(Plan("s2", 0.0))
    assert scene.leaving() == []


# The whole extender.


def a_bed(tmp_path: Path) -> tuple[Bed, str]:
    """Return a full node of queue `default`, and the configuration to start with."""
    conf = tmp_path / "scheduler.conf"
    conf.write_text(RECLAIM)
    bed = Bed()
    bed.nodes(1)
    bed.api.add(QUEUES, {"metadata": {"name": "other"}})
    spec = {"minMember": 1, "queue": "default"}
    bed.api.add(POD_GROUPS, {"metadata": {"name": "wide"}, "spec": spec}, "ns")
    for i in range(4):
        bed.pod(f"wide-w-{i}", group="wide", labels={"app": f"w-{i}"})
    return bed, str(conf)


def come(bed: Bed) -> None:
    """Let a gang of two come into the other queue."""
    spec = {"minMember": 2, "queue": "other"}
    bed.api.add(POD_GROUPS, {"metadata": {"name": "small"}, "spec": spec}, "ns")
    for i in range(2):
        bed.pod(f"small-{i}", group="small")


def leaving(bed: Bed) -> list[Json]:
    return [pod for pod in bed.api.all(PODS) if pod["metadata"].get("deletionTimestamp")]


def evicted(bed: Bed) -> list[str]:
    """Return for whom an eviction was sent, in order."""
    return [call.path.split("/")[-2] for call in bed.writes("/eviction")]


async def test_room_is_taken_back_and_given_to_those_it_was_taken_for(tmp_path: Path) -> None:
    bed, conf = a_bed(tmp_path)
    async with bed.extender("--scheduler-conf", conf), bed.scheduler():
        await bed.until(lambda: len(bed.bound("wide")) == 4)
        come(bed)
        await bed.until(lambda: len(leaving(bed)) == 2)
        await bed.until(lambda: bed.stored("small-1")["status"].get("nominatedNodeName") == "n0")
        for pod in leaving(bed):
            bed.api.objects.delete(PODS, pod, {"gracePeriodSeconds": 0})
        await bed.until(lambda: len(bed.bound("small")) == 2)
        await bed.quiet()
    # On a pod that is pinned a nomination would mean something else.
    assert not any(bed.stored(f"small-{i}")["status"].get("nominatedNodeName") for i in (0, 1))
    assert len(evicted(bed)) == 2
    assert len(bed.bound("wide")) == 2


async def test_a_budget_that_says_no_sends_others_instead(tmp_path: Path) -> None:
    bed, conf = a_bed(tmp_path)
    budget = {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "w-2"}}}}
    bed.api.add(BUDGETS, budget, "ns")
    bed.api.fail(429, path="/wide-w-2/eviction", times=99)
    async with bed.extender("--scheduler-conf", conf), bed.scheduler():
        await bed.until(lambda: len(bed.bound("wide")) == 4)
        come(bed)
        await bed.until(lambda: len(leaving(bed)) == 2)
    assert evicted(bed)[0] == "wide-w-2"
    assert sorted(evicted(bed)[1:]) == ["wide-w-1", "wide-w-3"]


async def test_a_server_that_fails_at_an_eviction_again_and_again_has_refused_it() -> None:
    scene = Scene.make()
    failure = ServerError(500, "InternalError", "covered by more than one PodDisruptionBudget")
    scene.told.answers = {"low-0": [failure] * 1_000}
    await scene.carry_out()
    assert (scene.evictions.refused, scene.leaving()) == (1, ["low-1"])
    assert scene.told.names.count("low-0") < 20
