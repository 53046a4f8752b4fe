"""
The seam between the client and the network: one request in, one answer out.

`Client` knows Kubernetes and no sockets; a transport knows sockets and no Kubernetes. Tests
give the client a transport that calls an in-memory API server.

What is read may be long, come compressed or never end: aiohttp carries it. Writes are small and
many, and are exchanged over connections of their own; through a proxy, aiohttp carries them, too.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from pumice.kube.errors import Disconnected, NotLeading
from pumice.kube.exchanges import Exchanges

Token = Callable[[], Awaitable[str]]
"""Return the Authorization header's value as it is now; empty for none."""

USER_AGENT = "pumice"
MAX_CONNECTIONS = 512
CONNECT_S = 5.0


@dataclass(frozen=True, slots=True)
class Request:
    """One request; a `total_s` of None is for watches, which end by `silence_s` alone."""

    method: str
    path: str
    body: bytes | None = None
    content_type: str = "application/json"
    total_s: float | None = 30.0
    silence_s: float | None = None


class Answer(Protocol):
    """What came back; `close` must be called, and returns the connection when all was read."""

    @property
    def status(self) -> int:
        """Return the status code."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers by name."""
        ...

    async def read(self) -> bytes:
        """Return the whole body; raises Disconnected where it breaks off."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Return the body as it comes; raises Disconnected when it breaks off or falls silent."""
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...


class Transport(Protocol):
    """Anything that can carry a request to an API server."""

    async def send(self, request: Request) -> Answer:
        """Return once status and headers are there; raises Disconnected where none come."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


class Fence:
    """Another transport, which writes pass to only while it is said that they may."""

    def __init__(self, transport: Transport, may_write: Callable[[], bool]) -> None:
        self._transport = transport
        self._may_write = may_write

    async def send(self, request: Request) -> Answer:
        """Send a request; raise NotLeading for a write that may not be."""
        if request.method != "GET" and not self._may_write():
            raise NotLeading(f"{request.method} {request.path}: another replica may be at work")
        return await self._transport.send(request)

    async def close(self) -> None:
        """Leave the connections to whoever made them."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Where the API server is and how to prove who we are."""

    server: str
    tls: ssl.SSLContext | None = None
    token: Token | None = None
    server_name: str | None = None
    proxy: str | None = None


class HttpAnswer:
    """An answer of aiohttp."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read(self) -> bytes:
        try:
            return await self._response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as e:
            raise Disconnected(_words(e)) from e

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, TimeoutError, OSError) as e:
            raise Disconnected(_words(e)) from e

    def close(self) -> None:
        connection = self._response.connection
        if connection and connection.transport:
            # Not read to its end, as a watch that is left: of no more use to anyone. Closing it
            # politely over TLS would outlive the session.
            connection.transport.abort()
        self._response.release()


class HttpTransport:
    """Carries requests over HTTP/1.1; must be made and used on one event loop."""

    def __init__(self, credentials: Credentials, component: str = USER_AGENT) -> None:
        self._credentials = credentials
        self._base = credentials.server.rstrip("/")
        headers = {"Accept": "application/json", "User-Agent": component}
        self._head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        if _is_loopback(self._base):
            # Compression costs more than it saves where no network lies between.
            headers["Accept-Encoding"] = "identity"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=MAX_CONNECTIONS, ssl=credentials.tls or True),
            headers=headers,
        )
        self._exchanges = None if credentials.proxy else _exchanges(credentials)

    async def send(self, request: Request) -> Answer:
        token = await self._credentials.token() if self._credentials.token else ""
        try:
            if request.body is not None and self._exchanges is not None:
                written = self._written(request, request.body, token)
                return await self._exchanges.exchange(written, request.total_s)
            return HttpAnswer(await self._request(request, token))
        except (aiohttp.ClientError, TimeoutError, OSError) as e:
            raise Disconnected(_words(e)) from e

    async def close(self) -> None:
        if self._exchanges is not None:
            self._exchanges.close()
        await self._session.close()

    def _written(self, request: Request, body: bytes, token: str) -> bytes:
        """Return a request as it goes over the wire."""
        server = urlsplit(self._base)
        authorization = f"Authorization: {token}\r\n" if token else ""
        head = (
            f"{request.method} {server.path}{request.path} HTTP/1.1\r\n"
            f"Host: {server.netloc}\r\n"
            f"{self._head}{authorization}"
            f"Content-Type: {request.content_type}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode("latin-1") + body

    async def _request(self, request: Request, token: str) -> aiohttp.ClientResponse:
        headers = {"Content-Type": request.content_type} if request.body is not None else {}
        if token:
            headers["Authorization"] = token
        return await self._session.request(
            request.method,
            URL(self._base + request.path, encoded=True),
            data=request.body,
            headers=headers,
            timeout=aiohttp.ClientTimeout(
                total=request.total_s, sock_connect=CONNECT_S, sock_read=request.silence_s
            ),
            server_hostname=self._credentials.server_name,
            proxy=self._credentials.proxy,
            allow_redirects=False,
        )


def _exchanges(credentials: Credentials) -> Exchanges:
    server = urlsplit(credentials.server)
    tls = credentials.tls or ssl.create_default_context() if server.scheme == "https" else None
    port = server.port or (443 if tls else 80)
    return Exchanges(server.hostname or "", port, tls=tls, server_name=credentials.server_name)


def _words(error: BaseException) -> str:
    """Say what broke; a bare TimeoutError has no words of its own."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _is_loopback(server: str) -> bool:
    host = urlsplit(server).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")
