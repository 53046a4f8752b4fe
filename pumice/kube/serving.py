"""uvicorn as a part of a service: it says when it listens, and others decide when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn


class Server(uvicorn.Server):
    """uvicorn that says when it listens, and leaves signals alone: there is more to end."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self.ended = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the port."""
        await super().startup(sockets)
        self.listening.set()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until told to end, and until what was asked is answered."""
        try:
            await super().serve(sockets)
        finally:
            self.ended.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the process."""
        yield
