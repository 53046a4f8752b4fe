"""JobFlow and JobTemplate of flow.volcano.sh/v1alpha1: Jobs that follow each other."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from pumice.core.api.batch import JobPhase, JobSpec, TaskState
from pumice.core.api.meta import ObjectMeta, Struct, Template, Time
from pumice.core.api.scheduling import Name

FlowPhase = Literal["", "Pending", "Running", "Succeed", "Terminating", "Failed"]
Port = Annotated[int, Meta(ge=0, le=65535)]


class HttpHeader(Struct):
    """A header of a probe."""

    name: str = ""
    value: str = ""


class HttpGet(Struct):
    """A task that has to answer HTTP with a status from 200 to 399; all tasks without a name."""

    task_name: Name = ""
    path: str = ""
    port: Port = 0
    http_header: HttpHeader | None = None


class TcpSocket(Struct):
    """A task that has to accept connections; all tasks without a name."""

    port: Port
    task_name: Name = ""


class TaskStatus(Struct):
    """A task that has to be in a phase; all tasks without a name."""

    task_name: Name = ""
    #: A phase of pods: Pending, Running (or Succeeded after that), Succeeded, Failed.
    phase: Annotated[str, Meta(max_length=63)] = ""


class Probe(Struct):
    """
    When a target is ready before it is completed: when all of this holds.

    So many pods as the task needs at the least must be or answer as asked. A target with none of
    the tasks must be completed.
    """

    http_get_list: list[HttpGet] | None = None
    tcp_socket_list: list[TcpSocket] | None = None
    task_status_list: list[TaskStatus] | None = None


class FlowDependsOn(Struct):
    """What has to be completed, or ready, before a flow's Job is created."""

    #: Flows of the same JobFlow.
    targets: list[str] | None = None
    probe: Probe | None = None


class Patch(Struct):
    """A change of the template."""

    #: A part of the specification of a Job, merged into the template's: tasks and containers by
    #: name, null removes a field.
    job_spec: Template | None = None


class Flow(Struct):
    """One step: a Job made of a JobTemplate of the same namespace."""

    #: The JobTemplate, and what other flows call this one.
    name: Annotated[str, Meta(min_length=1)]
    depends_on: FlowDependsOn | None = None
    patch: Patch | None = None


class JobFlowSpec(Struct):
    """Which Jobs are created, and in what order."""

    flows: list[Flow] | None = None
    #: `delete` removes all Jobs once the flow succeeded.
    job_retain_policy: Literal["retain", "delete"] | None = None


class RunningHistory(Struct):
    """A phase that a Job was in."""

    start_timestamp: Time | None = None
    end_timestamp: Time | None = None
    state: JobPhase | Literal[""] = ""


class FlowJobStatus(Struct):
    """What became of one Job so far."""

    name: str = ""
    state: JobPhase | Literal[""] = ""
    start_timestamp: Time | None = None
    end_timestamp: Time | None = None
    restart_count: int = 0
    running_histories: list[RunningHistory] | None = None


class FlowCondition(Struct):
    """One Job as it is."""

    phase: JobPhase | Literal[""] = ""
    create_time: Time | None = None
    running_duration: str | None = None
    task_status_count: dict[str, TaskState] | None = None


class FlowState(Struct):
    """The phase of the whole."""

    phase: FlowPhase = ""


class JobFlowStatus(Struct):
    """What is; written by the JobFlow controller alone."""

    pending_jobs: list[str] | None = None
    running_jobs: list[str] | None = None
    failed_jobs: list[str] | None = None
    completed_jobs: list[str] | None = None
    terminated_jobs: list[str] | None = None
    unknown_jobs: list[str] | None = msgspec.field(default=None, name="unKnowJobs")
    job_status_list: list[FlowJobStatus] | None = None
    #: By the name of the Job.
    conditions: dict[str, FlowCondition] | None = None
    state: FlowState = msgspec.field(default_factory=FlowState)


class JobFlow(Struct):
    """Jobs in an order."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: JobFlowSpec = msgspec.field(default_factory=JobFlowSpec)
    status: JobFlowStatus = msgspec.field(default_factory=JobFlowStatus)


class JobTemplateStatus(Struct):
    """Where the template is used; written by the JobTemplate controller alone."""

    #: The Jobs that were made of it.
    job_depends_on_list: list[str] | None = None


class JobTemplate(Struct):
    """The specification of a Job, for JobFlows to make Jobs of."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: JobSpec = msgspec.field(default_factory=JobSpec)
    status: JobTemplateStatus = msgspec.field(default_factory=JobTemplateStatus)
