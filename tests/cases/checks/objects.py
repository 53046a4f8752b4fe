"""Checks of objects of any kind, one field of them, and answers of the API server."""

from __future__ import annotations

from typing import Literal

import msgspec

from tests.auditor.requests import quantity
from tests.cases.checks.check import Check
from tests.cases.moment import Moment
from tests.cases.record import Answer, Record

Value = object
"""A value as YAML gives it."""


class OfObject(Check, frozen=True, kw_only=True):
    """A check of one object."""

    ref: str

    @property
    def subject(self) -> str:
        return self.ref

    @property
    def refers_to(self) -> tuple[str, ...]:
        return (self.ref,)


class Exists(OfObject, frozen=True, kw_only=True, tag="exists"):
    """The object is there."""

    def fault(self, record: Record, moment: Moment) -> str:
        return "" if moment.find(self.ref) else "it is not there"


class Absent(OfObject, frozen=True, kw_only=True, tag="absent"):
    """The object is not there."""

    def fault(self, record: Record, moment: Moment) -> str:
        return "it is there" if moment.find(self.ref) else ""


class Field(OfObject, frozen=True, kw_only=True, tag="field"):
    """A field of the object has a value, or stands for a quantity; without either, it is there."""

    path: str
    equals: Value = msgspec.UNSET
    equals_quantity: str | int | float | None = None
    or_absent: bool = False

    @property
    def subject(self) -> str:
        return f"{self.ref} {self.path}"

    def fault(self, record: Record, moment: Moment) -> str:
        found = moment.find(self.ref)
        if found is None:
            return "the object is not there"
        got = value_at(found, self.path)
        if got is None:
            return "" if self.or_absent or self.equals is None else "it is not there"
        if self.equals is not msgspec.UNSET and got != self.equals:
            return f"{got!r}, expected {self.equals!r}"
        if self.equals_quantity is not None and not _is_quantity(got, self.equals_quantity):
            return f"{got!r}, expected {self.equals_quantity}"
        return ""


class Admission(Check, frozen=True, kw_only=True, tag="admission"):
    """A step's request was let through or refused; a refusal has one of the words in its text."""

    step: str
    allowed: bool | Literal["either"]
    message_has_any: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        return self.step

    def fault(self, record: Record, moment: Moment) -> str:
        answer = record.answers[self.step]
        if answer.status >= 500:
            return f"the API server failed: {answer.status} {answer.message}"
        if self.allowed is True and not answer.accepted:
            return f"refused: {answer.status} {answer.message}"
        if self.allowed is False and answer.accepted:
            return "it was let through"
        return self._wording(answer)

    def _wording(self, answer: Answer) -> str:
        if answer.accepted or not self.message_has_any:
            return ""
        if any(word in answer.message for word in self.message_has_any):
            return ""
        return f"refused with none of {', '.join(self.message_has_any)} in: {answer.message}"


def value_at(body: Value, path: str) -> Value:
    """Return what a dotted path leads to, None where it leads nowhere; keys may have dots too."""
    if not path:
        return body
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        head, rest = ".".join(parts[:length]), ".".join(parts[length:])
        found = _child(body, head)
        if found is not None and (got := value_at(found, rest)) is not None:
            return got
    return None


def _child(body: Value, key: str) -> Value:
    if isinstance(body, dict):
        return body.get(key)
    if isinstance(body, list) and key.isdecimal() and int(key) < len(body):
        return body[int(key)]
    return None


def _is_quantity(got: Value, expected: str | int | float) -> bool:
    try:
        return isinstance(got, str | int | float) and quantity(got) == quantity(expected)
    except ValueError:
        return False
