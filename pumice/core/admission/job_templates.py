"""
The specification of a Job where it stands in something that makes Jobs.

Defaults are given in memory first, as they will be when the Job is made. The queue is not looked
at: it matters when the Job is made, and may be closed or made until then.
"""

from __future__ import annotations

from collections.abc import Iterator

from pumice.core.admission import job_creation, jobs
from pumice.core.admission.errors import FieldError
from pumice.core.api.batch import Job, JobSpec
from pumice.core.api.flow import JobTemplate
from pumice.core.api.meta import ObjectMeta


def check(template: JobTemplate) -> list[FieldError]:
    """Return what is wrong with a new or changed JobTemplate."""
    # The name of a Job is that of the flow, a dash, and this.
    return [*check_spec(template.spec, template.metadata.name)]


def check_spec(spec: JobSpec, job_name: str, prefix: str = "") -> Iterator[FieldError]:
    """Yield what is wrong with the specification of Jobs of this name, at this path."""
    job = jobs.defaults(Job(metadata=ObjectMeta(name=job_name), spec=spec))
    for error in job_creation.check_alone(job):
        yield FieldError(prefix + error.field, error.message)
