"""
A proxy between a component and the API server that fails on request.

    async with FaultProxy(plane.kubeconfig("pumice-extender")) as proxy:
        start_extender(plane.kubeconfig("pumice-extender", server=proxy.url))
        proxy.fail(0.05, method="POST", path=r"/binding$")
        with proxy.hold(method="PATCH", path=r"/namespaces/x/pods/last$") as hold:
            await hold.arrived.wait()
            ...
        async with proxy.cut():
            ...

Towards the component it speaks plain HTTP on loopback; towards the API server TLS, with the client
certificate of the kubeconfig that it is given: the component keeps its name in the audit log.
It runs in the event loop of the test, so a test that uses it must not block that loop.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Self, TypeVar

import aiohttp
from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.streams import StreamReader
from yarl import URL

from tests.acceptance.faults import Fail, Fault, Hold, Late, Match, Throttle
from tests.auditor.kubeconfig import access

HOST = "127.0.0.1"
HOP_BY_HOP = frozenset(
    ["connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"]
)
NOT_FORWARDED = HOP_BY_HOP | {"host", "authorization"}
NO_EXTRA_HEADERS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
REASONS = {429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}
BODY_LIMIT = 16 << 20
FaultT = TypeVar("FaultT", bound=Fault)
Predicate = Callable[[bytes], bool]


class FaultProxy:
    """A reverse proxy in the test's event loop; `counts` says what was done to how many."""

    def __init__(self, kubeconfig: Path, *, seed: int = 1) -> None:
        self.upstream = access(kubeconfig)
        self.counts: Counter[str] = Counter()
        self.faults: list[Fault] = []
        self.port = 0
        self._rng = Random(seed)
        self._server = web.Server(
            self._serve, request_factory=_request, handler_cancellation=True, access_log=None
        )
        self._listener: asyncio.Server | None = None
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self.upstream.tls or True),
            auto_decompress=False,
            skip_auto_headers=NO_EXTRA_HEADERS,
            timeout=aiohttp.ClientTimeout(total=None),
        )
        await self._listen(_bound(0))
        return self

    async def __aexit__(self, *_: object) -> None:
        for fault in self.faults:
            fault.off()
            if isinstance(fault, Hold):
                fault.release()
        self._drop()
        await self._server.shutdown(timeout=1)
        if self._session is not None:
            await self._session.close()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{HOST}:{self.port}"

    def kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig that leads here, without credentials: the proxy adds them."""
        context = {"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "proxy",
            "contexts": [context],
            "clusters": [{"name": "proxy", "cluster": {"server": self.url}}],
            "users": [{"name": "proxy", "user": {}}],
        }
        path.write_text(json.dumps(config))
        return path

    def fail(
        self, fraction: float = 1.0, status: int = 500, *, method: str = "", path: str = ""
    ) -> Fail:
        """Answer a fraction of these requests with an error instead of forwarding them."""
        return self._add(Fail(Match(method, path), fraction=fraction, status=status))

    def answer_late(
        self, fraction: float, seconds: float, *, method: str = "", path: str = ""
    ) -> Late:
        """Keep back the answers to a fraction of these requests."""
        return self._add(Late(Match(method, path), fraction=fraction, seconds=seconds))

    def throttle(
        self, *, every: int, burst: int, retry_after_s: int = 1, method: str = "", path: str = ""
    ) -> Throttle:
        """Answer 429 to bursts of these requests: the last `burst` of every `every`."""
        match = Match(method, path)
        return self._add(Throttle(match, every=every, burst=burst, retry_after_s=retry_after_s))

    def hold(self, *, method: str = "", path: str = "", body: Predicate | None = None) -> Hold:
        """Keep these requests from the API server until `release` is called."""
        return self._add(Hold(Match(method, path, body)))

    @asynccontextmanager
    async def cut(self) -> AsyncIterator[None]:
        """Drop all connections and refuse new ones inside the block."""
        # A socket that is bound but doesn't listen refuses, and keeps the port.
        self._drop()
        placeholder = _bound(self.port)
        self.counts["cuts"] += 1
        try:
            yield
        finally:
            await self._listen(placeholder)

    async def cut_for(self, seconds: float) -> None:
        """Cut for so long."""
        async with self.cut():
            await asyncio.sleep(seconds)

    def _add(self, fault: FaultT) -> FaultT:
        self.faults.append(fault)
        return fault

    async def _listen(self, bound: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(self._server, sock=bound, backlog=1024)
        self.port = bound.getsockname()[1]

    def _drop(self) -> None:
        """Stop listening and abort every connection; their handlers are cancelled."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for connection in self._server.connections:
            if connection.transport is not None:
                self.counts["dropped connections"] += 1
                connection.transport.abort()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """Do to a request what the faults say, or forward it."""
        body = await request.read()
        struck = [fault for fault in self.faults if self._strikes(fault, request, body)]
        for fault in struck:
            match fault:
                case Hold():
                    self.counts["held"] += 1
                    await fault.wait()
                case Fail():
                    self.counts["failed"] += 1
                    return _refusal(fault.status, "the proxy was told to fail this request")
                case Throttle():
                    self.counts["throttled"] += 1
                    return _refusal(429, "the proxy was told to throttle", fault.retry_after_s)
        late_s = max((fault.seconds for fault in struck if isinstance(fault, Late)), default=0.0)
        return await self._forward(request, body, late_s)

    def _strikes(self, fault: Fault, request: web.BaseRequest, body: bytes) -> bool:
        if not fault.on or not fault.match(request.method, request.raw_path, body):
            return False
        strikes = fault.strikes(self._rng)
        fault.struck += strikes
        return strikes

    async def _forward(
        self, request: web.BaseRequest, body: bytes, late_s: float
    ) -> web.StreamResponse:
        if self._session is None:
            raise RuntimeError("the proxy is not running")
        headers = {k: v for k, v in request.headers.items() if k.lower() not in NOT_FORWARDED}
        url = URL(self.upstream.server + request.raw_path, encoded=True)
        self.counts["forwarded"] += 1
        try:
            async with self._session.request(
                request.method, url, headers=headers | self.upstream.headers, data=body or None
            ) as answer:
                if request.query.get("watch") in ("1", "true"):
                    return await _stream(request, answer)
                whole = await answer.read()
        except aiohttp.ClientConnectionError as error:
            self.counts["unreachable"] += 1
            return _refusal(503, f"the API server is not there: {error}")
        if late_s:
            self.counts["late"] += 1
            await asyncio.sleep(late_s)
        return web.Response(status=answer.status, headers=_passed_on(answer), body=whole)


async def _stream(request: web.BaseRequest, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    """Pass a watch on, chunk by chunk as it comes."""
    response = web.StreamResponse(status=answer.status, headers=_passed_on(answer))
    response.enable_chunked_encoding()
    await response.prepare(request)
    async for chunk in answer.content.iter_any():
        await response.write(chunk)
    await response.write_eof()
    return response


def _passed_on(answer: aiohttp.ClientResponse) -> dict[str, str]:
    return {k: v for k, v in answer.headers.items() if k.lower() not in HOP_BY_HOP}


def _refusal(code: int, message: str, retry_after_s: int | None = None) -> web.Response:
    """Return an error as the API server words it."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": REASONS.get(code, ""),
        "code": code,
    }
    headers = {}
    if retry_after_s is not None:
        status["details"] = {"retryAfterSeconds": retry_after_s}
        headers["Retry-After"] = str(retry_after_s)
    return web.json_response(status, status=code, headers=headers)


def _bound(port: int) -> socket.socket:
    """Return a socket bound to a port of loopback, any for 0."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind((HOST, port))
    return bound


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: web.RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    """Make a request as aiohttp does, but with room for a large body."""
    loop = asyncio.get_running_loop()
    return web.BaseRequest(
        message, payload, protocol, writer, task, loop, client_max_size=BODY_LIMIT
    )
