"""T9: what others bind on our nodes is seen at the commit; the rest is counted and shown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pumice.local.scheduler import STOCK
from tests.acceptance.bed import Bed
from tests.acceptance.foreign import Churn, occupy
from tests.acceptance.length import Length
from tests.acceptance.objects import a_job
from tests.acceptance.pages import Pages
from tests.acceptance.parked import FIRST, LAST, NODE_CPU, behind_proxy, park

pytestmark = pytest.mark.cluster

OVERCOMMITTED = "pumice_nodes_overcommitted"
GANG, MEMBER_CPU = 8, 3
STARTS_S = 20.0


@pytest.mark.parametrize("member", [FIRST, LAST])
async def test_a_member_whose_node_was_filled_by_others_starts_elsewhere(
    bed: Bed, member: str
) -> None:
    async with behind_proxy(bed) as proxy, bed.auditor() as auditor:
        with park(bed, proxy, auditor) as gang:
            await gang.is_parked()
            occupy(bed, gang.before[member].node, cpu=NODE_CPU)
            await gang.let_go()

        await gang.starts_but_for(member)
        gang.no_policy_fired()


async def test_gangs_start_beside_a_default_scheduler_and_over_commitment_shows(
    bed: Bed, length: Length
) -> None:
    bed.nodes(20, cpu=NODE_CPU)
    pages = Pages(bed)
    async with default_scheduler(bed), bed.auditor(shared_nodes=True) as auditor:
        starts: list[float] = []
        async with Churn(bed, per_s=20, cpu="500m") as churn:
            await bed.until(churn.bound, 10, "the default scheduler works")
            while churn.seconds < length.foreign_scheduler_s:
                starts.append(await start_and_delete(bed, f"gang-{len(starts)}"))
            pods, seconds = churn.bound(), churn.seconds
        by_chance = (await auditor.so_far()).statistics.over_commitments

        bed.create(a_job("last", replicas=GANG, min_available=GANG, cpu=MEMBER_CPU))
        await bed.until(lambda: len(bed.running("last")) == GANG, STARTS_S, "the last gang runs")
        await pages.metric_reaches(OVERCOMMITTED, lambda value: value == 0, 10)
        blocker = occupy(bed, bed.running("last")[0]["spec"]["nodeName"], cpu=NODE_CPU)
        await pages.metric_reaches(OVERCOMMITTED, lambda value: value == 1, 10)
        bed.delete(blocker, grace_s=0)
        await pages.metric_reaches(OVERCOMMITTED, lambda value: value == 0, 10)
        report = await auditor.finish()

    print(f"{len(starts)} gangs in {seconds:.0f} s, the slowest bound after {max(starts):.1f} s")
    print(f"{pods} foreign pods bound, {by_chance} times more than a node can hold")
    assert pods >= 0.9 * churn.per_s * length.foreign_scheduler_s
    assert report.statistics.over_commitments > by_chance


async def start_and_delete(bed: Bed, name: str) -> float:
    """See a gang start, and remove it; return the seconds until it was bound."""
    job = a_job(name, replicas=GANG, min_available=GANG, cpu=MEMBER_CPU)
    bed.create(job)
    seconds = await bed.until(lambda: len(bed.bound(name)) == GANG, STARTS_S, f"{name} is bound")
    await bed.until(lambda: bed.job_phase(name) == "Running", 10, f"{name} runs")
    bed.delete(job)
    await bed.until(lambda: not bed.pods_of(name), 20, f"{name} is gone")
    return seconds


@asynccontextmanager
async def default_scheduler(bed: Bed) -> AsyncIterator[None]:
    """Run a plain kube-scheduler beside ours."""
    await bed.aside(bed.cluster.start_stock_scheduler)
    try:
        yield
    finally:
        await bed.aside(bed.plane.processes.stop, STOCK)
