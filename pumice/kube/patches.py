"""
Patches: the only way that an existing object is changed.

Our structs hold a part of each object, so writing one back whole would erase the rest. A patch
says only what is to change, and carries what it presumes: the uid and, where a race matters,
the resourceVersion. The client raises Conflict where the object is another one by now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

MANAGER = "pumice"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MergePatch:
    """RFC 7386: objects merge, lists and values replace, null deletes."""

    body: Mapping[str, Any]

    content_type = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class StrategicPatch:
    """Kubernetes' own merge: lists such as conditions merge by key. Built-in kinds only."""

    body: Mapping[str, Any]

    content_type = "application/strategic-merge-patch+json"


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """RFC 6902: operations in order; one that fails makes the whole patch Invalid."""

    body: Sequence[Mapping[str, Any]]

    content_type = "application/json-patch+json"


@dataclass(frozen=True, slots=True)
class ApplyPatch:
    """Server-side apply: the fields we own, all of them; creates the object where absent."""

    body: Mapping[str, Any]
    manager: str = MANAGER
    force: bool = True

    content_type = "application/apply-patch+yaml"


Patch = MergePatch | StrategicPatch | JsonPatch | ApplyPatch


def encode(patch: Patch, uid: str = "", resource_version: str = "") -> bytes:
    """
    Return the body, with the precondition in it.

    The server compares what a patch says of uid and resourceVersion with what is; in a JSON
    patch too they are set rather than tested, because a failed test does not say which.
    """
    given = {"uid": uid, "resourceVersion": resource_version}
    held = {k: v for k, v in given.items() if v}
    if isinstance(patch, JsonPatch):
        sets = [{"op": "replace", "path": f"/metadata/{k}", "value": v} for k, v in held.items()]
        return msgspec.json.encode([*sets, *patch.body])
    body: Json = dict(patch.body)
    if held:
        body["metadata"] = {**body.get("metadata", {}), **held}
    return msgspec.json.encode(body)


def mergeable(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether one merge patch can do what the two do one after the other."""
    for key in first.keys() & second.keys():
        old, new = first[key], second[key]
        if not isinstance(new, Mapping):
            continue
        # Delete or replace, then merge into the rest: the two together would spare what the
        # first was to remove.
        if not isinstance(old, Mapping) or not mergeable(old, new):
            return False
    return True


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> Json:
    """Return one merge patch that does what the two do, where they are `mergeable`."""
    result: Json = dict(first)
    for key, value in second.items():
        old = result.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            result[key] = merged(old, value)
        else:
            result[key] = value
    return result


def is_done(obj: Any, change: Any, *, by_key: bool = False) -> bool:
    """
    Tell whether a merge patch, applied once more, would leave the object as it is.

    With `by_key` the patch is a strategic one whose lists are of objects that merge by a key. A
    patch that is done may be taken for one that is not, where it empties what is absent.
    """
    if isinstance(change, Mapping):
        return isinstance(obj, Mapping) and all(
            obj.get(key) is None if value is None else is_done(obj.get(key), value, by_key=by_key)
            for key, value in change.items()
        )
    if by_key and isinstance(change, list):
        return isinstance(obj, list) and all(
            any(is_done(item, wanted, by_key=True) for item in obj) for wanted in change
        )
    return bool(obj == change)
