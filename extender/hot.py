"""
The hot path: `filter`, `prioritize`, `preempt` and `bind` as plain ASGI, before FastAPI.

kube-scheduler wants exactly status 200 and a JSON body of known length; anything else fails the
pod's cycle. So a body that cannot be read is answered with 200 and an error in the verb's own
form, where that form has one, and with 400 where it has none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from extender import wire
from pumice.core.ids import PodUid

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY_LIMIT = 8 * 1024 * 1024
BAD_REQUEST = "the request is not what the verb takes"

_encode = msgspec.json.Encoder().encode
_binding = msgspec.json.Decoder(wire.BindingArgs).decode
_args = msgspec.json.Decoder(wire.Args).decode
_preemption = msgspec.json.Decoder(wire.PreemptionArgs).decode


class Verbs(Protocol):
    """What answers."""

    async def bind(self, uid: PodUid, node: str) -> str:
        """Return "" when the pod is bound to the node, else why it is not."""

    def filter(self, args: wire.Args) -> wire.FilterResult:
        """Return the candidates that remain."""

    def prioritize(self, args: wire.Args) -> list[wire.HostPriority]:
        """Return the scores of the candidates."""

    def preempt(self, args: wire.PreemptionArgs) -> wire.PreemptionResult:
        """Return the preemptions that are allowed."""


class BodyTooLargeError(Exception):
    """The body is over the limit."""


@dataclass(slots=True)
class HotPath:
    """The four verbs; whatever else is asked for goes to `rest`."""

    verbs: Verbs
    rest: App

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path = scope.get("path", "")
        if scope["type"] != "http" or path not in VERBS:
            await self.rest(scope, receive, send)
            return
        if scope["method"] != "POST":
            await _answer(send, 405, b'{"error":"POST only"}')
            return
        try:
            body = await _body(receive)
        except BodyTooLargeError:
            await _answer(send, 413, b'{"error":"the body is too large"}')
            return
        await VERBS[path](self, body, receive, send)

    async def _bind(self, body: bytes, receive: Receive, send: Send) -> None:
        try:
            args = _binding(body)
        except msgspec.DecodeError:
            await _answer(send, 200, _encode(wire.BindingResult(error=BAD_REQUEST)))
            return
        answer = asyncio.ensure_future(self.verbs.bind(PodUid(args.pod_uid), args.node))
        if not answer.done():
            await _until_lost(answer, receive)
        if answer.cancelled():
            return
        await _answer(send, 200, _encode(wire.BindingResult(error=answer.result())))

    async def _filter(self, body: bytes, receive: Receive, send: Send) -> None:
        try:
            result = self.verbs.filter(_args(body))
        except msgspec.DecodeError:
            result = wire.FilterResult(node_names=[], error=BAD_REQUEST)
        await _answer(send, 200, _encode(result))

    async def _prioritize(self, body: bytes, receive: Receive, send: Send) -> None:
        try:
            scores = self.verbs.prioritize(_args(body))
        except msgspec.DecodeError:
            await _answer(send, 400, b'{"error":"the body is not what the verb takes"}')
            return
        await _answer(send, 200, _encode(scores))

    async def _preempt(self, body: bytes, receive: Receive, send: Send) -> None:
        try:
            result = self.verbs.preempt(_preemption(body))
        except msgspec.DecodeError:
            await _answer(send, 400, b'{"error":"the body is not what the verb takes"}')
            return
        await _answer(send, 200, _encode(result))


VERBS: dict[str, Callable[[HotPath, bytes, Receive, Send], Awaitable[None]]] = {
    "/bind": HotPath._bind,
    "/filter": HotPath._filter,
    "/prioritize": HotPath._prioritize,
    "/preempt": HotPath._preempt,
}


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b""
        part = message.get("body", b"")
        size += len(part)
        if size > BODY_LIMIT:
            raise BodyTooLargeError
        parts.append(part)
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


async def _until_lost(answer: asyncio.Future[str], receive: Receive) -> None:
    """Wait for the answer; when the caller hangs up first, the call is cancelled."""
    hung_up = asyncio.ensure_future(receive())
    try:
        first: set[asyncio.Future[Any]] = {answer, hung_up}
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            answer.cancel()
            await asyncio.wait({answer})
    finally:
        hung_up.cancel()


async def _answer(send: Send, status: int, body: bytes) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
