"""CronJobs and their Jobs in one line."""

from __future__ import annotations

from typing import Any

from pumice.core import names, timestamps
from pumice.core.api.batch import Job, JobPhase, JobSpec, JobState, JobStatus, TaskSpec
from pumice.core.api.cron import (
    CronJob,
    CronJobSpec,
    CronJobStatus,
    CronJobTemplate,
    ObjectReference,
    TemplateMeta,
)
from pumice.core.api.meta import ObjectMeta, OwnerReference
from tests.unit.crons.clocks import at
from tests.unit.jobs.builders import template

CREATED = "2026-01-01T00:00:00Z"
SPEC = JobSpec(tasks=[TaskSpec(name="w", replicas=1, template=template())])


def a_cron(
    schedule: str = "0 * * * *",
    *,
    active: list[Job] | None = None,
    last: str | None = None,
    success: str | None = None,
    created: str = CREATED,
    deleting: bool = False,
    **spec: Any,
) -> CronJob:
    """Return CronJob `c`; `last` and `success` are the times in its status."""
    job = CronJobTemplate(
        metadata=TemplateMeta(labels={"team": "a"}, annotations={"note": "b"}), spec=SPEC
    )
    return CronJob(
        metadata=ObjectMeta(
            name="c",
            namespace="ns",
            uid="cron",
            resource_version="7",
            creation_timestamp=created,
            deletion_timestamp=created if deleting else None,
        ),
        spec=CronJobSpec(schedule=schedule, job_template=job, **spec),
        status=CronJobStatus(
            active=[a_reference(job) for job in active or ()] or None,
            last_schedule_time=last,
            last_successful_time=success,
        ),
    )


def a_run(
    due: str,
    phase: JobPhase = "Running",
    *,
    ended: str | None = None,
    uid: str = "",
    owner: str = "cron",
    name: str = "",
    deleting: bool = False,
) -> Job:
    """Return the Job of CronJob `c` that was due at a moment."""
    moment = at(due)
    controller = OwnerReference(
        api_version=names.BATCH_API, kind="CronJob", name="c", uid=owner, controller=True
    )
    return Job(
        metadata=ObjectMeta(
            name=name or f"c-{moment // 60}",
            namespace="ns",
            uid=uid or f"job-{moment // 60}",
            resource_version="1",
            creation_timestamp=timestamps.stamp(moment),
            deletion_timestamp=due if deleting else None,
            annotations={names.CRON_TIMESTAMP: timestamps.stamp(moment)},
            owner_references=[controller],
        ),
        spec=SPEC,
        status=JobStatus(state=JobState(phase=phase, last_transition_time=ended)),
    )


def a_reference(job: Job) -> ObjectReference:
    """Return the reference to a Job in the status."""
    return ObjectReference(
        api_version=names.BATCH_API,
        kind="Job",
        name=job.metadata.name,
        namespace="ns",
        uid=job.metadata.uid,
        resource_version="1",
    )
