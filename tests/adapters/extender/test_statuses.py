"""What is written of groups and queues, and above all what is not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from extender.model import Model
from extender.statuses import (
    GROUPS_A_SECOND,
    PATIENCE_S,
    POD_TEXT_S,
    QUEUE_S,
    TEXT_S,
    TEXTS_AT_ONCE,
    Statuses,
)
from extender.writes import OutboxWrites
from pumice.core.api.scheduling import PodGroupCondition, PodGroupPhase
from pumice.core.ids import JobKey, PodUid
from pumice.core.plan import GroupStatus, Plan, PodNote, QueueUse
from pumice.kube.client import Client
from pumice.kube.events import Recorder
from pumice.kube.outbox import Observe, Outbox
from pumice.kube.resources import POD_GROUPS, PODS, QUEUES, AnyResource
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

    async def hear(self, phase: PodGroupPhase, running: int = 0, **said: str) -> None:
        """Take in what one session found of the group."""
        self.session += 1
        conditions = tuple(
            PodGroupCondition("Unschedulable", "True", reason=reason, message=message)
            for reason, message in said.items()
        )
        status = GroupStatus(JobKey(GROUP), self.uid, phase, running, 0, 0, conditions)
        await self.statuses.write(Plan(f"s{self.session}", 0.0, groups=(status,)))

    async def hold(self, **allocated: str) -> None:
        """Take in what one session found of the default queue."""
        await self.statuses.write(Plan("s", 0.0, queues=(QueueUse("default", allocated),)))

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
            PODS: model.set_pod,
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
        await desk.hear("Inqueue")
        await settle()

    assert desk.group() == ("Inqueue", 0, [])
    assert desk.writes() == 1


async def test_a_condition_bears_the_session_that_said_something_new(desk: Desk) -> None:
    for _ in range(2):
        await desk.hear("Inqueue", full="no room")
        await settle()

    (stored,) = (desk.api.get(POD_GROUPS, "default", "gang") or {})["status"]["conditions"]
    assert (stored["transitionID"], stored["message"]) == ("s1", "no room")


async def test_sessions_before_the_answer_write_nothing(desk: Desk) -> None:
    await desk.hear("Inqueue", full="no room")
    await desk.hear("Inqueue", full="no room")
    await desk.hear("Running", running=1)
    await settle()

    assert desk.group() == ("Inqueue", 0, ["no room"])
    assert desk.writes() == 1


async def test_what_the_answer_leaves_to_change_is_written_by_the_next_session(desk: Desk) -> None:
    await desk.hear("Inqueue")
    await desk.hear("Running")
    await settle()
    await desk.hear("Running")
    await settle()

    assert desk.group() == ("Running", 0, [])
    assert desk.writes() == 2


async def test_counters_and_texts_wait_for_each_other(desk: Desk) -> None:
    await desk.hear("Running")
    await settle()
    for number in range(1, 4):
        await desk.hear("Running", number, late=f"{number} run")
        await settle()
    assert desk.group() == ("Running", 0, [])

    await desk.clock.advance(TEXT_S)
    await desk.hear("Running", 3, late="3 run")
    await settle()

    assert desk.group() == ("Running", 3, ["3 run"])
    assert desk.writes() == 2


async def test_the_use_of_a_queue_is_written_once_it_has_been_wrong_for_a_while(desk: Desk) -> None:
    await desk.hold(cpu="1")
    await desk.clock.advance(QUEUE_S / 2)
    await desk.hold(cpu="2")
    assert (desk.allocated(), desk.writes()) == (None, 0)

    await desk.clock.advance(QUEUE_S / 2)
    await desk.hold(cpu="3")
    await settle()

    assert (desk.allocated(), desk.writes()) == ({"cpu": "3"}, 1)


async def test_a_use_that_comes_and_goes_is_not_written(desk: Desk) -> None:
    for _ in range(3):
        await desk.hold(cpu="1")
        await desk.clock.advance(QUEUE_S / 2)
        await desk.hold()
        await desk.clock.advance(QUEUE_S)

    assert desk.writes() == 0


async def test_a_resource_that_is_no_longer_used_goes(desk: Desk) -> None:
    for use in ({"cpu": "1", "memory": "2"}, {"cpu": "1"}):
        await desk.hold(**use)
        await desk.clock.advance(QUEUE_S)
        await desk.hold(**use)
        await settle()

    assert (desk.allocated(), desk.writes()) == ({"cpu": "1"}, 2)


class Crowd:
    """More groups than may be spoken of at once."""

    def __init__(self, desk: Desk, number: int) -> None:
        self.desk = desk
        self.names = [f"g{i}" for i in range(number)]
        self.uids: dict[str, str] = {}

    async def come(self) -> None:
        """Store the groups and show them to the cache."""
        async with self.desk.api.client() as client:
            for name in self.names:
                body = {"metadata": {"name": name}, "spec": {"minMember": 2, "queue": "default"}}
                self.desk.api.add(POD_GROUPS, {**body, "status": {"phase": "Inqueue"}})
                group = await client.get(POD_GROUPS, "default", name)
                self.desk.model.cluster.set_pod_group(group)
                self.uids[name] = group.metadata.uid
        self.desk.api.calls.clear()

    async def hear(self, message: str, phase: PodGroupPhase = "Inqueue") -> int:
        """Take in one session's word on all of them; return how many writes came of it."""
        condition = PodGroupCondition("Unschedulable", "True", "s", "", "full", message)
        groups = tuple(
            GroupStatus(JobKey(f"default/{name}"), uid, phase, 0, 0, 0, (condition,))
            for name, uid in self.uids.items()
        )
        await self.desk.statuses.write(Plan("s", 0.0, groups=groups))
        await self.desk.statuses.outbox.drain()
        return self.desk.writes()

    def without_a_word(self) -> list[str]:
        """Return the groups that nothing has been said of."""
        return [
            name
            for name in self.names
            if not (self.desk.api.get(POD_GROUPS, "default", name) or {})["status"].get(
                "conditions"
            )
        ]


async def test_where_thousands_wait_everyone_has_his_turn_and_nobody_two(desk: Desk) -> None:
    crowd = Crowd(desk, TEXTS_AT_ONCE + 2 * int(GROUPS_A_SECOND))
    await crowd.come()
    assert await crowd.hear("no room, 1") == TEXTS_AT_ONCE
    for second in range(2, 4):
        await desk.clock.advance(1)
        assert await crowd.hear(f"no room, {second}") == GROUPS_A_SECOND

    assert crowd.without_a_word() == []


async def test_a_phase_waits_for_nobody_s_turn(desk: Desk) -> None:
    crowd = Crowd(desk, TEXTS_AT_ONCE + 10)
    await crowd.come()
    await crowd.hear("no room")
    assert await crowd.hear("no room", "Running") == len(crowd.names)


@dataclass
class Waiting:
    """A pod that waits, stored and in the cache."""

    desk: Desk
    uid: PodUid

    async def hear(self, message: str, **more: Any) -> Any:
        """Take in one session's word on the pod; return its PodScheduled as stored."""
        note = PodNote("Unschedulable", message, **more)
        status = GroupStatus(JobKey(GROUP), self.desk.uid, "", 0, 0, 0, (), pods={self.uid: note})
        await self.desk.statuses.write(Plan("s", 0.0, groups=(status,)))
        await self.desk.statuses.outbox.drain()
        stored = self.desk.api.get(PODS, "default", "p") or {}
        found = {c["type"]: c for c in stored["status"]["conditions"]}
        return found["PodScheduled"]["reason"], found["PodScheduled"]["message"]


@pytest.fixture
async def waiting(desk: Desk) -> Waiting:
    spec = {
        "containers": [{"name": "c"}],
        "schedulerName": "volcano",
        "schedulingGates": [{"name": "pumice.dev/held"}],
    }
    desk.api.add(PODS, {"metadata": {"name": "p"}, "spec": spec})
    async with desk.api.client() as client:
        pod = await client.get(PODS, "default", "p")
    desk.model.set_pod(pod)
    desk.api.calls.clear()
    return Waiting(desk, PodUid(pod.metadata.uid))


GATED = ("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")


async def test_a_pod_is_told_why_it_waits_once_it_has_waited(desk: Desk, waiting: Waiting) -> None:
    assert await waiting.hear("full") == GATED
    await desk.clock.advance(PATIENCE_S)
    assert await waiting.hear("full") == ("Unschedulable", "full")
    desk.writes()

    await desk.clock.advance(POD_TEXT_S)
    assert await waiting.hear("full") == ("Unschedulable", "full")
    assert desk.writes() == 0


async def test_another_reason_is_told_only_after_a_while(desk: Desk, waiting: Waiting) -> None:
    await desk.clock.advance(PATIENCE_S)
    await waiting.hear("full")
    assert await waiting.hear("fuller") == ("Unschedulable", "full")
    await desk.clock.advance(POD_TEXT_S)
    assert await waiting.hear("fuller") == ("Unschedulable", "fuller")


async def test_a_pod_that_its_queue_holds_stays_gated(desk: Desk, waiting: Waiting) -> None:
    await desk.clock.advance(PATIENCE_S)
    assert await waiting.hear("over the limit", by_capacity=False) == GATED
