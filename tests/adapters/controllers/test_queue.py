"""The queue controller against the in-memory API server."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.queue import QueueController
from pumice.core import names
from pumice.core.api.meta import ObjectMeta
from pumice.core.api.scheduling import PodGroup, PodGroupPhase, PodGroupSpec, PodGroupStatus
from pumice.kube.resources import COMMANDS, POD_GROUPS, QUEUES
from tests.adapters.controllers.world import World
from tests.fakeapi.clock import settle, until

Json = dict[str, Any]


class QueueWorld(World[QueueController]):
    """A world with the queue controller in it."""

    def __init__(self) -> None:
        super().__init__(
            lambda made: QueueController(
                made.client, made.caches, made.events, made.metrics, clock=made.clock
            )
        )

    def queue(self, name: str) -> Json:
        queue = self.api.get(QUEUES, "", name)
        assert queue is not None, f"no queue {name}"
        return queue

    def state(self, name: str) -> str:
        queue = self.api.get(QUEUES, "", name) or {}
        return str(queue.get("status", {}).get("state", ""))

    def mark(self, name: str) -> str:
        annotations = self.queue(name)["metadata"].get("annotations", {})
        return str(annotations.get(names.CLOSED_BY_PARENT, ""))

    def add_queue(self, name: str, parent: str = "root", **status: Any) -> None:
        body = {"metadata": {"name": name}, "spec": {"parent": parent}, "status": status}
        self.api.add(QUEUES, body)

    def add_group(self, name: str, queue: str, phase: PodGroupPhase) -> None:
        group = PodGroup(
            metadata=ObjectMeta(name=name),
            spec=PodGroupSpec(queue=queue),
            status=PodGroupStatus(phase=phase),
        )
        self.api.add(POD_GROUPS, group, "ns")

    def set_phase(self, name: str, phase: PodGroupPhase) -> None:
        group = self.api.get(POD_GROUPS, "ns", name)
        assert group is not None
        self.api.put(POD_GROUPS, {**group, "status": {"phase": phase}})

    def write_state(self, name: str, state: str) -> None:
        """Write the state as a client does that has no patience."""
        queue = self.queue(name)
        self.api.put(QUEUES, {**queue, "status": {**queue.get("status", {}), "state": state}})

    def delete_group(self, name: str) -> None:
        group = self.api.get(POD_GROUPS, "ns", name)
        assert group is not None
        self.api.objects.delete(POD_GROUPS, group, {})

    def command(self, action: str, queue: str, kind: str = "Queue") -> None:
        target = {"apiVersion": names.SCHEDULING_API, "kind": kind, "name": queue, "uid": "any"}
        body = {"metadata": {"name": action.lower()}, "action": action, "target": target}
        self.api.add(COMMANDS, body, "ns")


@pytest.fixture
def world() -> QueueWorld:
    return QueueWorld()


async def test_root_and_default_are_created_and_open(world: QueueWorld) -> None:
    async with world.running():
        await until(lambda: world.state("root") == world.state("default") == "Open")
        await until(lambda: world.queue("default")["spec"].get("parent") == "root")

    root, default = world.queue("root")["spec"], world.queue("default")["spec"]
    assert root["reclaimable"] is False
    assert "parent" not in root
    assert default["reclaimable"] is True


async def test_a_second_start_writes_nothing(world: QueueWorld) -> None:
    async with world.running():
        await until(lambda: world.queue("default")["spec"].get("parent") == "root")
        await world.clock.advance(60)
    world.writes()

    async with world.running():
        await world.clock.advance(60)

    assert world.writes() == []


async def test_default_comes_back_when_it_is_deleted(world: QueueWorld) -> None:
    async with world.running():
        await until(lambda: world.state("default") == "Open")
        uid = world.queue("default")["metadata"]["uid"]

        world.api.objects.delete(QUEUES, world.queue("default"), {})

        await until(lambda: world.state("default") == "Open")
        assert world.queue("default")["metadata"]["uid"] != uid


async def test_groups_are_counted_about_once_a_second(world: QueueWorld) -> None:
    world.add_queue("q", state="Open")
    async with world.running():
        await world.clock.advance(5)
        world.writes()

        world.add_group("a", "q", "Pending")
        world.add_group("b", "q", "")
        world.set_phase("a", "Inqueue")
        world.set_phase("a", "Running")
        await world.clock.advance(0.5)
        assert world.writes() == []

        await world.clock.advance(1)
        assert world.writes() == ["PATCH queues/q/status"]
        status = world.queue("q")["status"]
        assert (status["running"], status["pending"]) == (1, 1)
        rendered = (await world.metrics.render()).decode()
        assert 'volcano_queue_pod_group_running_count{queue_name="q"} 1.0' in rendered

        world.delete_group("b")
        await world.clock.advance(2)
        assert world.queue("q")["status"]["pending"] == 0


async def test_a_queue_closes_by_command_and_is_closed_when_its_last_group_goes(
    world: QueueWorld,
) -> None:
    world.add_queue("q", state="Open")
    world.add_group("last", "q", "Completed")
    async with world.running():
        world.command("CloseQueue", "q")

        await until(lambda: world.state("q") == "Closing")
        assert world.api.all(COMMANDS) == [], "a command is deleted before it is obeyed"
        await until(lambda: ("q", "CloseQueue", "Close queue succeed") in world.events())

        world.delete_group("last")
        await until(lambda: world.state("q") == "Closed")

        world.command("OpenQueue", "q")
        await until(lambda: world.state("q") == "Open")


async def test_the_queues_below_close_and_open_with_theirs(world: QueueWorld) -> None:
    world.add_queue("top", state="Open")
    world.add_queue("a", "top", state="Open")
    world.add_queue("deep", "a", state="Open")
    world.add_queue("b", "top", state="Closed")
    async with world.running():
        world.command("CloseQueue", "top")
        await until(lambda: world.state("deep") == "Closed")
        assert [world.state(name) for name in ("top", "a", "b")] == ["Closed"] * 3
        assert [world.mark(name) for name in ("top", "a", "deep", "b")] == ["", "true", "true", ""]

        world.command("OpenQueue", "top")
        await until(lambda: world.state("deep") == "Open")
        await until(lambda: world.mark("deep") == "false")
        assert [world.state(name) for name in ("top", "a", "b")] == ["Open", "Open", "Closed"]


async def test_a_queue_below_a_closed_one_opens_when_its_parent_does(world: QueueWorld) -> None:
    world.add_queue("top", state="Closed")
    world.add_queue("a", "top", state="Closed")
    async with world.running():
        world.command("OpenQueue", "a")
        await world.clock.advance(1)
        assert world.state("a") == "Closed"

        world.command("OpenQueue", "top")
        await until(lambda: world.state("top") == "Open")
        await world.clock.advance(60)
        assert world.state("a") == "Open"


async def test_a_state_that_a_client_writes_holds_and_the_queues_below_follow(
    world: QueueWorld,
) -> None:
    world.add_queue("top", state="Open")
    world.add_queue("a", "top", state="Open")
    world.add_queue("b", "top", state="Closed")
    world.add_group("held", "top", "Running")
    async with world.running():
        world.write_state("top", "Closed")
        await until(lambda: world.state("a") == "Closed")
        await world.clock.advance(5)
        assert [world.state(name) for name in ("top", "a", "b")] == ["Closed"] * 3

        world.write_state("top", "Open")
        await until(lambda: world.state("a") == "Open")
        await world.clock.advance(5)
        assert [world.state(name) for name in ("top", "a", "b")] == ["Open", "Open", "Closed"]

        world.write_state("top", "Closing")
        await world.clock.advance(5)
        assert world.state("top") == "Closing", "it still has a PodGroup"
        world.delete_group("held")
        await until(lambda: world.state("top") == "Closed")


async def test_a_queue_that_a_client_opened_and_its_user_closes_stays_closed(
    world: QueueWorld,
) -> None:
    world.add_queue("top", state="Open")
    world.add_queue("a", "top", state="Open")
    async with world.running():
        world.command("CloseQueue", "top")
        await until(lambda: world.state("a") == "Closed")
        world.write_state("top", "Open")
        world.write_state("a", "Open")
        await until(lambda: world.mark("a") == "false")
        world.command("CloseQueue", "a")
        await until(lambda: world.state("a") == "Closed")
        await world.clock.advance(60)
        assert world.state("a") == "Closed"


async def test_a_queue_that_its_user_closes_below_a_closed_one_stays_closed(
    world: QueueWorld,
) -> None:
    world.add_queue("top", state="Open")
    world.add_queue("a", "top", state="Open")
    world.add_queue("b", "top", state="Open")
    async with world.running():
        world.command("CloseQueue", "top")
        await until(lambda: {world.state(name) for name in ("top", "a", "b")} == {"Closed"})
        await world.clock.advance(5)
        assert [world.mark(name) for name in ("a", "b")] == ["true", "true"]
        world.command("CloseQueue", "a")
        await until(lambda: world.mark("a") == "false")
        world.command("OpenQueue", "top")
        await until(lambda: world.state("b") == "Open")
        await world.clock.advance(60)
        assert world.state("a") == "Closed"


async def test_an_unknown_state_stays_until_an_action(world: QueueWorld) -> None:
    world.add_queue("q", state="Unknown")
    async with world.running():
        await world.clock.advance(5)
        assert world.state("q") == "Unknown"
        world.command("OpenQueue", "q")
        await until(lambda: world.state("q") == "Open")
        world.write_state("q", "Unknown")
        world.command("CloseQueue", "q")
        await until(lambda: world.state("q") == "Closed")


async def test_root_opens_again_when_a_client_closes_it(world: QueueWorld) -> None:
    async with world.running():
        await until(lambda: world.state("root") == "Open")
        world.write_state("root", "Closed")
        await until(lambda: world.state("root") == "Open")


async def test_a_queue_that_moves_follows_its_new_parent(world: QueueWorld) -> None:
    world.add_queue("shut", state="Closed")
    world.add_queue("q", state="Open")
    async with world.running():
        await world.clock.advance(5)
        queue = world.queue("q")
        world.api.put(QUEUES, {**queue, "spec": {**queue["spec"], "parent": "shut"}})
        await until(lambda: world.state("q") == "Closed")


async def test_a_group_that_changes_its_queue_is_counted_there(world: QueueWorld) -> None:
    world.add_queue("a", state="Open")
    world.add_queue("b", state="Open")
    world.add_group("g", "a", "Running")
    async with world.running():
        await world.clock.advance(5)
        assert world.queue("a")["status"]["running"] == 1
        group = world.api.get(POD_GROUPS, "ns", "g")
        assert group is not None
        world.api.put(POD_GROUPS, {**group, "spec": {"queue": "b"}})
        await world.clock.advance(5)
        assert world.queue("a")["status"]["running"] == 0
        assert world.queue("b")["status"]["running"] == 1


async def test_an_order_that_never_works_is_given_up_with_an_event(world: QueueWorld) -> None:
    world.add_queue("top", state="Closed")
    world.add_queue("a", "top", state="Closed")
    async with world.running():
        world.command("OpenQueue", "a")
        await world.clock.advance(600)
        told = "OpenQueue queue failed for Failed to open queue a because its parent queue top is"
        assert [m for _, _, m in world.events() if m.startswith(told)], world.events()
        calls = len(world.api.calls)
        await world.clock.advance(30)
        assert [c.path for c in world.api.calls[calls:] if c.method != "GET"] == []


async def test_a_queue_whose_parent_appears_later_follows_it(world: QueueWorld) -> None:
    world.add_queue("a", "top", state="Open")
    async with world.running():
        await world.clock.advance(1)
        world.add_queue("top", state="Closed")
        await until(lambda: world.state("a") == "Closed")
        assert world.mark("a") == "true"


async def test_root_does_not_close(world: QueueWorld) -> None:
    async with world.running():
        await until(lambda: world.state("root") == "Open")
        world.command("CloseQueue", "root")
        await until(lambda: any(name == "root" for name, _, _ in world.events()))
        assert world.state("root") == "Open"


async def test_a_command_for_something_else_is_left_alone(world: QueueWorld) -> None:
    world.add_queue("q", state="Open")
    async with world.running():
        world.command("CloseQueue", "q", kind="Other")
        await world.clock.advance(5)
        assert world.state("q") == "Open"
        assert len(world.api.all(COMMANDS)) == 1


async def test_a_status_that_the_extender_has_just_written_is_read_again(
    world: QueueWorld,
) -> None:
    world.add_queue("q", state="Open")
    async with world.running():
        await world.clock.advance(5)
        world.api.fail(409, method="PATCH", path="queues/q/status", reason="Conflict")
        world.command("CloseQueue", "q")
        await world.clock.advance(1)
        assert world.state("q") == "Closed"


async def test_an_outage_is_waited_out(world: QueueWorld) -> None:
    world.add_queue("q", state="Open")
    async with world.running():
        await world.clock.advance(5)
        world.api.fail(503, method="PATCH", path="queues/q/status", times=3)
        world.command("CloseQueue", "q")
        await world.clock.advance(5)
        assert world.state("q") == "Closed"


async def test_a_malformed_queue_is_reported_and_the_others_go_on(world: QueueWorld) -> None:
    world.add_queue("bad", state="Open")
    bad = world.queue("bad")
    world.api.put(QUEUES, {**bad, "spec": {"weight": "much"}})
    world.add_queue("good")
    async with world.running():
        await until(lambda: world.state("good") == "Open")
        await settle()
        told = {(name, reason) for name, reason, _ in world.events()}
        assert told == {("bad", "Malformed")}


async def test_whoever_closes_a_queue_after_he_could_not_open_it_has_the_last_word() -> None:
    world = QueueWorld()
    world.add_queue("p", state="Open")
    world.add_queue("c", parent="p", state="Open")
    async with world.running():
        await world.clock.advance(5)
        world.command("CloseQueue", "p")
        await until(lambda: world.state("c") == "Closed" and world.state("p") == "Closed")
        await world.clock.advance(2)
        world.command("OpenQueue", "c")
        await world.clock.advance(5)
        world.command("CloseQueue", "c")
        await world.clock.advance(400)
        world.command("OpenQueue", "p")
        await world.clock.advance(100)
        assert (world.state("p"), world.state("c")) == ("Open", "Closed")


async def test_a_queue_without_its_parent_is_closed_all_the_same() -> None:
    world = QueueWorld()
    world.add_queue("c", parent="nobody", state="Open")
    async with world.running():
        await world.clock.advance(1)
        world.command("CloseQueue", "c")
        await world.clock.advance(120)
        assert world.state("c") == "Closed"
