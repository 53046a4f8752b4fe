"""Queues that are new: looked up, and given a moment to be opened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pumice.kube.resources import QUEUES
from tests.builders import a_queue
from tests.fakeapi import FakeApi, ManualClock
from tests.fakeapi.clock import settle
from webhooks.queues import QueueCache

LONG_S = 60.0


@pytest.fixture
def api() -> FakeApi:
    api = FakeApi(ManualClock())
    api.add(QUEUES, a_queue("old"))
    return api


@asynccontextmanager
async def caching(api: FakeApi, patience_s: float = LONG_S) -> AsyncIterator[QueueCache]:
    async with api.client() as client, asyncio.TaskGroup() as group:
        cache = QueueCache(client, clock=api.clock, patience_s=patience_s)
        running = group.create_task(cache.run(), name="queues")
        await cache.wait()
        yield cache
        running.cancel()


async def test_an_open_queue_is_there_at_once(api: FakeApi) -> None:
    async with caching(api) as cache:
        queues = await cache.opened("old")
        assert sorted(queues.by_name) == ["old"]


async def test_a_queue_that_the_watch_has_not_brought_is_looked_up(api: FakeApi) -> None:
    async with caching(api) as cache:
        await settle()
        api.silence_watches()
        api.add(QUEUES, a_queue("new"))
        assert (await cache.known("new")).get("new") is not None


async def test_a_queue_that_there_is_not_is_not_waited_for(api: FakeApi) -> None:
    async with caching(api) as cache:
        assert (await cache.opened("nowhere")).get("nowhere") is None


async def test_a_queue_that_is_opened_in_time_is_open(api: FakeApi) -> None:
    async with caching(api) as cache:
        made = api.add(QUEUES, a_queue("new", state=""))
        waiting = asyncio.create_task(cache.opened("new"), name="waiting")
        await settle()
        assert not waiting.done()
        api.put(QUEUES, {**made, "status": {"state": "Open"}})
        queue = (await waiting).get("new")
        assert queue is not None
        assert queue.status.state == "Open"


async def test_a_queue_that_is_not_opened_in_time_stays_as_it_is(api: FakeApi) -> None:
    api.add(QUEUES, a_queue("new", state=""))
    async with caching(api, patience_s=0.05) as cache:
        queue = (await cache.opened("new")).get("new")
        assert queue is not None
        assert queue.status.state == ""


async def test_an_outage_says_that_there_is_no_such_queue(api: FakeApi) -> None:
    async with caching(api) as cache:
        api.fail(500, method="GET", path="/apis/scheduling.volcano.sh/v1beta1/queues/new")
        assert (await cache.known("new")).get("new") is None
