"""Memory that was freed is the system's again."""

from __future__ import annotations

import ctypes
import platform
from pathlib import Path

import pytest

from pumice.kube import memory
from tests.adapters.kube.conftest import running
from tests.fakeapi import ManualClock, eventually, settle

BLOCK = 64 * 1024
BLOCKS = 1_000


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="others have no malloc_trim")
def test_holes_between_what_stays_are_given_back() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    blocks = [libc.malloc(BLOCK) for _ in range(BLOCKS)]
    for block in blocks:
        ctypes.memset(block, 1, BLOCK)
    for block in blocks[::2]:
        libc.free(block)
    before = resident()
    try:
        assert memory.trim()
        assert before - resident() > BLOCK * BLOCKS / 4
    finally:
        for block in blocks[1::2]:
            libc.free(block)


async def test_it_is_done_once_in_a_while(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[float] = []
    monkeypatch.setattr(memory, "trim", lambda: times.append(clock.now()))
    due = clock.now() + memory.PERIOD_S

    async def is_done() -> bool:
        return times == [due]

    async with running(memory.trim_regularly(clock)):
        await settle()
        await clock.advance(memory.PERIOD_S)
        await eventually(is_done)
