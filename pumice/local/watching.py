"""
Collections kept up to date by watches, and waiting for something to become true in them.

Whoever waits is woken by events, not by a clock: `wait_for` looks again only when a watched
object changed, and its limit is there for the case that it never comes true.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from time import monotonic
from typing import NamedTuple, Self

from pumice.local.api import Api, Object, Watch
from pumice.local.errors import ApiError

RETRY_S = 0.2


class Seen(NamedTuple):
    """One event of a watch, and when it reached us."""

    at: float
    kind: str
    object: Object


class Watched(Mapping[str, Object]):
    """
    One collection as `namespace/name` (or name) to object.

    It follows a list and a watch in a thread of its own, and starts anew when the watch breaks.
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
        self._synced = threading.Event()
        self._stopping = threading.Event()
        self._watch: Watch | None = None
        self._thread = threading.Thread(target=self._run, name=f"watch {path}", daemon=True)

    def start(self) -> Self:
        """Start following; returns when the first list is in."""
        self._thread.start()
        self._synced.wait()
        return self

    def stop(self) -> None:
        """Stop following; the objects stay as they were last seen."""
        self._stopping.set()
        with self.changed:
            if self._watch is not None:
                self._watch.close()
        self._thread.join()

    def wait(
        self, check: Callable[[Mapping[str, Object]], object], timeout_s: float, what: str = ""
    ) -> float:
        """Wait until the check holds for the collection; see `wait_for`."""
        return wait_for(self.changed, lambda: check(self), timeout_s, what)

    def __getitem__(self, key: str) -> Object:
        return self._objects[key]

    def __iter__(self) -> Iterator[str]:
        with self.changed:
            return iter(list(self._objects))

    def __len__(self) -> int:
        return len(self._objects)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._follow(self._list())
            except (ApiError, OSError):
                # Away for a moment, or our version is too old: start anew.
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
        self._synced.set()
        version: str = answer["metadata"]["resourceVersion"]
        return version

    def _follow(self, version: str) -> None:
        watch = self._api.watch(self._path, version)
        with self.changed:
            self._watch = watch
            if self._stopping.is_set():
                watch.close()
        for event in watch:
            kind, item = event["type"], event["object"]
            if kind == "ERROR":
                return
            if kind != "BOOKMARK":
                self._take(kind, item)

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
