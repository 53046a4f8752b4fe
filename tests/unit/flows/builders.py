"""JobFlows, their templates and their Jobs in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pumice.core import names
from pumice.core.api.batch import (
    Job,
    JobPhase,
    JobSpec,
    JobState,
    JobStatus,
    TaskSpec,
    TaskState,
)
from pumice.core.api.flow import (
    Flow,
    FlowDependsOn,
    FlowPhase,
    FlowState,
    HttpGet,
    HttpHeader,
    JobFlow,
    JobFlowSpec,
    JobFlowStatus,
    JobTemplate,
    Patch,
    Probe,
    TaskStatus,
    TcpSocket,
)
from pumice.core.api.meta import ObjectMeta, OwnerReference
from tests.unit.jobs.builders import template

CREATED = "2026-01-01T00:00:00Z"


def a_step(
    name: str, *targets: str, probe: Probe | None = None, patch: Mapping[str, Any] | None = None
) -> Flow:
    """Return a step that depends on others."""
    depends = FlowDependsOn(targets=list(targets), probe=probe) if targets else None
    return Flow(name=name, depends_on=depends, patch=Patch(job_spec=dict(patch)) if patch else None)


def a_probe(
    *,
    status: Mapping[str, str] | None = None,
    tcp: Mapping[str, int] | None = None,
    http: Mapping[str, str] | None = None,
) -> Probe:
    """Return a probe: phases, ports, and paths at port 80, by task."""
    header = HttpHeader(name="Accept", value="text/plain")
    gets = [
        HttpGet(task_name=t, path=p, port=80, http_header=header) for t, p in (http or {}).items()
    ]
    return Probe(
        http_get_list=gets or None,
        tcp_socket_list=[TcpSocket(port=p, task_name=t) for t, p in (tcp or {}).items()] or None,
        task_status_list=[TaskStatus(task_name=t, phase=p) for t, p in (status or {}).items()]
        or None,
    )


def a_flow(
    *steps: Flow,
    phase: FlowPhase = "",
    retain: Any = None,
    status: JobFlowStatus | None = None,
    deleting: bool = False,
) -> JobFlow:
    """Return JobFlow `f`."""
    return JobFlow(
        metadata=ObjectMeta(
            name="f",
            namespace="ns",
            uid="flow",
            resource_version="7",
            deletion_timestamp=CREATED if deleting else None,
        ),
        spec=JobFlowSpec(flows=list(steps) or None, job_retain_policy=retain),
        status=status or JobFlowStatus(state=FlowState(phase=phase)),
    )


def a_template(name: str, **spec: Any) -> JobTemplate:
    """Return a JobTemplate of one task `w`."""
    spec.setdefault("tasks", [TaskSpec(name="w", replicas=2, template=template())])
    return JobTemplate(metadata=ObjectMeta(name=name, namespace="ns"), spec=JobSpec(**spec))


def a_made_job(
    step: str,
    phase: JobPhase | str = "Running",
    *,
    owner: str = "flow",
    deleting: bool = False,
    pods: Mapping[str, int] | None = None,
    **status: Any,
) -> Job:
    """Return the Job of a step of `f`; `pods` are those of task `w`, by phase."""
    controller = OwnerReference(
        api_version=names.FLOW_API, kind="JobFlow", name="f", uid=owner, controller=True
    )
    counts = {"w": TaskState(phase=dict(pods))} if pods else None
    return Job(
        metadata=ObjectMeta(
            name=f"f-{step}",
            namespace="ns",
            uid=f"uid-{step}",
            creation_timestamp=CREATED,
            deletion_timestamp=CREATED if deleting else None,
            owner_references=[controller],
        ),
        spec=JobSpec(tasks=[TaskSpec(name="w", replicas=2, template=template())]),
        status=JobStatus(state=JobState(phase=phase), task_status_count=counts, **status),  # type: ignore[arg-type]
    )
