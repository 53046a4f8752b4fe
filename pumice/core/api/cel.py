"""Pieces of CEL that the rules of several kinds are made of."""

from __future__ import annotations

from collections.abc import Iterable

from pumice.core.api.schema import Schema


def rule(expression: str, message: str, *, named: str = "") -> Schema:
    """Return one validation; `named` is CEL for a message that names the culprit."""
    culprit = {"messageExpression": named} if named else {}
    return {"rule": expression, "message": message} | culprit


def words(of: Iterable[str]) -> str:
    """Return a list of words as CEL."""
    return "[" + ", ".join(f"'{word}'" for word in of) + "]"


def zero(field: str) -> str:
    """Return CEL for a number that counts as 0 where it is absent."""
    return f"(has({field}) ? {field} : 0)"


def text(field: str) -> str:
    """Return CEL for a text that counts as empty where it is absent."""
    return f"(has({field}) ? {field} : '')"


def each_once(items: str, item: str, key: str, message: str) -> Schema:
    """
    Return the rule that no two items have the same text for a key, where they have it.

    A rule has no variables, and whatever it reads of the object is wrapped anew each time it is
    read: 256 tasks compared pairwise take the API server 4 s. So the messages that the keys would
    give are collected once, as the only element of a list that the rest ranges over, and compared
    there, which takes 40 ms.
    """
    messages = f"{items}.map({item}, has({item}.{key}) ? '{message} ' + {item}.{key} : '')"
    twice = "m != '' && x.indexOf(m) != x.lastIndexOf(m)"
    return rule(
        f"!has({items}) || [{messages}].all(x, !x.exists(m, {twice}))",
        message,
        named=f"[{messages}].map(x, x.filter(m, {twice})[0])[0]",
    )
