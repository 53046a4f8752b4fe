"""
Slots: so many at a time, and the oldest claim first.

A semaphore serves those who wait in the order of their coming. Here a claim that comes back
after a failure goes before every younger one, so what was begun is finished before more is.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count


@dataclass(slots=True)
class Slots:
    """`free` is how many are to be had at once; while somebody waits it is 0."""

    free: int
    _waiting: list[tuple[int, int, asyncio.Future[None]]] = field(default_factory=list)
    _serial: count[int] = field(default_factory=count)

    @asynccontextmanager
    async def taken(self, claim: int) -> AsyncIterator[None]:
        """Hold a slot inside the block; a lower claim is an older one."""
        await self._take(claim)
        try:
            yield
        finally:
            self._give()

    async def _take(self, claim: int) -> None:
        if self.free:
            self.free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (claim, next(self._serial), turn))
        try:
            await turn
        except asyncio.CancelledError:
            # The slot may have been handed over in the moment of the cancellation.
            if turn.done() and not turn.cancelled():
                self._give()
            raise

    def _give(self) -> None:
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self.free += 1
