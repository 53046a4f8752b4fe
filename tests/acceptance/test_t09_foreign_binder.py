"""T9: what others bind on our nodes is seen at the commit; the rest is counted and shown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pumice.local.cluster import Layout
from pumice.local.scheduler import STOCK
from tests.acceptance.bed import Bed
from tests.acceptance.foreign import Churn, occupy
from tests.acceptance.length import Length
from tests.acceptance.objects import Object, a_job
from tests.acceptance.pages import Pages
from tests.acceptance.parked import NAME, NODE_CPU, behind_proxy, park

pytestmark = pytest.mark.cluster

OVERCOMMITTED = "pumice_nodes_overcommitted"
SIZE, CPU = 8, 2
STARTS_S = 60.0
"""The other scheduler doesn't see who is parked: on a slow machine it takes some tries."""


@pytest.mark.parametrize("index", [0, -1], ids=["arrived", "held back"])
async def test_a_member_whose_node_was_filled_by_others_starts_elsewhere(
    bed: Bed, index: int
) -> None:
    bed.nodes(7, cpu=NODE_CPU)
    async with behind_proxy(bed) as proxy, bed.auditor():
        with park(bed, proxy) as gang:
            await gang.is_parked()
            member = gang.members[index]
            occupy(bed, gang.before[member].node, cpu=NODE_CPU)
            await gang.let_go()

        await gang.starts_but_for(member)
        gang.no_policy_fired()


async def test_gangs_start_beside_a_default_scheduler_and_over_commitment_shows(
    bed: Bed, length: Length, layout: Layout
) -> None:
    if layout == "shared":
        pytest.skip("there is no other scheduler")
    bed.nodes(26, cpu=NODE_CPU)
    starts: list[float] = []
    wanted = length.foreign_per_s * length.foreign_scheduler_s
    async with (
        behind_proxy(bed) as proxy,
        default_scheduler(bed),
        bed.auditor(shared_nodes=True) as auditor,
    ):
        async with Churn(bed, per_s=length.foreign_per_s, cpu="1", life_s=2) as churn:
            await bed.until(churn.bound, 10, "the default scheduler works")
            with park(bed, proxy, size=SIZE, cpu=CPU) as gang:
                await gang.is_parked()
                await gang.let_go()
            starts.append(await started(bed, NAME))
            gang.no_policy_fired()
            await ended(bed, NAME)
            while churn.seconds < length.foreign_scheduler_s or churn.bound() < wanted:
                name = f"gang-{len(starts)}"
                bed.create(a_gang(name))
                starts.append(await started(bed, name))
                await ended(bed, name)
            seconds, pods = churn.seconds, churn.created
        by_chance = (await auditor.so_far()).statistics.over_commitments
        await over_commitment_shows(bed)
        report = await auditor.finish()

    replaced = report.statistics.pods_created - SIZE * (len(starts) + 1)
    print(f"{len(starts)} gangs in {seconds:.0f} s, the slowest bound in {max(starts):.1f} s")
    print(f"{replaced} members replaced; {pods} foreign pods created")
    print(f"{by_chance} bindings by chance that were more than a node can hold")
    assert pods >= 0.95 * length.foreign_per_s * seconds / length.slack
    assert report.statistics.over_commitments > by_chance


async def started(bed: Bed, name: str) -> float:
    """Wait until a gang runs; return the seconds until it was bound."""
    seconds = await bed.until(lambda: len(bed.bound(name)) == SIZE, STARTS_S, f"{name} is bound")
    await bed.until(lambda: bed.job_phase(name) == "Running", 10, f"{name} runs")
    return seconds


async def over_commitment_shows(bed: Bed) -> None:
    """Fill a node on which a gang runs over its brim, and see the metric follow."""
    pages = Pages(bed)
    bed.create(a_gang("last"))
    await started(bed, "last")
    await pages.metric_reaches(OVERCOMMITTED, lambda value: value == 0, 10)
    blocker = occupy(bed, bed.bound("last")[0]["spec"]["nodeName"], cpu=NODE_CPU)
    await pages.metric_reaches(OVERCOMMITTED, lambda value: value == 1, 10)
    bed.delete(blocker, grace_s=0)
    await pages.metric_reaches(OVERCOMMITTED, lambda value: value == 0, 10)


async def ended(bed: Bed, name: str) -> None:
    """Remove a gang."""
    bed.delete(a_gang(name))
    # The garbage collector sees kinds that are new to the cluster only every half a minute.
    await bed.until(lambda: not bed.pods_of(name), 60, f"{name} is gone")


def a_gang(name: str) -> Object:
    """A gang that needs less than half of the nodes."""
    return a_job(name, replicas=SIZE, min_available=SIZE, cpu=CPU)


@asynccontextmanager
async def default_scheduler(bed: Bed) -> AsyncIterator[None]:
    """Run a plain kube-scheduler beside ours."""
    await bed.aside(bed.cluster.start_stock_scheduler)
    try:
        yield
    finally:
        await bed.aside(bed.plane.processes.stop, STOCK)
