"""A fake API server whose time stands still until the test turns it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pumice.kube.client import Client
from tests.fakeapi import FakeApi, ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def api(clock: ManualClock) -> FakeApi:
    return FakeApi(clock)


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[Client]:
    async with api.client() as client:
        yield client


@asynccontextmanager
async def running(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run coroutines until the block ends; one that fails fails the block."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(w, name=f"work {i}") for i, w in enumerate(work)]
        yield
        for task in tasks:
            task.cancel()
