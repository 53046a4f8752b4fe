"""Jobs, queues and commands that the API server itself refuses, with its words, or accepts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pumice.core import names
from tests.acceptance.objects import Object, a_job, a_task


def a_queue(name: str = "q", *, state: str = "", **spec: Any) -> Object:
    body: Object = {
        "apiVersion": names.SCHEDULING_API,
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }
    return {**body, "status": {"state": state}} if state else body


def a_spec(**fields: Any) -> Object:
    """Return a Job of two pods, with these fields of its specification."""
    body = a_job("j", replicas=2)
    body["spec"] |= fields
    return body


def a_task_with(**fields: Any) -> Object:
    """Return a Job of one task of four pods, with these fields of the task."""
    return a_spec(tasks=[{**a_task("w", 4), **fields}], minAvailable=1)


def policy(event: str = "", action: str = "RestartJob", **more: Any) -> Object:
    return {"action": action, **({"event": event} if event else {}), **more}


@dataclass(frozen=True)
class Refusal:
    body: Object
    message: str


REFUSED = {
    "a Job without tasks": Refusal(
        {**a_spec(), "spec": {"minAvailable": 0}}, "No task specified in job spec"
    ),
    "a Job with an empty list of tasks": Refusal(
        a_spec(tasks=[]), "spec.tasks in body should have at least 1 items"
    ),
    "a minimum above the number of pods": Refusal(
        a_spec(minAvailable=3),
        "job 'minAvailable' should not be greater than total replicas in tasks",
    ),
    "a negative minimum": Refusal(a_spec(minAvailable=-1), "should be greater than or equal to 0"),
    "a name for two tasks": Refusal(
        a_spec(tasks=[a_task("a"), a_task("twice"), a_task("twice")]),
        "duplicated task name twice",
    ),
    "a task name that no host can have": Refusal(
        a_spec(tasks=[a_task("No_Host")]), "spec.tasks[0].name in body should match"
    ),
    "a task's minimum above its replicas": Refusal(
        a_task_with(minAvailable=5), "'minAvailable' is greater than 'replicas' in task: w"
    ),
    "a template without containers": Refusal(
        a_task_with(template={"spec": {}}), "template.spec.containers: Required value"
    ),
    "partitions that don't add up": Refusal(
        a_task_with(partitionPolicy={"totalPartitions": 3, "partitionSize": 2}),
        "'Replicas' are not equal to TotalPartitions*PartitionSize in task",
    ),
    "a minimum of partitions beside another of pods": Refusal(
        a_task_with(
            partitionPolicy={"totalPartitions": 2, "partitionSize": 2, "minPartitions": 2},
            minAvailable=2,
        ),
        "'MinAvailable' is not equal to MinPartitions*PartitionSize in task",
    ),
    "a policy for event and exit code": Refusal(
        a_spec(policies=[policy("PodFailed", exitCode=3)]),
        "must not specify event and exitCode simultaneously",
    ),
    "a policy for nothing": Refusal(
        a_spec(policies=[policy()]), "either event and exitCode should be specified"
    ),
    "a policy for success": Refusal(
        a_spec(policies=[policy(exitCode=0)]), "0 is not a valid error code"
    ),
    "a policy of a task for success": Refusal(
        a_task_with(policies=[policy(exitCode=0)]), "0 is not a valid error code"
    ),
    "an event that there is not": Refusal(
        a_spec(policies=[policy("PodExploded")]), 'Unsupported value: "PodExploded"'
    ),
    "an internal event": Refusal(a_spec(policies=[policy("PodRunning")]), "invalid policy event"),
    "an internal event among others": Refusal(
        a_spec(policies=[policy(events=["PodFailed", "OutOfSync"])]), "invalid policy event"
    ),
    "an internal action": Refusal(
        a_spec(policies=[policy("PodFailed", "SyncJob")]), "invalid policy action"
    ),
    "an internal action for an exit code": Refusal(
        a_spec(policies=[policy(action="CloseQueue", exitCode=1)]), "invalid policy action"
    ),
    "a policy without an action": Refusal(
        a_spec(policies=[{"event": "PodFailed"}]), "invalid policy action"
    ),
    "an event in two policies": Refusal(
        a_spec(
            policies=[
                policy("PodFailed"),
                policy(events=["PodEvicted", "PodFailed"], action="AbortJob"),
            ]
        ),
        "duplicate event PodFailed  across different policy",
    ),
    "an event in two policies of a task": Refusal(
        a_task_with(policies=[policy("TaskCompleted"), policy("TaskCompleted")]),
        "duplicate event TaskCompleted  across different policy",
    ),
    "an exit code in two policies": Refusal(
        a_spec(policies=[policy(exitCode=3), policy(exitCode=4), policy(exitCode=3)]),
        "duplicate exitCode",
    ),
    "every event beside one of them": Refusal(
        a_spec(policies=[policy("*"), policy("PodFailed")]),
        "if there's * here, no other policy should be here",
    ),
    "a plugin that there is not": Refusal(
        a_spec(plugins={"svc": [], "horovod": []}), "unable to find job plugin: horovod"
    ),
    "a path for two volumes": Refusal(
        a_spec(
            volumes=[
                {"mountPath": "/a", "volumeClaimName": "x"},
                {"mountPath": "/a", "volumeClaimName": "y"},
            ]
        ),
        "duplicated mountPath: /a",
    ),
    "a volume of nothing": Refusal(
        a_spec(volumes=[{"mountPath": "/a"}]),
        "either VolumeClaim or VolumeClaimName must be specified",
    ),
    "a volume without a path": Refusal(
        a_spec(volumes=[{"volumeClaimName": "x"}]), "mountPath: Required value"
    ),
    "a tier by number and by name": Refusal(
        a_spec(networkTopology={"highestTierAllowed": 1, "highestTierName": "rack"}),
        "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology"
        " simultaneously",
    ),
    "a field that there is not": Refusal(
        a_spec(minAvailible=1), 'unknown field "spec.minAvailible"'
    ),
    "a queue without weight": Refusal(a_queue(weight=0), "should be greater than or equal to 1"),
    "a queue below itself": Refusal(
        a_queue("q", parent="q"), "queue q cannot use itself as parent"
    ),
    "a queue that deserves more than it may have": Refusal(
        a_queue(deserved={"cpu": 8}, capability={"cpu": "4"}),
        "deserved[cpu]=8 must be <= capability[cpu]=4",
    ),
    "a queue that is guaranteed more than it deserves": Refusal(
        a_queue(deserved={"cpu": 1}, guarantee={"resource": {"cpu": "1500m"}}),
        "deserved[cpu]=1 must be >= guarantee[cpu]=1500m",
    ),
    "a queue that is guaranteed what it does not deserve": Refusal(
        a_queue(guarantee={"resource": {"cpu": 1}}), "deserved[cpu] must be >= guarantee[cpu]=1"
    ),
    "a queue of less than nothing": Refusal(
        a_queue(capability={"cpu": "-1"}), "capability[cpu]=-1 must be greater than or equal to 0"
    ),
    "a quantity that is none": Refusal(
        a_queue(capability={"cpu": "many"}), "spec.capability.cpu in body should match"
    ),
    "a command without the uid of its target": Refusal(
        {
            "apiVersion": names.BUS_API,
            "kind": "Command",
            "metadata": {"name": "c"},
            "action": "OpenQueue",
            "target": {"apiVersion": names.SCHEDULING_API, "kind": "Queue", "name": "q"},
        },
        "target.uid: Required value",
    ),
}


ACCEPTED = {
    "a Job that leaves everything open": a_spec(minAvailable=0),
    "tasks without names": a_spec(tasks=[{**a_task(), "name": None}] * 2, minAvailable=2),
    "a task of no pods beside another": a_spec(tasks=[a_task("a", 2), a_task("idle", 0)]),
    "an event twice in one policy": a_spec(
        policies=[policy("PodFailed", events=["PodFailed", "PodEvicted"])]
    ),
    "the same event for job and task": a_spec(
        policies=[policy("PodEvicted")],
        tasks=[{**a_task("w", 2), "policies": [policy("PodEvicted", "RestartTask")]}],
    ),
    "every event, and exit codes": a_spec(policies=[policy("*"), policy(exitCode=-1)]),
    "partitions that add up": a_task_with(
        partitionPolicy={"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1},
        minAvailable=2,
    ),
    "a claim that was filled in": a_spec(
        volumes=[
            {"mountPath": "/a", "volumeClaimName": "x", "volumeClaim": {"accessModes": ["rwo"]}}
        ]
    ),
    "a queue with everything in order": a_queue(
        deserved={"cpu": "2", "example.com/gpu": 1},
        capability={"cpu": 4},
        guarantee={"resource": {"cpu": "2000m"}},
        parent="root",
    ),
    "a queue that only guarantees nothing": a_queue(guarantee={"resource": {}}),
}
