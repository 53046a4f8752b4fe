"""Parts that go away in the middle of it: nothing is lost, and the others go on."""

from __future__ import annotations

import asyncio

import pytest

from pumice.local.nodes import NODES
from tests.acceptance.bed import Bed
from tests.acceptance.length import Length
from tests.acceptance.objects import Object, a_job
from tests.acceptance.parked import NODE_CPU, behind_proxy, park

pytestmark = pytest.mark.cluster

GANGS, SIZE = 6, 10
BACK_S = 60.0
"""kube-scheduler looks for its API server ever more rarely, in the end every 30 s."""


async def test_the_api_server_may_be_away_for_a_while(bed: Bed, length: Length) -> None:
    bed.nodes(10)
    names = [f"gang-{index}" for index in range(GANGS)]
    services = ("extender", "controllers", "kube-scheduler")
    pids = {name: bed.plane.processes.pid(name) for name in services}
    async with bed.auditor() as auditor:
        bed.create(a_job("before", replicas=SIZE, min_available=SIZE))
        await bed.until(lambda: len(bed.running("before")) == SIZE, 20, "the first gang runs")
        before = [uid_of(pod) for pod in bed.running("before")]
        bed.create_many([a_job(name, replicas=SIZE, min_available=SIZE) for name in names])
        async with auditor.paused():
            bed.kill("kube-apiserver")
            await asyncio.sleep(length.api_server_away_s)
            await bed.aside(bed.plane.restart_api_server)
        seconds = await bed.until(
            lambda: all(len(bed.running(name)) == SIZE for name in names), BACK_S, "all run"
        )
        bed.create(a_job("after", replicas=SIZE, min_available=SIZE))
        await bed.until(lambda: bed.job_phase("after") == "Running", 20, "a new Job runs")

    print(f"all gangs ran {seconds:.1f} s after the API server was back")
    assert [uid_of(pod) for pod in bed.running("before")] == before
    assert {(bed.job(n) or {})["status"].get("retryCount", 0) for n in ("before", *names)} == {0}
    assert {name: bed.plane.processes.pid(name) for name in services} == pids
    assert [bed.plane.processes.exit_code(name) for name in services] == [None] * 3


@pytest.mark.parametrize("index", [0, -1], ids=["arrived", "released"])
async def test_a_member_whose_node_is_deleted_starts_elsewhere(bed: Bed, index: int) -> None:
    bed.nodes(7, cpu=NODE_CPU)
    async with behind_proxy(bed) as proxy, bed.auditor():
        with park(bed, proxy) as gang:
            await gang.is_parked()
            member = gang.members[index]
            bed.api.delete(f"{NODES}/{gang.before[member].node}")
            bed.create(a_job("other", replicas=1))
            await bed.until(lambda: bed.job_phase("other") == "Running", 10, "another Job runs")

        await gang.starts_but_for(member)
        gang.no_policy_fired()


def uid_of(pod: Object) -> str:
    """Return a pod's uid."""
    uid: str = pod["metadata"]["uid"]
    return uid
