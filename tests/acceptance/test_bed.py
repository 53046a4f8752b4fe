"""The bed itself, without a cluster: what it says of Jobs and pods that come by two watches."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pumice.local.cluster import Cluster
from tests.acceptance.bed import PATHS, Bed
from tests.acceptance.lives import wait_phases
from tests.acceptance.objects import Object

HOME = "ns"


class Stream:
    """A watch that brings what a test puts into it."""

    def __init__(self) -> None:
        self.events: queue.SimpleQueue[Object | None] = queue.SimpleQueue()

    def __iter__(self) -> Iterator[Object]:
        while (event := self.events.get()) is not None:
            yield event

    def close(self) -> None:
        self.events.put(None)


class Server:
    """An API server with nothing in it but what is told."""

    def __init__(self) -> None:
        self.streams = {path: Stream() for path in PATHS.values()}

    def get(self, path: str) -> Object:
        return {"items": [], "metadata": {"resourceVersion": "1"}}

    def watch(self, path: str, version: str) -> Stream:
        return self.streams[path]

    def tell(self, kind: str, name: str, **body: Any) -> None:
        labels = {"volcano.sh/job-name": "job"}
        meta = {"namespace": HOME, "name": name, "resourceVersion": "2", "labels": labels}
        event = {"type": "ADDED", "object": {"metadata": meta, **body}}
        self.streams[PATHS[kind]].events.put(event)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def seen(server: Server) -> Iterator[Bed]:
    plane = SimpleNamespace(api=server)
    bed = Bed(cast("Cluster", SimpleNamespace(plane=plane)))
    watched = (bed.jobs, bed.pods)
    for one in watched:
        one.start()
    bed.namespace = HOME
    yield bed
    for one in watched:
        one.stop()


def tell_that_the_job_runs(server: Server, bed: Bed) -> None:
    status = {"state": {"phase": "Running"}, "running": 1}
    server.tell("jobs", "job", spec={"minAvailable": 1}, status=status)
    bed.wait_for(lambda: bed.job_phase("job") == "Running", 10)


def test_a_job_runs_once_its_pods_are_seen_to(server: Server, seen: Bed) -> None:
    tell_that_the_job_runs(server, seen)
    for wait in (
        lambda: seen.wait_phase("job", "Running", 0.01),
        lambda: wait_phases(seen, "job", "Running", patience_s=0.01),
    ):
        with pytest.raises(TimeoutError, match="Running"):
            wait()

    server.tell("pods", "job-w-0", spec={"nodeName": "n"}, status={"phase": "Running"})

    seen.wait_phase("job", "Running", 10)
    wait_phases(seen, "job", "Running")
    assert len(seen.running("job")) == 1
