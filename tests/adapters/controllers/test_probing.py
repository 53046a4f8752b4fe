"""Checks over a network: what counts as an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import replace

import pytest

from controllers import probing
from controllers.probing import ask
from pumice.core.flows.types import Check

HOST = "127.0.0.1"


@asynccontextmanager
async def server(answer: bytes, heard: list[bytes] | None = None) -> AsyncIterator[int]:
    """Answer every request in the same way; b"" says nothing at all."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(asyncio.IncompleteReadError):
            request = await reader.readuntil(b"\r\n\r\n")
            if heard is not None:
                heard.append(request)
            writer.write(answer)
            await (writer.drain() if answer else reader.read())

    listening = await asyncio.start_server(serve, HOST, 0)
    async with listening:
        yield listening.sockets[0].getsockname()[1]


def status(code: int, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {code} -", "Content-Length: 0", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode()


def get(port: int, path: str = "/", header: tuple[str, str] | None = None) -> Check:
    return Check("job", "uid", "task", port, path, header)


ANSWERS = {
    "success": (status(200), True),
    "a redirection is not followed, and is an answer": (status(302, "Location: http://x/"), True),
    "no such page": (status(404), False),
    "a failure": (status(500), False),
    "no HTTP": (b"SSH-2.0-x\r\n", False),
}


@pytest.mark.parametrize(("answer", "want"), ANSWERS.values(), ids=ANSWERS.keys())
async def test_answers_of_http(answer: bytes, want: bool) -> None:
    async with server(answer) as port:
        assert await ask(HOST, get(port)) is want


async def test_silence_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "TIMEOUT_S", 0.05)
    async with server(b"") as port:
        assert not await ask(HOST, get(port))


PATHS = {
    "a path": ("/ready", "GET /ready HTTP/1.1"),
    "one without a slash": ("ready", "GET /ready HTTP/1.1"),
    "one with a query": ("/ready?deep=1", "GET /ready?deep=1 HTTP/1.1"),
    "one that looks like another host": ("//elsewhere/x", "GET /elsewhere/x HTTP/1.1"),
    "one that looks like a URL": ("http://elsewhere/x", "GET /http://elsewhere/x HTTP/1.1"),
}


@pytest.mark.parametrize(("path", "want"), PATHS.values(), ids=PATHS.keys())
async def test_paths(path: str, want: str) -> None:
    heard: list[bytes] = []
    async with server(status(200), heard) as port:
        assert await ask(HOST, get(port, path))
    assert heard[0].decode().splitlines()[0] == want


async def test_a_header_is_sent() -> None:
    heard: list[bytes] = []
    async with server(status(200), heard) as port:
        assert await ask(HOST, get(port, header=("Authorization", "Bearer x")))
    assert b"\r\nAuthorization: Bearer x\r\n" in heard[0]


async def test_a_header_that_is_none_is_not_sent() -> None:
    heard: list[bytes] = []
    async with server(status(200), heard) as port:
        assert not await ask(HOST, get(port, header=("X", "a\r\nHost: elsewhere")))
    assert heard == []


async def test_a_port_is_open_or_not() -> None:
    async with server(b"") as port:
        check = replace(get(port), path=None)
        assert await ask(HOST, check)
    assert not await ask(HOST, check)
