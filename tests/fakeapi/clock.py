"""A clock that stands still until a test turns it."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from itertools import count

#: turns of the event loop after which whatever does not wait for time is done
TURNS = 2_000


class ManualClock:
    """Sleepers wake in order when `advance` passes their time, and get to run before the next."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now
        self._monotonic = 1_000.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._serial = count()

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        due = self._monotonic + seconds
        heapq.heappush(self._sleepers, (due, next(self._serial), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Let time pass: each sleeper wakes at its time, and all it starts is done first."""
        end = self._monotonic + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            due, _, future = heapq.heappop(self._sleepers)
            if future.done():
                continue
            self._move(due)
            future.set_result(None)
            await settle()
        self._move(end)
        await settle()

    @property
    def sleepers(self) -> int:
        """How many sleep now."""
        return sum(not future.done() for _, _, future in self._sleepers)

    def _move(self, to: float) -> None:
        self._now += to - self._monotonic
        self._monotonic = to


async def settle() -> None:
    """Let everything run that waits for nothing but its turn."""
    for _ in range(50):
        await asyncio.sleep(0)


async def until(condition: Callable[[], object]) -> None:
    """Let the loop turn until the condition holds; fails where it never does."""
    for _ in range(TURNS):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("the condition never came true")


async def eventually(condition: Callable[[], Awaitable[bool]], seconds: float = 60) -> None:
    """Ask again and again until the condition holds; for servers that take real time."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - a server has no event to wait for
            await asyncio.sleep(0.02)
