"""The policy server over HTTP: what counts as an answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from extender import policies
from extender.policies import PolicyServer
from pumice.core.outside import Json, Question

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def a_server(handler: Handler) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/policy/verb", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}/policy/verb"
    finally:
        await runner.cleanup()


async def ask(url: str, *bodies: Json, timeout_s: float = 5.0) -> list[Json | None]:
    """Ask as a session does, from a thread of its own."""
    server = PolicyServer()
    server.open()
    try:
        question = Question(url, bodies, timeout_s)
        return list(await asyncio.to_thread(server, question))
    finally:
        await server.close()


async def test_each_body_gets_its_answer() -> None:
    async def echo(request: web.Request) -> web.Response:
        return web.json_response({"got": (await request.json())["n"]})

    async with a_server(echo) as url:
        got = await ask(url, *({"n": n} for n in range(200)))
    assert got == [{"got": n} for n in range(200)]


def text(content: str, status: int = 200) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text=content, status=status)

    return handler


NO_ANSWERS = {
    "an error": text("{}", 500),
    "a redirect": text("", 307),
    "no JSON": text("<html>"),
    "no object": text("[1]"),
}


@pytest.mark.parametrize("handler", NO_ANSWERS.values(), ids=NO_ANSWERS.keys())
async def test_what_is_no_answer(handler: Handler, caplog: pytest.LogCaptureFixture) -> None:
    async with a_server(handler) as url:
        assert await ask(url, {}, {}) == [None, None]
    assert caplog.text.count("gives no answer") == 1


async def test_nothing_at_all_is_an_answer() -> None:
    async with a_server(text("")) as url:
        assert await ask(url, {}) == [{}]


async def test_an_answer_that_is_too_long_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "MAX_ANSWER", 100)
    async with a_server(text(json.dumps({"x": "y" * 100}))) as url:
        assert await ask(url, {}) == [None]


async def test_nobody_is_waited_for_longer_than_said() -> None:
    released = asyncio.Event()

    async def slow(request: web.Request) -> web.Response:
        await released.wait()
        return web.json_response({})

    async with a_server(slow) as url:
        assert await ask(url, {}, timeout_s=0.05) == [None]
        released.set()


async def test_a_server_that_is_not_there() -> None:
    async with a_server(text("{}")) as url:
        pass
    assert await ask(url, {}) == [None]


async def test_a_server_that_is_not_open_yet_or_any_more_gives_no_answer() -> None:
    async with a_server(text("{}")) as url:
        server, question = PolicyServer(), Question(url, [{}], 5.0)
        before = server(question)
        server.open()
        between = await asyncio.to_thread(server, question)
        await server.close()
        assert [before, between, server(question)] == [[None], [{}], [None]]
