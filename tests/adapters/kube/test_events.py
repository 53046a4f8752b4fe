"""Events: told once, counted afterwards, and never in anyone's way."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core.api.meta import ObjectMeta
from pumice.kube.client import Client
from pumice.kube.clock import rfc3339
from pumice.kube.events import AGGREGATE_S, BURST, REFILL_S, Recorder
from pumice.kube.resources import EVENTS, JOBS, QUEUES
from tests.adapters.kube.conftest import running
from tests.fakeapi import FakeApi, ManualClock, settle, until

JOB = ObjectMeta(namespace="default", name="j", uid="u")


def stored(api: FakeApi) -> list[tuple[str, str, int]]:
    return [(e["reason"], e["message"], e["count"]) for e in api.all(EVENTS)]


@pytest.fixture
def recorder(client: Client, clock: ManualClock) -> Recorder:
    return Recorder(client, "pumice-test", clock=clock)


async def test_says_what_happened_to_what(
    api: FakeApi, recorder: Recorder, clock: ManualClock
) -> None:
    async with running(recorder.run()):
        recorder.record(JOBS, JOB, "Warning", "Unschedulable", "no room")
        await until(lambda: api.all(EVENTS))
    event = api.all(EVENTS)[0]
    now = rfc3339(clock.now())
    want: dict[str, Any] = {
        "involvedObject": {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "namespace": "default",
            "name": "j",
            "uid": "u",
        },
        "type": "Warning",
        "reason": "Unschedulable",
        "message": "no room",
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": "pumice-test"},
        "reportingComponent": "pumice-test",
    }
    assert {k: v for k, v in event.items() if k != "metadata"} == want
    assert event["metadata"]["name"].startswith("j.")


async def test_the_same_again_is_counted(
    api: FakeApi, recorder: Recorder, clock: ManualClock
) -> None:
    async with running(recorder.run()):
        for _ in range(3):  # Not sent yet: one write for all three.
            recorder.record(JOBS, JOB, "Normal", "A", "m")
        await settle()
        recorder.record(JOBS, JOB, "Normal", "A", "other")
        await clock.advance(60)
        recorder.record(JOBS, JOB, "Normal", "A", "m")
        await settle()
        assert stored(api) == [("A", "m", 4), ("A", "other", 1)]
        assert api.all(EVENTS)[0]["lastTimestamp"] == rfc3339(clock.now())
        assert [c.method for c in api.calls] == ["POST", "POST", "PATCH"]

        await clock.advance(AGGREGATE_S + 1)
        recorder.record(JOBS, JOB, "Normal", "A", "m")
        await settle()
        assert sorted(stored(api)) == [("A", "m", 1), ("A", "m", 4), ("A", "other", 1)]


async def test_an_event_that_expired_is_told_anew(
    api: FakeApi, client: Client, recorder: Recorder
) -> None:
    async with running(recorder.run()):
        recorder.record(JOBS, JOB, "Normal", "A", "m")
        await until(lambda: api.all(EVENTS))
        await client.delete(EVENTS, "default", api.all(EVENTS)[0]["metadata"]["name"])
        recorder.record(JOBS, JOB, "Normal", "A", "m")
        await until(lambda: api.all(EVENTS))
    assert stored(api) == [("A", "m", 1)]


async def test_what_happened_long_ago_is_forgotten(
    api: FakeApi, recorder: Recorder, clock: ManualClock
) -> None:
    async with running(recorder.run()):
        for number in range(3):
            meta = ObjectMeta(namespace="default", name=f"j{number}", uid=f"u{number}")
            recorder.record(JOBS, meta, "Normal", "Started", "it runs")
            await settle()
            await clock.advance(AGGREGATE_S)
        assert len(api.all(EVENTS)) == 3
        assert len(recorder._series) == 2
        assert recorder._buckets.keys() == {"u2"}


async def test_a_flood_about_one_object_is_cut(
    api: FakeApi, recorder: Recorder, clock: ManualClock
) -> None:
    other = ObjectMeta(namespace="default", name="other", uid="v")
    async with running(recorder.run()):
        for i in range(BURST + 10):
            recorder.record(JOBS, JOB, "Normal", "A", f"{i}")
        recorder.record(JOBS, other, "Normal", "A", "heard")
        await clock.advance(0)
        await until(lambda: len(stored(api)) == BURST + 1)
        assert recorder.dropped == 10
        await clock.advance(REFILL_S)
        recorder.record(JOBS, JOB, "Normal", "A", "again")
        recorder.record(JOBS, JOB, "Normal", "A", "too much")
        await until(lambda: len(stored(api)) == BURST + 2)
    assert recorder.dropped == 11


async def test_when_too_many_wait_the_newest_are_dropped(
    client: Client, clock: ManualClock
) -> None:
    recorder = Recorder(client, "c", clock=clock, waiting=2)
    for i in range(5):
        meta = ObjectMeta(namespace="default", name=f"j{i}", uid=f"u{i}")
        recorder.record(JOBS, meta, "Normal", "A", "m")
    assert recorder.dropped == 3


async def test_a_refusal_is_no_drama(api: FakeApi, recorder: Recorder) -> None:
    api.fail(403)
    async with running(recorder.run()):
        recorder.record(JOBS, JOB, "Normal", "A", "lost")
        recorder.record(JOBS, JOB, "Normal", "A", "kept")
        await until(lambda: api.all(EVENTS))
    assert stored(api) == [("A", "kept", 1)]
    assert recorder.dropped == 1


async def test_cluster_scoped_objects_and_long_messages(api: FakeApi, recorder: Recorder) -> None:
    async with running(recorder.run()):
        recorder.record(QUEUES, ObjectMeta(name="q", uid="q"), "Normal", "A", "x" * 5_000)
        await until(lambda: api.all(EVENTS))
    event = api.all(EVENTS)[0]
    assert event["metadata"]["namespace"] == "default"
    assert event["message"] == "x" * 1_021 + "..."
