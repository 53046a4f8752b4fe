"""What is written of groups and queues, and above all what is not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from extender.model import Model
from extender.statuses import QUEUE_S, TEXT_S, Statuses
from extender.writes import OutboxWrites
from pumice.core.api.scheduling import PodGroupCondition, PodGroupPhase
from pumice.core.ids import JobKey
from pumice.core.plan import GroupStatus, Plan, QueueUse
from pumice.kube.client import Client
from pumice.kube.events import Recorder
from pumice.kube.outbox import Observe, Outbox
from pumice.kube.resources import POD_GROUPS, QUEUES, AnyResource
from tests.adapters.kube.conftest import running
from tests.fakeapi import FakeApi, ManualClock, settle

GROUP = "default/gang"


@dataclass
class Desk:
    """Statuses over an API server in memory."""

    api: FakeApi
    clock: ManualClock
    model: Model
    statuses: Statuses
    uid: str
    session: int = 0

    def hear(self, phase: PodGroupPhase, running: int = 0, **said: str) -> None:
        """Take in what one session found of the group."""
        self.session += 1
        conditions = tuple(
            PodGroupCondition("Unschedulable", "True", f"s{self.session}", "", reason, message)
            for reason, message in said.items()
        )
        status = GroupStatus(JobKey(GROUP), self.uid, phase, running, 0, 0, conditions)
        self.statuses.write(Plan(f"s{self.session}", 0.0, groups=(status,)))

    def hold(self, **allocated: str) -> None:
        """Take in what one session found of the default queue."""
        self.statuses.write(Plan("s", 0.0, queues=(QueueUse("default", allocated),)))

    def group(self) -> tuple[str, int, list[str]]:
        """Return phase, running and messages as stored."""
        status = (self.api.get(POD_GROUPS, "default", "gang") or {}).get("status", {})
        messages = [c["message"] for c in status.get("conditions", [])]
        return status.get("phase", ""), status.get("running", 0), messages

    def allocated(self) -> Any:
        """Return the use of the queue as stored."""
        return (self.api.get(QUEUES, "", "default") or {}).get("status", {}).get("allocated")

    def writes(self) -> int:
        """Return how many writes there were since the last time."""
        count = sum(call.method == "PATCH" for call in self.api.calls)
        self.api.calls.clear()
        return count


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    """A group and a queue, stored and in the cache."""
    clock = ManualClock()
    api = FakeApi(clock)
    async with api.client() as client:
        model = Model(now=clock.monotonic)
        cluster = model.cluster
        observe: dict[AnyResource, Observe] = {
            POD_GROUPS: cluster.set_pod_group,
            QUEUES: cluster.set_queue,
        }
        outbox = Outbox(client, observe=observe, clock=clock)
        recorder = Recorder(client, "extender", clock=clock)
        statuses = Statuses(model, outbox, OutboxWrites(outbox), recorder, clock)
        uid = await stored(api, client, model)
        async with running(outbox.run()):
            yield Desk(api, clock, model, statuses, uid)


async def stored(api: FakeApi, client: Client, model: Model) -> str:
    """Store the objects, show them to the cache, and return the group's uid."""
    spec = {"minMember": 2, "queue": "default"}
    api.add(POD_GROUPS, {"metadata": {"name": "gang"}, "spec": spec})
    api.add(QUEUES, {"metadata": {"name": "default"}})
    group = await client.get(POD_GROUPS, "default", "gang")
    model.cluster.set_queue(await client.get(QUEUES, "", "default"))
    model.cluster.set_pod_group(group)
    api.calls.clear()
    return group.metadata.uid


async def test_a_phase_is_written_at_once_and_only_once(desk: Desk) -> None:
    for _ in range(3):
        desk.hear("Inqueue")
        await settle()

    assert desk.group() == ("Inqueue", 0, [])
    assert desk.writes() == 1


async def test_sessions_before_the_answer_write_nothing(desk: Desk) -> None:
    desk.hear("Inqueue", full="no room")
    desk.hear("Inqueue", full="no room")
    desk.hear("Running", running=1)
    await settle()

    assert desk.group() == ("Inqueue", 0, ["no room"])
    assert desk.writes() == 1


async def test_what_the_answer_leaves_to_change_is_written_by_the_next_session(desk: Desk) -> None:
    desk.hear("Inqueue")
    desk.hear("Running")
    await settle()
    desk.hear("Running")
    await settle()

    assert desk.group() == ("Running", 0, [])
    assert desk.writes() == 2


async def test_counters_and_texts_wait_for_each_other(desk: Desk) -> None:
    desk.hear("Running")
    await settle()
    for number in range(1, 4):
        desk.hear("Running", number, late=f"{number} run")
        await settle()
    assert desk.group() == ("Running", 0, [])

    await desk.clock.advance(TEXT_S)
    desk.hear("Running", 3, late="3 run")
    await settle()

    assert desk.group() == ("Running", 3, ["3 run"])
    assert desk.writes() == 2


async def test_the_use_of_a_queue_is_written_once_it_has_been_wrong_for_a_while(desk: Desk) -> None:
    desk.hold(cpu="1")
    await desk.clock.advance(QUEUE_S / 2)
    desk.hold(cpu="2")
    assert (desk.allocated(), desk.writes()) == (None, 0)

    await desk.clock.advance(QUEUE_S / 2)
    desk.hold(cpu="3")
    await settle()

    assert (desk.allocated(), desk.writes()) == ({"cpu": "3"}, 1)


async def test_a_use_that_comes_and_goes_is_not_written(desk: Desk) -> None:
    for _ in range(3):
        desk.hold(cpu="1")
        await desk.clock.advance(QUEUE_S / 2)
        desk.hold()
        await desk.clock.advance(QUEUE_S)

    assert desk.writes() == 0


async def test_a_resource_that_is_no_longer_used_goes(desk: Desk) -> None:
    for use in ({"cpu": "1", "memory": "2"}, {"cpu": "1"}):
        desk.hold(**use)
        await desk.clock.advance(QUEUE_S)
        desk.hold(**use)
        await settle()

    assert (desk.allocated(), desk.writes()) == ({"cpu": "1"}, 2)
