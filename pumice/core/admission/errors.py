"""What is wrong with an object: a list of fields, each with a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing that is wrong: where, and what. The sentence stands for itself."""

    field: str
    message: str


def text(errors: Iterable[FieldError]) -> str:
    """Return all that is wrong in one line, each sentence once."""
    return "; ".join(dict.fromkeys(error.message for error in errors))


def invalid(field: str, value: object, why: str) -> str:
    """Return Kubernetes' sentence for a value that is not as it should be."""
    return f'{field}: Invalid value: "{value}": {why}'


def listed(words: Iterable[str]) -> str:
    """Return words as Volcano prints lists: `[a b c]`."""
    return f"[{' '.join(words)}]"
