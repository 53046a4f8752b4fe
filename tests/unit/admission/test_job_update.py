"""Changed Jobs: what may change, and what is said of the rest."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest

from pumice.core.admission import job_update
from pumice.core.api.batch import Job, PartitionPolicy, VolumeSpec
from pumice.core.api.meta import ObjectMeta
from pumice.core.api.scheduling import NetworkTopology
from tests.unit.admission.builders import a_job, a_policy, a_task, container, template, told

FIXED = (
    "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec`"
    " and `PriorityClassName`"
)
CLAIM = {"accessModes": ["ReadWriteOnce"]}


@dataclass(frozen=True)
class Case:
    old: Job
    new: Job
    want: list[tuple[str, str]]


def two_parts(replicas: int = 4) -> Job:
    policy = PartitionPolicy(total_partitions=2, partition_size=2)
    return a_job(a_task(replicas=replicas, partition_policy=policy))


CASES = {
    "sizes and priority may change": Case(
        a_job(a_task(replicas=3, min_available=1), min_available=1),
        a_job(a_task(replicas=5, min_available=2), min_available=2, priority_class_name="urgent"),
        [],
    ),
    "metadata is free": Case(
        a_job(),
        msgspec.structs.replace(a_job(), metadata=ObjectMeta(name="j", labels={"a": "b"})),
        [],
    ),
    "absent, null and empty are the same": Case(
        a_job(plugins={"svc": None}, policies=None),
        a_job(plugins={"svc": []}, policies=[]),
        [],
    ),
    "the controller may name the claim that it made": Case(
        a_job(volumes=[VolumeSpec(mount_path="/a", volume_claim=CLAIM)]),
        a_job(volumes=[VolumeSpec(mount_path="/a", volume_claim=CLAIM, volume_claim_name="j-1")]),
        [],
    ),
    "a claim of the user's may not change": Case(
        a_job(volumes=[VolumeSpec(mount_path="/a", volume_claim_name="x")]),
        a_job(volumes=[VolumeSpec(mount_path="/a", volume_claim_name="y")]),
        [("spec.volumes", FIXED)],
    ),
    "less than no replicas": Case(
        a_job(),
        a_job(a_task(replicas=-1)),
        [
            ("spec.tasks[0].replicas", "'replicas' must be >= 0 in task: w"),
            ("spec.tasks[0].minAvailable", "'minAvailable' must be <= 'replicas' in task: w"),
            ("spec.minAvailable", "job 'minAvailable' must not be greater than total replicas"),
        ],
    ),
    "less than no minimum": Case(
        a_job(),
        a_job(a_task(min_available=-1), min_available=-1),
        [
            ("spec.tasks[0].minAvailable", "'minAvailable' must be >= 0 in task: w"),
            ("spec.minAvailable", "job 'minAvailable' must be >= 0"),
        ],
    ),
    "a task's minimum above its replicas": Case(
        a_job(a_task(replicas=2)),
        a_job(a_task(replicas=2, min_available=3)),
        [("spec.tasks[0].minAvailable", "'minAvailable' must be <= 'replicas' in task: w")],
    ),
    "a minimum above the number of pods": Case(
        a_job(a_task(replicas=2)),
        a_job(a_task(replicas=2), min_available=3),
        [("spec.minAvailable", "job 'minAvailable' must not be greater than total replicas")],
    ),
    "a partitioned task cannot be scaled": Case(
        two_parts(),
        two_parts(replicas=6),
        [
            (
                "spec.tasks[0].partitionPolicy",
                "'Replicas' are not equal to TotalPartitions*PartitionSize in task: w, job: j",
            )
        ],
    ),
    "a tier by number and by name": Case(
        a_job(network_topology=NetworkTopology(highest_tier_allowed=1)),
        a_job(network_topology=NetworkTopology(highest_tier_allowed=1, highest_tier_name="rack")),
        [
            (
                "spec.networkTopology",
                "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology"
                " simultaneously",
            ),
            ("spec.networkTopology", FIXED),
        ],
    ),
    "a task more": Case(
        a_job(a_task("a")),
        a_job(a_task("a"), a_task("b")),
        [("spec.tasks", "job updates may not add or remove tasks")],
    ),
    "a task less, and another queue": Case(
        a_job(a_task("a"), a_task("b")),
        a_job(a_task("a"), queue="other"),
        [("spec.tasks", "job updates may not add or remove tasks")],
    ),
    "another queue": Case(a_job(), a_job(queue="other"), [("spec.queue", FIXED)]),
    "another name of a task": Case(a_job(a_task("a")), a_job(a_task("b")), [("spec.tasks", FIXED)]),
    "another template": Case(
        a_job(),
        a_job(a_task(template=template(container(image="other")))),
        [("spec.tasks", FIXED)],
    ),
    "a policy, a plugin and a time to live": Case(
        a_job(),
        a_job(
            policies=[a_policy("PodFailed")], plugins={"svc": None}, ttl_seconds_after_finished=5
        ),
        [
            ("spec.policies", FIXED),
            ("spec.plugins", FIXED),
            ("spec.ttlSecondsAfterFinished", FIXED),
        ],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_update(case: Case) -> None:
    got = told(job_update.check(case.old, case.new))
    assert sorted(got) == sorted(case.want)
