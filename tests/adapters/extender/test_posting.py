"""Bindings on their way: what is repeated, what is told at once, and who goes first."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from extender.posting import GONE, REFUSED, SLOTS, STRANGER_S, Poster
from pumice.core.devices.asks import Ask, Step
from pumice.core.devices.notes import Choice, Slice
from pumice.core.ids import PodUid
from pumice.core.ledger import Arm, Entry, State
from pumice.kube.resources import PODS
from tests.fakeapi import FakeApi, ManualClock, settle


@dataclass
class Office:
    """A poster, the API server it posts to, and the bindings under way."""

    api: FakeApi
    clock: ManualClock
    poster: Poster
    #: the pods' resourceVersions as the extender last saw them
    versions: dict[PodUid, str]

    def a_pod(self, name: str, cards: Choice | None = None, arm: Arm = Arm.PIN) -> Entry:
        spec = {"containers": [{"name": "c", "image": "i"}]}
        made = self.api.add(PODS, {"metadata": {"name": name}, "spec": spec})
        self.api.calls.clear()
        uid = PodUid(made["metadata"]["uid"])
        self.versions[uid] = made["metadata"]["resourceVersion"]
        return Entry(uid, "default", name, None, State.ARRIVED, 0.0, arm=arm, cards=cards)

    def change(self, name: str) -> None:
        pod = self.api.get(PODS, "default", name)
        assert pod is not None
        self.api.store.put(PODS, {**pod, "status": {**pod["status"], "message": "changed"}})

    def post(self, entry: Entry, node: str = "n1") -> asyncio.Task[str]:
        return asyncio.create_task(self.poster.post(entry, node), name=f"post {entry.name}")

    def node_of(self, name: str) -> str:
        pod = self.api.get(PODS, "default", name)
        return str(pod["spec"].get("nodeName", "")) if pod else ""

    def sent(self) -> list[str]:
        """Return the pods whose bindings arrived, in order."""
        return [c.path.split("/")[-2] for c in self.api.calls if c.path.endswith("/binding")]


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    clock = ManualClock()
    api = FakeApi(clock)
    async with api.client() as client:
        versions: dict[PodUid, str] = {}
        poster = Poster(client, clock, random.Random(0), version=versions.__getitem__)
        yield Office(api, clock, poster, versions)


async def test_success_is_what_the_server_accepted(office: Office) -> None:
    assert await office.post(office.a_pod("a")) == ""
    assert office.node_of("a") == "n1"


@pytest.mark.parametrize("code", [429, 500, 503, 504])
async def test_a_failure_that_may_pass_is_waited_out(office: Office, code: int) -> None:
    office.api.fail(code, times=3)
    task = office.post(office.a_pod("a"))
    await office.clock.advance(1)
    assert task.result() == ""
    assert office.sent() == ["a"] * 4


async def test_a_binding_whose_answer_was_lost_is_found_to_be_there(office: Office) -> None:
    office.api.lose(applied=True)
    task = office.post(office.a_pod("a"))
    await office.clock.advance(1)
    assert task.result() == ""


async def test_a_pod_on_another_node_is_not_bound(office: Office) -> None:
    pod = office.a_pod("a")
    await office.post(pod, "n2")
    assert await office.post(pod, "n1") == REFUSED


CARDS = Choice(Ask("vgpu", (Step(0, 1, 100),)), ((Slice("GPU-1", 100),),))


@pytest.mark.parametrize(
    ("arm", "cards", "sent"),
    [(Arm.PIN, None, 1), (Arm.PIN, CARDS, 2), (Arm.NOMINATE, None, 2)],
    ids=["pinned", "pinned with cards", "nominated"],
)
async def test_a_binding_that_could_cross_a_later_one_is_of_the_pod_as_it_is_now(
    office: Office, arm: Arm, cards: Choice | None, sent: int
) -> None:
    pod = office.a_pod("a", cards, arm)
    office.change("a")
    task = office.post(pod)
    await office.clock.advance(1)
    assert task.result() == ""
    assert office.sent() == ["a"] * sent


async def test_a_pod_that_is_gone_is_not_bound(office: Office) -> None:
    pod = office.a_pod("a")
    pod.name = "b"
    assert await office.post(pod) == GONE


@pytest.mark.parametrize("code", [401, 403])
async def test_a_server_that_has_just_started_is_given_time_to_know_us(
    office: Office, code: int
) -> None:
    office.api.fail(code, times=5)
    task = office.post(office.a_pod("a"))
    await office.clock.advance(5)
    assert task.result() == ""


@pytest.mark.parametrize("code", [401, 403])
async def test_who_may_not_bind_is_told_after_a_while(office: Office, code: int) -> None:
    office.api.fail(code, times=1_000)
    task = office.post(office.a_pod("a"))
    await office.clock.advance(STRANGER_S - 1)
    assert not task.done()
    await office.clock.advance(3)
    assert task.result() == REFUSED


async def test_as_many_as_there_are_slots_and_in_order(office: Office) -> None:
    office.api.delay(1, times=1_000)
    tasks = [office.post(office.a_pod(f"p{i}")) for i in range(SLOTS + 2)]
    await settle()
    assert office.sent() == [f"p{i}" for i in range(SLOTS)]
    await office.clock.advance(1)
    assert len(office.sent()) == SLOTS + 2
    await office.clock.advance(1)
    assert {task.result() for task in tasks} == {""}


async def test_one_that_failed_goes_before_all_younger_ones(office: Office) -> None:
    office.api.fail(500, path="/pods/p0/")
    office.api.delay(1, times=1_000)
    tasks = [office.post(office.a_pod(f"p{i}")) for i in range(3 * SLOTS)]
    await office.clock.advance(0.9)
    assert office.sent() == [f"p{i}" for i in range(SLOTS + 1)]
    await office.clock.advance(0.2)
    assert office.sent()[SLOTS + 1] == "p0"
    await office.clock.advance(3)
    assert {task.result() for task in tasks} == {""}


@pytest.mark.parametrize("lost", [True, False])
async def test_while_the_server_is_away_no_more_are_begun(office: Office, lost: bool) -> None:
    if lost:
        office.api.lose(times=5 * SLOTS)
    else:
        office.api.fail(429, times=5 * SLOTS)
    tasks = [office.post(office.a_pod(f"p{i}")) for i in range(2 * SLOTS)]
    await office.clock.advance(0.5)
    assert set(office.sent()) == {f"p{i}" for i in range(SLOTS)}
    await office.clock.advance(10)
    assert {task.result() for task in tasks} == {""}


async def test_a_slot_handed_to_one_that_is_cancelled_goes_to_the_next(office: Office) -> None:
    office.api.delay(1, times=SLOTS)
    tasks = [office.post(office.a_pod(f"p{i}")) for i in range(SLOTS + 3)]
    await settle()
    tasks[SLOTS].cancel()
    await office.clock.advance(1)
    assert office.sent()[SLOTS:] == [f"p{SLOTS + 1}", f"p{SLOTS + 2}"]
    for task in tasks[:SLOTS]:
        assert task.result() == ""
