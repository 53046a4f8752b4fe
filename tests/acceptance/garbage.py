"""
What may come in on the extender's port besides kube-scheduler, byte for byte, and the answers.

Connections are made by hand: a client that knows HTTP couldn't send most of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.acceptance.length import patient

PATIENCE_S = 5.0
LIMIT = 8 << 20
NOBODY = '{"PodName":"p","PodNamespace":"ns","PodUID":"nobody","Node":"node-0"}'


@dataclass(frozen=True, slots=True)
class Request:
    """Bytes, and the status and body that answer them; ("", "") where the connection is closed."""

    body: bytes
    answer: tuple[str, str]


def post(verb: str, body: str, *, length: int | None = None) -> bytes:
    """Return a POST as kube-scheduler would send it."""
    size = len(body) if length is None else length
    head = f"POST {verb} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {size}\r\nConnection: close\r\n\r\n{body}".encode()


UNREADABLE = ("200", '{"Error":"the request is not what the verb takes"}')
BAD_BODY = ("400", '{"error":"the body is not what the verb takes"}')
REQUESTS = {
    "bind without JSON": Request(post("/bind", "!"), UNREADABLE),
    "bind without a pod": Request(post("/bind", '{"Node":"n"}'), UNREADABLE),
    "bind of the wrong types": Request(post("/bind", '{"PodUID":[1]}'), UNREADABLE),
    "bind of a pod that nobody planned": Request(
        post("/bind", NOBODY), ("200", '{"Error":"not planned"}')
    ),
    "prioritize without JSON": Request(post("/prioritize", "\x00"), BAD_BODY),
    "preempt of null": Request(post("/preempt", "null"), BAD_BODY),
    "a verb that there is not": Request(post("/dance", "{}"), ("404", '{"detail":"Not Found"}')),
    "a verb by GET": Request(
        b"GET /bind HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        ("405", '{"error":"POST only"}'),
    ),
    "a body that is too large": Request(
        post("/bind", " " * (LIMIT + 1)), ("413", '{"error":"the body is too large"}')
    ),
    "no HTTP": Request(
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", ("400", "Invalid HTTP request received.")
    ),
}
HALF_A_REQUEST = post("/bind", '{"PodName"', length=10_000)


async def ask(port: int, request: bytes) -> tuple[str, str]:
    """Send bytes; return status and body of the answer."""
    async with asyncio.timeout(patient(PATIENCE_S)):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(request)
            await writer.drain()
            answer = (await reader.read()).decode()
        finally:
            writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    return (head.split(" ")[1] if head else "", body)


@asynccontextmanager
async def half_open(port: int, request: bytes) -> AsyncIterator[None]:
    """Keep a connection open on which a request has begun and doesn't end."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    try:
        yield
    finally:
        writer.close()
