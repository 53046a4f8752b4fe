"""T7: an API server that fails, is slow, asks to wait and goes away tears no gang apart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.acceptance import scheduler_cache
from tests.acceptance.bed import Bed
from tests.acceptance.faults import Throttle
from tests.acceptance.length import Length
from tests.acceptance.objects import a_job
from tests.acceptance.parked import behind_proxy
from tests.acceptance.proxy import FaultProxy

pytestmark = pytest.mark.cluster

GANGS, SIZE = 20, 50
BINDING = r"/binding$"
LATE_S = 3.0
BURST_S, BETWEEN_BURSTS_S = 1.0, 4.0
CUT_S = 20.0
CUT_AT = 150
"""Pods bound when the connections are cut: some gang is then in the middle of it."""
BOUND_S = 90.0
PARTIAL_S = 5.0
"""How long a gang may be seen bound in part."""


async def test_gangs_stay_whole_while_the_api_server_fails(bed: Bed, length: Length) -> None:
    bed.nodes(100)
    names = [f"gang-{index:02}" for index in range(GANGS)]
    limit_s = PARTIAL_S * length.slack
    async with behind_proxy(bed) as proxy, bed.auditor(limit_s=limit_s) as auditor:
        failing = proxy.fail(0.05, 500, method="POST", path=BINDING)
        late = proxy.answer_late(0.02, LATE_S, method="POST", path=BINDING)
        async with bursts(proxy) as throttling:
            jobs = [a_job(n, replicas=SIZE, min_available=SIZE, cpu=1) for n in names]
            await bed.aside(bed.create_many, jobs)
            await bed.until(lambda: bound(bed) >= CUT_AT, 60, "the first gangs are bound")
            async with auditor.paused():
                await proxy.cut_for(CUT_S)
            seconds = await bed.until(lambda: bound(bed) == GANGS * SIZE, BOUND_S, "all are bound")
        await bed.until(lambda: all(len(bed.running(n)) == SIZE for n in names), 60, "all run")
        await auditor.finish()

    print(f"all bound {seconds:.1f} s after the cut; {dict(proxy.counts)}")
    assert min(failing.struck, late.struck, throttling.struck) > 0
    assert await scheduler_cache.cached(bed) == scheduler_cache.shown(bed)


@asynccontextmanager
async def bursts(proxy: FaultProxy) -> AsyncIterator[Throttle]:
    """Answer 429 to every write to pods for a second, every five seconds."""
    throttle = proxy.throttle(every=1, burst=1, path=r"/pods/")

    async def turn() -> None:
        while True:
            throttle.on = True
            await asyncio.sleep(BURST_S)
            throttle.on = False
            await asyncio.sleep(BETWEEN_BURSTS_S)

    async with asyncio.TaskGroup() as group:
        turning = group.create_task(turn(), name="bursts of 429")
        yield throttle
        turning.cancel()
        throttle.off()


def bound(bed: Bed) -> int:
    """Return how many pods of the test are on a node."""
    return sum(
        "nodeName" in pod["spec"]
        for pod in bed.pods.values()
        if pod["metadata"]["namespace"] == bed.namespace
    )
