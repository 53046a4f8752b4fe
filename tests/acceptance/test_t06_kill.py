"""T6: kill -9 at random moments: what ran goes on, what waited starts, and no Job is retried."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from tests.acceptance.bed import Bed
from tests.acceptance.contention import NODE_CPU, NODES, Contention
from tests.acceptance.length import Length
from tests.auditor.run import Auditor

pytestmark = pytest.mark.cluster

PARTS = ("extender", "kube-scheduler", "controllers")
CONVERGES_S = 30.0
PATIENCE_S = 20.0


async def test_kills_at_random_moments_lose_nothing(bed: Bed, length: Length) -> None:
    bed.nodes(NODES, cpu=NODE_CPU)
    gangs = Contention(bed, random.Random(6))
    gangs.submit("r0")
    await gangs.until_full(PATIENCE_S)
    async with bed.auditor(limit_s=CONVERGES_S) as auditor:
        for number in range(length.kills):
            if len(gangs.unfinished()) < 15:
                gangs.submit(f"r{number + 1}")
            await kill_amid_completions(gangs, auditor, PARTS[number % len(PARTS)])
        while gangs.unfinished():
            await gangs.complete(*gangs.some_running())
            await gangs.until_full(PATIENCE_S)
        await bed.until(
            lambda: {bed.job_phase(name) for name in gangs.gangs} == {"Completed"},
            PATIENCE_S,
            "every Job is Completed",
        )
        await auditor.finish()
    assert retries(bed) == set()


async def kill_amid_completions(gangs: Contention, auditor: Auditor, part: str) -> None:
    """Let some gangs end, kill a part while others start in their place, and see all well again."""
    ending = asyncio.create_task(gangs.complete(*gangs.some_running()), name="completions")
    await asyncio.sleep(gangs.rng.uniform(0.0, 2.0))
    bed = gangs.bed
    bed.kill(part)
    killed = time.monotonic()
    await auditor.killed()
    await asyncio.sleep(gangs.rng.uniform(0.0, 1.0))
    await bed.aside(bed.restart, part)
    await ending
    await gangs.until_full(killed + CONVERGES_S - time.monotonic())


def retries(bed: Bed) -> set[str]:
    """Return the Jobs that were ever seen with a retry."""
    jobs = [seen.object for seen in bed.jobs.history]
    return {job["metadata"]["name"] for job in jobs if job.get("status", {}).get("retryCount")}
