"""The transport on real sockets: what breaks becomes Disconnected, what is whole is kept."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Literal

import pytest
import trustme

from pumice.kube.client import Client
from pumice.kube.errors import Disconnected, TooManyRequests
from pumice.kube.resources import CONFIG_MAPS
from pumice.kube.transport import Credentials, HttpTransport, Request

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Peer:
    """A server that follows a script on each connection and notes what it is sent."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.connections = 0
        self.heads: list[bytes] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                await self._script(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(script: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[Peer]:
    peer = Peer(script)
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        scheme = "https" if tls else "http"
        peer.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield peer


@asynccontextmanager
async def talking(script: Script) -> AsyncIterator[Client]:
    """Give a client of a server that follows the script."""
    async with serving(script) as peer, Client(HttpTransport(Credentials(peer.url))) as client:
        yield client


def answer(data: bytes, *, close: bool = False) -> Script:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        if close:
            writer.close()
            await writer.wait_closed()
            raise ConnectionResetError

    return script


Asked = tuple[Literal["GET", "POST"], bytes | None]
ASKED: dict[str, Asked] = {"a read": ("GET", None), "a write": ("POST", b"")}
read_or_write = pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED.keys())


@read_or_write
async def test_connections_are_kept_and_headers_sent(asked: Asked) -> None:
    method, body = asked

    async def token() -> str:
        return "Bearer secret"

    async with serving(answer(OK)) as peer:
        transport = HttpTransport(Credentials(f"{peer.url}/behind/", token=token), "pumice-test")
        async with Client(transport) as client:
            for _ in range(3):
                assert await client.call(method, "/x?y=%20", body) == b"{}"
    assert peer.connections == 1
    first, *rest = peer.heads[0].removesuffix(b"\r\n\r\n").split(b"\r\n")
    assert first == f"{method} /behind/x?y=%20 HTTP/1.1".encode()
    assert set(rest) >= {
        b"Host: " + peer.url.removeprefix("http://").encode(),
        b"Authorization: Bearer secret",
        b"User-Agent: pumice-test",
        b"Accept: application/json",
    }


async def test_answers_come_as_they_are_where_no_network_lies_between() -> None:
    async with serving(answer(OK)) as peer, Client(HttpTransport(Credentials(peer.url))) as client:
        await client.call("GET", "/x")
    assert b"Accept-Encoding: identity" in peer.heads[0]


async def test_writes_say_what_they_carry() -> None:
    async with serving(answer(OK)) as peer, Client(HttpTransport(Credentials(peer.url))) as client:
        await client.call("PATCH", "/x", b"", content_type="application/merge-patch+json")
    assert b"Content-Type: application/merge-patch+json\r\nContent-Length: 0" in peer.heads[0]


@read_or_write
async def test_a_server_is_known_by_the_name_that_it_should_have(asked: Asked) -> None:
    authority = trustme.CA()
    theirs, ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("api.internal").configure_cert(theirs)
    authority.configure_trust(ours)
    async with serving(answer(OK), theirs) as peer:
        named = HttpTransport(Credentials(peer.url, ours, server_name="api.internal"))
        async with Client(named) as client:
            assert await client.call(asked[0], "/x", asked[1]) == b"{}"
        async with Client(HttpTransport(Credentials(peer.url, ours))) as client:
            with pytest.raises(Disconnected, match="certificate verify failed"):
                await client.call(asked[0], "/x", asked[1])


@read_or_write
async def test_a_proxy_is_asked(asked: Asked) -> None:
    async with serving(answer(OK)) as proxy:
        transport = HttpTransport(Credentials("http://api.invalid", proxy=proxy.url))
        async with Client(transport) as client:
            assert await client.call(asked[0], "/x", asked[1]) == b"{}"
    assert proxy.heads[0].startswith(f"{asked[0]} http://api.invalid/x HTTP/1.1".encode())


BROKEN = {
    "the connection is closed without an answer": b"",
    "the head breaks off": b"HTTP/1.1 200 OK\r\nContent-",
    "the body breaks off": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}",
    "the answer is no HTTP": b"hello\r\n\r\n",
}


@read_or_write
@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
async def test_disconnected_when(data: bytes, asked: Asked) -> None:
    async with talking(answer(data, close=True)) as client:
        with pytest.raises(Disconnected):
            await client.call(asked[0], "/x", asked[1])


@read_or_write
async def test_nobody_there(asked: Asked) -> None:
    async with serving(answer(OK)) as peer:
        url = peer.url
    async with Client(HttpTransport(Credentials(url))) as client:
        with pytest.raises(Disconnected):
            await client.call(asked[0], "/x", asked[1])


@read_or_write
async def test_a_server_that_does_not_answer_in_time(asked: Asked) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with serving(silent) as peer, Client(HttpTransport(Credentials(peer.url))) as client:
        with pytest.raises(Disconnected):
            await client.call(asked[0], "/x", asked[1], total_s=0.05)


async def test_a_watch_that_falls_silent() -> None:
    line = b'{"type":"BOOKMARK","object":{}}\n'

    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED + b"%x\r\n%s\r\n" % (len(line), line))
        await writer.drain()
        await reader.read()

    async with serving(half) as peer, Client(HttpTransport(Credentials(peer.url))) as client:
        watch = client.watch(CONFIG_MAPS, resource_version="1", lasting_s=9, silence_s=0.05)
        assert await anext(watch)
        with pytest.raises(Disconnected):
            await anext(watch)


async def test_a_watch_left_in_the_middle_gives_its_connection_up() -> None:
    gone = asyncio.Event()
    line = b'{"type":"BOOKMARK","object":{}}\n'

    async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED + b"%x\r\n%s\r\n" % (len(line), line))
        await writer.drain()
        if not await reader.read(1):
            gone.set()
        raise ConnectionResetError

    async with serving(stream) as peer, Client(HttpTransport(Credentials(peer.url))) as client:
        watch = client.watch(CONFIG_MAPS, resource_version="1", lasting_s=9, silence_s=5)
        assert await anext(watch)
        await watch.aclose()
        async with asyncio.timeout(5):
            await gone.wait()


@read_or_write
async def test_a_server_that_has_enough_says_when_to_come_back(asked: Asked) -> None:
    data = b"HTTP/1.1 429 Too Many\r\nretry-after: 7\r\nContent-Length: 2\r\n\r\n{}"
    async with talking(answer(data)) as client:
        with pytest.raises(TooManyRequests) as refused:
            await client.call(asked[0], "/x", asked[1])
    assert refused.value.retry_after_s == 7


@read_or_write
async def test_redirects_are_not_followed(asked: Asked) -> None:
    data = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    async with serving(answer(data)) as peer:
        transport = HttpTransport(Credentials(peer.url))
        got = await transport.send(Request(asked[0], "/x", asked[1]))
        assert got.status == 302
        got.close()
        await transport.close()
