"""The loop that decides: when it goes round, what it keeps of its sessions and says of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from extender.engine import LATER_S, PERIOD_S, Engine
from extender.metrics import Metrics
from extender.model import Urgency
from extender.statuses import Statuses
from extender.writes import OutboxWrites
from pumice.core.api.scheduling import Queue, QueueSpec
from pumice.core.conf import DEFAULT, Configuration, parse
from pumice.core.ids import JobKey, PodUid
from pumice.kube.events import Recorder
from pumice.kube.outbox import Outbox
from tests.adapters.extender.world import World, a_group, a_node, a_pod
from tests.fakeapi import FakeApi, ManualClock, eventually

UNKNOWN_PLUGIN = """
actions: allocate
tiers:
- plugins:
  - name: gang
  - name: crystal-ball
"""
WITHOUT_GANG = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: predicates
  - name: nodeorder
"""
NEVER, LATER, NOW = Urgency.NEVER, Urgency.LATER, Urgency.NOW
WARNING = "plugin crystal-ball is not available, it is left out"


class Loop:
    """An engine over a small world, with a configuration that the test changes."""

    def __init__(self, world: World, engine: Engine) -> None:
        self.world = world
        self.engine = engine
        self.configuration: Configuration = DEFAULT
        engine.configuration = lambda: self.configuration

    def kept(self) -> list[str]:
        """Return the sessions that are kept."""
        return [past.plan.session for past in self.engine.past]


@pytest.fixture
async def loop() -> AsyncIterator[Loop]:
    clock = ManualClock()
    world = World.make(a_node("n1"), a_node("n2"), pods=(a_pod("a"), a_pod("b")))
    async with FakeApi(clock).client() as client:
        outbox = Outbox(client, clock=clock)
        recorder = Recorder(client, "extender", clock=clock)
        statuses = Statuses(world.model, outbox, OutboxWrites(outbox), recorder, clock)
        engine = Engine(
            world.model,
            world.releases,
            statuses,
            clock,
            lambda: DEFAULT,
            lambda: 0.0,
            Metrics(),
        )
        yield Loop(world, engine)


async def test_sessions_that_decided_something_are_kept(loop: Loop) -> None:
    await loop.engine.session()
    await loop.engine.session()
    assert loop.kept() == ["s1"]
    assert {state for state, _ in loop.world.states().values()} == {"Released"}


async def test_a_warning_is_given_once_and_again_when_it_was_gone(
    loop: Loop, caplog: pytest.LogCaptureFixture
) -> None:
    loop.configuration = parse(UNKNOWN_PLUGIN)
    for _ in range(3):
        await loop.engine.session()
    assert caplog.messages == [WARNING]
    assert loop.kept() == ["s1"]

    loop.configuration = DEFAULT
    await loop.engine.session()
    loop.configuration = parse(UNKNOWN_PLUGIN)
    await loop.engine.session()
    assert caplog.messages == [WARNING] * 2
    assert loop.kept() == ["s1", "s5"]


async def test_what_a_session_found_of_groups_is_not_kept(loop: Loop) -> None:
    past = await loop.engine.session()
    assert [len(decision.placements) for decision in past.plan.allocations] == [2]
    assert (past.plan.groups, past.plan.queues) == ((), ())


async def test_a_session_is_told_of_the_one_before_it(loop: Loop) -> None:
    loop.world.model.set_pod(a_pod("c", cpu="99", group="other"))
    loop.world.model.cluster.set_pod_group(a_group(1, "other"))
    said = []
    for _ in range(3):
        await loop.engine.session()
        assert loop.engine.latest is not None
        groups = {group.job: group for group in loop.engine.latest.plan.groups}
        said.append(groups[JobKey("ns/other")])
    assert said[2] is said[1]


async def test_a_plan_that_never_holds_is_not_made_at_full_speed(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("extender.engine.PERIOD_S", 0.2)
    # No plugin asks for the whole gang here, but nothing is entered without it.
    loop.configuration = parse(WITHOUT_GANG)
    loop.world.model.set_node(a_node("n1", cpu=1))
    loop.world.model.cluster.remove_node("n2")
    running = asyncio.create_task(loop.engine.run())

    async def has_gone_round() -> bool:
        return loop.engine.sessions >= 3

    started = time.monotonic()
    await eventually(has_gone_round)
    running.cancel()

    assert time.monotonic() - started > 2 * 0.2
    assert sum(past.applied.dropped for past in loop.engine.past) >= 2
    assert loop.world.sent.patches == []


async def test_a_session_that_took_long_and_changed_nothing_has_a_longer_rest_after_it(
    loop: Loop,
) -> None:
    busy, idle = await loop.engine.session(), await loop.engine.session()
    assert [replace(past, seconds=2.0).rest_s() for past in (busy, idle)] == [1.0, 8.0]
    assert replace(idle, seconds=0.1).rest_s() == 1.0


async def test_a_loop_that_is_woken_and_ended_in_one_moment_ends(loop: Loop) -> None:
    running = asyncio.create_task(loop.engine.run())
    await asyncio.sleep(0)
    loop.engine.wake()
    running.cancel()

    await asyncio.wait({running}, timeout=5)

    assert running.cancelled()


async def test_what_can_wait_waits_for_what_comes_after_it_and_for_no_more_than_a_while(
    loop: Loop,
) -> None:
    running = asyncio.create_task(loop.engine.run())
    started = time.monotonic()
    loop.engine.wake(NEVER)
    for _ in range(3):
        loop.engine.wake(LATER)
        await asyncio.sleep(LATER_S / 10)
    assert loop.engine.sessions == 0

    await eventually(lambda: _is(loop.engine.sessions == 1))
    waited = time.monotonic() - started
    loop.engine.wake(LATER)
    loop.engine.wake(NOW)
    await eventually(lambda: _is(loop.engine.sessions == 2))
    await asyncio.sleep(2 * LATER_S)
    running.cancel()

    assert LATER_S <= waited < PERIOD_S
    assert loop.engine.sessions == 2


async def _is(condition: bool) -> bool:
    return condition


def test_how_urgent_changes_of_a_pod_are() -> None:
    model = World.make(a_node("n1"), pods=(a_pod("a"),)).model
    noise = {"phase": "Pending", "conditions": [{"type": "Initialized", "status": "True"}]}
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    there: dict[str, Any] = {"cpu": "2", "gates": None, "node": "n1"}
    seen = [
        model.set_pod(a_pod("a", status=noise)),
        model.set_pod(a_pod("a", cpu="2")),
        model.set_pod(a_pod("a", **there)),
        model.set_pod(a_pod("a", status={"phase": "Running"}, **there)),
        model.set_pod(a_pod("a", status=ready, **there)),
        model.set_pod(a_pod("a", status={"phase": "Succeeded"}, **there)),
    ]
    assert seen == [NEVER, NOW, NOW, LATER, NEVER, NOW]


def test_a_member_is_urgent_when_its_gang_can_start_with_it() -> None:
    model = World.make(a_node("n1"), minimum=2).model
    assert [model.set_pod(a_pod(name)) for name in "abc"] == [LATER, NOW, NOW]
    assert model.set_pod(a_pod("x", group="unknown")) is NOW


def test_what_becomes_of_a_placed_pod_can_wait() -> None:
    world = World.make(a_node("n1"), pods=(a_pod("a"), a_pod("b")))
    world.apply({"a": "n1", "b": "n1"})
    released = world.model.pending[PodUid("a")]
    spec = msgspec.structs.replace(released.spec, node_name="n1")
    bound = msgspec.structs.replace(released, spec=spec)
    gone = msgspec.structs.replace(bound.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    seen = [
        world.model.set_pod(released),
        world.model.set_pod(bound),
        world.model.set_pod(msgspec.structs.replace(bound, metadata=gone)),
    ]
    assert seen == [NEVER, LATER, NOW]


GROUP_CHANGES: dict[str, tuple[str, dict[str, Any], Urgency]] = {
    "its counts": ("status", {"running": 1}, LATER),
    "its version": ("metadata", {"resource_version": "9"}, LATER),
    "its phase": ("status", {"phase": "Running"}, NOW),
    "its annotations": ("metadata", {"annotations": {"a": "b"}}, NOW),
    "its minimum": ("spec", {"min_member": 1}, NOW),
}


@pytest.mark.parametrize(
    ("part", "fields", "want"), GROUP_CHANGES.values(), ids=GROUP_CHANGES.keys()
)
def test_how_urgent_it_is_when_a_group_changes(
    part: str, fields: dict[str, Any], want: Urgency
) -> None:
    model, group = World.make().model, a_group(2)
    changed = msgspec.structs.replace(getattr(group, part), **fields)
    assert model.set_group(msgspec.structs.replace(group, **{part: changed})) is want


def test_what_a_queue_holds_can_wait_but_for_its_state() -> None:
    model = World.make().model
    queue = msgspec.convert({"metadata": {"name": "default"}}, Queue)
    holds = msgspec.structs.replace(queue.status, allocated={"cpu": "1"})
    closed = msgspec.structs.replace(queue.status, state="Closed")
    seen = [
        model.set_queue(msgspec.structs.replace(queue, status=holds)),
        model.set_queue(msgspec.structs.replace(queue, status=closed)),
        model.set_queue(queue),
        model.set_queue(msgspec.structs.replace(queue, spec=QueueSpec(weight=2))),
    ]
    assert seen == [LATER, NOW, NOW, NOW]
