"""Bindings that an extender had sent when it was killed, and that nobody has looked at yet."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pumice.core import names
from tests.adapters.extender.bed import Bed, Json, KubeScheduler

REPLICA_SET = {"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": "r", "controller": True}


@asynccontextmanager
async def started_anew(bed: Bed) -> AsyncIterator[tuple[KubeScheduler, list[Json]]]:
    """Run the next extender; kube-scheduler looks at nothing yet. Yield what the first one left."""
    async with bed.scheduler() as scheduler:
        late = await bed.bindings_left_by_a_kill(2)
        scheduler.blind_to = lambda name: True
        async with bed.extender() as extender:
            await extender.synced.wait()
            yield scheduler, late


async def test_of_nominated_pods_they_bind_nobody_any_more() -> None:
    bed = Bed()
    bed.nodes(2, cpu=2)
    bed.gang("g", 2, owner=REPLICA_SET)
    async with started_anew(bed) as (scheduler, late):
        assert [bed.is_void(binding) for binding in late] == [True, True]
        scheduler.blind_to = lambda name: False
        scheduler.start_anew()
        await bed.until(lambda: len(bed.bound()) == 2)


async def test_of_pinned_pods_they_may_come_late_and_cost_no_write() -> None:
    bed = Bed()
    bed.nodes(2, cpu=2)
    bed.gang("g", 2)
    async with started_anew(bed) as (_, late):
        for binding in late:
            bed.bind(binding)
        await bed.until(lambda: len(bed.bound()) == 2)
        await bed.quiet()
    assert [call for call in bed.writes() if names.FENCE.encode() in call.body] == []
