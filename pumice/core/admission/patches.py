"""
The difference between an object and the same object with its defaults, as a JSON patch.

Only what changed is in the patch, as deep down as it changed: fields that our types do not know,
and lists that others merge, stay as they are.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Path = tuple[str, ...]


class Operation(msgspec.Struct, frozen=True):
    """One step of RFC 6902; `add` replaces what is there."""

    op: Literal["add"]
    path: str
    value: Any


def difference(before: msgspec.Struct, after: msgspec.Struct) -> list[Operation]:
    """Return the steps that make `before` into `after`, which has at least what `before` has."""
    return _structs(before, after, ())


def _structs(before: msgspec.Struct, after: msgspec.Struct, path: Path) -> list[Operation]:
    steps: list[Operation] = []
    for name in msgspec.structs.fields(after):
        old, new = getattr(before, name.name), getattr(after, name.name)
        steps += _values(old, new, (*path, name.encode_name))
    return steps


def _values(old: Any, new: Any, path: Path) -> list[Operation]:
    """Return the steps for one value."""
    if old == new:
        return []
    match old, new:
        case msgspec.Struct(), msgspec.Struct():
            return _structs(old, new, path)
        case dict(), dict():
            kept = [s for k in new if k in old for s in _values(old[k], new[k], (*path, k))]
            return kept + [_add((*path, key), new[key]) for key in new if key not in old]
        case list(), list() if len(old) == len(new):
            pairs = enumerate(zip(old, new, strict=True))
            return [s for i, (a, b) in pairs for s in _values(a, b, (*path, str(i)))]
        case list(), list() if new[: len(old)] == old:
            return [_add((*path, "-"), item) for item in new[len(old) :]]
    return [_add(path, new)]


def _add(path: Path, value: Any) -> Operation:
    pointer = "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in path)
    return Operation("add", pointer, msgspec.to_builtins(value))
