"""
Memory that is free goes back to the system.

A burst of connections over TLS takes megabytes, which malloc keeps afterwards as holes between what
stays: each burst that is larger than those before makes the process larger for good. glibc gives
holes back when it is told to.
"""

from __future__ import annotations

import asyncio
import ctypes

from pumice.kube.clock import Clock

PERIOD_S = 10.0


def trim() -> bool:
    """Give back what is free, in a few milliseconds; return whether the C library can."""
    give_back = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if give_back is None:
        return False
    give_back(0)
    return True


async def trim_regularly(clock: Clock) -> None:
    """Give back what is free every ten seconds, until cancelled."""
    while True:
        await clock.sleep(PERIOD_S)
        await asyncio.to_thread(trim)
