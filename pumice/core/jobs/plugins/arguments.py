"""
Arguments of a Job plugin: a list of flags, as Go's `flag` package reads it.

`-name` and `--name` are the same. A value follows after `=` or as the next element; a boolean
takes it after `=` alone, and is true without. Reading stops at the first element that is no flag,
and at the first fault: what was read before stays, what comes after is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

Value = bool | int | str
V = TypeVar("V", bool, int, str)

_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


@dataclass(frozen=True, slots=True)
class Flag(Generic[V]):
    """A flag that there is; the type of its default is the type of its value."""

    name: str
    default: V


@dataclass(frozen=True, slots=True)
class Arguments:
    """What was read."""

    values: Mapping[str, Value]
    #: what reading stopped at, in words; empty if nothing was wrong
    fault: str = ""

    def get(self, flag: Flag[V]) -> V:
        """Return the value of a flag."""
        value = self.values.get(flag.name, flag.default)
        return value if isinstance(value, type(flag.default)) else flag.default


AnyFlag = Flag[bool] | Flag[int] | Flag[str]


def parse(given: Sequence[str], *flags: AnyFlag) -> Arguments:
    """Read arguments."""
    known: dict[str, Value] = {flag.name: flag.default for flag in flags}
    values: dict[str, Value] = {}
    left = list(given)
    while left:
        word = left.pop(0)
        if len(word) < 2 or not word.startswith("-") or word == "--":
            break
        name, has_value, text = word.removeprefix("-").removeprefix("-").partition("=")
        if not name or name.startswith("-"):
            return Arguments(values, f"bad flag syntax: {word}")
        if name not in known:
            return Arguments(values, f"flag provided but not defined: -{name}")
        default = known[name]
        if not has_value and isinstance(default, bool):
            text = "true"
        elif not has_value:
            if not left:
                return Arguments(values, f"flag needs an argument: -{name}")
            text = left.pop(0)
        value = _value(text, default)
        if value is None:
            return Arguments(values, f'invalid value "{text}" for flag -{name}')
        values[name] = value
    return Arguments(values)


def _value(text: str, default: Value) -> Value | None:
    """Return the text as a value of the default's type; None where it is none."""
    if isinstance(default, bool):
        return _BOOLEANS.get(text)
    if isinstance(default, str):
        return text
    try:
        return int(text)
    except ValueError:
        return None
