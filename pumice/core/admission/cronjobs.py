"""
A CronJob: its schedule, its time zone, its name, and the Job that it makes.

The Job is judged here, too, where Volcano lets it be refused each time that it is due.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from pumice.core import schedules
from pumice.core.admission import formats, job_templates
from pumice.core.admission.errors import FieldError
from pumice.core.api import cron_rules as rules
from pumice.core.api.cron import CronJob
from pumice.core.crons.jobs import MINUTE, name_of

IsZone = Callable[[str], bool]
"""Tell whether there is a time zone of this name."""

_ZONE_PART: Final = re.compile(rules.ZONE_PART)
_DUE: Final = 99_999_999 * MINUTE
"""A moment that makes the name of a Job as long as it gets."""


def check(cron: CronJob, is_zone: IsZone) -> list[FieldError]:
    """Return what is wrong with a new or changed CronJob."""
    spec, name = cron.spec, cron.metadata.name
    job_name = name_of(name, schedules.parse(spec.schedule), _DUE)
    return [
        *_schedule(spec.schedule),
        *_zone(spec.time_zone, is_zone),
        *_name(name),
        *job_templates.check_spec(spec.job_template.spec, job_name, "spec.jobTemplate."),
    ]


def _schedule(text: str) -> Iterator[FieldError]:
    if not text:
        yield FieldError("spec.schedule", rules.NO_SCHEDULE)
    elif "TZ" in text:
        yield FieldError("spec.schedule", rules.ZONE_IN_SCHEDULE)
    elif schedules.parse(text) is None:
        yield FieldError("spec.schedule", rules.NO_CRON)


def _zone(name: str | None, is_zone: IsZone) -> Iterator[FieldError]:
    if name is None:
        return
    if not name:
        yield FieldError("spec.timeZone", rules.EMPTY_ZONE)
        return
    parts = name.split("/")
    if not all(_ZONE_PART.fullmatch(part) and part not in (".", "..") for part in parts):
        yield FieldError("spec.timeZone", rules.UNKNOWN_ZONE)
    elif name.lower() == "local":
        yield FieldError("spec.timeZone", rules.LOCAL_ZONE)
    elif not is_zone(name):
        yield FieldError("spec.timeZone", rules.INVALID_ZONE)


def _name(name: str) -> Iterator[FieldError]:
    if len(name) > rules.NAME_LIMIT:
        yield FieldError("metadata.name", rules.LONG_NAME)
    elif wrong := formats.qualified_name(name):
        yield FieldError("metadata.name", f'invalid cronJob name "{name}": {"; ".join(wrong)}')
