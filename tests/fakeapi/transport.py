"""Carries requests of `pumice.kube.client` to an ASGI application in the same event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pumice.kube.clock import Clock
from pumice.kube.errors import Disconnected
from pumice.kube.transport import Answer, Request
from tests.fakeapi.faults import ConnectionLost

T = TypeVar("T")
Message = dict[str, Any]
Messages = asyncio.Queue["Message | Exception | None"]
App = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]


class AsgiAnswer:
    """An answer whose body the application is still sending."""

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        messages: Messages,
        task: asyncio.Task[None],
        clock: Clock,
        silence_s: float | None,
    ) -> None:
        self.status = status
        self.headers = headers
        self._messages = messages
        self._task = task
        self._clock = clock
        self._silence_s = silence_s

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            message = await within(self._clock, self._silence_s, self._messages.get())
            if message is None:
                raise Disconnected("the application broke off")
            if isinstance(message, Exception):
                raise message
            if chunk := message.get("body", b""):
                yield chunk
            if not message.get("more_body", False):
                return

    def close(self) -> None:
        self._task.cancel()


class AsgiTransport:
    """One task of the application for each request; time limits are those of the clock."""

    def __init__(self, app: App, clock: Clock) -> None:
        self._app = app
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, request: Request) -> Answer:
        messages: Messages = asyncio.Queue()
        task = asyncio.create_task(self._serve(request, messages), name=f"asgi {request.path}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        limit = request.total_s or request.silence_s
        try:
            start = await within(self._clock, limit, messages.get())
        except BaseException:
            task.cancel()
            raise
        if start is None:
            raise Disconnected("the application gave no answer")
        if isinstance(start, Exception):
            raise start
        headers = {k.decode(): v.decode() for k, v in start.get("headers", ())}
        return AsgiAnswer(start["status"], headers, messages, task, self._clock, request.silence_s)

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, request: Request, messages: Messages) -> None:
        """Run the application on one request; an exception breaks the connection."""
        url = urlsplit(request.path)
        headers = [(b"content-type", request.content_type.encode())]
        scope = {
            "type": "http",
            "method": request.method,
            "path": url.path,
            "query_string": url.query.encode(),
            "headers": headers,
        }

        async def receive() -> Message:
            return {"type": "http.request", "body": request.body or b"", "more_body": False}

        async def send(message: Message) -> None:
            messages.put_nowait(message)

        try:
            await self._app(scope, receive, send)
        except ConnectionLost:
            messages.put_nowait(None)
        except Exception as e:
            # A fault of the application itself must fail the test, not look like the network.
            messages.put_nowait(e)


async def within(clock: Clock, seconds: float | None, work: Awaitable[T]) -> T:
    """Return the result of `work`; raises Disconnected where it takes longer than that."""
    if seconds is None:
        return await work
    task = asyncio.ensure_future(work)
    timer = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait((task, timer), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Disconnected(f"silent for {seconds:g} s")
    finally:
        task.cancel()
        timer.cancel()
