"""Waves, the window, the three arms, and giving a pod up."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core.ids import JobKey, PodUid
from pumice.core.room import lacking
from tests.adapters.extender.world import GANG, World, a_group, a_node, a_pod

REPLICA_SET = {
    "kind": "ReplicaSet",
    "apiVersion": "apps/v1",
    "name": "r",
    "uid": "r",
    "controller": True,
}
UNGATE = {"spec": {"schedulingGates": None}}
NOMINATE = {"status": {"nominatedNodeName": "n1"}}


def arrive(world: World, *names: str) -> None:
    for name in names:
        entry = world.model.ledger.get(PodUid(name))
        assert entry is not None
        world.model.ledger.arrive(entry.uid, entry.node, world.time)
    world.releases.pump()


OTHER = JobKey("ns/other")


def steer(world: World, *waves: list[str], job: JobKey = GANG) -> None:
    world.releases.steer(job, [[PodUid(name) for name in wave] for wave in waves])


def planned(*names: str, minimum: int = 1, window: int = 1000, **more: Any) -> World:
    pods = tuple(a_pod(name, cpu="100m", **more) for name in names)
    world = World.make(a_node("n1", cpu=64), minimum=minimum, pods=pods, window=window)
    for name in names:
        world.model.plan(PodUid(name), "n1")
    return world


def test_a_wave_waits_for_all_of_the_one_before() -> None:
    world = planned("a", "b", "c")
    steer(world, ["a", "b"], ["c"])
    assert world.sent.names() == ["a", "b"]

    arrive(world, "a")
    assert world.sent.names() == ["a", "b"]
    arrive(world, "b")
    assert world.sent.names() == ["a", "b", "c"]


def test_a_wave_does_not_wait_for_a_pod_that_is_gone() -> None:
    world = planned("a", "b")
    steer(world, ["a"], ["b"])

    world.model.remove_pod(PodUid("a"))

    assert world.sent.names() == ["a", "b"]


def test_gangs_go_one_after_the_other_within_the_window() -> None:
    world = planned("a", "b", "c", "d", window=3)
    steer(world, ["a", "b"])
    steer(world, ["c", "d"])
    assert world.sent.names() == ["a", "b"]

    world.show_bound("a", "n1")
    assert world.sent.names() == ["a", "b", "c", "d"]


def test_a_gang_larger_than_the_window_goes_alone() -> None:
    world = planned("a", "b", "c", "d", window=2)
    steer(world, ["a"])
    steer(world, ["b", "c", "d"])
    assert world.sent.names() == ["a"]

    world.show_bound("a", "n1")
    assert world.sent.names() == ["a", "b", "c", "d"]


def test_what_a_gang_in_the_barrier_still_needs_goes_first_and_in_any_case() -> None:
    world = planned("a", "b", "c", "d", "e", window=2)
    steer(world, ["a", "b", "c"])
    arrive(world, "a", "b")
    steer(world, ["d"], job=OTHER)
    world.model.remove_pod(PodUid("c"))
    assert world.sent.names() == ["a", "b", "c"]

    steer(world, ["e"])

    assert world.sent.names() == ["a", "b", "c", "e"]


def test_the_next_gang_goes_when_little_of_the_one_before_is_still_to_arrive() -> None:
    world = planned("a", "b", "c", "d")
    world.releases.ahead = 1
    for name in "abcd":
        steer(world, [name])
    assert world.sent.names() == ["a", "b"]

    arrive(world, "b")
    assert world.sent.names() == ["a", "b", "c"]
    arrive(world, "a")
    assert world.sent.names() == ["a", "b", "c", "d"]


def test_a_pod_that_does_not_arrive_is_awaited_for_half_a_minute_while_others_do() -> None:
    world = planned("a", "b", "c", "d")
    world.releases.ahead = 1
    for name in "abcd":
        steer(world, [name])
    world.time += 29
    arrive(world, "b")
    assert world.sent.names() == ["a", "b", "c"]

    world.time += 1.5
    world.releases.pump()
    assert world.sent.names() == ["a", "b", "c", "d"]


def test_where_nothing_arrives_for_two_seconds_the_window_is_filled() -> None:
    world = planned("a", "b", "c")
    world.releases.ahead = 0
    for name in "abc":
        steer(world, [name])
    assert world.sent.names() == ["a"]

    world.time += 1.9
    world.releases.pump()
    assert world.sent.names() == ["a"]
    world.time += 0.2
    world.releases.pump()
    assert world.sent.names() == ["a", "b", "c"]


ARMS = {
    "a foreign gang: the nomination first, then the gate": (2, [NOMINATE, UNGATE]),
    "a foreign pod that is enough by itself: the gate alone": (1, [UNGATE]),
}


@pytest.mark.parametrize(("minimum", "want"), ARMS.values(), ids=ARMS.keys())
def test_pods_of_other_owners_are_never_pinned(minimum: int, want: list[Any]) -> None:
    world = planned("a", minimum=minimum, owner=REPLICA_SET)
    steer(world, ["a"])
    assert [patch for _, patch in world.sent.patches] == want


def test_a_member_of_a_volcano_job_is_replaced_by_annotation() -> None:
    world = planned("a")
    steer(world, ["a"])

    world.releases.replan(PodUid("a"), "n1")

    annotation = {"volcano.sh/controller-out-of-sync": "true"}
    assert world.sent.patches[-1] == ("a", {"metadata": {"annotations": annotation}})
    assert world.states() == {"a": ("Released", "n1")}
    assert world.model.avoided_nodes() == {GANG: {"n1"}}


def test_a_pod_of_another_owner_is_planned_again_instead() -> None:
    world = planned("a", owner=REPLICA_SET)
    steer(world, ["a"])
    before = list(world.sent.patches)

    world.releases.replan(PodUid("a"), "n1")

    assert world.sent.patches == before
    assert world.states() == {}


def test_a_node_that_is_known_to_be_full_need_not_be_avoided() -> None:
    world = planned("a")
    steer(world, ["a"])
    filler = a_pod("other", cpu="64", gates=None, node="n1", owner=None, scheduler="else", group="")
    world.model.set_pod(filler)

    world.releases.replan(PodUid("a"), "n1")

    assert world.model.avoided_nodes() == {}


def test_a_node_that_refused_is_avoided_until_it_changes() -> None:
    world = planned("a")
    world.model.avoid(GANG, "n1")

    world.model.set_node(a_node("n1", cpu=64))
    assert world.model.avoided_nodes() == {GANG: {"n1"}}
    world.model.set_node(a_node("n1", cpu=32))
    assert world.model.avoided_nodes() == {}


def test_a_node_that_refused_is_avoided_for_half_a_minute() -> None:
    world = planned("a")
    world.model.avoid(GANG, "n1")
    world.time += 31
    assert world.model.avoided_nodes() == {}


def test_what_is_refused_together_is_one_refusal() -> None:
    world = planned("a")
    for node in ("n1", "n2", "n3"):
        world.model.avoid(GANG, node)
    world.time += 31
    assert world.model.avoided_nodes() == {}


def test_the_rest_of_a_gang_that_came_goes_before_one_too_large_for_the_window() -> None:
    world = planned("a", "b", "c", "d", "e", "f", minimum=3, window=2)
    steer(world, ["a", "b"])
    steer(world, ["d", "e", "f"], job=OTHER)
    steer(world, ["c"])
    assert world.sent.names() == ["a", "b"]
    arrive(world, "a", "b")
    world.releases.pump()
    assert world.sent.names() == ["a", "b", "c"]


def test_a_wave_waits_for_one_before_it_that_lost_its_plan_as_it_was_let_go() -> None:
    world = planned("a", "b", "c", minimum=3)
    world.model.set_node(a_node("n2", cpu=64))
    for name in ("b", "c"):
        world.model.unplan(PodUid(name))
        world.model.plan(PodUid(name), "n2")
    world.model.cluster.remove_node("n1")
    steer(world, ["a"], ["b", "c"])
    assert world.sent.names() == []
    assert world.states()["a"] == ("Held", "")


def test_each_refusal_in_a_row_is_remembered_for_longer_until_a_pod_is_bound() -> None:
    world = planned("a")
    for node in ("n1", "n2"):
        world.model.avoid(GANG, node)
        world.time += 10
    world.time += 21
    assert world.model.avoided_nodes() == {GANG: {"n2"}}

    world.model.commit(PodUid("a"), "n1")
    world.time += 30
    world.model.avoid(GANG, "n3")
    world.time += 31
    assert world.model.avoided_nodes() == {}


def test_a_patch_that_failed_leaves_the_pod_held_without_a_plan() -> None:
    world = planned("a")
    world.sent.hold_back = True
    steer(world, ["a"])
    failed = world.sent.failures[-1]
    assert failed is not None

    failed(RuntimeError("422"))

    assert world.states() == {"a": ("Held", "")}
    assert lacking(world.model.cluster, PodUid("a"), "n1") == []


def test_a_pod_whose_gate_was_taken_off_meanwhile_is_planned_by_nomination() -> None:
    world = planned("a")
    world.sent.hold_back = True
    steer(world, ["a"])
    world.model.set_pod(a_pod("a", cpu="100m", gates=None))
    failed = world.sent.failures[-1]
    assert failed is not None

    failed(RuntimeError("422: the affinity of a pod without gates cannot change"))

    assert world.states() == {}
    assert world.apply({"a": "n1"}) == (1, 0)
    assert world.sent.patches[-1] == ("a", NOMINATE)


def test_nobody_is_asked_twice_for_another_pod() -> None:
    world = planned("a")
    steer(world, ["a"])
    for _ in range(2):
        world.releases.replan(PodUid("a"), "n1")
    assert len(world.sent.patches) == 2


def test_a_nomination_that_stands_already_is_not_written_again() -> None:
    world = planned("a", minimum=2, owner=REPLICA_SET, status={"nominatedNodeName": "n1"})
    steer(world, ["a"])
    assert [patch for _, patch in world.sent.patches] == [UNGATE]


def test_a_nomination_that_was_taken_back_is_not_believed_when_the_pod_changes() -> None:
    world = planned("a", minimum=2, owner=REPLICA_SET)
    steer(world, ["a"])
    world.releases.replan(PodUid("a"), "n1")

    world.sent.show(world.model.pending[PodUid("a")], {"metadata": {"labels": {"x": "y"}}})

    assert world.states() == {}
    assert world.model.cluster.nodes.tasks_on("n1") == {}


def test_the_window_counts_the_waves_still_to_come() -> None:
    world = planned("a", "b", "c", window=2)
    steer(world, ["a"], ["b"])
    steer(world, ["c"], job=OTHER)
    assert world.sent.names() == ["a"]

    arrive(world, "a")
    assert world.sent.names() == ["a", "b"]
    world.show_bound("a", "n1")
    assert world.sent.names() == ["a", "b", "c"]


def test_a_gang_of_which_nothing_is_left_holds_nobody_up() -> None:
    world = planned("a", "b", "c", window=2)
    steer(world, ["a"])
    steer(world, ["b", "b2"])
    steer(world, ["c"])
    world.model.remove_pod(PodUid("b"))
    assert world.sent.names() == ["a", "c"]


def test_pods_that_nobody_let_go_leave_the_window_alone() -> None:
    world = planned("a", window=1)
    world.model.set_pod(a_pod("loose", cpu="100m", gates=None))
    world.apply({"loose": "n1"})
    steer(world, ["a"])
    assert world.sent.names() == ["loose", "a"]


def test_a_plan_whose_node_went_is_dropped_and_not_released() -> None:
    world = planned("a", "b", window=1)
    steer(world, ["a"])
    steer(world, ["b"])
    world.model.cluster.remove_node("n1")

    world.model.remove_pod(PodUid("a"))

    assert world.sent.names() == ["a"]
    assert world.states() == {"b": ("Held", "")}


def test_the_rest_of_a_gang_can_be_called_off() -> None:
    world = planned("a", "b")
    world.model.cluster.set_pod_group(a_group(2))
    steer(world, ["a"], ["b"])

    assert world.releases.forget(GANG) == ["b"]
    arrive(world, "a")

    assert world.sent.names() == ["a"]
