"""
The moments at which a schedule falls due, in whole seconds since 1970.

A calendar falls due in every minute in which the clock of its time zone shows what the schedule
says. Where that clock is put forward, what it leaves out does not come; where it is put back, what
it shows twice comes twice. CronJobs of Kubernetes have it so, too.

Between two changes of the clock it differs from UTC by the same number of seconds all the time, so
the calendar is searched without time zones (by cronsim), from each change to the next:

    search ──► moment ──► did the clock change before it? ──► no: that is it
       ▲                                │ yes
       └──────── from the change on ◄───┘
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cronsim import CronSim, CronSimError

from pumice.core.schedules import Calendar, Every, Schedule

Offset = Callable[[int], int]
"""Tell by how many seconds a clock is ahead of UTC at a moment."""

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - what a clock shows, wherever it is
_DAY: Final = 86_400
_LONGEST: Final = 10 * 366 * _DAY
"""How far is searched; 29 February may be eight years away."""


@dataclass(frozen=True, slots=True)
class Timetable:
    """A schedule by a clock; `origin` is what `@every` counts from."""

    schedule: Schedule
    offset: Offset
    origin: int

    def after(self, moment: int) -> int | None:
        """Return the first moment later than this one; None where there is none in ten years."""
        match self.schedule:
            case Every(seconds=length):
                return self.origin + max((moment - self.origin) // length + 1, 1) * length
            case Calendar() as calendar:
                return _seek(calendar, self.offset, moment, 1)

    def upto(self, moment: int) -> int | None:
        """Return the last moment that is not later than this one; None as with `after`."""
        match self.schedule:
            case Every(seconds=length):
                periods = (moment - self.origin) // length
                return self.origin + periods * length if periods > 0 else None
            case Calendar() as calendar:
                return _seek(calendar, self.offset, moment + 1, -1)

    def exceeds(self, limit: int, after: int, upto: int) -> bool:
        """Tell whether there are more moments than the limit in a span, its beginning apart."""
        for _ in range(limit + 1):
            following = self.after(after)
            if following is None or following > upto:
                return False
            after = following
        return True


def _seek(calendar: Calendar, offset: Offset, start: int, step: int) -> int | None:
    """Return the moment next to `start`, later (step 1) or earlier (step -1)."""
    text = _text(calendar)
    begin, ahead = start, offset(start)
    shown = start + ahead
    while abs(begin - start) < _LONGEST:
        found = _search(text, shown, step)
        if found is None:
            return None
        moment = found - ahead
        change = _change(offset, begin, moment, step)
        if change is None:
            return moment
        begin, ahead = change, offset(change)
        shown = change + ahead - step
    return None


def _search(text: str, shown: int, step: int) -> int | None:
    """Return what a clock shows next when the calendar falls due, beyond what it shows now."""
    try:
        found = next(CronSim(text, _EPOCH + timedelta(seconds=shown), reverse=step < 0), None)
    except CronSimError:
        return None  # A day that none of its months has.
    return None if found is None else int((found - _EPOCH).total_seconds())


def _change(offset: Offset, begin: int, end: int, step: int) -> int | None:
    """Return the first second on the way that the clock is not ahead as at the beginning."""
    ahead = offset(begin)
    for near in range(begin, end, step * _DAY):
        far = min(near + _DAY, end) if step > 0 else max(near - _DAY, end)
        if offset(far) != ahead:
            way = range(near, far + step, step)
            return way[bisect_left(way, True, key=lambda second: offset(second) != ahead)]
    return None


def _text(calendar: Calendar) -> str:
    """Return the calendar in words that mean the same to every cron."""
    days = "*" if calendar.days_are_open else _listed(calendar.days)
    weekdays = "*" if calendar.weekdays_are_open else _listed(calendar.weekdays)
    minutes, hours, months = map(_listed, (calendar.minutes, calendar.hours, calendar.months))
    return f"{minutes} {hours} {days} {months} {weekdays}"


def _listed(values: frozenset[int]) -> str:
    return ",".join(map(str, sorted(values)))
