"""filter, prioritize and preempt: what a kube-scheduler shared with other pods is told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
import pytest

from extender import wire
from extender.answers import QUEUE_FULL
from extender.strangers import Strangers
from extender.verbs import LOOK_S, NOT_ALLOWED, NOT_OURS, STARTING, EngineVerbs
from pumice.core.api.core import Pod
from pumice.core.api.scheduling import PodGroup, Queue
from pumice.core.conf import DEFAULT, Configuration
from pumice.core.ids import PodUid
from tests.adapters.extender.world import World, a_node, a_pod
from tests.fakeapi import ManualClock


def verbs_of(
    world: World,
    clock: ManualClock | None = None,
    configuration: Callable[[], Configuration] = lambda: DEFAULT,
) -> EngineVerbs:
    synced = asyncio.Event()
    synced.set()
    clock = clock or ManualClock()
    strangers = Strangers(world.model, world.barrier.post)
    return EngineVerbs(world.model, world.barrier, configuration, clock, synced, strangers)


def args(pod: Pod, *names: str) -> wire.Args:
    return wire.Args(pod=pod, node_names=list(names))


def left(*names: str, **refused: str) -> wire.FilterResult:
    """Return the answer that leaves these nodes, and refuses others for a reason."""
    return wire.FilterResult(
        node_names=list(names), failed_and_unresolvable_nodes=refused, error=""
    )


# filter.


async def test_a_planned_pod_is_left_its_node() -> None:
    world = World.make(a_node("n1"), a_node("n2"), pods=(a_pod("a"), a_pod("b")))
    world.apply({"a": "n1", "b": "n2"})

    result = await verbs_of(world).filter(args(a_pod("a"), "n1", "n2"))

    assert result == left("n1", n2=NOT_ALLOWED)


async def test_a_planned_pod_is_left_nothing_where_its_node_is_not_offered() -> None:
    world = World.make(a_node("n1"), a_node("n2"), pods=(a_pod("a"), a_pod("b")))
    world.apply({"a": "n1", "b": "n2"})
    assert await verbs_of(world).filter(args(a_pod("a"), "n2")) == left(n2=NOT_ALLOWED)


async def test_a_pod_that_was_merely_ungated_has_a_node_too_but_may_go_elsewhere() -> None:
    pod = a_pod("a", owner=None)
    world = World.make(a_node("n1"), a_node("n2"), minimum=1, pods=(pod,))
    world.apply({"a": "n1"})
    verbs = verbs_of(world)

    assert await verbs.filter(args(pod, "n1", "n2")) == left("n1", n2=NOT_ALLOWED)
    assert await verbs.filter(args(pod, "n2")) == left("n2")


async def test_a_pod_with_claims_may_go_elsewhere_also_where_held_members_are_planned() -> None:
    spec = {"resourceClaims": [{"name": "card", "resourceClaimTemplateName": "card"}]}
    pods = (a_pod("x", spec=spec), a_pod("a"))
    world = World.make(*(a_node(f"n{i}", cpu=1) for i in (1, 2, 3)), pods=pods)
    world.apply({"x": "n1", "a": "n2"})
    world.model.set_pod(a_pod("f", gates=None, node="n3", scheduler="other", group=""))
    verbs = verbs_of(world)

    assert await verbs.filter(args(pods[0], "n1", "n2")) == left("n1", n2=NOT_ALLOWED)
    assert await verbs.filter(args(pods[0], "n2", "n3")) == left("n2", n3=NOT_ALLOWED)


async def test_an_unplanned_pod_is_left_the_nodes_that_the_engine_allows() -> None:
    pod = a_pod("a", cpu="3", gates=None)
    world = World.make(a_node("n1", cpu=2), a_node("n2"), pods=(pod,))
    assert await verbs_of(world).filter(args(pod, "n1", "n2")) == left("n2", n1=NOT_ALLOWED)


async def test_room_that_is_promised_to_others_is_no_room() -> None:
    pod = a_pod("free", cpu="3", gates=None, group="")
    gang = (a_pod("a", cpu="2"), a_pod("b", cpu="2"))
    world = World.make(a_node("n1"), a_node("n2"), pods=(*gang, pod))
    world.apply({"a": "n1", "b": "n1"})
    assert await verbs_of(world).filter(args(pod, "n1", "n2")) == left("n2", n1=NOT_ALLOWED)


async def test_room_that_others_are_about_to_leave_is_none_yet() -> None:
    leaving = a_pod("x", cpu="4", gates=None, node="n1", scheduler="other", group="")
    leaving.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    pod = a_pod("a", gates=None)
    world = World.make(a_node("n1"), a_node("n2"), pods=(leaving, pod))
    assert await verbs_of(world).filter(args(pod, "n1", "n2")) == left("n2", n1=NOT_ALLOWED)


def a_queue(**fields: Any) -> Queue:
    return msgspec.convert({"metadata": {"name": "default"}, **fields}, Queue)


QUEUES = {
    "that is closed": a_queue(status={"state": "Closed"}),
    "that may have no more": a_queue(spec={"capability": {"cpu": "2"}}),
}


@pytest.mark.parametrize("queue", QUEUES.values(), ids=QUEUES.keys())
async def test_an_unplanned_pod_of_a_queue_gets_no_node(queue: Queue) -> None:
    running = a_pod("x", cpu="2", gates=None, node="n1", status={"phase": "Running"})
    pod = a_pod("a", gates=None)
    world = World.make(a_node("n1"), minimum=1, pods=(running, pod))
    world.model.cluster.set_queue(queue)
    assert await verbs_of(world).filter(args(pod, "n1")) == left(n1=QUEUE_FULL)


async def test_an_ungated_pod_whose_queue_is_at_its_limit_gets_no_node() -> None:
    pod = a_pod("a", owner=None)
    world = World.make(a_node("n1"), a_node("n2"), minimum=1, pods=(pod,))
    world.apply({"a": "n1"})
    world.barrier.within_queue = lambda task: False
    assert await verbs_of(world).filter(args(pod, "n2")) == left(n2=QUEUE_FULL)


async def test_an_unknown_pod_of_ours_is_told_to_wait() -> None:
    world = World.make(a_node("n1"))
    result = await verbs_of(world).filter(args(a_pod("x"), "n1"))
    assert result == wire.FilterResult(node_names=[], error="not planned")


async def test_before_the_caches_are_synced_nothing_is_known() -> None:
    pod = a_pod("a", gates=None)
    verbs = verbs_of(World.make(a_node("n1"), pods=(pod,)))
    verbs.synced.clear()
    assert await verbs.filter(args(pod, "n1")) == wire.FilterResult(node_names=[], error=STARTING)


async def test_pods_of_other_schedulers_pass_untouched() -> None:
    world = World.make(a_node("n1"))
    pod = a_pod("x", scheduler="default-scheduler")
    verbs = verbs_of(world)
    assert await verbs.filter(args(pod, "n1", "n9")) == left("n1", "n9")
    assert await verbs.prioritize(args(pod, "n1", "n9")) == []


async def test_pods_of_other_schedulers_are_not_bound() -> None:
    pod = a_pod("x", gates=None, scheduler="default-scheduler")
    world = World.make(a_node("n1"), pods=(pod,))
    assert await verbs_of(world).bind(PodUid("x"), "n1") == NOT_OURS
    assert (world.posted, world.woken) == ([], 0)


# prioritize.


async def test_scores_are_stretched_over_the_range_and_unknown_nodes_left_out() -> None:
    full = a_pod("x", cpu="3", gates=None, node="n1", scheduler="other", group="")
    pod = a_pod("a", gates=None)
    world = World.make(a_node("n1"), a_node("n2"), pods=(full, pod))

    scores = await verbs_of(world).prioritize(args(pod, "n1", "n2", "n9"))

    assert scores == [
        wire.HostPriority(host="n1", score=0),
        wire.HostPriority(host="n2", score=10),
    ]


async def test_where_no_node_is_known_nothing_is_scored() -> None:
    pod = a_pod("a", gates=None)
    world = World.make(a_node("n1"), pods=(pod,))
    assert await verbs_of(world).prioritize(args(pod, "n8", "n9")) == []


# The session that answers.


@dataclass
class Watched:
    """The configuration, which tells how often it was taken and in which threads it was read."""

    taken: int = 0
    threads: set[str] = field(default_factory=set)

    def __call__(self) -> Configuration:
        self.taken += 1
        return cast(Configuration, self)

    def __getattr__(self, name: str) -> Any:
        self.threads.add(threading.current_thread().name)
        return getattr(DEFAULT, name)


async def test_one_session_serves_for_a_while_and_none_is_opened_on_the_loop() -> None:
    pod, clock, conf = a_pod("a", gates=None), ManualClock(), Watched()
    verbs = verbs_of(World.make(a_node("n1"), a_node("n2"), pods=(pod,)), clock, conf)

    await asyncio.gather(*(verbs.filter(args(pod, "n1")) for _ in range(5)))
    await verbs.prioritize(args(pod, "n1", "n2"))
    assert conf.taken == 1
    await clock.advance(2 * LOOK_S)
    await verbs.filter(args(pod, "n1"))

    assert conf.taken == 2
    assert conf.threads
    assert threading.main_thread().name not in conf.threads


async def test_a_pod_that_asks_for_something_new_is_looked_at_anew() -> None:
    pod, conf = a_pod("a", gates=None), Watched()
    world = World.make(a_node("n1"), pods=(pod,))
    verbs = verbs_of(world, configuration=conf)
    await verbs.filter(args(pod, "n1"))

    other = a_pod("b", gates=None, group="")
    assert other.spec.containers
    assert other.spec.containers[0].resources
    other.spec.containers[0].resources.requests = {"example.com/device": "1"}
    world.model.set_pod(other)

    assert await verbs.filter(args(other, "n1")) == left(n1=NOT_ALLOWED)
    assert conf.taken == 2


# preempt.


def victims(*uids: str) -> wire.MetaVictims:
    return wire.MetaVictims(pods=[wire.MetaPod(uid=uid) for uid in uids])


def running(name: str, node: str, role: str = "") -> Pod:
    pod = a_pod(name, gates=None, node=node, status={"phase": "Running"})
    assert pod.metadata.annotations is not None
    pod.metadata.annotations["volcano.sh/task-spec"] = role
    return pod


def vetoed(world: World, **offered: wire.MetaVictims) -> set[str]:
    """Return the nodes on which a preemption is vetoed."""
    asked = wire.PreemptionArgs(pod=msgspec.convert({}, Pod), node_name_to_meta_victims=offered)
    result = verbs_of(world).preempt(asked).node_name_to_meta_victims
    assert result.items() <= offered.items()
    return offered.keys() - result.keys()


async def test_a_preemption_that_breaks_a_gang_is_vetoed_and_one_that_does_not_is_allowed() -> None:
    gang = (running("a", "n1"), running("b", "n1"), running("c", "n2"))
    world = World.make(a_node("n1"), a_node("n2"), minimum=2, pods=gang)
    assert vetoed(world, n1=victims("a", "b"), n2=victims("c")) == {"n1"}


async def test_a_preemption_that_leaves_too_few_of_a_role_is_vetoed() -> None:
    gang = (running("ps", "n1", "ps"), running("w1", "n2", "worker"), running("w2", "n2", "worker"))
    world = World.make(a_node("n1"), a_node("n2"), pods=gang)
    group = {
        "metadata": {"name": "gang", "namespace": "ns", "uid": "gang"},
        "spec": {
            "minMember": 2,
            "minTaskMember": {"ps": 1, "worker": 1},
            "queue": "default",
        },
    }
    world.model.cluster.set_pod_group(msgspec.convert(group, PodGroup))
    assert vetoed(world, n1=victims("ps"), n2=victims("w1")) == {"n1"}


async def test_a_gang_that_lacks_its_minimum_anyway_is_not_spared() -> None:
    world = World.make(a_node("n1"), minimum=3, pods=(running("a", "n1"), running("b", "n1")))
    assert vetoed(world, n1=victims("a")) == set()


async def test_victims_that_are_no_gangs_may_go() -> None:
    foreign = a_pod("x", gates=None, node="n1", scheduler="other", group="")
    world = World.make(a_node("n1"), pods=(foreign,))
    assert vetoed(world, n1=victims("x", "gone"), n2=wire.MetaVictims()) == set()
