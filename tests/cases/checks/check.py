"""What all checks have in common, and what those have that count or compare."""

from __future__ import annotations

from collections.abc import Container, Iterator

import msgspec

from tests.cases.moment import Moment
from tests.cases.record import END, Record
from tests.cases.selection import Selection

Which = str
"""`winner` or `loser`."""


class Check(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="check",
    forbid_unknown_fields=True,
    rename="camel",
):
    """One expectation, about the moment `at`."""

    at: str = END

    def fault(self, record: Record, moment: Moment) -> str:
        """Return what is wrong; empty where the check holds."""
        raise NotImplementedError

    @property
    def subject(self) -> str:
        """What it is about, in the words of the file."""
        raise NotImplementedError

    @property
    def refers_to(self) -> tuple[str, ...]:
        """The references to objects that a moment must hold for this check."""
        return ()

    @property
    def selections(self) -> tuple[Selection, ...]:
        """The selections of pods in it."""
        return ()

    def is_due(self, record: Record) -> bool:
        """Whether the earlier moment, the window or the answer that it looks at is known."""
        known: dict[str, Container[str]] = {
            "since": record.moments,
            "window": record.windows,
            "step": record.answers,
        }
        names = ((getattr(self, key, None), found) for key, found in known.items())
        return all(name is None or name in found for name, found in names)

    def reason(self, record: Record, moment: Moment) -> str:
        """Return the fault with the check's name and subject before it."""
        fault = self.fault(record, moment)
        name = self.__struct_config__.tag
        return f"{name} of {self.subject} at {self.at}: {fault}" if fault else ""


class Count(Check, frozen=True, kw_only=True):
    """A check of a number."""

    equals: int | None = None
    min: int | None = None
    max: int | None = None

    def __post_init__(self) -> None:
        if self.equals is self.min is self.max is None:
            raise ValueError("needs `equals`, `min` or `max`")

    def compared(self, got: int) -> str:
        """Return what is wrong with a number."""
        return "; ".join(self._differences(got))

    def _differences(self, got: int) -> Iterator[str]:
        if self.equals is not None and got != self.equals:
            yield f"{got}, expected {self.equals}"
        if self.min is not None and got < self.min:
            yield f"{got}, expected {self.min} at least"
        if self.max is not None and got > self.max:
            yield f"{got}, expected {self.max} at most"


class Choice(Check, frozen=True, kw_only=True):
    """A check of a word."""

    is_in: list[str] | None = msgspec.field(name="in", default=None)
    not_in: list[str] | None = None

    def __post_init__(self) -> None:
        if not self.is_in and not self.not_in:
            raise ValueError("needs `in` or `notIn`")

    def compared(self, got: str | None) -> str:
        """Return what is wrong with a word; None where there is nothing that could have one."""
        if got is None:
            return "there is none"
        if self.is_in is not None and got not in self.is_in:
            return f"{got}, expected {' or '.join(self.is_in)}"
        if self.not_in is not None and got in self.not_in:
            return f"{got}, which it must not be"
        return ""
