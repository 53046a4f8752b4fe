"""When schedules fall due: known moments around changes of clocks, and every minute looked at."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core.crons.timetable import Offset, Timetable
from pumice.core.schedules import Calendar, parse
from tests.effort import examples
from tests.unit.crons.clocks import at, clock, shown

BERLIN, NEW_YORK, LORD_HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"


def timetable(schedule: str, zone: str = "UTC", origin: int = 0) -> Timetable:
    parsed, offset = parse(schedule), clock(zone)
    assert parsed
    assert offset
    return Timetable(parsed, offset, origin)


KNOWN: dict[str, tuple[str, str, str, list[str]]] = {
    "every quarter of an hour": (
        "*/15 * * * *",
        "UTC",
        "2026-01-01T00:00:00",
        ["2026-01-01 00:15 UTC", "2026-01-01 00:30 UTC"],
    ),
    "the time that the clock leaves out in spring does not come": (
        "30 2 * * *",
        BERLIN,
        "2026-03-28T00:00:00+01:00",
        ["2026-03-28 02:30 CET", "2026-03-30 02:30 CEST"],
    ),
    "hours go on in spring": (
        "0 * * * *",
        BERLIN,
        "2026-03-29T00:30:00+01:00",
        ["2026-03-29 01:00 CET", "2026-03-29 03:00 CEST", "2026-03-29 04:00 CEST"],
    ),
    "the time that the clock shows twice in autumn comes twice": (
        "30 1 * * *",
        NEW_YORK,
        "2026-11-01T00:00:00-04:00",
        ["2026-11-01 01:30 EDT", "2026-11-01 01:30 EST", "2026-11-02 01:30 EST"],
    ),
    "a yearly time in the second of two such hours": (
        "30 1 1 11 *",
        NEW_YORK,
        "2026-11-01T01:30:00-04:00",
        ["2026-11-01 01:30 EST", "2027-11-01 01:30 EDT"],
    ),
    "a clock that is put back by half an hour": (
        "*/20 1 5 4 *",
        LORD_HOWE,
        "2026-04-05T01:20:00+11:00",
        ["2026-04-05 01:40 +11", "2026-04-05 01:40 +1030", "2027-04-05 01:00 +1030"],
    ),
    "midnight that there is not": (
        "0 0 * * *",
        "Africa/Cairo",
        "2026-04-23T12:00:00+02:00",
        ["2026-04-25 00:00 EEST", "2026-04-26 00:00 EEST"],
    ),
    "a whole day that there was not": (
        "0 12 * * *",
        "Pacific/Apia",
        "2011-12-29T11:00:00-10:00",
        ["2011-12-29 12:00 -10", "2011-12-31 12:00 +14"],
    ),
    "29 February, over a century that has none": (
        "0 0 29 2 *",
        "UTC",
        "2096-01-01T00:00:00",
        ["2096-02-29 00:00 UTC", "2104-02-29 00:00 UTC"],
    ),
    "a day of the month or of the week": (
        "0 0 13 * 5",
        "UTC",
        "2026-02-06T12:00:00",
        ["2026-02-13 00:00 UTC", "2026-02-20 00:00 UTC"],
    ),
    "every second day is of the month alone": (
        "0 0 */2 * *",
        "UTC",
        "2026-01-30T00:00:00",
        ["2026-01-31 00:00 UTC", "2026-02-01 00:00 UTC"],
    ),
    "the last days of months": (
        "0 0 31 * *",
        "UTC",
        "2026-03-31T00:00:00",
        ["2026-05-31 00:00 UTC", "2026-07-31 00:00 UTC"],
    ),
    "a day that there never is": ("0 0 31 2 *", "UTC", "2026-01-01T00:00:00", ["never"]),
    "a day that there never is in these months": (
        "0 0 31 4,6 *",
        "UTC",
        "2026-01-01T00:00:00",
        ["never"],
    ),
}


@pytest.mark.parametrize(("schedule", "zone", "start", "want"), KNOWN.values(), ids=KNOWN.keys())
def test_moments(schedule: str, zone: str, start: str, want: list[str]) -> None:
    times, moment = timetable(schedule, zone), at(start)
    found: list[int | None] = [moment]
    for _ in want:
        last = found[-1]
        assert last is not None
        found.append(times.after(last))

    assert [shown(moment, zone) for moment in found[1:]] == want
    for earlier, later in pairwise(found[1:]):
        assert later is not None
        assert times.upto(later - 1) == earlier
        assert times.upto(later) == later


def test_every_so_often_counts_from_its_origin() -> None:
    times = timetable("@every 90s", origin=1000)
    assert [times.after(moment) for moment in (0, 1000, 1089, 1090)] == [1090, 1090, 1090, 1180]
    assert [times.upto(moment) for moment in (0, 1000, 1089, 1090, 1300)] == [
        None,
        None,
        None,
        1090,
        1270,
    ]


def test_more_than_so_many() -> None:
    times = timetable("* * * * *")
    assert not times.exceeds(100, 0, 100 * 60 + 59)
    assert times.exceeds(100, 0, 101 * 60)
    assert not timetable("0 0 31 2 *").exceeds(0, 0, 10**9)


FIELDS = st.builds(
    " ".join,
    st.tuples(
        st.sampled_from(("*", "0", "30", "*/20", "1,59")),
        st.sampled_from(("*", "0", "1", "2", "3", "*/5", "23")),
        st.sampled_from(("*", "1", "29", "*/2", "5,24,25")),
        st.sampled_from(("*", "3", "4,10", "11")),
        st.sampled_from(("*", "0", "mon-fri")),
    ),
)
#: days around which clocks change
CHANGES = {
    BERLIN: ("2026-03-29", "2026-10-25"),
    NEW_YORK: ("2026-03-08", "2026-11-01"),
    LORD_HOWE: ("2026-04-05", "2026-10-04"),
    "Africa/Cairo": ("2026-04-24", "2026-10-29"),
    "Pacific/Apia": ("2011-12-30", "2011-12-31"),
    "Asia/Kathmandu": ("2026-06-01", "2026-12-31"),
}
SPAN_S = 86_400


@settings(max_examples=examples(100), deadline=None)
@given(FIELDS, st.sampled_from(sorted(CHANGES)), st.integers(0, 1), st.integers(0, 86_399))
def test_the_moments_are_the_minutes_in_which_the_clock_shows_them(
    schedule: str, zone: str, change: int, second: int
) -> None:
    start = at(f"{CHANGES[zone][change]}T00:00:00") - SPAN_S // 2 + second
    end = start + SPAN_S
    times, calendar = timetable(schedule, zone), parse(schedule)
    assert isinstance(calendar, Calendar)
    want = minutes_that_match(calendar, ZoneInfo(zone), start, end)

    later: list[int] = []
    moment = times.after(start)
    while moment is not None and moment <= end:
        later.append(moment)
        moment = times.after(moment)
    earlier: list[int] = []
    moment = times.upto(end)
    while moment is not None and moment > start:
        earlier.append(moment)
        moment = times.upto(moment - 1)

    assert later == want
    assert earlier == want[::-1]


def minutes_that_match(calendar: Calendar, zone: ZoneInfo, start: int, end: int) -> list[int]:
    """Look at every minute of a span, its beginning apart."""
    first = start // 60 * 60 + 60
    return [
        moment
        for moment in range(first, end + 1, 60)
        if matches(calendar, datetime.fromtimestamp(moment, zone))
    ]


def matches(calendar: Calendar, shown: datetime) -> bool:
    is_day = shown.day in calendar.days
    is_weekday = shown.isoweekday() % 7 in calendar.weekdays
    if calendar.days_are_open or calendar.weekdays_are_open:
        falls = is_day and is_weekday
    else:
        falls = is_day or is_weekday
    return (
        falls
        and shown.minute in calendar.minutes
        and shown.hour in calendar.hours
        and shown.month in calendar.months
    )


def test_the_last_moment_is_found_without_counting_all() -> None:
    """A year in which the schedule fell due half a million times does not matter."""
    asked: list[int] = []
    berlin = clock(BERLIN)
    assert berlin

    def counting(moment: int) -> int:
        asked.append(moment)
        return berlin(moment)

    offset: Offset = counting
    every_minute = parse("* * * * *")
    assert every_minute
    times = Timetable(every_minute, offset, 0)
    now = at("2026-06-01T12:00:30")
    assert times.upto(now) == now - 30
    assert len(asked) < 10
