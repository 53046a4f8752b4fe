"""Leader election: one leads at a time, and another takes over when it is gone."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from pumice.kube.client import Client
from pumice.kube.errors import NotLeading
from pumice.kube.lease import LOOKS, Election, LeadershipLostError, Terms
from pumice.kube.resources import CONFIG_MAPS, LEASES
from tests.fakeapi.app import FakeApi
from tests.fakeapi.clock import ManualClock, settle

TERMS = Terms("default", "controllers")
BODY = {"metadata": {"name": "c"}}


@dataclass
class Replica:
    """One replica: waits, leads, and ends when it has lost the lease."""

    client: Client
    election: Election
    task: asyncio.Task[None]

    @property
    def fenced(self) -> Client:
        return self.client.fenced(lambda: self.election.leads)

    async def kill(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


class World:
    """An API server with replicas; the tests turn the clock."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.api = FakeApi(self.clock)
        self.replicas: list[Replica] = []

    def start(self, name: str) -> Replica:
        client = self.api.client()
        election = Election(client, TERMS, name, clock=self.clock, rng=random.Random(0))

        async def live() -> None:
            await election.acquire()
            await election.keep()

        replica = Replica(client, election, asyncio.create_task(live()))
        self.replicas.append(replica)
        return replica

    @property
    def leaders(self) -> list[str]:
        return [r.election.identity for r in self.replicas if r.election.leads]

    @property
    def lease(self) -> Any:
        found = self.api.get(LEASES, "default", "controllers")
        assert found is not None
        return found["spec"]

    async def end(self) -> None:
        for replica in self.replicas:
            replica.task.cancel()
        await asyncio.gather(*(r.task for r in self.replicas), return_exceptions=True)
        for replica in self.replicas:
            await replica.client.close()


@pytest.fixture
async def world() -> Any:
    made = World()
    yield made
    await made.end()


async def test_the_first_leads_and_the_second_waits(world: World) -> None:
    a = world.start("a")
    await settle()
    b = world.start("b")
    await world.clock.advance(60)
    assert world.leaders == ["a"]
    assert (a.election.leader, b.election.leader) == ("a", "a")
    assert world.lease["holderIdentity"] == "a"
    assert world.lease["leaseDurationSeconds"] == 15


async def test_another_takes_over_within_the_lease_time_of_one_that_is_gone(world: World) -> None:
    a = world.start("a")
    await settle()
    world.start("b")
    await world.clock.advance(5)
    await a.kill()
    await world.clock.advance(9)
    assert "b" not in world.leaders, "the lease has not run out yet"
    # It may have been renewed right before, and that be seen only with the next look.
    await world.clock.advance(TERMS.duration_s - 9 + TERMS.retry_s / LOOKS * 1.2)
    assert world.leaders == ["b"]
    assert world.lease["leaseTransitions"] == 1


async def test_one_that_ends_in_order_is_followed_at_once(world: World) -> None:
    a = world.start("a")
    await settle()
    world.start("b")
    await world.clock.advance(5)
    await a.kill()
    await a.election.release()
    assert world.leaders == []
    await world.clock.advance(3)
    assert world.leaders == ["b"]


async def test_never_two_lead_while_the_leader_cannot_reach_the_server(world: World) -> None:
    a = world.start("a")
    await settle()
    world.start("b")
    await world.clock.advance(5)
    world.api.fail(503, times=1000, when=lambda call: b'"a"' in call.body)
    for _ in range(30):
        await world.clock.advance(1)
        assert len(world.leaders) <= 1
    assert world.leaders == ["b"]
    with pytest.raises(LeadershipLostError):
        await a.task


async def test_one_failed_renewal_is_made_up_for(world: World) -> None:
    world.start("a")
    await settle()
    world.api.fail(503, times=2, method="PATCH")
    world.api.lose(method="PATCH", applied=True)
    await world.clock.advance(60)
    assert world.leaders == ["a"]


async def test_a_lease_that_somebody_took_ends_the_leader(world: World) -> None:
    a = world.start("a")
    await settle()
    lease = world.api.get(LEASES, "default", "controllers")
    assert lease is not None
    world.api.put(LEASES, {**lease, "spec": {**lease["spec"], "holderIdentity": "other"}})
    await world.clock.advance(3)
    with pytest.raises(LeadershipLostError, match="other leads"):
        await a.task
    assert world.leaders == []


async def test_only_a_leader_writes_and_everybody_reads(world: World) -> None:
    a = world.start("a")
    await settle()
    b = world.start("b")
    await world.clock.advance(5)
    await a.fenced.create(CONFIG_MAPS, "default", BODY)
    with pytest.raises(NotLeading):
        await b.fenced.delete(CONFIG_MAPS, "default", "c")
    assert (await b.fenced.get(CONFIG_MAPS, "default", "c")).metadata.name == "c"


async def test_a_process_that_stood_still_writes_nothing_when_it_runs_again(world: World) -> None:
    a = world.start("a")
    await settle()
    await a.kill()  # Its tasks stand still; time goes on.
    await world.clock.advance(TERMS.deadline_s)
    with pytest.raises(NotLeading):
        await a.fenced.create(CONFIG_MAPS, "default", BODY)


def test_terms_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="a lease lasts longer"):
        Terms("ns", "n", duration_s=10, deadline_s=10)
