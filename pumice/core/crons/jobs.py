"""
The Jobs of a CronJob: their names, what they are made of, and which of them it made.

A Job is named after the moment that it was due at, so that it cannot be created twice: by the
minute, or by the second where the schedule is `@every` less than a minute.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from pumice.core import names, ownership, timestamps
from pumice.core.api.batch import Job
from pumice.core.api.cron import CronJob
from pumice.core.api.meta import ObjectMeta
from pumice.core.jobs.ttl import FINISHED
from pumice.core.schedules import Every, Schedule

KIND: Final = "CronJob"
MINUTE: Final = 60


def name_of(cron_name: str, schedule: Schedule | None, due: int) -> str:
    """Return the name of the Job that is due at a moment."""
    is_hasty = isinstance(schedule, Every) and schedule.seconds < MINUTE
    return f"{cron_name}-{due if is_hasty else due // MINUTE}"


def new(cron: CronJob, schedule: Schedule, due: int, ahead_s: int) -> Job:
    """Return the Job that is due at a moment, told by a clock so many seconds ahead of UTC."""
    made, meta = cron.spec.job_template, cron.metadata
    told = datetime.fromtimestamp(due, UTC).astimezone(timezone(timedelta(seconds=ahead_s)))
    stamp = told.isoformat() if ahead_s else timestamps.stamp(due)
    return Job(
        metadata=ObjectMeta(
            name=name_of(meta.name, schedule, due),
            namespace=meta.namespace,
            labels=made.metadata.labels or None,
            annotations={**(made.metadata.annotations or {}), names.CRON_TIMESTAMP: stamp},
            owner_references=[ownership.reference(names.BATCH_API, KIND, meta)],
        ),
        spec=made.spec,
    )


def due_at(job: Job, cron_name: str) -> int | None:
    """Return the moment that a Job was made for; None for one that the controller did not make."""
    due = int(timestamps.moment((job.metadata.annotations or {}).get(names.CRON_TIMESTAMP)))
    prefix, _, number = job.metadata.name.rpartition("-")
    is_ours = prefix == cron_name and number in (str(due), str(due // MINUTE))
    return due if due and is_ours else None


def is_finished(job: Job) -> bool:
    """Tell whether a Job has come to an end that it never leaves."""
    return job.status.state.phase in FINISHED


def age(job: Job) -> tuple[str, str]:
    """Return what Jobs are sorted by, the oldest first."""
    return job.metadata.creation_timestamp or "", job.metadata.name
