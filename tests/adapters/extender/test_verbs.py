"""filter, prioritize and preempt: what a kube-scheduler shared with other pods is told."""

from __future__ import annotations

import asyncio

import msgspec

from extender import wire
from extender.verbs import NOT_ALLOWED, EngineVerbs
from pumice.core.api.core import Pod
from pumice.core.conf import DEFAULT
from pumice.kube.clock import SystemClock
from tests.adapters.extender.world import World, a_node, a_pod


def verbs_of(world: World) -> EngineVerbs:
    return EngineVerbs(world.model, world.barrier, lambda: DEFAULT, SystemClock(), asyncio.Event())


def args(pod: Pod, *names: str) -> wire.Args:
    return wire.Args(pod=pod, node_names=list(names))


def test_a_planned_pod_is_left_its_node() -> None:
    world = World.make(a_node("n1"), a_node("n2"), pods=(a_pod("a"), a_pod("b")))
    world.apply({"a": "n1", "b": "n2"})

    result = verbs_of(world).filter(args(a_pod("a"), "n1", "n2"))

    assert result == wire.FilterResult(
        node_names=["n1"], failed_and_unresolvable_nodes={"n2": NOT_ALLOWED}
    )


def test_an_unplanned_pod_is_left_the_nodes_that_the_engine_allows() -> None:
    pod = a_pod("a", cpu="3", gates=None)
    world = World.make(a_node("n1", cpu=2), a_node("n2"), pods=(pod,))

    result = verbs_of(world).filter(args(pod, "n1", "n2"))

    assert (result.node_names, result.error) == (["n2"], "")


def test_an_unknown_pod_of_ours_is_told_to_wait() -> None:
    world = World.make(a_node("n1"))
    result = verbs_of(world).filter(args(a_pod("x"), "n1"))
    assert result == wire.FilterResult(node_names=[], error="not planned")


def test_pods_of_other_schedulers_pass_untouched() -> None:
    world = World.make(a_node("n1"))
    pod = a_pod("x", scheduler="default-scheduler")
    verbs = verbs_of(world)
    assert verbs.filter(args(pod, "n1", "n9")) == wire.FilterResult(node_names=["n1", "n9"])
    assert verbs.prioritize(args(pod, "n1", "n9")) == []


def test_scores_are_stretched_over_the_range_and_unknown_nodes_left_out() -> None:
    full = a_pod("x", cpu="3", gates=None, node="n1", scheduler="other", group="")
    pod = a_pod("a", gates=None)
    world = World.make(a_node("n1"), a_node("n2"), pods=(full, pod))

    scores = verbs_of(world).prioritize(args(pod, "n1", "n2", "n9"))

    assert scores == [
        wire.HostPriority(host="n1", score=0),
        wire.HostPriority(host="n2", score=10),
    ]


def victims(*uids: str) -> wire.MetaVictims:
    return wire.MetaVictims(pods=[wire.MetaPod(uid=uid) for uid in uids])


def test_a_preemption_that_breaks_a_gang_is_vetoed_and_one_that_does_not_is_allowed() -> None:
    running = [
        a_pod(name, gates=None, node=node, status={"phase": "Running"})
        for name, node in [("a", "n1"), ("b", "n1"), ("c", "n2")]
    ]
    world = World.make(a_node("n1"), a_node("n2"), minimum=2, pods=tuple(running))
    offered = {"n1": victims("a", "b"), "n2": victims("c")}
    asked = wire.PreemptionArgs(pod=msgspec.convert({}, Pod), node_name_to_meta_victims=offered)

    result = verbs_of(world).preempt(asked)

    assert result.node_name_to_meta_victims == {"n2": victims("c")}
