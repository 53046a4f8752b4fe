"""A decision is checked again before it becomes true."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from extender.applying import apply_allocations
from extender.model import Model
from pumice.core.api.core import Pod
from pumice.core.ids import JobKey, PodUid
from pumice.core.plan import Allocate, Placement, Plan, Reason
from pumice.core.room import lacking, overcommitted
from pumice.core.surroundings import Surroundings
from tests.adapters.extender.world import World, a_group, a_node, a_pod

PAIR = (a_pod("a"), a_pod("b"))


def test_a_gang_that_fits_is_released_to_its_nodes() -> None:
    world = World.make(a_node("n1"), a_node("n2"), pods=PAIR)

    assert world.apply({"a": "n1", "b": "n2"}) == (2, 0)

    assert world.states() == {"a": ("Released", "n1"), "b": ("Released", "n2")}
    assert world.sent.names() == ["a", "b"]


def test_a_gang_of_which_one_member_does_not_fit_any_more_gets_nothing() -> None:
    world = World.make(a_node("n1", cpu=1), pods=PAIR)

    assert world.apply({"a": "n1", "b": "n1"}) == (0, 2)

    assert world.states() == {"a": ("Held", ""), "b": ("Held", "")}
    assert world.sent.patches == []
    assert lacking(world.model.cluster, PodUid("a"), "n1") == []


def test_a_running_job_keeps_the_extra_members_that_do_fit() -> None:
    pods = (*PAIR, a_pod("c"), a_pod("d"))
    world = World.make(a_node("n1", cpu=3), pods=pods)
    world.apply({"a": "n1", "b": "n1"})

    assert world.apply({"c": "n1", "d": "n1"}) == (1, 1)

    assert world.states()["c"] == ("Released", "n1")
    assert world.states()["d"] == ("Held", "")


def test_a_decision_for_a_group_that_was_made_anew_is_dropped() -> None:
    world = World.make(a_node("n1"), pods=PAIR)
    world.model.cluster.remove_pod_group(next(iter(world.model.cluster.jobs)))

    assert world.apply({"a": "n1", "b": "n1"}) == (0, 2)


def test_a_decision_for_a_pod_that_is_gone_is_dropped() -> None:
    world = World.make(a_node("n1"), pods=PAIR)
    world.model.remove_pod(PodUid("b"))

    assert world.apply({"a": "n1", "b": "n1"}) == (0, 2)
    assert world.states() == {"a": ("Held", "")}


def test_a_decision_for_a_node_that_is_gone_is_dropped() -> None:
    world = World.make(a_node("n1"), a_node("n2"), pods=PAIR)
    world.model.cluster.remove_node("n2")

    assert world.apply({"a": "n1", "b": "n2"}) == (0, 2)


def a_lone_pod(name: str, created: str, version: str, priority: int = 0) -> Pod:
    """Return a pod that is a gang by itself."""
    pod = a_pod(name, group=name, spec={"priority": priority})
    meta = {"creation_timestamp": f"2026-01-01T00:00:{created}Z", "resource_version": version}
    return replace(pod, metadata=replace(pod.metadata, **meta))


def test_gangs_are_released_in_the_order_in_which_kube_scheduler_takes_them() -> None:
    pods = (
        a_lone_pod("young", "02", "20"),
        a_lone_pod("second", "01", "11"),
        a_lone_pod("first", "01", "9"),
        a_lone_pod("important", "03", "30", priority=5),
    )
    world = World.make(a_node("n1"))
    for pod in pods:
        world.model.cluster.set_pod_group(a_group(1, pod.metadata.name))
        world.model.set_pod(pod)
    reason = Reason("allocate", "gang", "")
    decisions = tuple(
        Allocate(
            JobKey(f"ns/{pod.metadata.name}"),
            pod.metadata.name,
            (Placement(PodUid(pod.metadata.uid), "n1"),),
            reason,
        )
        for pod in pods
    )

    apply_allocations(Plan("s1", 0.0, decisions), world.model, world.releases)

    assert world.sent.names() == ["important", "first", "second", "young"]


def test_a_pod_without_gate_is_nominated_and_not_pinned() -> None:
    loose = (a_pod("a", gates=None), a_pod("b", gates=None))
    world = World.make(a_node("n1"), pods=loose)

    assert world.apply({"a": "n1", "b": "n1"}) == (2, 0)

    assert world.states() == {"a": ("Released", "n1"), "b": ("Released", "n1")}
    assert world.sent.patches == [
        ("a", {"status": {"nominatedNodeName": "n1"}}),
        ("b", {"status": {"nominatedNodeName": "n1"}}),
    ]


def test_the_same_decision_twice_places_nothing_twice() -> None:
    world = World.make(a_node("n1"), pods=PAIR)
    world.apply({"a": "n1", "b": "n1"})

    assert world.apply({"a": "n1", "b": "n1"})[0] == 0

    assert world.sent.names() == ["a", "b"]
    assert world.model.cluster.check() == []


def test_room_held_for_a_plan_is_no_overcommitment_but_bound_pods_are() -> None:
    world = World.make(a_node("n1", cpu=2), pods=PAIR)
    world.apply({"a": "n1", "b": "n1"})
    foreign = [a_pod(f"x{i}", gates=None, node="n1", scheduler="other", group="") for i in "ab"]
    for pod in foreign:
        world.model.set_pod(pod)
    assert overcommitted(world.model.cluster) == []

    world.show_bound("a", "n1")

    assert overcommitted(world.model.cluster) == ["n1"]


SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "x"}},
}


def test_a_spread_gang_is_released_one_pod_a_zone_at_a_time() -> None:
    pods = tuple(
        a_pod(n, labels={"app": "x"}, spec={"topologySpreadConstraints": [SPREAD]}) for n in "abcd"
    )
    world = World.make(a_node("n1", zone="1"), a_node("n2", zone="2"), minimum=4, pods=pods)

    assert world.apply({"a": "n1", "b": "n1", "c": "n2", "d": "n2"}) == (4, 0)

    assert sorted(world.sent.names()) == ["a", "c"]


def test_a_zone_that_is_ahead_waits_for_the_other() -> None:
    pods = tuple(
        a_pod(n, labels={"app": "x"}, spec={"topologySpreadConstraints": [SPREAD]}) for n in "bc"
    )
    there = a_pod("a", gates=None, node="n1", labels={"app": "x"}, status={"phase": "Running"})
    world = World.make(
        a_node("n1", zone="1"), a_node("n2", zone="2"), minimum=3, pods=(there, *pods)
    )

    assert world.apply({"b": "n1", "c": "n2"}) == (2, 0)

    assert world.sent.names() == ["c"]


def test_what_is_on_nodes_is_counted_once_for_all_jobs_of_a_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    world = World.make(a_node("n1", zone="z"), minimum=1)
    for i in range(3):
        world.model.cluster.set_pod_group(a_group(1, f"g{i}"))
        spec = {"topologySpreadConstraints": [spread]}
        world.model.set_pod(a_pod(f"p{i}", group=f"g{i}", labels={"app": "x"}, spec=spec))
    counted: list[int] = []
    surroundings = Model.surroundings

    def counting(model: Model) -> Surroundings:
        counted.append(1)
        return surroundings(model)

    monkeypatch.setattr(Model, "surroundings", counting)
    reason = Reason("allocate", "gang", "")
    plan = Plan(
        "s1",
        0.0,
        tuple(
            Allocate(JobKey(f"ns/g{i}"), f"g{i}", (Placement(PodUid(f"p{i}"), "n1"),), reason)
            for i in range(3)
        ),
    )
    assert apply_allocations(plan, world.model, world.releases).placed == 3
    assert counted == [1]
