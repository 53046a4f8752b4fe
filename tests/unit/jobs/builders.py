"""Jobs, pods and PodGroups in one line, for the tests of `pumice.core.jobs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pumice.core import names
from pumice.core.admission.jobs import defaults
from pumice.core.api.batch import (
    Job,
    JobPhase,
    JobSpec,
    JobState,
    JobStatus,
    LifecyclePolicy,
    TaskSpec,
    VolumeSpec,
)
from pumice.core.api.core import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
    Pod,
    PodStatus,
)
from pumice.core.api.meta import ObjectMeta, OwnerReference
from pumice.core.api.scheduling import PodGroup, PodGroupPhase, PodGroupStatus, Queue
from pumice.core.jobs import podgroups
from pumice.core.jobs.types import Observed

CREATED = "2026-01-01T00:00:00Z"
NOW = 1767225660.0
"""One minute after `CREATED`."""
NOW_TEXT = "2026-01-01T00:01:00Z"
QUEUE = Queue(metadata=ObjectMeta(name="default"))


def template(cpu: str = "", **spec: Any) -> dict[str, Any]:
    """Return a pod template with one container."""
    container: dict[str, Any] = {"name": "main", "image": "pause"}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    return {"spec": {"containers": [container], **spec}}


def a_task(name: str = "w", replicas: int = 1, **fields: Any) -> TaskSpec:
    """Return a task."""
    fields.setdefault("template", template())
    return TaskSpec(name=name, replicas=replicas, **fields)


def a_policy(action: str, *events: Any, **fields: Any) -> LifecyclePolicy:
    """Return a policy for some events."""
    return LifecyclePolicy(action=action, events=list(events) or None, **fields)


def a_job(
    *tasks: TaskSpec,
    phase: JobPhase | str = "Running",
    uid: str = "u1",
    status: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
    volumes: Sequence[VolumeSpec] | None = None,
    **spec: Any,
) -> Job:
    """Return a Job `j` as the controller sees it, with the defaults of admission."""
    job = Job(
        metadata=ObjectMeta(
            name="j",
            namespace="ns",
            uid=uid,
            resource_version="7",
            creation_timestamp=CREATED,
            **(meta or {}),
        ),
        spec=JobSpec(
            tasks=list(tasks) or [a_task()],
            volumes=list(volumes) if volumes else None,
            **spec,
        ),
        status=JobStatus(state=JobState(phase=phase), **(status or {})),  # type: ignore[arg-type]
    )
    job = defaults(job)
    if phase and "min_available" not in (status or {}):
        job.status.min_available = job.spec.min_available
    return job


def a_pod(
    name: str = "j-w-0",
    phase: str = "Running",
    *,
    job: str = "u1",
    version: int | str = 0,
    deleting: bool = False,
    marked: bool = False,
    restart: str = "",
    reason: str = "",
    restarts: int = 0,
    exit_code: int | None = None,
    ready: bool = True,
    partition: str = "",
) -> Pod:
    """Return a pod of Job `j`; its uid is `uid-<name>`, its task the middle of its name."""
    notes = {
        names.JOB_NAME: "j",
        names.TASK_SPEC: name.split("-")[1],
        names.JOB_VERSION: str(version),
    }
    if marked:
        notes[names.OUT_OF_SYNC] = "true"
    if restart:
        notes[names.RESTART] = restart
    ended = None if exit_code is None else ContainerStateTerminated(exit_code=exit_code)
    container = ContainerStatus(
        name="main", ready=ready, restart_count=restarts, state=ContainerState(terminated=ended)
    )
    has_containers = restarts or exit_code is not None or not ready
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="ns",
            uid=f"uid-{name}",
            annotations=notes,
            labels={names.PARTITION_ID: partition} if partition else None,
            owner_references=[an_owner(job)],
            deletion_timestamp=CREATED if deleting else None,
        ),
        status=PodStatus(
            phase=phase, reason=reason, container_statuses=[container] if has_containers else None
        ),
    )


def an_owner(uid: str = "u1") -> OwnerReference:
    """Return the reference to Job `j`."""
    return OwnerReference(
        api_version=names.BATCH_API,
        kind="Job",
        name="j",
        uid=uid,
        controller=True,
        block_owner_deletion=True,
    )


def a_group(job: Job, phase: PodGroupPhase = "Inqueue", **status: Any) -> PodGroup:
    """Return the Job's PodGroup, as the extender left it."""
    group = podgroups.render(job, {})
    group.metadata.uid = "group-uid"
    group.status = PodGroupStatus(phase=phase, **status)
    return group


def observed(
    job: Job, *pods: Pod, group: PodGroupPhase | None = "Inqueue", **more: Any
) -> Observed:
    """Return what the controller sees; `group` is the phase of the PodGroup, None for none."""
    return Observed(
        job=job,
        pods={pod.metadata.name: pod for pod in pods},
        group=None if group is None else a_group(job, group),
        queue=more.pop("queue", QUEUE),
        **more,
    )
