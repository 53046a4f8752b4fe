"""
Time as a dependency: the same code runs on the real clock and on one that tests turn by hand.

Wall time is for what people read (timestamps in objects); monotonic time is for every
duration, so that a clock that jumps changes nothing.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What anything that waits or stamps needs of time."""

    def now(self) -> float:
        """Return wall time in seconds since 1970."""
        ...

    def monotonic(self) -> float:
        """Return seconds since an arbitrary moment; never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def rfc3339(seconds: float) -> str:
    """Return wall time as `metav1.Time` has it: UTC, whole seconds."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(seconds: float) -> str:
    """Return wall time as `metav1.MicroTime` has it: UTC, microseconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_rfc3339(text: str) -> float:
    """Return seconds since 1970; raises ValueError where the text is no RFC 3339 time."""
    return datetime.fromisoformat(text).timestamp()
