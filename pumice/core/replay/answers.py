"""What was answered from outside in a session, and giving the same answers again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pumice.core.outside import Ask, Json, Question

_ENCODER = msgspec.json.Encoder(order="deterministic", enc_hook=str)


class Exchange(msgspec.Struct, frozen=True):
    """A request that a session sent, and its answer, None where there was none."""

    url: str
    body: Any
    answer: Any = None


@dataclass(frozen=True, slots=True)
class Listening:
    """Asks as it is told, and writes the answers down."""

    ask: Ask
    heard: list[Exchange] = field(default_factory=list)

    def __call__(self, question: Question, /) -> Sequence[Json | None]:
        """Ask somebody else."""
        answers = self.ask(question)
        for body, answer in zip(question.bodies, answers, strict=True):
            self.heard.append(Exchange(question.url, body, answer))
        return answers


class Memory:
    """
    Answers what was answered before.

    What was asked several times is answered in the order of then. `unknown` counts what was not
    asked then, and has no answer.
    """

    def __init__(self, heard: Iterable[Exchange]) -> None:
        self.unknown = 0
        self._answers: dict[bytes, list[Json | None]] = {}
        for exchange in heard:
            self._answers.setdefault(_key(exchange.url, exchange.body), []).append(exchange.answer)

    def __call__(self, question: Question, /) -> Sequence[Json | None]:
        """Return the answers of then."""
        return [self._answer(question.url, body) for body in question.bodies]

    def _answer(self, url: str, body: Json) -> Json | None:
        known = self._answers.get(_key(url, body))
        if known is None:
            self.unknown += 1
            return None
        return known.pop(0) if len(known) > 1 else known[0]


def _key(url: str, body: Any) -> bytes:
    return _ENCODER.encode((url, body))
