"""
T5: what `job_ready` says starts, and nothing else.

Each case has nodes of its own, which grow in steps; all cases go through their steps together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from pumice.local.nodes import NODES, a_node, create_all
from tests.acceptance.bed import Bed, label
from tests.acceptance.objects import Object, a_job, a_task

pytestmark = pytest.mark.cluster
LAYOUTS = ("own", "shared")

STEPS = 3
PATIENCE_S = 10.0
STAYS_S = 2.0
CASE, PART = "case", "part"
TASK, PARTITION = "volcano.sh/task-spec", "volcano.sh/partition-id"


@dataclass(frozen=True)
class Step:
    """What the nodes offer, by part, and how many pods of each task are bound then."""

    room: Mapping[str, Mapping[str, int]]
    want: Mapping[str, int]


@dataclass(frozen=True)
class Case:
    tasks: Sequence[Object]
    min_available: int
    steps: Sequence[Step]


def one(want: Mapping[str, int], **room: int) -> Step:
    """Return a step of a case with a single node."""
    return Step({"": room}, want)


CASES = {
    "best-effort": Case(
        [a_task("normal", 2), a_task("free", 2, cpu=None)],
        min_available=4,
        steps=[
            one({}, cpu=4, pods=1),
            one({"normal": 2}, cpu=4, pods=2),
            one({"normal": 2, "free": 2}, cpu=4, pods=4),
        ],
    ),
    "task-minima": Case(
        [a_task("a", 3, min_available=1), a_task("b", 2, min_available=2)],
        min_available=3,
        steps=[
            Step({"a": {"cpu": 3}, "b": {"cpu": 1}}, {}),
            Step({"a": {"cpu": 0}, "b": {"cpu": 2}}, {}),
            Step({"a": {"cpu": 2}, "b": {"cpu": 2}}, {"a": 2, "b": 2}),
        ],
    ),
    "elastic": Case(
        [a_task("worker", 10, min_available=4)],
        min_available=4,
        steps=[one({}, cpu=3), one({"worker": 6}, cpu=6), one({"worker": 10}, cpu=10)],
    ),
    "partitions": Case(
        [
            a_task(
                "part",
                6,
                partition={"totalPartitions": 3, "partitionSize": 2, "minPartitions": 2},
            )
        ],
        min_available=4,
        steps=[one({}, cpu=3), one({"part": 4}, cpu=5), one({"part": 6}, cpu=6)],
    ),
}


def node_of(case: str, part: str) -> str:
    """Return the name of a case's node."""
    return f"{case}-{part}" if part else case


def nodes_of(name: str, case: Case) -> list[Object]:
    """Return a case's nodes as they are in its first step."""
    return [
        a_node(
            node_of(name, part),
            labels={CASE: name, PART: part},
            cpu=room["cpu"],
            pods=room.get("pods", 110),
        )
        for part, room in case.steps[0].room.items()
    ]


def job_of(name: str, case: Case) -> Object:
    """Return the Job of a case: its pods go to the case's nodes, a task's to the task's own."""
    job = a_job(name, *case.tasks, min_available=case.min_available)
    for task in job["spec"]["tasks"]:
        part = task["name"] if task["name"] in case.steps[0].room else ""
        task["template"]["spec"]["nodeSelector"] = {CASE: name, PART: part}
    return job


def bound(bed: Bed) -> dict[str, Counter[str]]:
    """Return how many pods of each task are bound, by case."""
    return {name: Counter(label(pod, TASK) or "" for pod in bed.bound(name)) for name in CASES}


async def test_what_is_ready_starts_and_nothing_else(bed: Bed) -> None:
    nodes = [node for name, case in CASES.items() for node in nodes_of(name, case)]
    create_all(bed.api, NODES, nodes)
    pods = sum(task["replicas"] for case in CASES.values() for task in case.tasks)
    async with bed.auditor() as auditor:
        bed.create(*(job_of(name, case) for name, case in CASES.items()))
        await bed.until(lambda: len(bed.pods) == pods, PATIENCE_S, "all pods are there")
        for number in range(STEPS):
            await take_step(bed, number)
            partitions = Counter(label(pod, PARTITION) for pod in bed.bound("partitions"))
            assert set(partitions.values()) <= {2}
        report = await auditor.finish()

    assert report.statistics.error_answers == 0


async def take_step(bed: Bed, number: int) -> None:
    """Let the nodes grow; wait for what is to start, and see that nothing else does."""
    steps = {name: case.steps[number] for name, case in CASES.items()}
    for name, step in steps.items():
        for part, room in step.room.items():
            bed.resize(node_of(name, part), **{what: str(n) for what, n in room.items()})
    want = {name: Counter(step.want) for name, step in steps.items()}
    await bed.until(lambda: bound(bed) == want, PATIENCE_S, f"step {number}: bound are {want}")
    await bed.never(lambda: bound(bed) != want, STAYS_S, f"step {number}: bound were {want}")
