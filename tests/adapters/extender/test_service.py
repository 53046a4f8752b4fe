"""The whole extender: gangs from gated to bound, through restarts and an API server away."""

from __future__ import annotations

import re

import pytest

from extender import answers as texts
from pumice.core import names
from pumice.kube.resources import PODS, QUEUES
from tests.adapters.extender.bed import Bed, Json
from tests.fakeapi.faults import Call

REPLICA_SET = {"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": "r", "controller": True}
OURS = {
    texts.NOT_PLANNED,
    texts.SHUTTING_DOWN,
    "connection refused",
    "connection lost",
}


def a_bed(nodes: int = 3, cpu: int = 4) -> Bed:
    bed = Bed()
    bed.nodes(nodes, cpu)
    return bed


def pinned(node: str) -> Json:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


async def test_a_gang_goes_from_gated_pods_to_bound_ones() -> None:
    bed = a_bed()
    bed.gang("g", 8)
    async with bed.extender(), bed.scheduler() as scheduler:
        await bed.until(lambda: len(bed.bound()) == 8)
        await bed.quiet()

    assert scheduler.errors() == []
    assert len(bed.writes("/binding")) == 8


async def test_nobody_is_bound_before_the_last_one_has_come() -> None:
    bed = a_bed()
    bed.gang("g", 8)
    async with bed.extender() as extender, bed.scheduler() as scheduler:
        scheduler.blind_to = lambda name: name == "g-7"
        await bed.until(lambda: len(extender.barrier.parked) == 7)
        assert bed.bound() == {}

        scheduler.blind_to = lambda name: False
        scheduler.see()
        await bed.until(lambda: len(bed.bound()) == 8)


async def test_a_gang_for_which_there_is_no_room_is_left_alone() -> None:
    bed = a_bed(nodes=1)
    bed.gang("wide", 5)
    bed.gang("narrow", 2)
    async with bed.extender(), bed.scheduler() as scheduler:
        await bed.until(lambda: len(bed.bound()) == 2)
        await bed.quiet()

    assert bed.bound("wide") == {}
    assert [name for name in bed.released() if name.startswith("wide")] == []
    assert scheduler.errors() == []


async def test_killed_with_sixty_of_a_hundred_released_and_started_anew() -> None:
    bed = a_bed(nodes=10, cpu=12)
    bed.gang("g", 100)
    stuck = True

    def is_late(call: Call) -> bool:
        number = re.search(r"/pods/g-(\d+)$", call.path)
        return stuck and call.method == "PATCH" and number is not None and int(number[1]) >= 60

    bed.api.fail(429, times=10**9, when=is_late)
    async with bed.scheduler() as scheduler:
        async with bed.extender(kill=True) as first:
            await bed.until(lambda: len(first.barrier.parked) == 60)
        assert (len(bed.released()), len(bed.bound())) == (60, 0)
        stuck = False
        async with bed.extender():
            await bed.until(lambda: len(bed.bound()) == 100)
            await bed.quiet()

    assert set(scheduler.errors()) <= OURS
    assert len(bed.writes("/binding")) == 100
    assert len(set(bed.bound().values())) == 10


async def test_an_extender_that_ends_in_order_answers_those_who_wait() -> None:
    bed = a_bed()
    bed.gang("g", 4)
    async with bed.scheduler() as scheduler:
        scheduler.blind_to = lambda name: name == "g-3"
        async with bed.extender() as first:
            await bed.until(lambda: len(first.barrier.parked) == 3)
        assert scheduler.errors()[:3] == [texts.SHUTTING_DOWN] * 3
        scheduler.blind_to = lambda name: False
        scheduler.see()
        async with bed.extender():
            await bed.until(lambda: len(bed.bound()) == 4)
            await bed.quiet()


async def test_an_api_server_that_is_away_in_mid_commit_is_waited_for() -> None:
    bed = a_bed()
    bed.gang("g", 8)

    # Everything from the fourth binding on.
    bed.away = lambda call: len(bed.writes("/binding")) > 3
    async with bed.extender() as extender, bed.scheduler() as scheduler:
        await bed.until(lambda: len(bed.bound()) == 3)
        await bed.until(lambda: len(bed.writes("/binding")) > 10)
        assert (len(bed.bound()), scheduler.errors()) == (3, [])
        bed.away = lambda call: False
        await bed.until(lambda: len(bed.bound()) == 8)
        await bed.until(lambda: not extender.barrier.parked)
        await bed.quiet()

    assert scheduler.errors() == []


async def test_bindings_whose_answers_are_lost_are_successes() -> None:
    bed = a_bed()
    bed.gang("g", 8)
    bed.api.lose(times=5, path="/binding", applied=True)
    async with bed.extender() as extender, bed.scheduler() as scheduler:
        await bed.until(lambda: len(scheduler.answers) == 8)
        assert extender.barrier.parked == {}
        await bed.quiet()

    assert scheduler.errors() == []
    assert len(bed.bound()) == 8


@pytest.mark.parametrize("lost", [False, True], ids=["history kept", "history lost"])
async def test_broken_watches_lose_nothing(lost: bool) -> None:
    bed = a_bed()
    bed.gang("g", 4)
    async with bed.extender() as extender, bed.scheduler():
        await bed.until(lambda: len(bed.bound("g")) == 4)
        bed.away = lambda call: True
        bed.api.drop_watches()
        bed.gang("h", 8)
        bed.delete("g-0")
        bed.api.finish_pods()
        if lost:
            bed.api.compact()
        bed.away = lambda call: False
        await bed.until(lambda: len(bed.bound("h")) == 8)
        await bed.quiet()
        assert "g-0" not in {entry.name for entry in extender.model.ledger}


@pytest.mark.parametrize("ahead_s", [86_400.0, -86_400.0], ids=["forwards", "backwards"])
async def test_a_wall_clock_that_jumps_changes_nothing(ahead_s: float) -> None:
    bed = a_bed()
    bed.gang("g", 8)
    async with bed.extender() as extender, bed.scheduler() as scheduler:
        scheduler.blind_to = lambda name: name == "g-7"
        await bed.until(lambda: len(extender.barrier.parked) == 7)
        bed.clock.ahead_s = ahead_s
        extender.nacks.check()
        await extender.engine.session()
        assert (len(extender.barrier.parked), bed.bound()) == (7, {})

        scheduler.blind_to = lambda name: False
        scheduler.see()
        await bed.until(lambda: len(bed.bound()) == 8)
        await bed.quiet()

    assert scheduler.errors() == []
    assert extender.releases.replaced == 0


async def test_gates_that_are_taken_off_by_hand_make_no_difference_in_the_end() -> None:
    bed = a_bed()
    bed.gang("g", 4)
    for i in range(4):
        bed.change(f"g-{i}", {"spec": {"schedulingGates": None}})
    async with bed.extender(), bed.scheduler() as scheduler:
        await bed.until(lambda: len(bed.bound()) == 4)
        await bed.quiet()

    assert set(scheduler.errors()) <= {texts.NOT_PLANNED}


async def test_a_gate_that_goes_while_the_pin_is_on_its_way() -> None:
    bed = a_bed()
    bed.gang("g", 2)

    def ungate_first(call: Call) -> bool:
        if call.method == "PATCH" and call.path.endswith("/pods/g-0"):
            bed.change("g-0", {"spec": {"schedulingGates": None}})
            return True
        return False

    # Not carried out the first time: it comes too late for the pin.
    bed.api.fail(429, when=ungate_first)
    async with bed.extender(), bed.scheduler():
        await bed.until(lambda: len(bed.bound()) == 2)
        await bed.quiet()

    tries = [c for c in bed.writes() if c.path.endswith("/pods/g-0") and c.method == "PATCH"]
    assert len(tries) == 2


async def test_pods_of_a_deployment_carry_no_pin_and_may_go_where_kube_scheduler_likes() -> None:
    bed = a_bed()
    for name in "ab":
        bed.gang(name, 1, owner=REPLICA_SET)
    async with bed.extender() as extender, bed.scheduler() as scheduler:
        scheduler.node = "n2"
        await bed.until(lambda: len(bed.bound()) == 2)
        await bed.quiet()
        assert extender.model.ledger.in_flight() == 0

    assert bed.bound() == {"a-0": "n2", "b-0": "n2"}
    assert [pod["spec"].get("affinity") for pod in bed.api.all(PODS)] == [None, None]


async def test_a_foreign_gang_that_is_taken_elsewhere_is_bound_there() -> None:
    bed = a_bed()
    bed.gang("g", 3, owner=REPLICA_SET)
    async with bed.extender(), bed.scheduler() as scheduler:
        scheduler.blind_to = lambda name: True
        await bed.until(lambda: len(bed.released()) == 3)
        for i in range(3):
            bed.change(f"g-{i}", {"status": {"nominatedNodeName": None}}, "status")
        scheduler.node, scheduler.blind_to = "n2", lambda name: False
        scheduler.see()
        await bed.until(lambda: len(bed.bound()) == 3)
        await bed.quiet()

    assert set(bed.bound().values()) == {"n2"}


async def test_a_member_that_is_made_anew_while_the_others_wait() -> None:
    bed = a_bed()
    bed.gang("g", 4)
    async with bed.extender() as extender, bed.scheduler() as scheduler:
        scheduler.blind_to = lambda name: name == "g-3"
        await bed.until(lambda: len(extender.barrier.parked) == 3)
        bed.delete("g-2")
        bed.delete("g-3")
        scheduler.blind_to = lambda name: False
        for i in (2, 3):
            bed.pod(f"g-{i}", group="g")
        await bed.until(lambda: len(bed.bound()) == 4)
        await bed.quiet()

    assert set(scheduler.errors()) == {texts.GONE}


async def test_a_pin_of_somebodys_own_gets_nobody_past_the_limit_of_a_queue() -> None:
    bed = a_bed()
    queue = bed.api.get(QUEUES, "", "default")
    assert queue is not None
    bed.api.put(QUEUES, {**queue, "spec": {"capability": {"cpu": "1"}}})
    bed.gang("g", 2, minimum=1)
    async with bed.extender(), bed.scheduler() as scheduler:
        await bed.until(lambda: len(bed.bound()) == 1)
        (bound,) = bed.bound()
        other = "g-1" if bound == "g-0" else "g-0"
        bed.change(other, {"spec": {"schedulingGates": None, "affinity": pinned("n1")}})

        await bed.until(lambda: texts.REPLACED in scheduler.errors())

        assert list(bed.bound()) == [bound]
        pod = bed.stored(other)
        assert pod["metadata"]["annotations"][names.OUT_OF_SYNC] == "true"
