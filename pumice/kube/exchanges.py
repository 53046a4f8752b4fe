"""
Exchanges: a small request out, its whole answer back, over connections that are kept.

Nearly all that a service sends are writes, thousands in a burst, and a client made for every case
spends more on each of them than the write itself takes. Here is what a write needs and no more:
the answer is read whole, no redirect is followed, nothing is unpacked and nothing repeated.

A connection carries one exchange at a time. It serves again only when its answer came whole and
nothing after it: one that was left in the middle does not, nor one that was idle for `KEPT_S`. With
TLS an idle one takes a quarter of a MiB; so those that only a burst had use for are closed.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import httptools

KEPT_S = 15.0
CONNECT_S = 10.0

Header = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """An answer that was read to its end; its connection serves others already."""

    status: int
    head: list[Header]
    body: bytes

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers, each part of a name with a capital."""
        return {
            name.decode("latin-1").title(): value.decode("latin-1") for name, value in self.head
        }

    async def read(self) -> bytes:
        return self.body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self.body

    def close(self) -> None:
        """There is nothing to let go of."""


class Exchanges:
    """Exchanges with one server. Whatever goes wrong is an OSError or a TimeoutError."""

    def __init__(
        self, host: str, port: int, *, tls: ssl.SSLContext | None, server_name: str | None
    ) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._server_name = server_name if tls else None
        #: those that serve again, the one that was used last on the right
        self._idle: deque[_Connection] = deque()

    async def exchange(self, request: bytes, within_s: float | None) -> WholeAnswer:
        """Send a request, head and body, and return the answer to it."""
        async with asyncio.timeout(within_s):
            connection = self._kept() or await self._connect()
            try:
                answer = await connection.exchange(request)
            except BaseException:
                connection.abort()
                raise
        self._idle.append(connection)
        while not self._idle[0].serves() and len(self._idle) > 1:
            self._idle.popleft().abort()
        return answer

    def close(self) -> None:
        """Close the connections that are kept."""
        while self._idle:
            self._idle.pop().abort()

    def _kept(self) -> _Connection | None:
        """Return the connection that was used last, if it still serves."""
        while self._idle:
            connection = self._idle.pop()
            if connection.serves():
                return connection
            connection.abort()
        return None

    async def _connect(self) -> _Connection:
        async with asyncio.timeout(CONNECT_S):
            _, connection = await asyncio.get_running_loop().create_connection(
                _Connection,
                self._host,
                self._port,
                ssl=self._tls,
                server_hostname=self._server_name,
            )
        return connection


class _Connection(asyncio.Protocol):
    """One connection, and the exchange that is on it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        #: both know us in turn; they are let go of when the connection is lost
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        #: done while the connection is idle
        self._answer: asyncio.Future[WholeAnswer] = self._loop.create_future()
        self._answer.cancel()
        self._head: list[Header] = []
        self._body: list[bytes] = []
        #: the end of the answer is that of the connection
        self._ends_with_us = False
        self._used = 0.0

    def exchange(self, request: bytes) -> asyncio.Future[WholeAnswer]:
        """Send a request; return what will be the answer."""
        self._answer = self._loop.create_future()
        if self._transport is None or self._transport.is_closing():
            self._fail(ConnectionResetError("closed at once"))
        else:
            self._transport.write(request)
        return self._answer

    def serves(self) -> bool:
        """Tell whether it can be used again."""
        is_open = self._transport is not None and not self._transport.is_closing()
        return is_open and self._loop.time() - self._used < KEPT_S

    def abort(self) -> None:
        """Close it at once: a farewell over TLS would outlive the loop."""
        if self._transport is not None:
            self._transport.abort()

    # What the loop tells.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._parser is None:
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as e:
            self._fail(ConnectionError(f"this is no HTTP: {e}"))
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None and self._ends_with_us:
            self.on_message_complete()
        self._fail(exc if isinstance(exc, OSError) else ConnectionResetError("connection lost"))
        self._parser = self._transport = None

    # What the parser finds.

    def on_message_begin(self) -> None:
        self._head, self._body = [], []
        if self._answer.done():
            self.abort()  # Nobody has asked.

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head.append((name, value))

    def on_headers_complete(self) -> None:
        names = {name.lower() for name, _ in self._head}
        self._ends_with_us = names.isdisjoint((b"content-length", b"transfer-encoding"))

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        self._ends_with_us = False
        if self._parser is None:
            return
        status = self._parser.get_status_code()
        if status < 200 or self._answer.done():
            return
        if not self._parser.should_keep_alive():
            self.abort()
        self._used = self._loop.time()
        self._answer.set_result(WholeAnswer(status, self._head, b"".join(self._body)))

    def _fail(self, error: OSError) -> None:
        if not self._answer.done():
            self._answer.set_exception(error)
