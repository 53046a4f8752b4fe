"""Keys that come due later: one task and a heap, however many keys wait."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Hashable
from itertools import count
from typing import Generic, TypeVar

from pumice.kube.clock import Clock

K = TypeVar("K", bound=Hashable)


class Timers(Generic[K]):
    """Calls `fire` with each key when its time has come; `run` works until cancelled."""

    def __init__(self, clock: Clock, fire: Callable[[K], None]) -> None:
        self._clock = clock
        self._fire = fire
        self._due: dict[K, float] = {}
        #: also holds entries that an earlier time has overtaken; those fire nothing
        self._heap: list[tuple[float, int, K]] = []
        self._serial = count()
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        return len(self._due)

    def set(self, key: K, seconds: float) -> None:
        """Have the key come due after `seconds`; an earlier time that it has already stays."""
        due = self._clock.monotonic() + seconds
        if due >= self._due.get(key, due + 1):
            return
        self._due[key] = due
        heapq.heappush(self._heap, (due, next(self._serial), key))
        if self._heap[0][0] == due:
            self._wake.set()

    def discard(self, key: K) -> None:
        """Let the key not come due."""
        self._due.pop(key, None)

    def clear(self) -> None:
        """Let no key come due."""
        self._due.clear()
        self._heap.clear()

    async def run(self) -> None:
        """Wait for the next key, again and again."""
        while True:
            self._wake.clear()
            self._fire_due()
            if self._heap:
                await self._pause(self._heap[0][0] - self._clock.monotonic())
            else:
                await self._wake.wait()

    def _fire_due(self) -> None:
        now = self._clock.monotonic()
        while self._heap and self._heap[0][0] <= now:
            due, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                self._fire(key)

    async def _pause(self, seconds: float) -> None:
        """Wait until the time is over or an earlier key was set."""
        waits = (
            asyncio.create_task(self._clock.sleep(seconds), name="timers: sleep"),
            asyncio.create_task(self._wake.wait(), name="timers: wake"),
        )
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
