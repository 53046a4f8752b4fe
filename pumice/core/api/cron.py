"""The CronJob of batch.volcano.sh/v1alpha1: a Job again and again, by the clock."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from pumice.core.api.batch import JobSpec
from pumice.core.api.meta import NonNegative, ObjectMeta, Struct, Time

LongSeconds = Annotated[int, Meta(ge=0, extra_json_schema={"format": "int64"})]
ConcurrencyPolicy = Literal["Allow", "Forbid", "Replace"]


class TemplateMeta(Struct):
    """Metadata for what is made of a template."""

    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None


class CronJobTemplate(Struct):
    """The Job that is created."""

    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    spec: JobSpec = msgspec.field(default_factory=JobSpec)


class CronJobSpec(Struct):
    """When a Job is created, which, and what becomes of the earlier ones."""

    #: Minute, hour, day of the month, month, day of the week; or @hourly, @every 1h30m and the
    #: like.
    schedule: Annotated[str, Meta(max_length=256)]
    job_template: CronJobTemplate
    #: A name of the IANA time zone database; the controller's own zone where absent.
    time_zone: Annotated[str, Meta(max_length=128)] | None = None
    #: A start that was missed for longer is left out; absent leaves out none.
    starting_deadline_seconds: LongSeconds | None = None
    #: What happens when a Job is due while an earlier one runs.
    concurrency_policy: ConcurrencyPolicy = "Allow"
    #: Create nothing for the time being.
    suspend: Annotated[bool, Meta(extra_json_schema={"default": False})] | None = False
    #: How many Completed Jobs are kept, the newest ones.
    successful_jobs_history_limit: NonNegative | None = 3
    #: How many Failed and Terminated Jobs are kept, the newest ones.
    failed_jobs_history_limit: NonNegative | None = 1


class ObjectReference(Struct):
    """A Job that a CronJob started."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class CronJobStatus(Struct):
    """What is; written by the CronJob controller alone."""

    #: Jobs that are not finished.
    active: list[ObjectReference] | None = None
    last_schedule_time: Time | None = None
    last_successful_time: Time | None = None


class CronJob(Struct):
    """A Job by the clock."""

    spec: CronJobSpec
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    status: CronJobStatus = msgspec.field(default_factory=CronJobStatus)
