"""The loop that decides: what it keeps of its sessions, and what it says of them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from extender.engine import Engine
from extender.metrics import Metrics
from extender.statuses import Statuses
from extender.writes import OutboxWrites
from pumice.core.conf import DEFAULT, Configuration, parse
from pumice.kube.events import Recorder
from pumice.kube.outbox import Outbox
from tests.adapters.extender.world import World, a_node, a_pod
from tests.fakeapi import FakeApi, ManualClock

UNKNOWN_PLUGIN = """
actions: allocate
tiers:
- plugins:
  - name: gang
  - name: crystal-ball
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
