"""T11: a backlog of thousands of pods goes through the window, gang after gang."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from pumice.local.cluster import Cluster
from tests.acceptance.bed import Bed
from tests.acceptance.figures import Sockets, extender_metric, ledger
from tests.acceptance.length import Length
from tests.acceptance.objects import a_job
from tests.acceptance.timeline import most
from tests.acceptance.trail import trail

pytestmark = pytest.mark.cluster

SIZE = 100
NODES_PER_GANG = 10
WINDOW = 1000
MORE_SOCKETS = 100
SPREAD_S = 2.0
PATIENCE_S = 180.0
LOOK_S = 0.1


@pytest.fixture
def bed(cluster: Cluster) -> Iterator[Bed]:
    """A bed that doesn't follow so many pods, and leaves them to the end of the cluster."""
    view = Bed(cluster, unwatched=["pods"])
    view.open()
    yield view
    view.stop()


async def test_a_backlog_goes_through_the_window_gang_after_gang(bed: Bed, length: Length) -> None:
    gangs, pods = length.backlog_gangs, length.backlog_gangs * SIZE
    await bed.aside(bed.nodes, gangs * NODES_PER_GANG)
    bed.cluster.extender.stop()
    await a_backlog(bed, gangs)
    async with bed.auditor(settle_s=60) as auditor:
        bed.cluster.extender.start()
        sockets = await most_sockets_until_all_run(bed)
        report = await auditor.finish()

    assert report.statistics.pods_bound == pods
    assert in_flight(bed) <= WINDOW
    assert ledger(bed).errors == 0
    waits = "pumice_bind_gang_wait_seconds"
    assert extender_metric(bed, f"{waits}_count") == pods
    assert extender_metric(bed, f"{waits}_bucket", le=str(SPREAD_S * length.slack)) == pods
    assert sockets <= WINDOW + MORE_SOCKETS


async def a_backlog(bed: Bed, gangs: int) -> None:
    """Create gangs and let their pods be created, as if an extender had admitted them."""
    jobs = [a_job(f"gang-{i:02}", replicas=SIZE, min_available=SIZE) for i in range(gangs)]
    await bed.aside(bed.create_many, jobs)
    await bed.until(lambda: len(bed.pod_groups) == gangs, PATIENCE_S, "the PodGroups are there")
    await bed.aside(bed.admit)
    await bed.until(
        lambda: all(job.get("status", {}).get("pending") == SIZE for job in bed.jobs.values()),
        PATIENCE_S,
        "the pods are there",
    )


async def most_sockets_until_all_run(bed: Bed) -> int:
    """Look at the extender's sockets until all gangs run; return the most there were."""
    sockets = Sockets(bed.plane.processes.pid("extender"))
    running = asyncio.create_task(
        bed.until(
            lambda: all(job.get("status", {}).get("running") == SIZE for job in bed.jobs.values()),
            PATIENCE_S,
            "all pods run",
        ),
        name="running",
    )
    most_seen = 0
    while not running.done():
        most_seen = max(most_seen, sockets.count())
        await asyncio.wait([running], timeout=LOOK_S)
    await running
    return most_seen


def in_flight(bed: Bed) -> int:
    """Return how many pods were released and not bound at most, by the audit log."""
    released: dict[str, float] = {}
    bound: dict[str, float] = {}
    for write in trail(bed.plane.audit_log, bed.namespace):
        if write.what == "create pods/binding":
            bound[write.object_ref.name] = write.done
        elif write.what == "patch pods" and b"schedulingGates" in bytes(write.request_object):
            released[write.object_ref.name] = write.began
    assert released.keys() == bound.keys()
    return most((released[name], bound[name]) for name in released)
