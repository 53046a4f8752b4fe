"""Everything fails now and then, and in the end every gang is whole and every book is right."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from extender.service import Service
from pumice.core import names
from pumice.kube.resources import PODS
from tests.adapters.extender.bed import Bed, Json, KubeScheduler
from tests.effort import stride
from tests.fakeapi.faults import Call
from tests.fakeapi.store import Entry

CLAIM = {"resourceClaims": [{"name": "card", "resourceClaimTemplateName": "card"}]}
REPLICA_SET = {"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": "r", "controller": True}
SIZE = 5
NODES, CPU = 6, 8
LIVES, GANGS_A_LIFE = 3, 2
SOON_S = 0.02


class Owners:
    """Plays the controllers that own pods: what is gone, or is to go, is made anew."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        self.pods: dict[str, Json] = {}
        bed.api.store.listeners.append(self._changed)

    def submit(self, name: str, minimum: int, claims: int, **more: Any) -> None:
        """Make a gang of which so many have a claim, so that they may go elsewhere."""
        self.bed.gang(name, 0, minimum=minimum)
        self.pods |= {
            f"{name}-{i}": {**more, "spec": CLAIM if i < claims else {}} for i in range(SIZE)
        }
        for i in range(SIZE):
            self._make(f"{name}-{i}")

    def _changed(self, entry: Entry) -> None:
        meta = entry.obj["metadata"]
        if entry.resource != PODS or meta["name"] not in self.pods:
            return
        loop = asyncio.get_running_loop()
        if entry.type == "DELETED":
            loop.call_later(SOON_S, self._make, meta["name"])
        elif names.OUT_OF_SYNC in (meta.get("annotations") or {}):
            loop.call_later(SOON_S, delete, self.bed, meta["name"], meta["uid"])

    def _make(self, name: str) -> None:
        if self.bed.api.get(PODS, "ns", name) is None:
            self.bed.pod(name, group=name.rsplit("-", 1)[0], **self.pods[name])


def delete(bed: Bed, name: str, uid: str = "") -> None:
    pod = bed.api.get(PODS, "ns", name)
    if pod is not None and uid in ("", pod["metadata"]["uid"]):
        bed.api.objects.delete(PODS, pod, {"gracePeriodSeconds": 0})


def order_faults(bed: Bed, rng: random.Random, fails: Callable[[], bool]) -> None:
    """Let some of the writes fail, each in one of the ways there are."""

    def some(call: Call) -> bool:
        return fails() and call.method != "GET" and rng.random() < 0.04

    bed.api.fail(500, times=10**9, when=some)
    bed.api.fail(429, times=10**9, when=some)
    bed.api.lose(times=10**9, when=some)
    bed.api.lose(times=10**9, when=some, applied=True)


def make_trouble(bed: Bed, scheduler: KubeScheduler, rng: random.Random) -> None:
    """Do one thing that nobody expects."""
    pods = bed.api.all(PODS)
    held = [
        pod["metadata"]["name"]
        for pod in pods
        if pod["spec"].get("schedulingGates")
        # Were it not to be pinned, our patch might come too late to change anything.
        and pod["metadata"]["ownerReferences"][0]["kind"] == "Job"
        and "resourceClaims" not in pod["spec"]
    ]
    match rng.randrange(8):
        case 0 | 1 if pods:
            delete(bed, rng.choice(pods)["metadata"]["name"])
        case 2:
            bed.api.drop_watches()
        case 3:
            bed.api.compact()
            bed.api.drop_watches()
        case 4:
            scheduler.start_anew()
        case 5 if held:
            bed.change(rng.choice(held), {"spec": {"schedulingGates": None}})
        case _:
            pass


def is_clean(extender: Service) -> bool:
    """Tell whether nothing is left of what was on its way."""
    barrier, releases = extender.barrier, extender.releases
    left = (barrier.parked, barrier.by_job, barrier.commits, barrier.committing)
    on_its_way = (
        extender.model.ledger.in_flight(),
        releases.waiting,
        releases.queue,
        releases.underway,
    )
    return not any(left) and not any(on_its_way)


@pytest.mark.parametrize("seed", range(0, 3, stride(3)))
async def test_in_the_end_all_is_well(seed: int) -> None:
    rng = random.Random(seed)
    failing = True
    bed = Bed()
    bed.nodes(NODES, CPU)
    owners = Owners(bed)
    order_faults(bed, rng, lambda: failing)
    async with bed.scheduler() as scheduler:
        scheduler.elsewhere = lambda: f"n{rng.randrange(NODES)}" if rng.random() < 0.3 else ""
        for life in range(LIVES):
            async with bed.extender(kill=rng.random() < 0.5):
                for i in range(GANGS_A_LIFE):
                    foreign = {"owner": REPLICA_SET} if rng.random() < 0.3 else {}
                    claims = rng.choice([0, 0, 1, SIZE])
                    owners.submit(f"g{life}{i}", rng.choice([5, 5, 3, 1]), claims, **foreign)
                for _ in range(10):
                    await asyncio.sleep(rng.uniform(0, 0.08))
                    make_trouble(bed, scheduler, rng)
        failing = False
        async with bed.extender() as extender:
            await bed.until(lambda: len(bed.bound()) == LIVES * GANGS_A_LIFE * SIZE, 30)
            await bed.quiet()
            await bed.until(lambda: is_clean(extender))

    nodes = list(bed.bound().values())
    assert max(map(nodes.count, nodes)) <= CPU
