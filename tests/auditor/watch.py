"""
A reflector: list a resource, watch it from there, and tell of everything that changes.

A watch that ends is taken up again at the last version it showed. When that version is too old
(410), the resource is listed anew, and what is no longer there is told as gone. A resource that
does not exist yet is asked for until it does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Generic

import aiohttp

from tests.auditor.facts import Object, Sighting
from tests.auditor.kubeconfig import Access
from tests.auditor.wire import BOOKMARK, EVENT, LIST, EventWire, Kind

PAGE = 1000
RETRY_S = 0.5
WATCH_S = 240
SILENCE_S = 90.0
GONE = 410


class Reflector(Generic[Object]):
    """Keeps one resource's objects and reports each change as a sighting."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        access: Access,
        kind: Kind[Object],
        tell: Callable[[Sighting[Object]], object],
    ) -> None:
        self.session = session
        self.access = access
        self.kind = kind
        self.tell = tell
        self.objects: dict[str, Object] = {}
        self.version = ""
        self.synced = asyncio.Event()
        self.notes: list[str] = []

    async def run(self) -> None:
        """List and watch for ever."""
        while True:
            try:
                if not self.version:
                    await self._list()
                await self._watch()
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                self._note(f"{self.kind.name}: {type(error).__name__}: {error}")
                await asyncio.sleep(RETRY_S)

    async def _list(self) -> None:
        """List page by page; tell of what is new or changed and of what has gone since."""
        found: dict[str, Object] = {}
        token, version = "", ""
        while True:
            query = {"limit": str(PAGE)} | ({"continue": token} if token else {})
            async with self._get(query) as response:
                if response.status == 404:
                    self.synced.set()
                    await asyncio.sleep(RETRY_S)
                    return
                response.raise_for_status()
                page = LIST.decode(await response.read())
            now, version = time.time(), page.metadata.resource_version
            for raw in page.items:
                fact, rv = self.kind.decode(raw)
                found[fact.uid] = fact
                self.tell(Sighting(now, rv, fact))
            if not (token := page.metadata.continue_):
                break
        for uid in self.objects.keys() - found.keys():
            self.tell(Sighting(time.time(), int(version), self.objects[uid], gone=True))
        self.objects, self.version = found, version
        self.synced.set()

    async def _watch(self) -> None:
        """Watch from the last version until the stream ends or is too old."""
        if not self.version:
            return
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_S),
            "resourceVersion": self.version,
        }
        async with self._get(query) as response:
            if response.status == GONE:
                self.version = ""
                return
            response.raise_for_status()
            async for line in lines(response):
                self._take(EVENT.decode(line))
                if not self.version:
                    return

    def _take(self, event: EventWire) -> None:
        """Take in one line of the stream."""
        if event.type in ("BOOKMARK", "ERROR"):
            mark = BOOKMARK.decode(event.object)
            self.version = mark.metadata.resource_version if event.type == "BOOKMARK" else ""
            return
        fact, rv = self.kind.decode(event.object)
        gone = event.type == "DELETED"
        if gone:
            self.objects.pop(fact.uid, None)
        else:
            self.objects[fact.uid] = fact
        self.version = str(rv)
        self.tell(Sighting(time.time(), rv, fact, gone))

    def _get(self, query: dict[str, str]) -> aiohttp.client._RequestContextManager:
        timeout = aiohttp.ClientTimeout(total=None, connect=10, sock_read=SILENCE_S)
        url = self.access.server + self.kind.path
        return self.session.get(
            url,
            params=query,
            headers=self.access.headers,
            ssl=self.access.tls or True,
            timeout=timeout,
        )

    def _note(self, text: str) -> None:
        """Keep a note once, however often it comes up."""
        if text not in self.notes:
            self.notes.append(text)


async def lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the lines of a stream, of any length."""
    rest = b""
    async for chunk in response.content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line:
                yield line
