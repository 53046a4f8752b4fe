"""
The HTTP side: an AdmissionReview in, an AdmissionReview out.

The API server takes any answer but a 200 with a review for an outage, and an outage counts as
yes or no by the webhook's failure policy. So whatever can be said is said in a review: a
question that cannot be read is denied with what is wrong with it. A fault of our own is answered
as the outage would be: yes where others depend on us, no where they don't.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, Final

import msgspec

from pumice.core.admission.errors import FieldError
from webhooks import wire
from webhooks.metrics import Metrics
from webhooks.reviews import Denied, Reviews, Verdict
from webhooks.table import Webhook

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

BODY_LIMIT: Final = 3 * 1024 * 1024
JSON: Final = b"application/json"


class BodyTooLargeError(Exception):
    """The body is over the limit."""


class HungUpError(Exception):
    """The caller went away before it had said everything."""


class App:
    """The ASGI application."""

    def __init__(self, webhooks: Sequence[Webhook], reviews: Reviews, metrics: Metrics) -> None:
        self._webhooks: Mapping[str, Webhook] = {webhook.path: webhook for webhook in webhooks}
        self._reviews = reviews
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        webhook = self._webhooks.get(scope.get("path", ""))
        if webhook is None:
            await _plain(send, 404, "there is no such webhook")
        elif scope["method"] != "POST":
            await _plain(send, 405, "POST only")
        elif _content_type(scope) != JSON:
            await _plain(send, 415, "Content-Type must be application/json")
        else:
            await self._answer(webhook, receive, send)

    async def _answer(self, webhook: Webhook, receive: Receive, send: Send) -> None:
        started = time.monotonic()
        try:
            body = await _body(receive)
        except HungUpError:
            return
        except BodyTooLargeError:
            await _plain(send, 413, "request body too large")
            return
        outcome, answer = await self.review(webhook, body)
        self._metrics.answered(webhook.path, outcome, time.monotonic() - started)
        await _send(send, 200, JSON, answer)

    async def review(self, webhook: Webhook, body: bytes) -> tuple[str, bytes]:
        """Return what became of a question, in a word, and the answer to it."""
        try:
            question = wire.decode(body)
        except (msgspec.DecodeError, RecursionError) as error:
            return "unreadable", wire.denied("", [FieldError("", f"not a review: {error}")])
        request = question.request
        if wrong := _mismatch(webhook, question):
            return "unreadable", wire.denied(request.uid, [FieldError("", wrong)])
        try:
            verdict = await self._reviews.answer(webhook.path, request)
            return _rendered(request.uid, verdict)
        except Exception:
            log.exception("%s: %s/%s", webhook.path, request.namespace, request.name)
            return "failed", _failed(webhook, request.uid)


def _mismatch(webhook: Webhook, review: wire.Review) -> str:
    """Return why a review did not belong here, or an empty text."""
    if (review.api_version, review.kind) != (wire.API_VERSION, wire.KIND):
        return f"expect {wire.API_VERSION} {wire.KIND}, got {review.api_version} {review.kind}"
    group, version = webhook.group
    want = wire.GroupVersionResource(group=group, version=version, resource=webhook.resource)
    if review.request.resource != want:
        return f"expect resource to be {want}"
    operation = review.request.operation
    if operation not in webhook.operations:
        listed = " or ".join(f"'{name}'" for name in webhook.operations)
        return f"invalid operation `{operation}`, expect operation to be {listed}"
    return ""


def _rendered(uid: str, verdict: Verdict) -> tuple[str, bytes]:
    if isinstance(verdict, Denied):
        return "denied", wire.denied(uid, verdict.errors)
    return ("patched" if verdict.steps else "allowed"), wire.patched(uid, verdict.steps)


def _failed(webhook: Webhook, uid: str) -> bytes:
    if webhook.failure_policy == "Ignore":
        return wire.allowed(uid)
    text = "the webhook failed on this object; its log says why"
    return wire.denied(uid, [FieldError("", text)])


def _content_type(scope: Scope) -> bytes:
    for name, value in scope["headers"]:
        if name == b"content-type":
            kind: bytes = value.partition(b";")[0].strip().lower()
            return kind
    return b""


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HungUpError
        part = message.get("body", b"")
        size += len(part)
        if size > BODY_LIMIT:
            raise BodyTooLargeError
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


async def _plain(send: Send, status: int, text: str) -> None:
    await _send(send, status, b"text/plain; charset=utf-8", text.encode())


async def _send(send: Send, status: int, kind: bytes, body: bytes) -> None:
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
