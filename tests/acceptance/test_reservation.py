"""
Reservations and configurations of a running cluster.

A gang that needs every node starts beneath a stream of small jobs, no later than it was first told;
and what sessions do changes with the file, within two seconds or not at all.
"""

from __future__ import annotations

import asyncio
import json
import re
import urllib.request
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from pumice.core import names
from pumice.local.cluster import Cluster
from tests.acceptance.bed import Bed
from tests.acceptance.length import patient
from tests.acceptance.objects import EXIT_AFTER, Object, a_job, a_task
from tests.fakeapi.clock import eventually

pytestmark = pytest.mark.cluster

NODES, CPU = 4, 4
EARLY_S = 20
"""How long the pods run that the gang finds on the nodes."""
SHORT_S, LONG_S = 3, 60
DELAYS_S = 5.0
"""What the cluster itself takes: starting pods, ending them, telling of both."""
IN_FORCE_S = 2.0
TOLD = re.compile(r"expected to start by (\S+Z)")

RESERVING = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: reservation
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
IN_FORCE = "configuration in force"
CLOSED = RESERVING.replace("enqueue, allocate, backfill", "enqueue")
BROKEN = RESERVING.replace("allocate", "alocate")


class File:
    """The scheduler configuration of the cluster."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write(RESERVING)

    def write(self, text: str) -> None:
        """Change it at once, as a mounted ConfigMap changes."""
        fresh = self.path.with_suffix(".new")
        fresh.write_text(text)
        fresh.rename(self.path)


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> File:
    return File(tmp_path_factory.mktemp("conf") / "scheduler.conf")


@pytest.fixture(scope="module")
def cluster(
    conf: File, binary_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("cluster")
    with Cluster(
        directory, nodes=0, audit_level="RequestResponse", configuration=conf.path
    ) as running:
        yield running


def a_timed_job(name: str, runs_s: int, cpu: int = 1, replicas: int = 1) -> Object:
    """Return a Job whose pods tell how long they run, and run as long."""
    notes = {names.EXPECTED_DURATION: f"{runs_s}s", EXIT_AFTER: str(runs_s)}
    task = a_task(replicas=replicas, annotations=notes, cpu=cpu)
    return a_job(name, task, min_available=replicas)


async def test_a_gang_of_all_nodes_starts_when_it_was_told_beneath_small_jobs(bed: Bed) -> None:
    bed.nodes(NODES, cpu=CPU)
    async with bed.auditor() as auditor:
        bed.create(*(a_timed_job(f"early-{i}", EARLY_S - 2 * i, CPU - 1) for i in range(NODES)))
        await bed.until(
            lambda: all(bed.running(f"early-{i}") for i in range(NODES)), 20, "the nodes are busy"
        )
        bed.create(a_timed_job("gang", 30, CPU, NODES))
        await bed.until(lambda: told(bed), 10, "the gang was told when it starts")
        first = told(bed)
        stream = asyncio.create_task(small_jobs(bed), name="small jobs")
        try:
            await bed.until(lambda: bed.running("gang"), EARLY_S + 20, "the gang runs")
        finally:
            stream.cancel()
        explained = await asyncio.to_thread(expected_start, bed)
        report = await auditor.finish()

    started = [at(pod, "startTime") for pod in bed.running("gang")]
    assert len(started) == NODES
    assert max(started) <= first + patient(DELAYS_S)
    before = [start for start, _ in starts(bed, "short") if start < min(started)]
    assert len(before) >= NODES, "small jobs that end in time use the room meanwhile"
    assert [start for start, _ in starts(bed, "long") if start < min(started)] == []
    assert explained == ""
    assert report.statistics.error_answers == 0


async def small_jobs(bed: Bed) -> None:
    """Submit one that ends in time and one that does not, again and again."""
    number = 0
    while True:
        bed.create(a_timed_job(f"short-{number}", SHORT_S), a_timed_job(f"long-{number}", LONG_S))
        number += 1
        await asyncio.sleep(1.0)


async def test_a_configuration_is_in_force_within_two_seconds_or_refused(
    bed: Bed, conf: File
) -> None:
    bed.nodes(1, cpu=CPU)
    async with bed.auditor():
        before = said(bed, IN_FORCE)
        conf.write(CLOSED)
        await eventually(lambda: bed.aside(lambda: said(bed, IN_FORCE) > before))
        bed.create(a_job("first"))
        await bed.until(lambda: bed.group_phase("first") == "Inqueue", 10, "the group is let in")
        await bed.never(lambda: bed.bound("first"), IN_FORCE_S, "nothing is to be allocated")

        conf.write(RESERVING)
        await bed.until(lambda: bed.bound("first"), IN_FORCE_S, "the change is in force")

        conf.write(BROKEN)
        await eventually(lambda: bed.aside(lambda: said(bed, "failed to find Action alocate") > 0))
        bed.create(a_job("second"))
        await bed.until(lambda: bed.running("second"), 10, "the last good one stays in force")


def told(bed: Bed) -> float:
    """Return when the gang is to start, by its condition; 0 while nothing is said."""
    conditions = (bed.pod_group("gang") or {}).get("status", {}).get("conditions", ())
    found = TOLD.search(" ".join(c.get("message", "") for c in conditions))
    return datetime.fromisoformat(found[1]).timestamp() if found else 0.0


def at(pod: Object, field: str) -> float:
    return datetime.fromisoformat(pod["status"][field]).timestamp()


def starts(bed: Bed, prefix: str) -> list[tuple[float, str]]:
    """Return when the pods of Jobs of this name started, by what was seen of them."""
    found: dict[str, float] = {}
    for seen in list(bed.pods.history):
        pod, name = seen.object, seen.object["metadata"]["name"]
        if name.startswith(f"{prefix}-") and pod["status"].get("startTime"):
            found[name] = at(pod, "startTime")
    return sorted((start, name) for name, start in found.items())


def expected_start(bed: Bed) -> str:
    group = bed.pod_group("gang")
    assert group is not None
    meta = group["metadata"]
    url = f"{bed.cluster.extender.url}/debug/explain/podgroup/{meta['namespace']}/{meta['name']}"
    with urllib.request.urlopen(url) as answer:
        found: Any = json.load(answer)
    return str(found["expected_start"])


def said(bed: Bed, text: str) -> int:
    """Return how often the extender has said something."""
    return bed.plane.processes.log("extender").read_text(errors="replace").count(text)
