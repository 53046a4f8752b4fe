"""T14: pods come and go and nodes flap for a long time; memory stays, and nothing is left over."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import linear_regression, mean
from time import monotonic

import pytest

from pumice.local.cluster import Cluster
from pumice.local.nodes import NODES, a_node
from tests.acceptance.bed import Bed
from tests.acceptance.figures import extender_metric, ledger
from tests.acceptance.length import Length
from tests.acceptance.objects import a_job, a_pod
from tests.acceptance.pages import Pages

pytestmark = pytest.mark.cluster

PODS_PER_S = 20
SIZE = 10
LIVES_S = 3
SWEEP_EVERY_S = 1.0
FLAP_EVERY_S = 1.0
LOOK_EVERY_S = 5.0
LOOKS = 12
"""As many make a minute: from one to the next it goes up and down by 2 % as memory is trimmed."""
LONG_S = 900.0
"""From here on the memory is judged as a line; a shorter run has none to speak of."""
WARM_UP_S = 600.0
SHORT_WARM_UP_SHARE = 0.5
MIB = 2**20
SLOPE_MIB = 1.0
GROWTH = 1.05
SHORT_GROWTH = 1.3
"""Of a short run, whose memory also holds what a busy machine has not come to yet."""


@pytest.fixture
def bed(cluster: Cluster) -> Iterator[Bed]:
    """A bed that doesn't follow so many pods, and leaves them to the end of the cluster."""
    view = Bed(cluster, unwatched=["pods", "pod_groups", "nodes"])
    view.open()
    yield view
    view.stop()


async def test_memory_stays_and_nothing_is_left_over(bed: Bed, length: Length) -> None:
    node_names = await bed.aside(bed.nodes, 1_000 if length.soak_s >= 60 else 100, zones=2)
    memory = Memory()
    pages = Pages(bed)
    async with bed.auditor(settle_s=60) as auditor:
        async with at_once(churn(bed), sweeping(bed), flapping(bed, node_names), memory.watch(bed)):
            await asyncio.sleep(length.soak_s)
        await everything_deleted(bed, pages)
        report = await auditor.finish()

    created, bound = report.statistics.pods_created, report.statistics.pods_bound
    print(f"{created} pods created and {bound} bound in {length.soak_s:.0f} s; {memory}")
    assert bound >= 0.9 * PODS_PER_S * (length.soak_s - 2 * LIVES_S) / length.slack
    memory.stayed()


@dataclass(slots=True)
class Memory:
    """The extender's resident memory in MiB, by seconds since the start."""

    seconds: list[float] = field(default_factory=list)
    mib: list[float] = field(default_factory=list)

    async def watch(self, bed: Bed) -> None:
        """Look at it again and again."""
        began = monotonic()
        while True:
            rss = await bed.aside(extender_metric, bed, "process_resident_memory_bytes")
            self.seconds.append(monotonic() - began)
            self.mib.append(rss / MIB)
            await asyncio.sleep(LOOK_EVERY_S)

    def warm(self) -> tuple[list[float], list[float]]:
        """Return seconds and MiB of the looks after the warm-up; of a short run the second half."""
        whole = self.seconds[-1]
        after = WARM_UP_S if whole >= LONG_S else whole * SHORT_WARM_UP_SHARE
        first = next(i for i, second in enumerate(self.seconds) if second >= after)
        return self.seconds[first:], self.mib[first:]

    def slope(self) -> float:
        """Return the growth in MiB for ten minutes, by least squares after the warm-up."""
        return 600 * linear_regression(*self.warm()).slope

    def growth(self) -> float:
        """Return the last minute as a multiple of the first after the warm-up."""
        _, mib = self.warm()
        looks = min(LOOKS, len(mib) // 3 or 1)
        return mean(mib[-looks:]) / mean(mib[:looks])

    def stayed(self) -> None:
        """Fail if the memory grew."""
        long = self.seconds[-1] >= LONG_S
        assert self.growth() <= (GROWTH if long else SHORT_GROWTH), self
        assert not long or self.slope() < SLOPE_MIB, self

    def __str__(self) -> str:
        shown = self.mib[:: max(1, len(self.mib) // 10)]
        return (
            f"RSS in MiB {', '.join(f'{m:.1f}' for m in shown)}, at the end {self.mib[-1]:.1f}; "
            f"{self.growth():.3f} of what it was warm, {self.slope():+.2f} MiB in 10 min"
        )


async def churn(bed: Bed) -> None:
    """Create gangs and single pods of ever other shapes, which end by themselves."""
    began = monotonic()
    for serial in itertools.count():
        cpu = f"{100 + serial % 400}m"
        command = ["sleep", str(LIVES_S)]
        if serial % 2:
            pods = [
                a_pod(f"p{serial}-{i}", cpu=cpu, command=command, labels={"wave": str(serial)})
                for i in range(SIZE)
            ]
            await bed.aside(bed.create_many, pods)
        else:
            job = a_job(f"j{serial}", replicas=SIZE, min_available=SIZE, cpu=cpu, command=command)
            job["spec"]["ttlSecondsAfterFinished"] = 1
            await bed.aside(bed.create, job)
        due = began + (serial + 1) * SIZE / PODS_PER_S
        await asyncio.sleep(max(due - monotonic(), 0))


async def sweeping(bed: Bed) -> None:
    """Delete the single pods that have ended."""
    ended = "labelSelector=wave&fieldSelector=status.phase%3DSucceeded"
    while True:
        await bed.aside(bed.api.delete, f"{pods_path(bed)}?{ended}")
        await asyncio.sleep(SWEEP_EVERY_S)


async def flapping(bed: Bed, names: list[str]) -> None:
    """Cordon nodes and let them go on, and now and then take an empty one away for a moment."""
    rng = random.Random(14)
    while True:
        name = rng.choice(names)
        await bed.aside(bed.cordon, name)
        await asyncio.sleep(FLAP_EVERY_S / 2)
        if rng.random() < 0.2:
            await bed.aside(bed.api.delete, f"{NODES}/{name}")
            await bed.aside(bed.api.post, NODES, a_node(name))
        else:
            await bed.aside(bed.cordon, name, on=False)
        await asyncio.sleep(FLAP_EVERY_S / 2)


async def everything_deleted(bed: Bed, pages: Pages) -> None:
    """Delete all Jobs and pods, and see that the extender knows of none."""
    jobs = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{bed.namespace}/jobs"
    await bed.aside(bed.api.delete, jobs)
    await bed.aside(bed.api.delete, pods_path(bed), {"gracePeriodSeconds": 0})
    await bed.until(lambda: not bed.jobs, 60, "the Jobs are gone")
    for left_over in ("ledger_entries", "cached_pods", "task_classes"):
        await pages.metric_reaches(f"pumice_{left_over}", lambda value: value == 0, 60)
    assert not (await bed.aside(ledger, bed)).entries


def pods_path(bed: Bed) -> str:
    """Return the path of the test's pods."""
    return f"/api/v1/namespaces/{bed.namespace}/pods"


@asynccontextmanager
async def at_once(*coroutines: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Run things beside a block; where one fails the block fails, and all end with it."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(coroutine) for coroutine in coroutines]
        yield
        for task in tasks:
            task.cancel()
