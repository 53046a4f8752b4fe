"""
Reads the extender's debug endpoints: its ledger, and the removals that its sessions decided.

The ledger is read twice in each quiet time, the rule's patience apart; not while the test has
paused the auditor. A ledger with writes whose answers are still to come is ahead of the API server
and says so: it is read again when they have come.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Iterator

import aiohttp
import msgspec

from tests.auditor.facts import Dump, Entry
from tests.auditor.history import History, Settings

TICK_S = 0.25
TIMEOUT_S = 5.0
Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None


class EntryWire(msgspec.Struct):
    """An entry as the extender writes it."""

    uid: str
    namespace: str
    name: str
    state: str
    node: str | None = None


class LedgerWire(msgspec.Struct):
    """
    The ledger as the extender writes it.

    `unanswered` is how many of its writes have no answer yet, `errors` how many *Error* answers
    it has given.
    """

    entries: list[EntryWire]
    unanswered: int = 0
    errors: int | None = None


class LedgerReader:
    """Reads the ledger into the history whenever all has been quiet."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        history: History,
        settings: Settings,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Prepare it; `tls` is how to trust an extender whose URL is https."""
        self.session = session
        self.tls = tls
        self.url = url.rstrip("/")
        self.history = history
        self.settings = settings
        self.changed_at = time.time()
        self.reads: list[float] = []
        self.removals_wait = False
        self.failure = ""

    @property
    def compared(self) -> bool:
        """Whether the ledger was read twice since the last change."""
        return len(self.reads) == 2

    def changed(self, at: float) -> None:
        """Begin a new quiet time: a pod of ours changed."""
        self.changed_at = at
        self.reads.clear()

    async def run(self, paused: Callable[[], bool]) -> None:
        """Read for ever."""
        while True:
            await asyncio.sleep(TICK_S)
            if not paused():
                await self.step()

    async def step(self) -> None:
        """Read what it is time to read."""
        if self.removals_wait:
            self.removals_wait = not await self.read_decisions()
        now = time.time()
        first = self.reads[0] if self.reads else 0.0
        is_quiet = now - self.changed_at > self.settings.quiet_s
        if is_quiet and not self.compared and now - first > self.settings.patience_s:
            await self.read()

    async def read(self) -> None:
        """Read the ledger once."""
        asked_at = time.time()
        try:
            ledger = msgspec.json.decode(await self._get("/debug/ledger"), type=LedgerWire)
        except (aiohttp.ClientError, TimeoutError, msgspec.MsgspecError) as error:
            self.failure = f"{self.url}: {type(error).__name__}: {error}"
            return
        self.failure = ""
        self.history.error_answers = ledger.errors
        if ledger.unanswered:
            return
        entries = {
            e.uid: Entry(e.uid, e.namespace, e.name, e.node or "", e.state) for e in ledger.entries
        }
        answered_at = time.time()
        self.history.dumps.append(Dump(answered_at, entries))
        if self.changed_at < asked_at:
            self.reads.append(answered_at)

    async def read_decisions(self) -> bool:
        """Read what the last sessions decided to remove; return whether the extender answered."""
        try:
            sessions: Json = msgspec.json.decode(await self._get("/debug/sessions", optional=True))
        except (aiohttp.ClientError, TimeoutError, msgspec.MsgspecError):
            return False
        self.history.decided.update(victims(sessions))
        return True

    async def _get(self, path: str, *, optional: bool = False) -> bytes:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        url, tls = self.url + path, self.tls or True
        async with self.session.get(url, timeout=timeout, ssl=tls) as response:
            if optional and response.status == 404:
                return b"null"
            response.raise_for_status()
            return await response.read()


def victims(sessions: Json) -> Iterator[str]:
    """Yield the uids under any key `victims`, given as texts or as objects with a `uid`."""
    if isinstance(sessions, list):
        for item in sessions:
            yield from victims(item)
    elif isinstance(sessions, dict):
        for key, value in sessions.items():
            if key == "victims" and isinstance(value, list):
                yield from _uids(value)
            else:
                yield from victims(value)


def _uids(items: list[Json]) -> Iterator[str]:
    for item in items:
        uid = item.get("uid") if isinstance(item, dict) else item
        if isinstance(uid, str):
            yield uid
