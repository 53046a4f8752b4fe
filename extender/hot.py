"""
The hot path: `filter`, `prioritize`, `preempt` and `bind` as plain ASGI, before FastAPI.

kube-scheduler wants exactly status 200 and a JSON body of known length; anything else fails the
pod's cycle. So a body that cannot be read is answered with 200 and an error in the verb's own
form, where that form has one, and with 400 where it has none.

Whoever reaches `bind` binds pods with the extender's rights. Where the port is not for loopback
alone, the verbs answer only those who have shown a client certificate.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from extender import wire
from pumice.core.ids import PodUid
from pumice.kube.connections import client_of

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

    async def filter(self, args: wire.Args) -> wire.FilterResult:
        """Return the candidates that remain."""

    async def prioritize(self, args: wire.Args) -> list[wire.HostPriority]:
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
    #: the verbs are for those alone who have shown a client certificate
    guarded: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path = scope.get("path", "")
        if scope["type"] != "http" or path not in VERBS:
            await self.rest(scope, receive, send)
            return
        if self.guarded and client_of(scope) is None:
            await reply(send, 401, b'{"error":"a client certificate is required"}')
            return
        if scope["method"] != "POST":
            await reply(send, 405, b'{"error":"POST only"}')
            return
        try:
            body = await _body(receive)
        except BodyTooLargeError:
            await reply(send, 413, b'{"error":"the body is too large"}')
            return
        await VERBS[path](self, body, receive, send)

    async def _bind(self, body: bytes, receive: Receive, send: Send) -> None:
        try:
            args = _binding(body)
        except msgspec.DecodeError:
            await reply(send, 200, _encode(wire.BindingResult(error=BAD_REQUEST)))
            return
        answer = asyncio.ensure_future(self.verbs.bind(PodUid(args.pod_uid), args.node))
        error = await _unless_lost(answer, receive)
        if error is not None:
            await reply(send, 200, _encode(wire.BindingResult(error=error)))

    async def _filter(self, body: bytes, receive: Receive, send: Send) -> None:
        try:
            result = await self.verbs.filter(_args(body))
        except msgspec.DecodeError:
            result = wire.FilterResult(node_names=[], error=BAD_REQUEST)
        await reply(send, 200, _encode(result))

    async def _prioritize(self, body: bytes, receive: Receive, send: Send) -> None:
        try:
            scores = await self.verbs.prioritize(_args(body))
        except msgspec.DecodeError:
            await reply(send, 400, b'{"error":"the body is not what the verb takes"}')
            return
        await reply(send, 200, _encode(scores))

    async def _preempt(self, body: bytes, receive: Receive, send: Send) -> None:
        try:
            result = self.verbs.preempt(_preemption(body))
        except msgspec.DecodeError:
            await reply(send, 400, b'{"error":"the body is not what the verb takes"}')
            return
        await reply(send, 200, _encode(result))


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


async def _unless_lost(answer: asyncio.Future[str], receive: Receive) -> str | None:
    """Wait for the answer; when the caller hangs up first, cancel the call and return None."""
    hung_up = asyncio.ensure_future(receive())
    hung_up.add_done_callback(lambda _: answer.cancel())
    try:
        return await answer
    except asyncio.CancelledError:
        if hung_up.done():
            return None
        raise
    finally:
        hung_up.cancel()


async def reply(send: Send, status: int, body: bytes) -> None:
    """Send a whole answer of JSON, with its length: only then is the connection used again."""
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
