"""The yardsticks of the acceptance tests themselves: what counts as a gap, what as an overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from tests.acceptance.contention import GANGS, ROOM, Gap, gaps
from tests.acceptance.timeline import Life, most

Span = tuple[float, float]


@dataclass(frozen=True)
class Case:
    spans: Sequence[Span]
    """From when to when each gang ran."""
    want: Sequence[Gap] = ()


def ran(*spans: Span, n: int = ROOM) -> list[Span]:
    """Return the spans given, and so many that run all the time."""
    return [*spans, *[(0.0, 100.0)] * (n - len(spans))]


CASES = {
    "ten run from beginning to end": Case(ran()),
    "the next one starts within the grace": Case([*ran((0.0, 10.0)), (11.9, 90.0)]),
    "the next one starts too late": Case([*ran((0.0, 10.0)), (13.0, 100.0)], [Gap(12.0, 13.0, 9)]),
    "the grace begins anew with each completion": Case(
        [*ran((0.0, 10.0), (0.0, 11.5)), (12.0, 90.0), (13.0, 90.0)]
    ),
    "none starts, and fewer than ten are left": Case(ran((0.0, 10.0))),
    "before ten ran for the first time nothing is asked": Case(
        [*ran((50.0, 100.0)), (60.0, 100.0)]
    ),
    "several are missing, and come one after the other": Case(
        [*ran((0.0, 10.0), (0.0, 10.0)), (14.0, 100.0), (15.0, 100.0)],
        [Gap(12.0, 14.0, 8), Gap(14.0, 15.0, 9)],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_gaps(case: Case) -> None:
    assert ROOM < GANGS
    lives = [
        Life("", "", f"gang-{i}", 0.0, running=start, ended=end)
        for i, (start, end) in enumerate(case.spans)
    ]
    assert gaps(lives, 2.0) == list(case.want)


def test_most_counts_what_overlaps() -> None:
    assert most(iter([(0, 2), (1, 3), (2, 4), (5, 5)])) == 2
    assert most([]) == 0
