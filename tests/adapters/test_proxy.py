"""The fault proxy between an HTTP client and a small server that counts what reaches it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Self

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from tests.acceptance.proxy import FaultProxy

BINDING = "/api/v1/namespaces/x/pods/p/binding"


class Upstream:
    """Stands for the API server: echoes requests, and streams what it is given for a watch."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.events: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.served = asyncio.Event()
        self.watching = asyncio.Event()
        self.watch_ended = asyncio.Event()
        self._runner = web.ServerRunner(
            web.Server(self._serve, handler_cancellation=True, access_log=None)
        )

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.events.put_nowait(None)
        await self._runner.cleanup()

    def kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig that leads to this server."""
        port = self._runner.addresses[0][1]
        config = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "u", "user": {"token": "secret"}}],
        }
        path.write_text(json.dumps(config))
        return path

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.raw_path}")
        if "watch" in request.query:
            return await self._watch(request)
        body = (await request.read()).decode()
        self.served.set()
        headers = {"X-Seen": request.headers.get("Authorization", "")}
        return web.json_response({"body": body, "path": request.raw_path}, headers=headers)

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        self.watching.set()
        try:
            while (event := await self.events.get()) is not None:
                await response.write(event)
        finally:
            self.watch_ended.set()
        return response


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with Upstream() as server:
        yield server


@pytest.fixture
async def proxy(upstream: Upstream, tmp_path: Path) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(upstream.kubeconfig(tmp_path / "kubeconfig")) as running:
        yield running


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def post(client: aiohttp.ClientSession, proxy: FaultProxy, path: str = BINDING) -> int:
    async with client.post(proxy.url + path, data=b"{}") as response:
        await response.read()
        return response.status


async def test_a_request_goes_through_with_body_query_and_the_proxy_s_credentials(
    client: aiohttp.ClientSession, proxy: FaultProxy, upstream: Upstream
) -> None:
    url = URL(f"{proxy.url}/api?a=%2Fb%20c", encoded=True)
    async with client.post(url, data=b"hello") as response:
        answer = await response.json()

    assert (response.status, answer) == (200, {"body": "hello", "path": "/api?a=%2Fb%20c"})
    assert response.headers["X-Seen"] == "Bearer secret"
    assert proxy.counts == {"forwarded": 1}


async def test_a_watch_is_passed_on_as_it_comes_and_ended_when_the_client_goes(
    client: aiohttp.ClientSession, proxy: FaultProxy, upstream: Upstream
) -> None:
    async with client.get(f"{proxy.url}/api/v1/pods?watch=1") as response:
        for line in (b"one\n", b"two\n"):
            upstream.events.put_nowait(line)
            assert await asyncio.wait_for(response.content.readline(), 5) == line

    await asyncio.wait_for(upstream.watch_ended.wait(), 5)


async def test_an_ending_watch_ends_for_the_client(
    client: aiohttp.ClientSession, proxy: FaultProxy, upstream: Upstream
) -> None:
    async with client.get(f"{proxy.url}/api/v1/pods?watch=true") as response:
        upstream.events.put_nowait(b"last\n")
        upstream.events.put_nowait(None)

        assert await asyncio.wait_for(response.read(), 5) == b"last\n"


async def test_a_fraction_of_matching_requests_fails_unseen_by_the_server(
    client: aiohttp.ClientSession, proxy: FaultProxy, upstream: Upstream
) -> None:
    fault = proxy.fail(0.3, method="POST", path=r"/binding$")

    statuses = [await post(client, proxy) for _ in range(200)]
    others = [await post(client, proxy, "/api/v1/namespaces/x/pods") for _ in range(20)]

    failed = statuses.count(500)
    assert 40 <= failed <= 80
    assert set(others) == {200}
    assert (fault.struck, proxy.counts["failed"]) == (failed, failed)
    assert len(upstream.requests) == 220 - failed


async def test_the_same_seed_gives_the_same_faults(
    client: aiohttp.ClientSession, upstream: Upstream, tmp_path: Path
) -> None:
    runs = []
    for _ in range(2):
        async with FaultProxy(upstream.kubeconfig(tmp_path / "k"), seed=7) as proxy:
            proxy.fail(0.5)
            runs.append([await post(client, proxy) for _ in range(30)])

    assert runs[0] == runs[1]
    assert set(runs[0]) == {200, 500}


async def test_an_error_is_worded_as_the_api_server_words_it(
    client: aiohttp.ClientSession, proxy: FaultProxy
) -> None:
    proxy.throttle(every=1, burst=1, retry_after_s=2)

    async with client.get(f"{proxy.url}/api") as response:
        status = await response.json()

    assert response.headers["Retry-After"] == "2"
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 429, "TooManyRequests")
    assert status["details"] == {"retryAfterSeconds": 2}


async def test_throttling_comes_in_bursts(client: aiohttp.ClientSession, proxy: FaultProxy) -> None:
    fault = proxy.throttle(every=5, burst=2)

    statuses = [await post(client, proxy) for _ in range(10)]
    fault.off()

    assert statuses == [200, 200, 200, 429, 429] * 2
    assert {await post(client, proxy) for _ in range(5)} == {200}


async def test_a_late_answer_comes_after_the_server_has_done_its_work(
    client: aiohttp.ClientSession, proxy: FaultProxy, upstream: Upstream
) -> None:
    proxy.answer_late(1.0, 0.3, path=r"/binding$")
    start = time.monotonic()

    request = asyncio.create_task(post(client, proxy))
    await asyncio.wait_for(upstream.served.wait(), 5)
    served_after = time.monotonic() - start

    assert await request == 200
    assert served_after < 0.3 <= time.monotonic() - start


async def test_a_held_request_reaches_the_server_only_when_released(
    client: aiohttp.ClientSession, proxy: FaultProxy, upstream: Upstream
) -> None:
    with proxy.hold(method="POST", path=r"/pods/p/", body=lambda body: b"{" in body) as hold:
        held = asyncio.create_task(post(client, proxy))
        await asyncio.wait_for(hold.arrived.wait(), 5)

        assert await post(client, proxy, "/api/v1/namespaces/x/pods/q/binding") == 200
        assert (hold.waiting, len(upstream.requests)) == (1, 1)

    assert await asyncio.wait_for(held, 5) == 200
    assert upstream.requests[-1] == f"POST {BINDING}"
    assert await post(client, proxy) == 200


async def test_a_cut_drops_what_is_open_refuses_what_is_new_and_ends(
    client: aiohttp.ClientSession, proxy: FaultProxy, upstream: Upstream
) -> None:
    async with client.get(f"{proxy.url}/api/v1/pods?watch=1") as watch:
        await asyncio.wait_for(upstream.watching.wait(), 5)
        async with proxy.cut():
            with pytest.raises(aiohttp.ClientError):
                await asyncio.wait_for(watch.content.readline(), 5)
            with pytest.raises(aiohttp.ClientConnectorError):
                await post(client, proxy)
            assert [r for r in upstream.requests if r.startswith("POST")] == []

    assert await post(client, proxy) == 200


async def test_several_hundred_requests_at_once_go_through(
    client: aiohttp.ClientSession, proxy: FaultProxy
) -> None:
    statuses = await asyncio.gather(*(post(client, proxy) for _ in range(500)))
    assert set(statuses) == {200}
