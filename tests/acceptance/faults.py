"""
The faults of the proxy: which requests they strike, and what becomes of those.

A fault strikes the requests that its `Match` accepts, a fraction of them or in bursts, until it is
switched off. Chance comes from the proxy's generator, so a run with the same requests in the same
order has the same faults.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Self


@dataclass(frozen=True, slots=True)
class Match:
    """Accepts a request by method, by a pattern found in path and query, and by its body."""

    method: str = ""
    path: str = ""
    body: Callable[[bytes], bool] | None = None

    def __call__(self, method: str, path: str, body: bytes) -> bool:
        """Whether all that is given holds."""
        return (
            self.method in ("", method)
            and re.search(self.path, path) is not None
            and (self.body is None or self.body(body))
        )


@dataclass(slots=True)
class Fault:
    """What all faults have: whom they strike, whether they are on, how often they struck."""

    match: Match
    on: bool = True
    struck: int = 0

    def off(self) -> None:
        """Strike nobody any more."""
        self.on = False

    def strikes(self, rng: Random) -> bool:
        """Whether a request that matches is struck."""
        return True


@dataclass(slots=True)
class Fail(Fault):
    """Answers a fraction with an error; the API server never sees them."""

    fraction: float = 1.0
    status: int = 500

    def strikes(self, rng: Random) -> bool:
        """Throw the dice."""
        return rng.random() < self.fraction


@dataclass(slots=True)
class Late(Fault):
    """Keeps the answer back for some seconds after the API server has done as asked."""

    fraction: float = 1.0
    seconds: float = 1.0

    def strikes(self, rng: Random) -> bool:
        """Throw the dice."""
        return rng.random() < self.fraction


@dataclass(slots=True)
class Throttle(Fault):
    """Of every `every` requests the last `burst` are told to come again later."""

    every: int = 100
    burst: int = 10
    retry_after_s: int = 1
    counted: int = 0

    def strikes(self, rng: Random) -> bool:
        """Count."""
        self.counted += 1
        return (self.counted - 1) % self.every >= self.every - self.burst


@dataclass(slots=True)
class Hold(Fault):
    """
    Keeps requests back, before the API server sees them, until they are released.

    Used as a context manager it releases at the end of the block.
    """

    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    #: nobody waits any more
    left: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0

    def release(self) -> None:
        """Let go what waits, and hold nothing more."""
        self.on = False
        self.released.set()

    async def wait(self) -> None:
        """Wait as a request that is held."""
        self.waiting += 1
        self.left.clear()
        self.arrived.set()
        try:
            await self.released.wait()
        finally:
            self.waiting -= 1
            if not self.waiting:
                self.left.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
