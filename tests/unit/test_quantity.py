"""Quantities: exact reading, rounding to units, canonical text."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.api.meta import Quantity
from pumice.core.quantity import Exact, QuantityError, milli, parse, text, value

NUMBERS: dict[str, tuple[Quantity, Exact]] = {
    "a bare integer": (3, 3),
    "an integer in text": ("3", 3),
    "a JSON float is read by its digits": (0.1, Fraction(1, 10)),
    "a fraction": ("1.5", Fraction(3, 2)),
    "a fraction without digits before the point": (".5", Fraction(1, 2)),
    "a point without digits behind it": ("2.", 2),
    "thousandths": ("250m", Fraction(1, 4)),
    "thousandths that make a whole": ("2000m", 2),
    "millionths": ("5u", Fraction(5, 10**6)),
    "billionths": ("7n", Fraction(7, 10**9)),
    "thousands": ("4k", 4000),
    "mebibytes": ("64Mi", 64 * 2**20),
    "a fraction of gibibytes": ("1.5Gi", 3 * 2**29),
    "exabytes have the suffix E": ("1E", 10**18),
    "an E before digits is an exponent": ("1E3", 1000),
    "a small exponent": ("12e-2", Fraction(3, 25)),
    "exbibytes": ("2Ei", 2**61),
    "a sign": ("-2k", -2000),
}


@pytest.mark.parametrize(("quantity", "want"), NUMBERS.values(), ids=NUMBERS.keys())
def test_parse(quantity: Quantity, want: Exact) -> None:
    assert parse(quantity) == want


BAD: dict[str, Quantity] = {
    "nothing": "",
    "a word": "lots",
    "a space": "1 Gi",
    "a trailing line feed": "1\n",
    "an unknown suffix": "1K",
    "a suffix alone": "Gi",
    "two signs": "--1",
    "an exponent to exhaust memory with": "1e999999999",
    "not a number": float("nan"),
    "infinity": float("inf"),
    "a truth value": True,
}


@pytest.mark.parametrize("quantity", BAD.values(), ids=BAD.keys())
def test_what_is_no_quantity_is_refused(quantity: Quantity) -> None:
    with pytest.raises(QuantityError):
        parse(quantity)


UNITS: dict[str, tuple[Quantity, float, float]] = {
    "whole": ("2", 2000.0, 2.0),
    "thousandths round up to whole units": ("1500m", 1500.0, 2.0),
    "less than a thousandth rounds up to one": ("1n", 1.0, 1.0),
    "zero stays zero": ("0", 0.0, 0.0),
}


@pytest.mark.parametrize(("quantity", "want_milli", "want_value"), UNITS.values(), ids=UNITS.keys())
def test_units_round_up(quantity: Quantity, want_milli: float, want_value: float) -> None:
    assert (milli(quantity), value(quantity)) == (want_milli, want_value)


TEXTS: dict[str, tuple[Exact, bool, str]] = {
    "zero": (0, False, "0"),
    "a small number": (5, False, "5"),
    "thousandths": (Fraction(1, 2), False, "500m"),
    "the largest suffix without digits behind the point": (1_500_000, False, "1500k"),
    "binary, where asked for": (3 * 2**30, True, "3Gi"),
    "binary where a smaller suffix divides": (3 * 2**29, True, "1536Mi"),
    "decimal where no binary suffix divides": (1_000_000_007, True, "1000000007"),
    "decimal zeros, where no binary suffix divides": (10**9 + 500, True, "1000000500"),
    "finer than billionths rounds up": (Fraction(1, 10**10), False, "1n"),
    "a negative number": (-2000, False, "-2k"),
}


@pytest.mark.parametrize(("number", "binary", "want"), TEXTS.values(), ids=TEXTS.keys())
def test_text(number: Exact, binary: bool, want: str) -> None:
    assert text(number, binary=binary) == want


@given(st.integers(-(10**30), 10**30), st.booleans())
def test_text_of_whole_billionths_reads_back(billionths: int, binary: bool) -> None:
    number = Fraction(billionths, 10**9)
    assert parse(text(number, binary=binary)) == number
