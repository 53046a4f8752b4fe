"""T3: thirty gangs where ten have room: the room is always in use, and everyone has a turn."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.acceptance.bed import Bed
from tests.acceptance.contention import NODE_CPU, NODES, Contention, gaps
from tests.acceptance.figures import ledger
from tests.acceptance.length import Length
from tests.acceptance.timeline import lives

pytestmark = pytest.mark.cluster

GRACE_S = 2.0
"""After a completion fewer gangs than have room may run for so long."""
START_S = 10.0
PATIENCE_S = 20.0


async def test_ten_gangs_run_whenever_ten_are_left(bed: Bed, length: Length) -> None:
    bed.nodes(NODES, cpu=NODE_CPU)
    rng = random.Random(3)
    async with bed.auditor() as auditor:
        for number in range(length.contention_rounds):
            gangs = Contention(bed, rng)
            await a_round(gangs, f"r{number}")
            found = [life for life in lives(bed) if life.job in gangs.gangs]
            assert gaps(found, GRACE_S * length.slack) == []
            assert ledger(bed).errors == 0
            gangs.delete()
            # The garbage collector sees kinds that are new to the cluster every half a minute.
            await bed.until(lambda: not bed.pods, 60, "the round's pods are gone")
        report = await auditor.finish()
    assert report.statistics.error_answers == 0


async def a_round(gangs: Contention, prefix: str) -> None:
    """Submit thirty gangs and let them end at random, some right after the others."""
    gangs.submit(prefix)
    await gangs.until_full(START_S)
    while gangs.unfinished():
        await gangs.complete(*gangs.some_running())
        if gangs.rng.random() < 0.5:
            await gangs.until_full(PATIENCE_S)
        else:
            await asyncio.sleep(gangs.rng.uniform(0.0, 1.0))
            await gangs.bed.until(gangs.is_alive, PATIENCE_S, "a gang runs")
    bed = gangs.bed
    await bed.until(
        lambda: all(bed.job_phase(name) == "Completed" for name in gangs.gangs),
        PATIENCE_S,
        "the Jobs are Completed",
    )
