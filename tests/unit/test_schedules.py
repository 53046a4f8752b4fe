"""Schedules: what the fields mean, and what is none."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core import schedules
from pumice.core.api.cron_rules import SCHEDULE
from pumice.core.schedules import Calendar, Every, Schedule

MINUTES, HOURS, DAYS = frozenset(range(60)), frozenset(range(24)), frozenset(range(1, 32))
MONTHS, WEEKDAYS = frozenset(range(1, 13)), frozenset(range(7))


def calendar(
    minutes: frozenset[int] | set[int] = MINUTES,
    hours: frozenset[int] | set[int] = HOURS,
    days: frozenset[int] | set[int] = DAYS,
    months: frozenset[int] | set[int] = MONTHS,
    weekdays: frozenset[int] | set[int] = WEEKDAYS,
    *,
    days_are_open: bool = True,
    weekdays_are_open: bool = True,
) -> Calendar:
    return Calendar(
        frozenset(minutes),
        frozenset(hours),
        frozenset(days),
        frozenset(months),
        frozenset(weekdays),
        days_are_open,
        weekdays_are_open,
    )


MEANT: dict[str, tuple[str, Schedule]] = {
    "every minute": ("* * * * *", calendar()),
    "a question mark leaves a field open, too": ("* * ? * ?", calendar()),
    "a number": ("5 * * * *", calendar({5})),
    "a list": ("1,2,58 * * * *", calendar({1, 2, 58})),
    "a range": ("* 9-11 * * *", calendar(hours={9, 10, 11})),
    "a range with a step": ("* 0-6/3 * * *", calendar(hours={0, 3, 6})),
    "steps over everything": ("*/20 * * * *", calendar({0, 20, 40})),
    "steps from a number on": ("50/5 * * * *", calendar({50, 55})),
    "a day leaves nothing open": ("* * 13 * *", calendar(days={13}, days_are_open=False)),
    "steps over days leave nothing open": (
        "* * */10 * *",
        calendar(days={1, 11, 21, 31}, days_are_open=False),
    ),
    "months and weekdays by name": (
        "* * * JAN-mar Mon",
        calendar(months={1, 2, 3}, weekdays={1}, weekdays_are_open=False),
    ),
    "zeros in front and blanks around": ("  07 \t * * * * ", calendar({7})),
    "a word": ("@hourly", calendar({0})),
    "every so often": ("@every 1h30m", Every(5400)),
    "every moment is every second": ("@every 1ms", Every(1)),
}


@pytest.mark.parametrize(("text", "want"), MEANT.values(), ids=MEANT.keys())
def test_what_is_meant(text: str, want: Schedule) -> None:
    assert schedules.parse(text) == want


NONE = (
    "",
    "*",
    "* * * *",
    "* * * * * *",
    "60 * * * *",
    "* 24 * * *",
    "* * 0 * *",
    "* * * 13 *",
    "* * * * 7",
    "5-1 * * * *",
    "*/0 * * * *",
    "1/2/3 * * * *",
    "1-2-3 * * * *",
    "-1 * * * *",
    "1.5 * * * *",
    "jan * * * *",
    "\N{ARABIC-INDIC DIGIT ONE} * * * *",
    ", * * * *",
    "@sometimes",
    "@every",
    "@every soon",
    " @hourly",
)


@pytest.mark.parametrize("text", NONE)
def test_what_is_none(text: str) -> None:
    assert schedules.parse(text) is None


# What the API server's expression says of the same texts; Python knows no [[:space:]].
EXPRESSION = re.compile(SCHEDULE.replace("[[:space:]]", r"\s"))
FIELDS = st.lists(
    st.sampled_from(
        ("*", "?", "5", "0", "12", "31", "1-5", "*/7", "2/3", "1,2", "mon", "FEB", "7")
    ),
    min_size=4,
    max_size=6,
).map(" ".join)


@given(FIELDS | st.sampled_from((*NONE, *(text for text, _ in MEANT.values()))))
def test_the_api_server_refuses_no_schedule_that_is_one(text: str) -> None:
    if schedules.parse(text) is not None:
        assert EXPRESSION.search(text)


@given(FIELDS)
def test_the_api_server_refuses_what_is_none_but_for_ranges(text: str) -> None:
    if schedules.parse(text) is None:
        assert not EXPRESSION.search(text)
