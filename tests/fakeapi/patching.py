"""Patches applied to plain JSON: RFC 7386, RFC 6902, Kubernetes' strategic merge and apply."""

from __future__ import annotations

import copy
from typing import Any

from tests.fakeapi.refusals import Json, Refusal

#: lists that a strategic patch merges by key, wherever they stand
MERGE_KEYS = {
    "conditions": "type",
    "containers": "name",
    "initContainers": "name",
    "schedulingGates": "name",
    "volumes": "name",
    "env": "name",
    "ownerReferences": "uid",
    "taints": "key",
}
#: lists of plain values that a strategic patch unites
MERGE_SETS = {"finalizers"}

FAILED = Refusal(422, "Invalid", "the server rejected our request due to an error in our request")


def merge(doc: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(doc) if isinstance(doc, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def strategic(doc: Any, patch: Any, field: str = "") -> Any:
    """Merge like `merge`, but lists with a merge key by that key."""
    if isinstance(patch, list):
        return _strategic_list(doc or [], patch, field)
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(doc) if isinstance(doc, dict) else {}
    for key, value in patch.items():
        if key == "$patch":
            continue
        if value is None:
            result.pop(key, None)
        else:
            result[key] = strategic(result.get(key), value, key)
    return result


def _strategic_list(doc: list[Any], patch: list[Any], field: str) -> list[Any]:
    if field in MERGE_SETS:
        return doc + [v for v in patch if v not in doc]
    key = MERGE_KEYS.get(field)
    if key is None:
        return copy.deepcopy(patch)
    result = list(doc)
    for item in patch:
        at = next((i for i, old in enumerate(result) if old.get(key) == item.get(key)), None)
        if item.get("$patch") == "delete":
            result = [old for old in result if old.get(key) != item.get(key)]
        elif at is None:
            result.append(copy.deepcopy(item))
        else:
            result[at] = strategic(result[at], item)
    return result


def operations(doc: Json, patch: list[Json]) -> Json:
    """RFC 6902; whatever does not work makes the whole patch fail."""
    result = copy.deepcopy(doc)
    for step in patch:
        try:
            _operate(result, step)
        except (KeyError, IndexError, ValueError, TypeError) as e:
            raise FAILED from e
    return result


def _operate(doc: Json, step: Json) -> None:
    op, path = step["op"], step["path"]
    if op in ("move", "copy"):
        value = _get(doc, step["from"])
        if op == "move":
            _operate(doc, {"op": "remove", "path": step["from"]})
        _operate(doc, {"op": "add", "path": path, "value": copy.deepcopy(value)})
        return
    if op == "test":
        if _get(doc, path) != step["value"]:
            raise ValueError(path)
        return
    *parents, last = _steps(path)
    node = _walk(doc, parents)
    if isinstance(node, list):
        _operate_list(node, op, last, step)
    elif op == "add" or (op == "replace" and last in node):
        node[last] = copy.deepcopy(step["value"])
    elif op == "remove":
        del node[last]
    else:
        raise ValueError(op)


def _operate_list(node: list[Any], op: str, last: str, step: Json) -> None:
    if op == "add" and last == "-":
        node.append(copy.deepcopy(step["value"]))
    elif op == "add" and 0 <= int(last) <= len(node):
        node.insert(int(last), copy.deepcopy(step["value"]))
    elif op == "replace":
        node[int(last)] = copy.deepcopy(step["value"])
    elif op == "remove":
        del node[int(last)]
    else:
        raise ValueError(op)


def _steps(path: str) -> list[str]:
    return [p.replace("~1", "/").replace("~0", "~") for p in path.split("/")[1:]]


def _walk(doc: Any, steps: list[str]) -> Any:
    for step in steps:
        doc = doc[int(step)] if isinstance(doc, list) else doc[step]
    return doc


def _get(doc: Any, path: str) -> Any:
    return _walk(doc, _steps(path))


Owned = set[tuple[str, ...]]


def owned(body: Any, path: tuple[str, ...] = ()) -> Owned:
    """Return the leaves that an applied configuration speaks of; lists count as one leaf."""
    if not isinstance(body, dict) or not body:
        return {path}
    leaves: Owned = set()
    for key, value in body.items():
        if (*path, key) not in NOT_OWNED:
            leaves |= owned(value, (*path, key))
    return leaves


NOT_OWNED = {
    ("apiVersion",),
    ("kind",),
    ("metadata", "name"),
    ("metadata", "namespace"),
    ("metadata", "uid"),
    ("metadata", "resourceVersion"),
}


def drop(doc: Json, leaves: Owned) -> Json:
    """Return the document without the leaves, and without the maps that this leaves empty."""
    result = copy.deepcopy(doc)
    for path in leaves:
        _drop(result, path)
    return result


def _drop(node: Any, path: tuple[str, ...]) -> None:
    if not isinstance(node, dict) or path[0] not in node:
        return
    if len(path) > 1:
        _drop(node[path[0]], path[1:])
        if node[path[0]] != {}:
            return
    del node[path[0]]
