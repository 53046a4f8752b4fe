"""What the API server refuses about a CronJob: its schedule, its time zone, its name."""

from __future__ import annotations

from typing import Final

from pumice.core.api import cel
from pumice.core.api.cron import CronJob, CronJobSpec, CronJobTemplate
from pumice.core.api.job_rules import NO_TASKS
from pumice.core.api.schema import Rules

NO_SCHEDULE: Final = "schedule is required, but got empty"
ZONE_IN_SCHEDULE: Final = (
    "schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field"
)
NO_CRON: Final = "schedule is not a valid cron expression"
EMPTY_ZONE: Final = "timeZone must be nil or non-empty string, got empty string"
LOCAL_ZONE: Final = (
    "timeZone can't be Local, and must be defined in https://www.iana.org/time-zones"
)
UNKNOWN_ZONE: Final = "unknown timeZone"
INVALID_ZONE: Final = "invalid timeZone"
NAME_LIMIT: Final = 52
"""How long a name may be: Jobs have the minute that they were due in behind it."""
LONG_NAME: Final = (
    f"cronJob name must be no more than {NAME_LIMIT} characters to accommodate job name suffix"
    " (max 63 total)"
)

DESCRIPTORS: Final = ("yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly")
MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
ZONE_PART: Final = "[A-Za-z._0-9+][-A-Za-z._0-9+]{0,13}"


def _field(number: str, *names: str) -> str:
    """Return the expression of one field: a list of values, ranges and steps."""
    value = f"({'|'.join((f'0*({number})', *names))})"
    part = f"([*?]|{value}(-{value})?)(/0*[1-9][0-9]*)?"
    return f"{part}(,{part})*"


_FIELDS = (
    _field("[0-5]?[0-9]"),
    _field("1?[0-9]|2[0-3]"),
    _field("[1-9]|[12][0-9]|3[01]"),
    _field("[1-9]|1[0-2]", *MONTHS),
    _field("[0-6]", *WEEKDAYS),
)
_DURATION = "[-+]?(0|(([0-9]+[.]?[0-9]*|[.][0-9]+)(ns|us|ms|s|m|h))+)"
_CRON = "[[:space:]]+".join(_FIELDS)
SCHEDULE: Final = (
    f"^(@({'|'.join(DESCRIPTORS)})|@every {_DURATION}|(?i:[[:space:]]*{_CRON}[[:space:]]*))$"
)
"""A schedule as far as an expression can tell; whether ranges go upwards it cannot."""

_SPEC = [
    cel.rule("self.schedule != ''", NO_SCHEDULE),
    cel.rule("!self.schedule.contains('TZ')", ZONE_IN_SCHEDULE),
    cel.rule(
        "self.schedule == '' || self.schedule.contains('TZ')"
        f" || self.schedule.matches('{SCHEDULE}')",
        NO_CRON,
    ),
    cel.rule("!has(self.timeZone) || self.timeZone != ''", EMPTY_ZONE),
    cel.rule("!has(self.timeZone) || self.timeZone.lowerAscii() != 'local'", LOCAL_ZONE),
    cel.rule(
        "!has(self.timeZone) || self.timeZone == ''"
        f" || self.timeZone.matches('^{ZONE_PART}(/{ZONE_PART})*$')"
        " && !self.timeZone.matches('(^|/)[.][.]?(/|$)')",
        UNKNOWN_ZONE,
    ),
    # A zone that there is not is an error of the rule; the API server has the database with it.
    cel.rule(
        "!has(self.timeZone) || timestamp('2000-01-01T00:00:00Z').getHours(self.timeZone) >= 0",
        INVALID_ZONE,
    ),
]

_CRON_JOB = [cel.rule(f"size(self.metadata.name) <= {NAME_LIMIT}", LONG_NAME)]
_TEMPLATE = [cel.rule("has(self.spec)", NO_TASKS)]

CRON_RULES: Rules = {CronJob: _CRON_JOB, CronJobSpec: _SPEC, CronJobTemplate: _TEMPLATE}
"""The rules by the struct that they are about."""
