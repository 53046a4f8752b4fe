"""A cluster in memory with one controller at work; the tests turn its clock."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

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


C = TypeVar("C", bound=Controller)


@dataclass(frozen=True)
class Process:
    """What the process has that a controller runs in."""

    client: Client
    caches: Caches
    events: Recorder
    metrics: Metrics
    clock: ManualClock


class World(Generic[C]):
    """The API server and what the controller under test has done to it."""

    def __init__(self, make: Callable[..., C]) -> None:
        #: takes a Process, and the options that a test gives to `running`
        self._make = make
        self.clock = ManualClock()
        self.api = FakeApi(self.clock, namespaces=("default", "ns"))
        self.metrics = Metrics()
        self._read = 0

    @asynccontextmanager
    async def running(
        self, scheduler_names: Sequence[str] = ("volcano",), **options: Any
    ) -> AsyncIterator[C]:
        """Run the controller, as one process would, and kill it at the end."""
        client = self.api.client()
        events = Recorder(client, "pumice-controllers", clock=self.clock)
        caches = Caches(
            client, scheduler_names, on_malformed=Faults(events).report, clock=self.clock
        )
        self.metrics = Metrics("volcano_")
        controller = self._make(
            Process(client, caches, events, self.metrics, self.clock), **options
        )
        tasks = [
            asyncio.create_task(part.run(), name=type(part).__name__)
            for part in (events, caches, controller)
        ]
        try:
            await until(lambda: caches.synced)
            await settle()
            yield controller
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
