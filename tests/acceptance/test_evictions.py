"""
Evictions on the real control plane: what queues take back, what priorities take, and no more.

The auditor holds every removal of a pod against the sessions that decided it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pumice.local.cluster import Cluster
from tests.acceptance.bed import Bed
from tests.acceptance.length import Length
from tests.acceptance.objects import Object, a_job, a_queue

pytestmark = pytest.mark.cluster

NODES, CPU = 4, 4
ROOM = NODES * CPU
DUE = ROOM // 2
LIMIT_S = 30.0
QUIET_S = 3.0
COLLECTED_S = 60.0
"""The garbage collector looks for kinds that are new to the cluster every half a minute."""
CONFIGURATION = """
actions: "allocate, preempt, reclaim, gangpreempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""
RANKS = {"lower": 10, "upper": 1000}


@pytest.fixture(scope="module")
def cluster(binary_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster in which room is made, for every group: nobody asks who may be let in."""
    directory = tmp_path_factory.mktemp("cluster")
    file = directory / "scheduler.yaml"
    file.write_text(CONFIGURATION)
    with Cluster(
        directory, nodes=0, audit_level="RequestResponse", configuration=file
    ) as running_cluster:
        for name, value in RANKS.items():
            body = {"metadata": {"name": name}, "value": value}
            running_cluster.plane.api.post("/apis/scheduling.k8s.io/v1/priorityclasses", body)
        yield running_cluster


async def test_queues_take_back_their_due_and_give_it_up_again(bed: Bed, length: Length) -> None:
    bed.nodes(NODES, cpu=CPU)
    bed.create(a_queue("left"), a_queue("right"))
    async with bed.auditor() as auditor:
        bed.create(a_job("wide", replicas=ROOM, min_available=1, queue="left"))
        await bed.until(lambda: len(bed.running("wide")) == ROOM, LIMIT_S, "one queue has all")

        narrow = [a_job(f"narrow-{i}", queue="right") for i in range(ROOM)]
        bed.create(*narrow)
        await bed.until(lambda: held(bed) == (DUE, DUE), LIMIT_S, "each has its half")
        assert len(evicted(bed, "wide")) == DUE
        await bed.never(lambda: held(bed) != (DUE, DUE), QUIET_S * length.slack, "it moves on")
        assert not any(evicted(bed, job["metadata"]["name"]) for job in narrow)

        # Those that wait go first: while they are there they may ask for what others leave.
        running = [job for job in narrow if bed.running(job["metadata"]["name"])]
        for job in narrow:
            if job not in running:
                bed.delete(job)
        await bed.until(lambda: len(bed.pods) == ROOM + DUE, COLLECTED_S, "nobody asks any more")
        for job in running:
            bed.delete(job)
        await bed.until(lambda: held(bed) == (ROOM, 0), COLLECTED_S, "it has all of it again")
        assert len(evicted(bed, "wide")) == DUE
        await auditor.finish()


async def test_a_gang_of_higher_priority_takes_what_it_needs(bed: Bed, length: Length) -> None:
    bed.nodes(NODES, cpu=CPU)
    async with bed.auditor() as auditor:
        bed.create(a_job("low", replicas=ROOM, min_available=2, priority_class="lower"))
        await bed.until(lambda: len(bed.running("low")) == ROOM, LIMIT_S, "all is in use")

        bed.create(a_job("high", replicas=5, min_available=5, priority_class="upper"))
        await bed.until(lambda: len(bed.running("high")) == 5, LIMIT_S, "the gang runs")
        await bed.until(lambda: len(bed.running("low")) == ROOM - 5, LIMIT_S, "the rest runs on")
        # One of the same priority waits for somebody to end.
        bed.create(a_job("equal", replicas=2, min_available=2, priority_class="lower"))
        await bed.never(
            lambda: len(evicted(bed, "low")) != 5 or bed.bound("equal"),
            QUIET_S * length.slack,
            "others go",
        )
        bed.end(*bed.running("high")[:2])
        await auditor.finish()
    [told] = {event["message"] for event in events(bed, "Pod", "Evict")}
    assert told == "Pod is evicted, because of preempt"


async def test_a_job_breaks_for_a_gang_and_none_whose_budget_forbids_it(
    bed: Bed, length: Length
) -> None:
    bed.nodes(2, cpu=CPU)
    async with bed.auditor() as auditor:
        bed.create(
            a_job(
                "kept", replicas=CPU, min_available=CPU, priority_class="lower", labels={"a": "b"}
            ),
            a_budget("kept", {"a": "b"}, CPU),
        )
        await bed.until(lambda: len(bed.running("kept")) == CPU, LIMIT_S, "the one runs")
        bed.create(a_job("whole", replicas=CPU, min_available=CPU, priority_class="lower"))
        await bed.until(lambda: len(bed.running("whole")) == CPU, LIMIT_S, "the other runs")

        bed.create(a_job("high", replicas=CPU, min_available=CPU, priority_class="upper"))
        await bed.until(lambda: len(bed.running("high")) == CPU, LIMIT_S, "the gang runs")
        await bed.never(lambda: evicted(bed, "kept"), QUIET_S * length.slack, "a budget is broken")
        assert len(evicted(bed, "whole")) == CPU
        await auditor.finish()


def held(bed: Bed) -> tuple[int, int]:
    """Return how many pods of the wide Job run, and how many of the narrow ones."""
    narrow = sum(len(bed.running(f"narrow-{i}")) for i in range(ROOM))
    return len(bed.running("wide")), narrow


def evicted(bed: Bed, job: str) -> set[str]:
    """Return the uids of a Job's pods that were ever evicted."""
    return {
        seen.object["metadata"]["uid"]
        for seen in bed.pods.history
        if seen.object["metadata"]["namespace"] == bed.namespace
        and seen.object["metadata"].get("labels", {}).get("volcano.sh/job-name") == job
        and any(is_disruption(c) for c in seen.object["status"].get("conditions", ()))
    }


def is_disruption(condition: Object) -> bool:
    """Tell whether a condition says that the pod was evicted."""
    return bool(condition["type"] == "DisruptionTarget" and condition["status"] == "True")


def events(bed: Bed, kind: str, reason: str) -> list[Object]:
    """Return the events about objects of a kind in the test's namespace."""
    listed = bed.api.get(f"/api/v1/namespaces/{bed.namespace}/events")
    return [
        event
        for event in listed["items"]
        if event["involvedObject"]["kind"] == kind and event["reason"] == reason
    ]


def a_budget(name: str, labels: dict[str, str], least: int) -> Object:
    """Return a budget by which so many pods must stay."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": least, "selector": {"matchLabels": labels}},
    }
