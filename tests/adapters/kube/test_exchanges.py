"""Exchanges on real sockets: a connection serves again when all is well with it, and only then."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from pumice.kube import exchanges
from pumice.kube.exchanges import Exchanges, WholeAnswer
from tests.adapters.kube.test_transport import CHUNKED, OK, Peer, Script, answer, serving
from tests.fakeapi import eventually

ASK = b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"


@asynccontextmanager
async def exchanging(script: Script) -> AsyncIterator[tuple[Peer, Exchanges]]:
    """Give a server that follows the script, and exchanges with it."""
    async with serving(script) as peer:
        port = int(peer.url.rpartition(":")[2])
        ours = Exchanges("127.0.0.1", port, tls=None, server_name=None)
        yield peer, ours
        ours.close()


WHOLE = {
    "with its length": (OK, b"{}"),
    "in chunks": (CHUNKED + b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", b"{}"),
    "without a body": (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    "after one that says that more is to come": (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"{}"),
}


@pytest.mark.parametrize(("data", "want"), WHOLE.values(), ids=WHOLE.keys())
async def test_a_connection_serves_again_after_an_answer(data: bytes, want: bytes) -> None:
    async with exchanging(answer(data)) as (peer, ours):
        bodies = [(await ours.exchange(ASK, 5)).body for _ in range(3)]
        assert (bodies, peer.connections) == ([want] * 3, 1)


SPENT = {
    "the server says that it closes it": (
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
        False,
    ),
    "the server closes it": (OK, True),
    "more comes than was asked for": (OK + OK, False),
    "the answer ends with it": (b"HTTP/1.1 200 OK\r\n\r\n{}", True),
}


@pytest.mark.parametrize(("data", "close"), SPENT.values(), ids=SPENT.keys())
async def test_a_connection_does_not_serve_again_when(data: bytes, close: bool) -> None:
    async with exchanging(answer(data, close=close)) as (peer, ours):
        for number in (1, 2):
            assert (await ours.exchange(ASK, 5)).body == b"{}"
            await eventually(lambda: _is_spent(ours))
            assert peer.connections == number


async def _is_spent(ours: Exchanges) -> bool:
    return not any(connection.serves() for connection in ours._idle)


async def test_a_connection_that_was_idle_for_long_does_not_serve_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exchanges, "KEPT_S", 0.0)
    async with exchanging(answer(OK)) as (peer, ours):
        for _ in range(2):
            await ours.exchange(ASK, 5)
        assert peer.connections == 2


async def test_exchanges_at_the_same_time_have_connections_of_their_own() -> None:
    everybody = asyncio.Barrier(3)

    async def together(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await everybody.wait()
        writer.write(OK)

    async with exchanging(together) as (peer, ours):
        for _ in range(2):
            answers = await asyncio.gather(*(ours.exchange(ASK, 5) for _ in range(3)))
            assert {got.body for got in answers} == {b"{}"}
        assert peer.connections == 3


async def test_connections_that_only_a_burst_had_use_for_are_closed() -> None:
    everybody = asyncio.Barrier(3)

    async def together(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if everybody.parties > 1:
            await everybody.wait()
        writer.write(OK)

    async with exchanging(together) as (_, ours):
        await asyncio.gather(*(ours.exchange(ASK, 5) for _ in range(3)))
        everybody = asyncio.Barrier(1)
        *others, _ = burst = list(ours._idle)
        for connection in others:
            connection._used -= exchanges.KEPT_S
        await ours.exchange(ASK, 5)
        assert [list(ours._idle), [c.serves() for c in burst]] == [burst[2:], [False, False, True]]


async def test_a_connection_that_was_closed_does_not_wait_for_the_garbage_collector() -> None:
    async with exchanging(answer(OK)) as (_, ours):
        await ours.exchange(ASK, 5)
        (kept,) = map(weakref.ref, ours._idle)
        gc.disable()
        try:
            ours.close()
            await eventually(lambda: _is_gone(kept))
        finally:
            gc.enable()


async def _is_gone(reference: Callable[[], object]) -> bool:
    return reference() is None


async def test_one_that_is_given_up_takes_its_connection_along() -> None:
    async def slow_at_first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if peer.connections == 1:
            await reader.read()
        writer.write(OK)

    async with exchanging(slow_at_first) as (peer, ours):
        with pytest.raises(TimeoutError):
            await ours.exchange(ASK, 0.05)
        assert (await ours.exchange(ASK, 5)).body == b"{}"
        assert peer.connections == 2


async def test_a_connection_that_is_lost_tells_at_once() -> None:
    async with exchanging(answer(b"HTTP/1.1 200 OK\r\nContent-", close=True)) as (_, ours):
        with pytest.raises(ConnectionError):
            await ours.exchange(ASK, None)


def test_headers_are_found_however_they_are_spelt() -> None:
    got = WholeAnswer(429, [(b"retry-after", b"7"), (b"Content-Type", b"text/plain")], b"")
    assert got.headers == {"Retry-After": "7", "Content-Type": "text/plain"}
