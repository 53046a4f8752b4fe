"""
The seam between the client and the network: one request in, one answer out.

`Client` knows Kubernetes and no sockets; a transport knows sockets and no Kubernetes. Tests
give the client a transport that calls an in-memory API server.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from pumice.kube.errors import Disconnected

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

    status: int
    headers: Mapping[str, str]

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
        if _is_loopback(self._base):
            # Compression costs more than it saves where no network lies between.
            headers["Accept-Encoding"] = "identity"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=MAX_CONNECTIONS, ssl=credentials.tls or True),
            headers=headers,
        )

    async def send(self, request: Request) -> Answer:
        headers = {"Content-Type": request.content_type} if request.body is not None else {}
        if self._credentials.token and (token := await self._credentials.token()):
            headers["Authorization"] = token
        timeout = aiohttp.ClientTimeout(
            total=request.total_s, sock_connect=CONNECT_S, sock_read=request.silence_s
        )
        try:
            response = await self._session.request(
                request.method,
                URL(self._base + request.path, encoded=True),
                data=request.body,
                headers=headers,
                timeout=timeout,
                server_hostname=self._credentials.server_name,
                proxy=self._credentials.proxy,
                allow_redirects=False,
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as e:
            raise Disconnected(_words(e)) from e
        return HttpAnswer(response)

    async def close(self) -> None:
        await self._session.close()


def _words(error: BaseException) -> str:
    """Say what broke; a bare TimeoutError has no words of its own."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _is_loopback(server: str) -> bool:
    host = urlsplit(server).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")
