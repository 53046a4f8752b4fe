"""
Schedules of CronJobs: five fields as cron reads them, or a word for a common one.

    minute hour day-of-month month day-of-week      *  1  1-5  */10  mon-fri  1,15
    @hourly @daily @weekly @monthly @yearly and the like, @every 1h30m
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pumice.core.api.cron_rules import MONTHS, WEEKDAYS
from pumice.core.jobs import durations

_EVERY: Final = "@every "
_ANY: Final = ("*", "?")
_WORDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


@dataclass(frozen=True, slots=True)
class Every:
    """Again and again after so many seconds, one at the least."""

    seconds: int


@dataclass(frozen=True, slots=True)
class Calendar:
    """Whenever the clock shows one of these; Sunday is 0."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    #: days of the month and of the week: both must hold where either is open, else one is enough
    days_are_open: bool
    weekdays_are_open: bool


Schedule = Calendar | Every


@dataclass(frozen=True, slots=True)
class _Field:
    """The values that a field may have, and names for them."""

    least: int
    most: int
    names: tuple[str, ...] = ()

    def read(self, text: str) -> frozenset[int]:
        """Return the values of a list; raise ValueError where it is none."""
        return frozenset(value for part in text.split(",") for value in self._part(part))

    def _part(self, text: str) -> range:
        span, has_step, step_text = text.partition("/")
        first, has_end, last = span.partition("-")
        step = _number(step_text) if has_step else 1
        if span in _ANY:
            low, high = self.least, self.most
        else:
            low = self._value(first)
            # A step without an end goes on to the last value.
            high = self._value(last) if has_end else (self.most if has_step else low)
        if not step or not self.least <= low <= high <= self.most:
            raise ValueError(text)
        return range(low, high + 1, step)

    def _value(self, text: str) -> int:
        word = text.lower()
        return self.names.index(word) + self.least if word in self.names else _number(text)


_FIELDS: Final = (
    _Field(0, 59),
    _Field(0, 23),
    _Field(1, 31),
    _Field(1, 12, MONTHS),
    _Field(0, 6, WEEKDAYS),
)


def parse(text: str) -> Schedule | None:
    """Return the schedule; None where the text is none."""
    if text.startswith(_EVERY):
        length = durations.seconds(text.removeprefix(_EVERY))
        return None if length is None else Every(max(int(length), 1))
    fields = _WORDS.get(text, text).split()
    if len(fields) != len(_FIELDS):
        return None
    try:
        minutes, hours, days, months, weekdays = map(_Field.read, _FIELDS, fields)
    except ValueError:
        return None
    is_open = (_is_open(fields[2]), _is_open(fields[4]))
    return Calendar(minutes, hours, days, months, weekdays, *is_open)


def _is_open(field: str) -> bool:
    """Tell whether a field leaves its value open."""
    return any(part.removesuffix("/1") in _ANY for part in field.split(","))


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    return int(text)
