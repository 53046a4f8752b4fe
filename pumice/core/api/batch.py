"""The Job of batch.volcano.sh/v1alpha1: many pods, in tasks, that run as one."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from pumice.core.api.meta import NonNegative, ObjectMeta, Positive, Struct, Template, Time
from pumice.core.api.scheduling import DnsName, NetworkTopology

JobPhase = Literal[
    "Pending",
    "Aborting",
    "Aborted",
    "Running",
    "Restarting",
    "Completing",
    "Completed",
    "Terminating",
    "Terminated",
    "Failed",
]
Event = Literal[
    "*",
    "PodPending",
    "PodRunning",
    "PodFailed",
    "PodEvicted",
    "Unknown",
    "TaskCompleted",
    "OutOfSync",
    "CommandIssued",
    "JobUpdated",
    "TaskFailed",
]
NumaPolicy = Literal["none", "best-effort", "restricted", "single-numa-node"]

_KEEP = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
PodTemplate = Annotated[
    dict[str, Any],
    Meta(
        extra_json_schema={
            "properties": {
                "metadata": _KEEP,
                "spec": _KEEP
                | {
                    "required": ["containers"],
                    "properties": {"containers": {"type": "array", "minItems": 1, "items": _KEEP}},
                },
            }
        }
    ),
]
"""A pod template, passed through untouched; the schema asks for its containers alone."""


class LifecyclePolicy(Struct):
    """What to do when an event happens or a container ends with an exit code."""

    #: AbortJob, RestartJob, RestartTask, RestartPod, RestartPartition, TerminateJob, CompleteJob
    #: or ResumeJob.
    action: str = ""
    #: One event; `*` stands for all.
    event: Event | None = None
    #: More events; together with `event`.
    events: Annotated[list[Event], Meta(max_length=16)] | None = None
    #: The exit code of the first container, instead of events; never 0.
    exit_code: int | None = None
    #: How long to wait before the action, as `1h2m3s`. Event PodPending needs it.
    timeout: str | None = None


Policies = Annotated[list[LifecyclePolicy], Meta(max_length=32)]


class VolumeSpec(Struct):
    """A claim mounted into every main container: an existing one by name, or one to create."""

    mount_path: Annotated[str, Meta(min_length=1, max_length=1024, pattern="^[^:]+$")]
    #: An existing claim; filled in when the claim is created from `volumeClaim`.
    volume_claim_name: Annotated[str, Meta(max_length=253)] = ""
    #: The specification of a PersistentVolumeClaim to create.
    volume_claim: Template | None = None


class DependsOn(Struct):
    """Tasks that must be ready before this task's pods are created."""

    name: list[str] | None = None
    #: `any` of the tasks, or `all` of them.
    iteration: str = ""


class PartitionPolicy(Struct):
    """Split a task's pods into groups of equal size."""

    total_partitions: Positive
    partition_size: Positive
    #: How far apart the pods of one partition may be.
    network_topology: NetworkTopology | None = None
    #: How many partitions must run together.
    min_partitions: Annotated[int, Meta(ge=0, extra_json_schema={"default": 0})] = 0


class TaskSpec(Struct):
    """Pods that are alike."""

    #: Unique in the job; `default` and the task's place in the list where absent.
    name: Annotated[str, Meta(max_length=63, pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")] | None = (
        None
    )
    replicas: NonNegative = 0
    #: How many of the replicas must run together; all where absent.
    min_available: NonNegative | None = None
    template: PodTemplate | None = None
    #: Policies of this task; they go before those of the job.
    policies: Policies | None = None
    topology_policy: NumaPolicy | None = None
    #: How often containers may restart before the task counts as failed; 0 means 3.
    max_retry: NonNegative = 0
    depends_on: DependsOn | None = None
    partition_policy: PartitionPolicy | None = None


class JobSpec(Struct):
    """What the user asks for."""

    #: The scheduler of pods whose template names none.
    scheduler_name: Annotated[str, Meta(max_length=63)] = ""
    #: How many pods must run together; the sum over the tasks where absent or 0.
    min_available: NonNegative = 0
    volumes: Annotated[list[VolumeSpec], Meta(max_length=64)] | None = None
    tasks: Annotated[list[TaskSpec], Meta(min_length=1, max_length=256)] | None = None
    #: Policies of the whole job.
    policies: Policies | None = None
    #: Job plugin to arguments: svc, ssh, env, mpi, pytorch, tensorflow, hcclrank, ray.
    plugins: Annotated[dict[str, list[str] | None], Meta(max_length=64)] | None = None
    #: Accepted, and read by nothing, as in Volcano.
    running_estimate: str | None = None
    queue: DnsName = "default"
    #: How often the job may be restarted before it fails; 0 means 3.
    max_retry: NonNegative = 3
    #: Delete the job this long after it finished; absent keeps it.
    ttl_seconds_after_finished: NonNegative | None = None
    #: The priority of the group, and of pods whose template names none.
    priority_class_name: DnsName = ""
    #: So many succeeded pods complete the job at once.
    min_success: Positive | None = None
    network_topology: NetworkTopology | None = None


class JobState(Struct):
    """The phase and when it last changed."""

    phase: JobPhase | Literal[""] = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None


class JobCondition(Struct):
    """A phase that the job was in; at most one entry for each, newest last."""

    status: JobPhase | Literal[""]
    last_transition_time: Time | None = None


class TaskState(Struct):
    """Pods of one task by pod phase."""

    phase: dict[str, int] | None = None


class JobStatus(Struct):
    """What is; written by the Job controller alone."""

    state: JobState = msgspec.field(default_factory=JobState)
    min_available: NonNegative = 0
    task_status_count: dict[str, TaskState] | None = None
    pending: NonNegative = 0
    running: NonNegative = 0
    succeeded: NonNegative = 0
    failed: NonNegative = 0
    terminating: NonNegative = 0
    unknown: NonNegative = 0
    #: Raised by each kill of the whole job; events of older pods are ignored.
    version: int = 0
    #: Restarts and resumes so far.
    retry_count: int = 0
    running_duration: str | None = None
    #: What plugins and volumes made for the job.
    controlled_resources: dict[str, str] | None = None
    conditions: list[JobCondition] | None = None


class Job(Struct):
    """A Volcano Job."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: JobSpec = msgspec.field(default_factory=JobSpec)
    status: JobStatus = msgspec.field(default_factory=JobStatus)
