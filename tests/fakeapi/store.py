"""What is stored, with its versions, and who is told of changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pumice.kube.resources import AnyResource
from tests.fakeapi.refusals import Json

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Entry:
    """One change: the object after it, and before it."""

    version: int
    resource: AnyResource
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    obj: Json
    old: Json | None


class Store:
    """
    Objects by collection and key, and the history of their changes.

    Objects are never changed in place: every change stores a new one, so that what was handed
    out stays as it was.
    """

    def __init__(self) -> None:
        self.version = 100
        self.compacted = self.version
        self.history: list[Entry] = []
        self._objects: dict[AnyResource, dict[Key, Json]] = {}
        self.listeners: list[Callable[[Entry], None]] = []

    def get(self, resource: AnyResource, namespace: str, name: str) -> Json | None:
        return self._objects.get(resource, {}).get((namespace, name))

    def all(self, resource: AnyResource) -> list[Json]:
        """Return a collection in the order of namespace and name."""
        return [obj for _, obj in sorted(self._objects.get(resource, {}).items())]

    def everything(self) -> list[tuple[AnyResource, Json]]:
        return [(r, obj) for r, objs in self._objects.items() for obj in objs.values()]

    def put(self, resource: AnyResource, obj: Json) -> Json:
        """Store a new state under the next version."""
        key = _key(obj)
        objects = self._objects.setdefault(resource, {})
        old = objects.get(key)
        new = self._stamped(obj)
        objects[key] = new
        self._record(Entry(self.version, resource, "MODIFIED" if old else "ADDED", new, old))
        return new

    def remove(self, resource: AnyResource, obj: Json) -> Json:
        """Take an object out; its deletion has a version of its own."""
        old = self._objects[resource].pop(_key(obj))
        last = self._stamped(obj)
        self._record(Entry(self.version, resource, "DELETED", last, old))
        return last

    def compact(self) -> None:
        """Forget the history."""
        self.compacted = self.version
        self.history.clear()

    def _stamped(self, obj: Json) -> Json:
        self.version += 1
        return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}

    def _record(self, entry: Entry) -> None:
        self.history.append(entry)
        for listener in list(self.listeners):
            listener(entry)


def _key(obj: Json) -> Key:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
