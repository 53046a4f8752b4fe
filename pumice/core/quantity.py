"""
Kubernetes quantities: exact numbers and their text.

A quantity is a decimal number with a suffix: `500m`, `2`, `1.5Gi`, `12e6`. In JSON it may also
be a bare number. Everything is read exactly, as an int where it is whole and as a Fraction where
it is not; floats appear only in `milli` and `value`, which round up to the next whole unit as
Kubernetes does when it compares resources.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

from pumice.core.api.meta import Quantity

Exact = int | Fraction
"""A quantity's number: whole, or an exact fraction."""

_FORM: Final = re.compile(
    r"(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+))(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?"
)
_BINARY: Final = {s: 1024**i for i, s in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}
_DECIMAL: Final[dict[str, Exact]] = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "E": 10**18,
}
_SCALES: Final[dict[str, Exact]] = {**_DECIMAL, **_BINARY}
_MAX_EXPONENT: Final = 100
"""Kubernetes keeps 18 digits; larger exponents only serve to exhaust memory."""


class QuantityError(ValueError):
    """The text is not a quantity."""


def parse(quantity: Quantity) -> Exact:
    """Return the exact number; raise QuantityError for anything that is not a quantity."""
    if isinstance(quantity, str):
        return _parse_text(quantity)
    if isinstance(quantity, bool) or (isinstance(quantity, float) and not math.isfinite(quantity)):
        raise QuantityError(f"not a quantity: {quantity!r}")
    return _whole(Fraction(str(quantity))) if isinstance(quantity, float) else quantity


@lru_cache(maxsize=8192)
def _parse_text(text: str) -> Exact:
    match = _FORM.fullmatch(text)
    if match is None:
        raise QuantityError(f"not a quantity: {text!r}")
    number = Fraction(match["number"])
    suffix = match["suffix"]
    if suffix is None:
        return _whole(number)
    if suffix in _SCALES:
        return _whole(number * _SCALES[suffix])
    exponent = int(suffix[1:])
    if abs(exponent) > _MAX_EXPONENT:
        raise QuantityError(f"exponent out of range: {text!r}")
    return _whole(number * Fraction(10) ** exponent)


def _whole(number: Fraction) -> Exact:
    return number.numerator if number.denominator == 1 else number


def milli(quantity: Quantity) -> float:
    """Return thousandths, rounded up to a whole one: the unit of cpu and of scalars."""
    return float(math.ceil(parse(quantity) * 1000))


def value(quantity: Quantity) -> float:
    """Return whole units, rounded up: the unit of memory and of pods."""
    return float(math.ceil(parse(quantity)))


def text(number: Exact, *, binary: bool = False) -> str:
    """
    Return the canonical text: no fraction digits and the largest suffix that allows it.

    Binary suffixes are used on request, and only where at least one of them divides the number;
    `parse(text(x)) == x` for every whole number of billionths, and finer ones are rounded up.
    """
    if binary and number and Fraction(number).denominator == 1:
        for suffix, scale in reversed(_BINARY.items()):
            if number % scale == 0:
                return f"{int(number // scale)}{suffix}"
    billionths = math.ceil(Fraction(number) * 10**9)
    if billionths == 0:
        return "0"
    power = 0
    while power < _POWERS and billionths % 1000 == 0:
        billionths, power = billionths // 1000, power + 1
    return f"{billionths}{_SUFFIXES[power]}"


_SUFFIXES: Final = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_POWERS: Final = len(_SUFFIXES) - 1
