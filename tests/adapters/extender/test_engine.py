"""The loop that decides: when it goes round, what it keeps of its sessions and says of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from extender.engine import Engine
from extender.metrics import Metrics
from extender.model import Urgency
from extender.statuses import Statuses
from extender.writes import OutboxWrites
from pumice.core.conf import DEFAULT, Configuration, parse
from pumice.kube.events import Recorder
from pumice.kube.outbox import Outbox
from tests.adapters.extender.world import World, a_node, a_pod
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


async def test_a_loop_that_is_woken_and_ended_in_one_moment_ends(loop: Loop) -> None:
    running = asyncio.create_task(loop.engine.run())
    await asyncio.sleep(0)
    loop.engine.wake()
    running.cancel()

    await asyncio.wait({running}, timeout=5)

    assert running.cancelled()


def test_what_sessions_do_not_see_of_a_pod_is_no_change() -> None:
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
    ]
    never, now, later = Urgency.NEVER, Urgency.NOW, Urgency.LATER
    assert seen == [never, now, now, later, never]
