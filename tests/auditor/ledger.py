"""
Reads the extender's debug endpoints: its ledger, and the removals that its sessions decided.

The ledger is read twice in each quiet time, the rule's patience apart; not while the test has
paused the auditor.
"""

from __future__ import annotations

import asyncio
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
    """The ledger as the extender writes it."""

    entries: list[EntryWire]
    error_answers: int | None = None


class LedgerReader:
    """Reads the ledger into the history whenever all has been quiet."""

    def __init__(
        self, session: aiohttp.ClientSession, url: str, history: History, settings: Settings
    ) -> None:
        self.session = session
        self.url = url.rstrip("/")
        self.history = history
        self.settings = settings
        self.compared_to = -1
        self.first_at = 0.0
        self.failure = ""

    @property
    def changed_at(self) -> float:
        """When a pod of ours changed last."""
        ours = self.settings.schedulers
        pods = (s.at for s in reversed(self.history.pods) if s.object.scheduler in ours)
        return next(pods, self.history.started)

    async def run(self, paused: Callable[[], bool]) -> None:
        """Read for ever."""
        while True:
            await asyncio.sleep(TICK_S)
            if not paused():
                await self.step()

    async def step(self) -> None:
        """Read if it is time to; `compared_to` remembers for which state of things it was done."""
        state, now = len(self.history.pods), time.time()
        if now - self.changed_at <= self.settings.quiet_s:
            self.first_at = 0.0
        elif self.compared_to != state and (
            not self.first_at or now - self.first_at > self.settings.patience_s
        ):
            second = bool(self.first_at)
            if await self.read() and second:
                self.compared_to, self.first_at = state, 0.0
            elif not second:
                self.first_at = self.history.dumps[-1].at if not self.failure else 0.0

    async def read(self) -> bool:
        """Read ledger and decisions once; return whether the extender answered."""
        at = time.time()
        try:
            ledger = msgspec.json.decode(await self._get("/debug/ledger"), type=LedgerWire)
            sessions: Json = msgspec.json.decode(await self._get("/debug/sessions", optional=True))
        except (aiohttp.ClientError, TimeoutError, msgspec.MsgspecError) as error:
            self.failure = f"{self.url}: {type(error).__name__}: {error}"
            return False
        self.failure = ""
        entries = {
            e.uid: Entry(e.uid, e.namespace, e.name, e.node or "", e.state) for e in ledger.entries
        }
        self.history.dumps.append(Dump(at, entries))
        self.history.decided.update(victims(sessions))
        if ledger.error_answers is not None:
            self.history.error_answers = ledger.error_answers
        return True

    async def _get(self, path: str, *, optional: bool = False) -> bytes:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        async with self.session.get(self.url + path, timeout=timeout) as response:
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
