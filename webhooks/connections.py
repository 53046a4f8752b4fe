"""
Connections that are slow, or say nothing, are cut.

The API server sends a question at once or not at all. Whoever is slower holds a connection for
nothing: the head of a request must be there within 5 s, the whole of it within 30 s. Between
requests a connection may rest for as long as Go's client keeps it, and longer, so that it is
never the server that closes it in the middle of a question.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

log = logging.getLogger(__name__)

HEAD_S = 5.0
BODY_S = 30.0
KEEP_ALIVE_S = 120


class Connection(HttpToolsProtocol):
    """uvicorn's connection with deadlines."""

    head_s = HEAD_S
    body_s = BODY_S

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect(self.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect(None)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._expect(self.head_s)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._expect(self.body_s)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._expect(None)

    def _expect(self, seconds: float | None) -> None:
        """Wait so long for what comes next; None ends the waiting."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._cut)

    def _cut(self) -> None:
        log.info("%s: too slow, cut", self.client)
        self.transport.abort()
