"""The outbox: order, merging, repetition, and who hears of what."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from pumice.kube.client import Client
from pumice.kube.errors import (
    AlreadyExists,
    Conflict,
    Disconnected,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    ServerError,
)
from pumice.kube.outbox import (
    PATIENCE_S,
    Create,
    Delete,
    Merge,
    MergeByKey,
    Operations,
    Outbox,
    Outcome,
    Write,
)
from pumice.kube.resources import CONFIG_MAPS, JOBS, PODS, QUEUES
from tests.adapters.kube.conftest import running
from tests.fakeapi import FakeApi, ManualClock, settle, until


@dataclass
class Sender:
    """An outbox that runs, and how its writes ended."""

    outbox: Outbox
    api: FakeApi
    ended: list[Outcome] = field(default_factory=list)

    def put(self, write: Write, **more: Any) -> None:
        self.outbox.put(write, self.ended.append, **more)

    def a_map(self, name: str = "m", **data: str) -> str:
        made = self.api.add(CONFIG_MAPS, {"metadata": {"name": name}, "data": data})
        self.api.calls.clear()
        return str(made["metadata"]["uid"])

    def data(self, name: str = "m") -> dict[str, str] | None:
        obj = self.api.get(CONFIG_MAPS, "default", name)
        return obj.get("data", {}) if obj else None

    @property
    def errors(self) -> list[type[KubeError] | None]:
        return [type(o.error) if o.error else None for o in self.ended]

    def sent(self) -> list[tuple[str, Any]]:
        return [(c.method, msgspec.json.decode(c.body)) for c in self.api.calls]


@pytest.fixture
async def sender(api: FakeApi, client: Client, clock: ManualClock) -> AsyncIterator[Sender]:
    outbox = Outbox(client, clock=clock, rng=random.Random(0))
    async with running(outbox.run()):
        yield Sender(outbox, api)


def merge(uid: str, name: str = "m", **data: str | None) -> Merge:
    return Merge(resource=CONFIG_MAPS, namespace="default", name=name, uid=uid, body={"data": data})


async def test_writes_that_wait_leave_as_one(sender: Sender, api: FakeApi) -> None:
    uid = sender.a_map(x="1", y="1")
    for write in (merge(uid, x="2"), merge(uid, y="2"), merge(uid, x="3")):
        sender.put(write)
    await sender.outbox.drain()

    assert sender.sent() == [("PATCH", {"data": {"x": "3", "y": "2"}, "metadata": {"uid": uid}})]
    assert [(o.sent, o.error) for o in sender.ended] == [(True, None)] * 3
    assert {o.obj.metadata.resource_version for o in sender.ended if o.obj} == {
        str(api.store.version)
    }


async def test_a_merge_never_spares_what_an_earlier_one_deletes(sender: Sender) -> None:
    uid = sender.a_map(x="1", y="1")
    everything = Merge(
        resource=CONFIG_MAPS, namespace="default", name="m", uid=uid, body={"data": None}
    )
    sender.put(everything)
    sender.put(merge(uid, z="1"))
    await sender.outbox.drain()
    assert sender.data() == {"z": "1"}


async def test_writes_of_one_object_keep_their_order(sender: Sender) -> None:
    uid = sender.a_map(x="1")
    where: dict[str, Any] = {"resource": CONFIG_MAPS, "namespace": "default", "name": "m"}
    sender.put(merge(uid, x="2"))
    sender.put(Operations(**where, uid=uid, body=[{"op": "test", "path": "/data/x", "value": "2"}]))
    sender.put(merge(uid, x="3"))
    sender.put(Delete(**where, uid=uid))
    sender.put(Create(**where, body={"metadata": {"name": "m"}, "data": {"x": "4"}}))
    await sender.outbox.drain()

    assert sender.errors == [None] * 5
    assert [c.method for c in sender.api.calls] == ["PATCH", "PATCH", "PATCH", "DELETE", "POST"]
    assert sender.data() == {"x": "4"}


async def test_writes_of_different_presumptions_stay_apart(sender: Sender) -> None:
    uid = sender.a_map(x="1")
    sender.put(merge(uid, x="2"))
    sender.put(merge("another", x="3"))
    await sender.outbox.drain()
    assert sender.errors == [None, Conflict]
    assert sender.data() == {"x": "2"}


async def test_what_needs_no_sending_is_dropped(sender: Sender) -> None:
    uid = sender.a_map(x="1", y="1")
    sender.put(merge(uid, x="2"), unless=lambda: True)
    sender.put(merge(uid, y="2"), unless=lambda: False)
    await sender.outbox.drain()
    assert [o.sent for o in sender.ended] == [False, True]
    assert sender.data() == {"x": "1", "y": "2"}

    sender.api.calls.clear()
    sender.put(merge(uid, x="2"), unless=lambda: True)
    await sender.outbox.drain()
    assert sender.api.calls == []


REFUSED = {
    "another object of that name": (409, Conflict),
    "the object is gone": (404, NotFound),
    "the server finds it invalid": (422, Invalid),
    "we may not": (403, Forbidden),
}


@pytest.mark.parametrize(("code", "error"), REFUSED.values(), ids=REFUSED.keys())
async def test_is_told_at_once(sender: Sender, code: int, error: type[KubeError]) -> None:
    uid = sender.a_map(x="1")
    sender.api.fail(code)
    sender.put(merge(uid, x="2"))
    await sender.outbox.drain()
    assert sender.errors == [error]
    assert len(sender.api.calls) == 1


@pytest.mark.parametrize("code", [429, 500, 503, 504])
async def test_is_repeated(sender: Sender, clock: ManualClock, code: int) -> None:
    uid = sender.a_map(x="1")
    sender.api.fail(code, times=3)
    sender.put(merge(uid, x="2"))
    await clock.advance(1)
    assert sender.errors == [None]
    assert [c.method for c in sender.api.calls] == ["PATCH"] * 4


async def test_a_lost_answer_is_asked_for_again(sender: Sender, clock: ManualClock) -> None:
    uid = sender.a_map(x="1")
    sender.api.lose(applied=True)
    sender.put(merge(uid, x="2"))
    await clock.advance(1)
    assert sender.errors == [None]
    assert sender.data() == {"x": "2"}


async def test_a_patch_that_was_applied_before_its_answer_was_lost_is_not_sent_again(
    sender: Sender, clock: ManualClock
) -> None:
    uid = sender.a_map(x="1", y="1")
    sender.api.lose(applied=True)
    sender.put(merge(uid, x="2", y=None))
    await clock.advance(1)

    (outcome,) = sender.ended
    assert outcome.obj is not None
    assert outcome.obj.metadata.resource_version == str(sender.api.store.version)
    assert [c.method for c in sender.api.calls] == ["PATCH", "GET"]


async def test_a_lost_patch_is_not_taken_for_done_on_another_object_of_that_name(
    sender: Sender, clock: ManualClock
) -> None:
    uid = sender.a_map(x="1")
    sender.api.lose()
    sender.put(merge(uid, x="2"))
    await settle()
    other = {"name": "m", "namespace": "default", "uid": "another"}
    sender.api.put(CONFIG_MAPS, {"metadata": other, "data": {"x": "2"}})
    await clock.advance(1)
    assert sender.errors == [Conflict]


async def test_a_lost_condition_is_looked_for_among_the_others(
    sender: Sender, clock: ManualClock
) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    uid = sender.api.add(PODS, pod)["metadata"]["uid"]
    for kind in ("A", "B", "A"):
        sender.api.lose(applied=True)
        condition = {"type": kind, "status": "True"}
        sender.put(
            MergeByKey(
                resource=PODS,
                namespace="default",
                name="p",
                uid=uid,
                body={"status": {"conditions": [condition]}},
                subresource="status",
            )
        )
        await clock.advance(1)
    assert sender.errors == [None] * 3
    assert [c.method for c in sender.api.calls] == ["PATCH", "GET"] * 3


async def test_a_creation_whose_answer_was_lost_is_not_done_twice(
    sender: Sender, clock: ManualClock
) -> None:
    sender.api.lose(applied=True)
    body = {"metadata": {"name": "m"}}
    sender.put(Create(resource=CONFIG_MAPS, namespace="default", name="m", body=body))
    await clock.advance(1)
    assert sender.errors == [AlreadyExists]
    assert len(sender.api.all(CONFIG_MAPS)) == 1


async def test_the_server_says_when_to_come_back(sender: Sender, clock: ManualClock) -> None:
    uid = sender.a_map(x="1")
    sender.api.fail(429, retry_after_s=7)
    sender.put(merge(uid, x="2"))
    await clock.advance(6.9)
    assert sender.ended == []
    await clock.advance(0.2)
    assert sender.errors == [None]


async def test_the_server_is_obeyed_however_long_it_was_away(
    sender: Sender, clock: ManualClock
) -> None:
    uid = sender.a_map(x="1")
    sender.api.lose(times=10)
    sender.api.fail(429, retry_after_s=1, times=3, method="PATCH")
    sender.put(merge(uid, x="2"))
    await clock.advance(30)
    assert sender.errors == [None]
    sent = [call.at for call in sender.api.calls if call.method == "PATCH"]
    assert [later - earlier for earlier, later in pairwise(sent[-4:])] == [1, 1, 1]


async def test_writes_join_one_that_waits_for_its_next_try(
    sender: Sender, clock: ManualClock
) -> None:
    uid = sender.a_map(x="1")
    sender.api.fail(503)
    sender.put(merge(uid, x="2"))
    await settle()
    sender.put(merge(uid, y="2"))
    await clock.advance(1)
    assert [body["data"] for _, body in sender.sent()] == [{"x": "2"}, {"x": "2", "y": "2"}]
    assert sender.errors == [None, None]


@pytest.mark.parametrize("lost", [True, False])
async def test_patience_ends(sender: Sender, clock: ManualClock, lost: bool) -> None:
    uid = sender.a_map(x="1")
    if lost:
        sender.api.lose(times=1_000)
    else:
        sender.api.fail(500, times=1_000)
    sender.put(merge(uid, x="2"))
    await clock.advance(PATIENCE_S)
    assert sender.ended == []
    await clock.advance(6)
    assert sender.errors == [Disconnected if lost else ServerError]
    assert not sender.outbox.pending(CONFIG_MAPS, "default", "m")


async def test_an_object_in_trouble_holds_up_no_other(sender: Sender, clock: ManualClock) -> None:
    bad, good = sender.a_map("bad", x="1"), sender.a_map("good", x="1")
    sender.api.fail(500, times=1_000, path="configmaps/bad")
    sender.put(merge(bad, "bad", x="2"))
    sender.put(merge(good, "good", x="2"))
    await until(lambda: sender.ended)
    assert sender.data("good") == {"x": "2"}
    assert sender.outbox.pending(CONFIG_MAPS, "default", "bad")
    await clock.advance(1)
    assert len(sender.ended) == 1


async def test_as_many_in_flight_as_allowed(
    api: FakeApi, client: Client, clock: ManualClock
) -> None:
    outbox = Outbox(client, in_flight=2, clock=clock)
    sender = Sender(outbox, api)
    uids = {name: sender.a_map(name) for name in "abc"}
    api.delay(1, times=3)
    async with running(outbox.run()):
        for name, uid in uids.items():
            sender.put(merge(uid, name, x="1"))
        await settle()
        assert (len(api.calls), len(outbox)) == (2, 3)
        await clock.advance(1)
        assert (len(api.calls), len(outbox)) == (3, 1)
        await clock.advance(1)
        await outbox.drain()


async def test_answers_are_fed_back_before_the_caller_hears(
    api: FakeApi, client: Client, clock: ManualClock
) -> None:
    heard: list[str] = []
    outbox = Outbox(
        client, observe={CONFIG_MAPS: lambda obj: heard.append(obj.data["x"])}, clock=clock
    )
    uid = Sender(outbox, api).a_map(x="1")
    async with running(outbox.run()):
        outbox.put(merge(uid, x="2"), lambda outcome: heard.append("done"))
        await outbox.drain()
    assert heard == ["2", "done"]


async def test_a_callback_that_fails_stops_nothing(
    sender: Sender, caplog: pytest.LogCaptureFixture
) -> None:
    uid = sender.a_map(x="1")

    def fail(outcome: Outcome) -> None:
        raise RuntimeError("not again")

    sender.outbox.put(merge(uid, x="2"), fail)
    sender.put(merge(uid, y="2"))
    await sender.outbox.drain()
    assert sender.errors == [None]
    assert "not again" in caplog.text


async def test_a_body_that_cannot_be_encoded_stops_nothing(
    sender: Sender, caplog: pytest.LogCaptureFixture
) -> None:
    uid = sender.a_map(x="1")
    odd = Operations(
        resource=CONFIG_MAPS, namespace="default", name="m", uid=uid, body=[{"value": object()}]
    )
    sender.put(odd)
    sender.put(merge(uid, x="2"))
    await sender.outbox.drain()
    assert sender.errors == [KubeError, None]
    assert "not sent" in caplog.text


async def test_an_observer_that_fails_stops_nothing(
    api: FakeApi, client: Client, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(obj: Any) -> None:
        raise RuntimeError("do not look")

    outbox = Outbox(client, observe={CONFIG_MAPS: fail}, clock=clock)
    sender = Sender(outbox, api)
    uid = sender.a_map(x="1")
    async with running(outbox.run()):
        sender.put(merge(uid, x="2"))
        await outbox.drain()
    assert sender.errors == [None]
    assert "do not look" in caplog.text


async def test_a_callback_may_put_the_next_write(sender: Sender) -> None:
    uid = sender.a_map(x="1")
    sender.outbox.put(merge(uid, x="2"), lambda _: sender.put(merge(uid, y="2")))
    sender.outbox.put(
        merge(uid, x="3"), lambda _: sender.put(merge(uid, z="2")), unless=lambda: True
    )
    await sender.outbox.drain()
    assert sender.data() == {"x": "2", "y": "2", "z": "2"}


async def test_conditions_of_a_pod_merge_by_type(sender: Sender) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    made = sender.api.add(PODS, pod)
    for kind in ("A", "B"):
        body = {"status": {"conditions": [{"type": kind, "status": "True"}]}}
        sender.put(
            MergeByKey(
                resource=PODS,
                namespace="default",
                name="p",
                uid=made["metadata"]["uid"],
                body=body,
                subresource="status",
            )
        )
    await sender.outbox.drain()
    stored = sender.api.get(PODS, "default", "p")
    assert stored
    assert [c["type"] for c in stored["status"]["conditions"]] == ["A", "B"]


UNSAFE: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "a change that presumes nothing": (Merge, {"resource": PODS, "body": {}}),
    "a deletion that presumes nothing": (Delete, {"resource": PODS}),
    "a custom status that presumes a uid alone": (
        Merge,
        {"resource": JOBS, "uid": "u", "body": {}, "subresource": "status"},
    ),
    "a custom status by operations that presume a uid alone": (
        Operations,
        {"resource": QUEUES, "uid": "u", "body": [], "subresource": "status"},
    ),
    "a creation without a name": (Create, {"resource": PODS, "body": {}, "name": ""}),
}


@pytest.mark.parametrize(("kind", "fields"), UNSAFE.values(), ids=UNSAFE.keys())
def test_cannot_be_written(kind: type[Any], fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"presumes nothing|not checked|cannot be repeated"):
        kind(**{"namespace": "default", "name": "x", **fields})
