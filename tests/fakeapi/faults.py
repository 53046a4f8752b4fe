"""Faults that a test orders: answers that are errors, are lost, or come late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.fakeapi.refusals import Refusal


@dataclass(frozen=True, slots=True)
class Call:
    """A request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    body: bytes
    content_type: str = ""
    #: when, in monotonic seconds
    at: float = 0.0


class ConnectionLost(Exception):
    """The connection breaks; the client gets no (whole) answer."""


When = Callable[[Call], bool]


@dataclass(slots=True)
class Fault:
    """What to do to the next `times` requests that match."""

    when: When
    times: int
    refusal: Refusal | None = None
    retry_after_s: int | None = None
    lost: bool = False
    #: whether the request is carried out before its answer is lost
    applied: bool = False
    delay_s: float = 0.0


class Faults:
    """The faults ordered; each request meets the first that matches."""

    def __init__(self) -> None:
        self._ordered: list[Fault] = []

    def add(self, fault: Fault) -> None:
        self._ordered.append(fault)

    def take(self, call: Call) -> Fault | None:
        for fault in self._ordered:
            if fault.times > 0 and fault.when(call):
                fault.times -= 1
                return fault
        return None


def on(method: str = "", path: str = "") -> When:
    """Return the predicate for a method and a part of the path; empty ones match all."""
    return lambda call: method in ("", call.method) and path in call.path
