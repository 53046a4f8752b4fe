"""
The way out: how a session asks somebody outside, and does no I/O itself.

Who runs the session hands in a function, which posts the bodies of a question and returns the
answers in their order, None for each that could not be had: connection refused, timed out, not
200, no JSON object, or too large. A session is replayed with a function that returns what was
answered then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Question:
    """Requests that go to one place."""

    url: str
    bodies: Sequence[Json]
    timeout_s: float


class Ask(Protocol):
    """Post the bodies of a question, and return an answer, or None, for each."""

    def __call__(self, question: Question, /) -> Sequence[Json | None]: ...


def nobody(question: Question, /) -> Sequence[Json | None]:
    """Answer nothing: there is no way out."""
    return [None] * len(question.bodies)
