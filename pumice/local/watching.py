"""
Collections kept up to date by watches, and waiting for something to become true in them.

Whoever waits is woken by events, not by a clock: `wait_for` looks again only when a watched
object changed, and its limit is there for the case that it never comes true.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from time import monotonic
from typing import NamedTuple, Self, overload

from pumice.local.api import Api, Object, Watch
from pumice.local.errors import ApiError

RETRY_S = 0.2


class Seen(NamedTuple):
    """One event of a watch, and when it reached us."""

    at: float
    kind: str
    object: Object


class Watched:
    """
    One collection as `namespace/name` (or name) to object, to be read like a mapping.

    It follows a list and a watch in a thread of its own; a watch that ends is taken up again, and
    where that cannot be a new list is made.
    What is returned are copies of the collection, not of its objects: those are for reading.
    `changed` may be shared between collections, so that one can wait for all of them. With
    `keep_history` every event is kept in `history`, deletions included.
    """

    def __init__(
        self,
        api: Api,
        path: str,
        *,
        changed: threading.Condition | None = None,
        keep_history: bool = False,
    ) -> None:
        self.changed = changed or threading.Condition()
        self.history: list[Seen] = []
        self._api = api
        self._path = path
        self._keep_history = keep_history
        self._objects: dict[str, Object] = {}
        self._stopping = threading.Event()
        self._watch: Watch | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> Self:
        """Start following; the first list is in when this returns."""
        version = self._list()
        name = f"watch {self._path}"
        self._thread = threading.Thread(target=self._run, args=[version], name=name, daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop following; the objects stay as they were last seen."""
        self._stopping.set()
        with self.changed:
            if self._watch is not None:
                self._watch.close()
        if self._thread is not None:
            self._thread.join()

    def wait(self, check: Callable[[Watched], object], timeout_s: float, what: str = "") -> float:
        """Wait until the check holds for the collection; see `wait_for`."""
        return wait_for(self.changed, lambda: check(self), timeout_s, what)

    @overload
    def get(self, key: str) -> Object | None: ...

    @overload
    def get(self, key: str, default: Object) -> Object: ...

    def get(self, key: str, default: Object | None = None) -> Object | None:
        """Return one object, or the default."""
        return self._objects.get(key, default)

    def keys(self) -> list[str]:
        """Return the keys of this moment."""
        with self.changed:
            return list(self._objects)

    def values(self) -> list[Object]:
        """Return the objects of this moment."""
        with self.changed:
            return list(self._objects.values())

    def items(self) -> list[tuple[str, Object]]:
        """Return keys and objects of this moment."""
        with self.changed:
            return list(self._objects.items())

    def __getitem__(self, key: str) -> Object:
        return self._objects[key]

    def __contains__(self, key: str) -> bool:
        return key in self._objects

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self._objects)

    def _run(self, version: str) -> None:
        while not self._stopping.is_set():
            try:
                version = self._follow(version or self._list())
            except (ApiError, OSError):
                # The server is away for a moment, or our version is too old for it.
                version = ""
                self._stopping.wait(RETRY_S)

    def _list(self) -> str:
        answer = self._api.get(self._path)
        fresh = {key_of(item): item for item in answer["items"]}
        with self.changed:
            for key in self._objects.keys() - fresh.keys():
                self._record("DELETED", self._objects[key])
            for key, item in fresh.items():
                if item != self._objects.get(key):
                    self._record("MODIFIED" if key in self._objects else "ADDED", item)
            self._objects = fresh
            self.changed.notify_all()
        version: str = answer["metadata"]["resourceVersion"]
        return version

    def _follow(self, version: str) -> str:
        """Take over what a watch brings until it ends; return the version to go on from."""
        watch = self._api.watch(self._path, version)
        with self.changed:
            self._watch = watch
            if self._stopping.is_set():
                watch.close()
        for event in watch:
            kind, item = event["type"], event["object"]
            if kind == "ERROR":
                return ""
            version = item["metadata"]["resourceVersion"]
            if kind != "BOOKMARK":
                self._take(kind, item)
        return version

    def _take(self, kind: str, item: Object) -> None:
        with self.changed:
            if kind == "DELETED":
                self._objects.pop(key_of(item), None)
            else:
                self._objects[key_of(item)] = item
            self._record(kind, item)
            self.changed.notify_all()

    def _record(self, kind: str, item: Object) -> None:
        if self._keep_history:
            self.history.append(Seen(monotonic(), kind, item))


def wait_for(
    changed: threading.Condition, check: Callable[[], object], timeout_s: float, what: str = ""
) -> float:
    """
    Wait until the check holds; return how many seconds that took.

    The check runs with the condition held: it sees all collections that share it at one moment.
    """
    started = monotonic()
    with changed:
        if not changed.wait_for(check, timeout_s):
            raise TimeoutError(f"not within {timeout_s:g} s: {what or 'the condition'}")
    return monotonic() - started


def key_of(item: Object) -> str:
    """Return `namespace/name`, or the name alone of a cluster-scoped object."""
    meta = item["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]
