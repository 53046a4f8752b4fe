"""Durations in Go's syntax."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.jobs.durations import duration, seconds

READ = {
    "5m": 300.0,
    "1h2m3s": 3723.0,
    "1.5h": 5400.0,
    "300ms": 0.3,
    "-1m": -60.0,
    "+2s": 2.0,
    "0": 0.0,
    "soon": None,
    "5": None,
    "5 m": None,
    "5mm": None,
    "": None,
    "--1s": None,
}


@pytest.mark.parametrize(("text", "want"), READ.items())
def test_reading(text: str, want: float | None) -> None:
    assert seconds(text) == pytest.approx(want)


WRITTEN = {0: "0s", 0.25: "250ms", 59: "59s", 60: "1m0s", 3600: "1h0m0s", 3723.5: "1h2m3.5s"}


@pytest.mark.parametrize(("length", "want"), WRITTEN.items())
def test_writing(length: float, want: str) -> None:
    assert duration(length) == want


@given(st.integers(0, 10**7))
def test_what_is_written_is_read(milliseconds: int) -> None:
    assert seconds(duration(milliseconds / 1000)) == pytest.approx(milliseconds / 1000)
