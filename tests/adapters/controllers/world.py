"""A cluster in memory with one controller at work; the tests turn its clock."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from controllers.caches import Caches
from controllers.main import Faults
from pumice.kube.client import Client
from pumice.kube.events import Recorder
from pumice.kube.metrics import Metrics
from pumice.kube.resources import EVENTS
from tests.fakeapi.app import FakeApi
from tests.fakeapi.clock import ManualClock, settle, until

Json = dict[str, Any]
_HOME = re.compile(r"/api(s/[^/]+)?/[^/]+/(namespaces/[^/]+/)?")


class Controller(Protocol):
    """What all controllers are."""

    async def run(self) -> None:
        """Work until cancelled."""
        ...


Make = Callable[[Client, Caches, Recorder, Metrics, ManualClock], Controller]


class World:
    """The API server and what the controller under test has done to it."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self.clock = ManualClock()
        self.api = FakeApi(self.clock, namespaces=("default", "ns"))
        self.metrics = Metrics()
        self._read = 0

    @asynccontextmanager
    async def running(self, scheduler_names: Sequence[str] = ("volcano",)) -> AsyncIterator[None]:
        """Run the controller, as one process would, and kill it at the end."""
        client = self.api.client()
        recorder = Recorder(client, "pumice-controllers", clock=self.clock)
        caches = Caches(
            client, scheduler_names, on_malformed=Faults(recorder).report, clock=self.clock
        )
        self.metrics = Metrics("volcano_")
        controller = self._make(client, caches, recorder, self.metrics, self.clock)
        tasks = [
            asyncio.create_task(part.run(), name=type(part).__name__)
            for part in (recorder, caches, controller)
        ]
        try:
            await until(lambda: caches.synced)
            await settle()
            yield
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            await client.close()
        failed = [e for e in ended if e and not isinstance(e, asyncio.CancelledError)]
        assert failed == []

    def writes(self) -> list[str]:
        """Return what was written since the last time, events apart."""
        calls = self.api.calls[self._read :]
        self._read = len(self.api.calls)
        return [
            f"{call.method} {_HOME.sub('', call.path)}"
            for call in calls
            if call.method != "GET" and "/events" not in call.path
        ]

    def events(self) -> set[tuple[str, str, str]]:
        """Return object, reason and message of every event."""
        return {
            (event["involvedObject"]["name"], event["reason"], event["message"])
            for event in self.api.all(EVENTS)
        }
