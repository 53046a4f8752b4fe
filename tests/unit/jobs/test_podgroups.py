"""The PodGroup of a Job: its content, what its minimum takes, and how it follows its Job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from pumice.core.api.batch import PartitionPolicy, TaskSpec
from pumice.core.api.meta import LabelSelector, ObjectMeta
from pumice.core.api.scheduling import NetworkTopology, PodGroup, PodGroupSpec, SubGroupPolicy
from pumice.core.jobs.minresources import TemplateError, min_resources
from pumice.core.jobs.podgroups import drift, render
from tests.unit.jobs.builders import a_job, a_task, an_owner, template


def test_a_whole_group() -> None:
    job = a_job(
        a_task("ps", 1, template=template()),
        a_task(
            "w",
            6,
            template=template("500m"),
            partition_policy=PartitionPolicy(
                total_partitions=3,
                partition_size=2,
                min_partitions=2,
                network_topology=NetworkTopology(
                    mode="hard", highest_tier_allowed=1, highest_tier_name="rack"
                ),
            ),
        ),
        min_available=5,
        queue="q",
        priority_class_name="high",
        network_topology=NetworkTopology(mode="soft", highest_tier_name="zone"),
        meta={"labels": {"a": "b"}, "annotations": {"c": "d"}},
    )

    assert render(job, {}) == PodGroup(
        metadata=ObjectMeta(
            name="j-u1",
            namespace="ns",
            labels={"a": "b"},
            annotations={"c": "d"},
            owner_references=[an_owner()],
        ),
        spec=PodGroupSpec(
            min_member=5,
            min_task_member={"ps": 1, "w": 4},
            queue="q",
            priority_class_name="high",
            min_resources={
                "count/pods": "5",
                "cpu": "2",
                "pods": "5",
                "requests.cpu": "2",
            },
            network_topology=NetworkTopology(mode="soft", highest_tier_name="zone"),
            sub_group_policy=[
                SubGroupPolicy(
                    name="w",
                    network_topology=NetworkTopology(mode="hard", highest_tier_allowed=1),
                    sub_group_size=2,
                    min_sub_groups=2,
                    label_selector=LabelSelector(match_labels={"volcano.sh/task-spec": "w"}),
                    match_label_keys=["volcano.sh/partition-id"],
                )
            ],
        ),
    )


@dataclass(frozen=True)
class Minimum:
    """Two masters of 50m and two workers of 100m: how much of them the minimum takes."""

    job: int
    master: int
    worker: int
    cpu: str
    pods: str
    worker_first: bool = False


MINIMA = {
    "the minima of both tasks": Minimum(2, 1, 1, "150m", "2"),
    "the rest is filled up in the order of the list": Minimum(3, 1, 1, "200m", "3"),
    "the rest is filled up from the higher priority": Minimum(
        3, 1, 1, "250m", "3", worker_first=True
    ),
    "a minimum below the tasks' own takes whole tasks": Minimum(2, 2, 1, "100m", "2"),
    "a minimum below the tasks' own takes the higher priority whole": Minimum(
        2, 2, 1, "200m", "2", worker_first=True
    ),
    "a minimum below the tasks' own spills into the next task": Minimum(3, 2, 2, "200m", "3"),
    "a task that is whole gets no more": Minimum(4, 2, 1, "300m", "4"),
    "the minima are all there is": Minimum(3, 1, 2, "250m", "3"),
}


@pytest.mark.parametrize("case", MINIMA.values(), ids=MINIMA.keys())
def test_min_resources(case: Minimum) -> None:
    worker = template("100m", **({"priorityClassName": "high"} if case.worker_first else {}))
    job = a_job(
        a_task("master", 2, min_available=case.master, template=template("50m")),
        a_task("worker", 2, min_available=case.worker, template=worker),
        min_available=case.job,
    )

    assert min_resources(job.spec, {"high": 10}) == {
        "cpu": case.cpu,
        "requests.cpu": case.cpu,
        "pods": case.pods,
        "count/pods": case.pods,
    }


def test_requests_limits_and_extended_resources_of_a_pod() -> None:
    resources = {
        "requests": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": 2},
        "limits": {"cpu": "2", "nvidia.com/gpu": 2},
    }
    spec = {"containers": [{"name": "c", "resources": resources}], "overhead": {"cpu": "100m"}}
    job = a_job(a_task("w", 1, template={"spec": spec}))

    assert min_resources(job.spec, {}) == {
        "cpu": "1100m",
        "requests.cpu": "1100m",
        "limits.cpu": "2100m",
        "memory": "1Gi",
        "requests.memory": "1Gi",
        "nvidia.com/gpu": "2",
        "requests.nvidia.com/gpu": "2",
        "pods": "1",
        "count/pods": "1",
    }


def test_a_minimum_of_nothing_is_an_empty_list() -> None:
    assert min_resources(a_job(a_task("w", 0)).spec, {}) == {}


BAD: dict[str, dict[str, Any]] = {
    "an amount that is none": template("much"),
    "containers that are none": {"spec": {"containers": "x"}},
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD.keys())
def test_a_template_that_cannot_be_read(body: dict[str, Any]) -> None:
    with pytest.raises(TemplateError, match="template of task w: "):
        min_resources(a_job(a_task("w", template=body)).spec, {})


def spec(*tasks: TaskSpec, **fields: Any) -> PodGroupSpec:
    return render(a_job(*tasks, **fields), {}).spec


PARTS = PartitionPolicy(total_partitions=2, partition_size=2)
DRIFTS: dict[str, tuple[PodGroupSpec, PodGroupSpec, dict[str, Any]]] = {
    "nothing differs": (spec(a_task("w", 2)), spec(a_task("w", 2)), {}),
    "amounts spelled otherwise are equal": (
        spec(),
        PodGroupSpec(
            min_member=1,
            min_task_member={"w": 1},
            min_resources={"pods": 1, "count/pods": "1000m"},
        ),
        {},
    ),
    "the job has grown": (
        spec(a_task("w", 3)),
        spec(a_task("w", 2)),
        {
            "minMember": 3,
            "minResources": {"pods": "3", "count/pods": "3"},
            "minTaskMember": {"w": 3},
        },
    ),
    "a resource is no longer asked for": (
        spec(a_task("w", 1)),
        spec(a_task("w", 1, template=template("1"))),
        {"minResources": {"cpu": None, "requests.cpu": None, "pods": "1", "count/pods": "1"}},
    ),
    "the priority has changed": (
        spec(priority_class_name="high"),
        spec(),
        {"priorityClassName": "high"},
    ),
    "minima of unknown tasks, queue and topology stay": (
        spec(queue="a"),
        PodGroupSpec(
            min_member=1,
            min_task_member={"w": 1, "x": 9},
            min_resources={"pods": "1", "count/pods": "1"},
            queue="b",
            network_topology=NetworkTopology(),
        ),
        {},
    ),
    "a task has lost its partitions": (
        spec(a_task("w", 4)),
        spec(a_task("w", 4, partition_policy=PARTS)),
        {"subGroupPolicy": []},
    ),
    "a task has got partitions": (
        spec(a_task("w", 4, partition_policy=PARTS)),
        spec(a_task("w", 4)),
        {
            "subGroupPolicy": [
                {
                    "name": "w",
                    "subGroupSize": 2,
                    "labelSelector": {"matchLabels": {"volcano.sh/task-spec": "w"}},
                    "matchLabelKeys": ["volcano.sh/partition-id"],
                }
            ]
        },
    ),
}


@pytest.mark.parametrize(("want", "have", "patch"), DRIFTS.values(), ids=DRIFTS.keys())
def test_drift(want: PodGroupSpec, have: PodGroupSpec, patch: dict[str, Any]) -> None:
    assert drift(want, have) == patch
