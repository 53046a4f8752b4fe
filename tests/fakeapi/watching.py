"""Watches: history replayed, then changes as they come, as lines of JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from pumice.kube.clock import Clock
from pumice.kube.errors import Disconnected
from pumice.kube.resources import AnyResource
from tests.fakeapi.refusals import Json, gone
from tests.fakeapi.store import Entry, Store
from tests.fakeapi.transport import within

Match = Callable[[Json], bool]


class Watch:
    """One open watch; what is to be sent waits in `lines`, None ends it."""

    def __init__(self, resource: AnyResource, match: Match, since: int = 0) -> None:
        self.resource = resource
        self._match = match
        self.lines: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self._silent = False
        self._ending = False
        #: lines on their way for longer; None while they arrive at once
        self._late: list[bytes | Exception | None] | None = None
        #: up to where the client knows
        self._known = since

    def offer(self, entry: Entry) -> None:
        """Send a change, as it looks through the selector."""
        if entry.resource != self.resource:
            return
        is_in = entry.type != "DELETED" and self._match(entry.obj)
        was_in = entry.old is not None and self._match(entry.old)
        if is_in:
            self.send("MODIFIED" if was_in else "ADDED", entry.obj)
        elif was_in and entry.old:
            meta = entry.obj["metadata"]
            last = entry.obj if entry.type == "DELETED" else entry.old
            version = {"resourceVersion": meta["resourceVersion"]}
            self.send("DELETED", {**last, "metadata": {**last["metadata"], **version}})

    def send(self, kind: str, obj: Json) -> None:
        """Send a line."""
        if kind == "ERROR" or "kind" in obj:
            whole = obj
        else:
            whole = {"kind": self.resource.kind, "apiVersion": self.resource.api_version, **obj}
            self._known = int(obj["metadata"]["resourceVersion"])
        self._put(msgspec.json.encode({"type": kind, "object": whole}) + b"\n")

    def bookmark(self, version: int) -> None:
        """Say that nothing changed up to a version, unless the client knows."""
        if version > self._known:
            self.send("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})

    def expire(self) -> None:
        """End with the word that the history is lost."""
        self.send("ERROR", gone("too old resource version").body)
        self.end()

    def end(self, error: Exception | None = None) -> None:
        """End the stream, cleanly or by an error."""
        self._put(error)

    async def next(self, clock: Clock, left_s: float, store: Store) -> bytes | Exception | None:
        """Return the next line; when time is up a last bookmark, then None."""
        if self._ending:
            return None
        if not self.lines.empty():
            return self.lines.get_nowait()
        try:
            return await within(clock, left_s, self.lines.get())
        except Disconnected:
            self._ending = True
            self.bookmark(store.version)
            return None if self.lines.empty() else self.lines.get_nowait()

    def silence(self) -> None:
        """Send nothing any more, as a connection does of which one end is gone."""
        self._silent = True

    def hold(self) -> None:
        """Keep what is sent from arriving until `resume`."""
        if self._late is None:
            self._late = []

    def resume(self) -> None:
        """Let what was held arrive, in order."""
        late, self._late = self._late, None
        for line in late or ():
            self._put(line)

    def _put(self, line: bytes | Exception | None) -> None:
        if self._late is not None:
            self._late.append(line)
        elif not self._silent:
            self.lines.put_nowait(line)
