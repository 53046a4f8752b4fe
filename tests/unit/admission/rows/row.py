"""One row of the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """An object that somebody creates, and perhaps changes or deletes; the last deed is judged."""

    body: Object
    #: what the refusal says, all of it; empty where there is none
    refused: tuple[str, ...] = ()
    #: what is stored, as path -> value; None where there is nothing
    stored: Mapping[str, Any] = field(default_factory=dict)
    #: queues that are there and open
    queues: tuple[Object, ...] = ()
    #: annotations of the namespace
    notes: Mapping[str, str] = field(default_factory=dict)
    change: Object | None = None
    deleted: bool = False


def at(obj: Any, path: str) -> Any:
    """Return the value at a path such as `spec.tasks.0.name`; None where there is none."""
    for step in path.split("."):
        if isinstance(obj, list):
            obj = obj[int(step)] if int(step) < len(obj) else None
        else:
            obj = (obj or {}).get(step.replace("|", "."))
    return obj


def merged(stored: Object, change: Object) -> Object:
    """Return what is stored with a change, as `kubectl apply` makes it: defaults stay."""
    spec = {**stored.get("spec", {}), **change.get("spec", {})}
    if "tasks" in spec and "tasks" in stored.get("spec", {}):
        spare: list[Object] = [{}] * len(spec["tasks"])
        olds = [*stored["spec"]["tasks"], *spare]
        spec["tasks"] = [{**old, **new} for old, new in zip(olds, spec["tasks"], strict=False)]
    for gone in {"members", "flows"} - change.get("spec", {}).keys():
        spec.pop(gone, None)
    return {**stored, **change, "metadata": stored["metadata"], "spec": spec}


def an_object(api: str, kind: str, spec: Object | None = None, **fields: Any) -> Object:
    """Return an object called `x`; further fields are those of its metadata."""
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": "x", **fields},
        **({} if spec is None else {"spec": spec}),
    }
