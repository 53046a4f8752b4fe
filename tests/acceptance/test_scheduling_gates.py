"""The gate of a queue: taken off when the queue may have the pod, and after the gates of others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pumice.core import names
from pumice.local.cluster import Cluster
from tests.acceptance.bed import Bed, pod_path
from tests.acceptance.objects import Object, a_pod, a_pod_group, a_queue

pytestmark = pytest.mark.cluster

QUEUE_GATE = names.QUEUE_ALLOCATION_GATE
OTHER_GATE = "example.com/other-gate"
SMALL = {"cpu": "500m", "memory": "512Mi"}
CONFIGURATION = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: capacity
  - name: predicates
  - name: nodeorder
"""


@pytest.fixture(scope="module")
def cluster(binary_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster whose queues have capacities."""
    directory = tmp_path_factory.mktemp("cluster")
    file = directory / "volcano-scheduler.conf"
    file.write_text(CONFIGURATION)
    with Cluster(directory, nodes=0, configuration=file) as running:
        yield running


def gates(bed: Bed, name: str) -> list[str]:
    spec = (bed.pod(name) or {}).get("spec", {"schedulingGates": [{"name": QUEUE_GATE}]})
    return [gate["name"] for gate in spec.get("schedulingGates", [])]


def is_running(bed: Bed, name: str) -> bool:
    return bool((bed.pod(name) or {}).get("status", {}).get("phase") == "Running")


def gated_pod(name: str, *more: str, **spec: Any) -> Object:
    """Return a pod that waits for its queue, as admission makes it, and for others."""
    notes = {QUEUE_GATE: "true", names.QUEUE_NAME: "q", names.GROUP_NAME: "g"}
    waits = [{"name": gate} for gate in (QUEUE_GATE, *more)]
    return a_pod(name, annotations=notes, schedulingGates=waits, cpu="500m", memory="512Mi", **spec)


@pytest.fixture
def queue(bed: Bed) -> None:
    bed.nodes(2, cpu=2, memory="2Gi")
    bed.create(a_queue("q", capability=SMALL))
    bed.create(a_pod_group("g", min_member=1, queue="q", minResources=SMALL))
    bed.wait_for(
        lambda: bed.queues.get("q", {}).get("status", {}).get("state") == "Open", 10, "it is open"
    )


def add(bed: Bed, name: str, *more: str, **spec: Any) -> Object:
    (pod,) = bed.create(gated_pod(name, *more, **spec))
    return pod


@pytest.mark.usefixtures("queue")
async def test_a_pod_whose_gate_is_off_holds_its_queue_though_it_finds_no_node(bed: Bed) -> None:
    first = add(bed, "p1")
    assert [gate["name"] for gate in first["spec"]["schedulingGates"]] == [QUEUE_GATE]
    await bed.until(lambda: is_running(bed, "p1"), 20, "the first runs")
    assert gates(bed, "p1") == []
    bed.delete(first, grace_s=0)

    second = add(bed, "p2", nodeSelector={"no": "such-node"})
    await bed.until(lambda: gates(bed, "p2") == [], 20, "the second is let through")
    add(bed, "p3")
    await bed.never(lambda: QUEUE_GATE not in gates(bed, "p3"), 3, "the queue has no room")
    assert not is_running(bed, "p2")

    bed.delete(second, grace_s=0)
    await bed.until(lambda: is_running(bed, "p3"), 20, "the third runs in its place")


@pytest.mark.usefixtures("queue")
async def test_the_gate_of_a_queue_is_the_last_to_be_taken_off(bed: Bed) -> None:
    pod = add(bed, "p", OTHER_GATE)
    await bed.until(lambda: bed.pod("p"), 10, "the pod is there")
    await bed.never(
        lambda: set(gates(bed, "p")) != {QUEUE_GATE, OTHER_GATE}, 3, "a gate was taken off"
    )
    bed.api.patch(pod_path(pod), {"spec": {"schedulingGates": [{"name": QUEUE_GATE}]}})
    await bed.until(lambda: is_running(bed, "p"), 20, "it runs")
    assert gates(bed, "p") == []
