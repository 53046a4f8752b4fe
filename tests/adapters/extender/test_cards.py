"""Pods that ask for cards: chosen with the plan, written with the binding, found again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from extender import wire
from extender.answers import NO_ROOM, NOT_PLANNED
from extender.verbs import NO_CARDS, NOT_OURS
from pumice.core import names
from pumice.core.api.core import Pod
from pumice.core.ids import PodUid
from pumice.kube.resources import NODES, PODS
from tests.adapters.extender.bed import Bed, Json
from tests.adapters.extender.world import merged
from tests.deviceplugin import DevicePlugins
from tests.devices import a_vgpu_node, register, vgpu
from tests.fakeapi.faults import Call
from tests.fakeapi.store import Entry

CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: predicates
  - name: proportion
  - name: deviceshare
    arguments:
      deviceshare.VGPUEnable: true
      deviceshare.SchedulePolicy: binpack
"""
STRANGER: dict[str, Any] = {
    "scheduler": "default-scheduler",
    "gates": None,
    "owner": None,
    "group": "",
}
REPLICA_SET = {"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": "r", "controller": True}


def asking(memory: int = 12288, number: int = 1, cores: int = 0) -> dict[str, Any]:
    """Return what makes a pod of the bed ask for cards."""
    asked = vgpu(number, memory, cores)
    resources = {"requests": {"cpu": "100m", **asked}, "limits": asked}
    return {"spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}}


@pytest.fixture
def conf(tmp_path: Path) -> str:
    path = tmp_path / "scheduler.conf"
    path.write_text(CONF)
    return f"--scheduler-conf={path}"


@contextmanager
def watched(bed: Bed) -> Iterator[DevicePlugins]:
    """Let device plugins look on; fail where something is wrong at the end."""
    plugins = DevicePlugins()

    def seen(entry: Entry) -> None:
        if entry.resource == NODES:
            plugins.node(entry.obj)
        elif entry.resource == PODS:
            plugins.pod(entry.type, entry.obj)

    for node in bed.api.all(NODES):
        plugins.node(node)
    bed.api.store.listeners.append(seen)
    yield plugins
    assert plugins.faults == []


def a_bed(*cards: str, nodes: int = 1) -> Bed:
    bed = Bed()
    for i in range(nodes):
        bed.node(a_vgpu_node(f"n{i}", *(f"{card}-n{i}" for card in cards)))
    return bed


async def test_a_gang_on_one_node_is_bound_with_its_cards(conf: str) -> None:
    bed = a_bed("a", "b", "c", "d")
    bed.gang("g", 8, **asking())
    with watched(bed) as plugins:
        async with bed.extender(conf) as extender, bed.scheduler() as scheduler:
            await bed.until(lambda: len(bed.bound()) == 8)
            await bed.quiet()
            assert extender.model.cluster.check() == []

    assert scheduler.errors() == []
    assert plugins.served == 8
    assert set(plugins.used("n0").values()) == {(2, 24576, 0)}
    assert bed.writes("/nodes/") == [], "no node is ever locked"
    assert len(bed.writes("/binding")) == 8
    assert len([c for c in bed.writes("/pods/") if "/binding" not in c.path]) == 8, "releases"


async def test_what_fits_runs_and_what_ends_makes_room(conf: str) -> None:
    bed = a_bed("a")
    for i in range(3):
        bed.gang(f"g{i}", 1, **asking())
    with watched(bed):
        async with bed.extender(conf), bed.scheduler():
            await bed.until(lambda: len(bed.bound()) == 2)
            await bed.quiet()
            assert len(bed.bound()) == 2
            bed.change(f"{sorted(bed.bound())[0]}", {"status": {"phase": "Succeeded"}}, "status")
            await bed.until(lambda: len(bed.bound()) == 3)


async def test_pods_of_others_are_nominated_to_the_node_with_cards(conf: str) -> None:
    bed = a_bed("a", nodes=2)
    bed.gang("g", 1, owner=REPLICA_SET, **asking())
    bed.gang("h", 1, owner=REPLICA_SET, **asking(24576))
    with watched(bed) as plugins:
        async with bed.extender(conf), bed.scheduler() as scheduler:
            await bed.until(lambda: len(bed.bound()) == 2)

    assert plugins.served == 2
    assert scheduler.errors() == []


async def test_a_pod_that_comes_to_another_node_gets_cards_there(conf: str) -> None:
    bed = a_bed("a", nodes=2)
    bed.gang("g", 1, owner=REPLICA_SET, **asking())
    with watched(bed) as plugins:
        async with bed.extender(conf) as extender:
            await bed.until(lambda: bed.released() == ["g-0"])
            [entry] = extender.model.ledger
            other = "n1" if entry.node == "n0" else "n0"
            assert await bed.ask(bed.stored("g-0"), other) == ""

    assert bed.bound() == {"g-0": other}
    assert plugins.used(other) == {f"a-{other}": (1, 12288, 0)}


async def test_a_card_that_fell_ill_since_is_exchanged_for_another_one(conf: str) -> None:
    bed = a_bed("a", "b")
    bed.gang("g", 2, **asking(20000))
    with watched(bed) as plugins:
        async with bed.extender(conf) as extender, bed.scheduler() as scheduler:
            scheduler.blind_to = lambda name: name == "g-1"
            await bed.until(lambda: len(extender.barrier.parked) == 1)
            sick = register("a-n0 sick", "b-n0", "c-n0")
            node = bed.api.get(NODES, "", "n0")
            assert node is not None
            patch = {"metadata": {"annotations": {names.VGPU_REGISTER: sick}}}
            bed.api.objects.update(NODES, node, "", merged(node, patch))
            await bed.until(lambda: _uuids(extender.model.cluster) == ("a-n0", "b-n0", "c-n0"))
            scheduler.blind_to = lambda name: False
            scheduler.see()
            await bed.until(lambda: len(bed.bound()) == 2)

    assert plugins.used("n0").keys() == {"b-n0", "c-n0"}


def _uuids(cluster: Any) -> tuple[str, ...]:
    uuids: tuple[str, ...] = cluster.devices.nodes["n0"].offers[0].uuids
    return uuids


async def test_a_member_for_which_no_card_is_left_is_replaced_alone(conf: str) -> None:
    bed = a_bed("a", "b")
    bed.gang("g", 2, **asking(20000))
    with watched(bed):
        async with bed.extender(conf) as extender, bed.scheduler() as scheduler:
            scheduler.blind_to = lambda name: name == "g-1"
            await bed.until(lambda: len(extender.barrier.parked) == 1)
            taken = await _somebody_takes_a_card(bed)
            await bed.until(lambda: PodUid(taken) in extender.model.cluster.devices)
            scheduler.blind_to = lambda name: False
            scheduler.see()
            await bed.until(lambda: NO_ROOM in scheduler.errors())

    assert "g-0" not in bed.bound() or "g-1" not in bed.bound()


async def _somebody_takes_a_card(bed: Bed) -> str:
    """Bind a pod of another scheduler that was given card `b-n0`; return its uid."""
    body = bed.pod("other", scheduler="other", gates=None, owner=None, group="", **asking(20000))
    uid: str = body["metadata"]["uid"]
    notes = {
        names.ALLOCATION: uid,
        names.VGPU_NODE: "n0",
        names.VGPU_TIME: "1",
        names.VGPU_IDS: "b-n0,NVIDIA,20000,0:",
        names.VGPU_TO_ALLOCATE: "b-n0,NVIDIA,20000,0:",
        names.BIND_PHASE: "allocating",
    }
    meta = {"name": "other", "namespace": "ns", "uid": uid, "annotations": notes}
    bed.api.objects.bind(bed.stored("other"), {"metadata": meta, "target": {"name": "n0"}})
    return uid


async def test_what_was_chosen_before_a_kill_is_chosen_once_more(conf: str) -> None:
    bed = a_bed("a", "b")
    bed.gang("old", 2, **asking(6144))
    bed.gang("g", 2, **asking(12000))
    with watched(bed) as plugins:
        async with bed.scheduler() as scheduler:
            scheduler.blind_to = lambda name: name == "g-1"
            async with bed.extender(conf, kill=True) as extender:
                await bed.until(lambda: len(bed.bound("old")) == 2)
                await bed.until(lambda: len(extender.barrier.parked) == 1)
            scheduler.blind_to = lambda name: False
            async with bed.extender(conf) as extender:
                scheduler.start_anew()
                await bed.until(lambda: len(bed.bound()) == 4)
                await bed.quiet()
                assert extender.model.cluster.check() == []

    assert sorted(plugins.used("n0").values()) == [(1, 12000, 0), (3, 24288, 0)]


async def test_what_a_kill_left_on_its_way_binds_nobody_any_more(conf: str) -> None:
    bed = a_bed("a", "b")
    bed.gang("g", 1, **asking(20000))
    bed.pod("s", **STRANGER, **asking(20000))
    with watched(bed) as plugins:
        async with bed.scheduler() as scheduler:
            scheduler.node = "n0"
            late = await bed.bindings_left_by_a_kill(2, conf)
            scheduler.blind_to = lambda name: True
            bed.api.fail(500, times=2, path="/pods/g-0")
            async with bed.extender(conf) as extender:
                await extender.synced.wait()
                assert [bed.is_void(binding) for binding in late] == [True, True]
                scheduler.blind_to = lambda name: False
                scheduler.start_anew()
                await bed.until(lambda: len(bed.bound()) == 2)

    assert plugins.used("n0") == {"a-n0": (1, 20000, 0), "b-n0": (1, 20000, 0)}


async def test_what_of_it_is_accepted_just_in_time_is_known(conf: str) -> None:
    bed = a_bed("a", "b")
    bed.gang("g", 1, **asking(20000))
    bed.pod("s", **STRANGER, **asking(20000))
    with watched(bed) as plugins:
        async with bed.scheduler() as scheduler:
            scheduler.node = "n0"
            late = await bed.bindings_left_by_a_kill(2, conf)

            def is_fence(call: Call) -> bool:
                if names.FENCE.encode() in call.body:
                    while late:
                        bed.bind(late.pop())
                return False

            bed.away = is_fence
            async with bed.extender(conf) as extender:
                await extender.synced.wait()
                holders = extender.model.cluster.devices.nodes["n0"].holders
                assert set(holders) == {bed.stored(pod)["metadata"]["uid"] for pod in ("g-0", "s")}
                assert extender.model.cluster.check() == []

    assert plugins.used("n0") == {"a-n0": (1, 20000, 0), "b-n0": (1, 20000, 0)}


async def test_pods_deleted_while_the_extender_is_away_hold_nothing(conf: str) -> None:
    bed = a_bed("a")
    bed.gang("old", 1, **asking(24576))
    with watched(bed):
        async with bed.scheduler():
            async with bed.extender(conf):
                await bed.until(lambda: len(bed.bound()) == 1)
            bed.api.objects.delete(PODS, bed.stored("old-0"), {"gracePeriodSeconds": 0})
            bed.gang("new", 1, **asking(24576))
            async with bed.extender(conf):
                await bed.until(lambda: len(bed.bound("new")) == 1)


# Pods without a plan.


def args(pod: Json, *nodes: str) -> wire.Args:
    return wire.Args(pod=msgspec.convert(pod, Pod), node_names=list(nodes))


async def test_pods_of_other_schedulers_get_cards_of_the_same_table(conf: str) -> None:
    bed = a_bed("a", nodes=2)
    bed.node(a_vgpu_node("plain"))
    bed.gang("g", 1, **asking(20000))
    with watched(bed) as plugins:
        async with bed.extender(conf) as extender, bed.scheduler():
            await bed.until(lambda: len(bed.bound()) == 1)
            taken = bed.bound()["g-0"]
            free = "n1" if taken == "n0" else "n0"
            bed.pod("s", **STRANGER, **asking())
            stored = bed.stored("s")
            uid = PodUid(stored["metadata"]["uid"])
            verbs = extender.app.verbs
            await bed.until(lambda: uid in extender.model.cluster.pods)

            result = await verbs.filter(args(stored, "n0", "n1", "plain"))
            assert result.node_names == [free]
            assert result.failed_and_unresolvable_nodes == {taken: NO_CARDS, "plain": NO_CARDS}
            scores = await verbs.prioritize(args(stored, "n0", "n1"))
            assert [s.host for s in scores] == [free]
            assert await bed.ask(stored, taken) == NO_ROOM
            assert await bed.ask(stored, free) == ""

            # What it has nobody else gets.
            bed.gang("late", 1, **asking(20000))
            bed.gang("small", 1, **asking(4000))
            await bed.until(lambda: len(bed.bound("small")) == 1)
            assert "late-0" not in bed.bound()

    assert plugins.served == 3


async def test_a_binding_that_nobody_waits_for_any_more_is_seen_through(conf: str) -> None:
    bed = a_bed("a")
    bed.pod("s", **STRANGER, **asking(20000))
    bed.pod("late", **STRANGER, **asking(20000))
    stored = bed.stored("s")
    with watched(bed) as plugins:
        async with bed.extender(conf) as extender:
            await bed.until(lambda: len(extender.model.cluster.pods) == 2)
            bed.away = lambda call: "/binding" in call.path
            call = asyncio.create_task(bed.ask(stored, "n0"), name="call")
            await bed.until(lambda: bed.writes("/binding"))
            call.cancel()  # kube-scheduler is killed
            await asyncio.wait({call})
            assert await bed.ask(bed.stored("late"), "n0") == NO_ROOM
            bed.away = lambda call: False
            await bed.until(lambda: bed.bound() == {"s": "n0"})
            assert await bed.ask(stored, "n0") == ""

    assert plugins.used("n0") == {"a-n0": (1, 20000, 0)}


async def test_pods_of_others_that_want_no_cards_are_not_ours(conf: str) -> None:
    bed = a_bed("a")
    bed.pod("s", **STRANGER)
    async with bed.extender(conf) as extender:
        uid = PodUid(bed.stored("s")["metadata"]["uid"])
        await bed.until(lambda: uid in extender.model.cluster.pods)
        assert await bed.ask(bed.stored("s"), "n0") == NOT_OURS


async def test_an_unplanned_pod_of_ours_is_filtered_by_cards_and_bound_with_some(conf: str) -> None:
    bed = a_bed("a", nodes=2)
    bed.gang("g", 1, **asking(20000))
    with watched(bed) as plugins:
        async with bed.extender(conf) as extender, bed.scheduler() as scheduler:
            await bed.until(lambda: len(bed.bound()) == 1)
            taken = bed.bound()["g-0"]
            free = "n1" if taken == "n0" else "n0"
            scheduler.blind_to = lambda name: True
            bed.gang("loose", 1, owner=REPLICA_SET, gates=None, **asking())
            stored = bed.stored("loose-0")
            uid = PodUid(stored["metadata"]["uid"])
            await bed.until(lambda: uid in extender.model.cluster.pods)

            result = await extender.app.verbs.filter(args(stored, "n0", "n1"))
            assert result.node_names == [free]
            assert await bed.ask(stored, free) in ("", NOT_PLANNED)
            await bed.until(lambda: uid in extender.model.ledger)
            assert await bed.ask(stored, free) == ""

    assert plugins.served == 2
