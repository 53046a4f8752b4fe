"""Each part is killed in turn while hundreds of gangs wait: nothing is lost or bound twice."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import nullcontext

import msgspec
import pytest

from pumice.local.controlplane import API_SERVER
from tests.acceptance.bed import Bed
from tests.acceptance.length import Length
from tests.acceptance.objects import Object, a_job
from tests.acceptance.trail import trail
from tests.auditor.run import Auditor

pytestmark = pytest.mark.cluster

PARTS = ("extender", "controllers", "kube-scheduler", API_SERVER)
SIZE = 2
CPU = 4
GANGS_PER_NODE = 10
"""So many gangs there are for each node, on which two have room at a time."""
LIMIT_S = 30.0
PATIENCE_S = 120.0
STARTED = ("Running", "Succeeded")
CONFIGURATION = """
actions: "allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


@pytest.fixture(scope="module")
def configuration() -> str:
    """The pods of every gang are made, room or not: there is no `enqueue`."""
    return CONFIGURATION


async def test_each_part_may_die_while_gangs_wait(bed: Bed, length: Length) -> None:
    nodes = bed.nodes(length.pending_gangs // GANGS_PER_NODE, cpu=CPU)
    names = [f"gang-{index:03}" for index in range(length.pending_gangs)]
    room = len(nodes) * CPU
    rng = random.Random(4)
    async with bed.auditor(limit_s=LIMIT_S) as auditor:
        await bed.aside(bed.create_many, [a_job(n, replicas=2, min_available=2) for n in names])
        await bed.until(lambda: len(bed.pods) == SIZE * len(names), PATIENCE_S, "the pods")
        await bed.until(lambda: len(running(bed)) == room, PATIENCE_S, "the room is in use")
        for part in PARTS:
            await kill_amid_completions(bed, auditor, rng, part)
            await bed.until(lambda: len(running(bed)) == room, PATIENCE_S, f"{part} is back")
        for node in nodes:
            bed.resize(node, cpu=str(GANGS_PER_NODE * SIZE))
        await bed.until(lambda: all_started(bed, names), PATIENCE_S, "every gang has started")
        await auditor.finish()

    assert all(pod["spec"].get("nodeName") for pod in bed.pods.values())
    # Never twice. An API server that dies between taking a binding and logging it leaves no line.
    found = bindings(bed)
    assert set(found.values()) == {1}
    assert found.keys() <= {pod["metadata"]["uid"] for pod in bed.pods.values()}


async def kill_amid_completions(bed: Bed, auditor: Auditor, rng: random.Random, part: str) -> None:
    """Kill a part while some pods end and others start in their place, and start it again."""
    gangs = rng.sample(sorted({gang(pod) for pod in running(bed)}), len(bed.node_objects) // 2)
    ending = [pod for pod in running(bed) if gang(pod) in gangs]
    await bed.aside(bed.end, *ending)
    await asyncio.sleep(rng.uniform(0.0, 1.0))
    # Without an API server answers get lost, and time counts for nobody.
    async with auditor.paused() if part == API_SERVER else nullcontext():
        bed.kill(part)
        await auditor.killed()
        await bed.aside(bed.restart, part)


def running(bed: Bed) -> list[Object]:
    """Return the pods that run."""
    return [pod for pod in bed.pods.values() if pod["status"].get("phase") == "Running"]


def gang(pod: Object) -> str:
    """Return the Job of a pod."""
    return str(pod["metadata"]["labels"]["volcano.sh/job-name"])


def all_started(bed: Bed, names: list[str]) -> bool:
    """Tell whether each gang runs whole or has succeeded whole, with pods of its own."""
    started = (pod for pod in bed.pods.values() if pod["status"].get("phase") in STARTED)
    return Counter(map(gang, started)) == dict.fromkeys(names, SIZE)


def bindings(bed: Bed) -> dict[str, int]:
    """Return how many bindings of each pod were accepted."""
    return Counter(
        msgspec.json.decode(write.request_object)["metadata"]["uid"]
        for write in trail(bed.plane.audit_log, bed.namespace)
        if write.what == "create pods/binding"
    )
