"""The keeper: one Secret, several replicas, and what happens to it in the course of time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from pumice.core import names
from pumice.kube.certs import Pair
from pumice.kube.resources import SECRETS
from pumice.kube.tls import BadPairError
from tests.adapters.webhooks.test_material import HOSTS, somebody_elses
from tests.fakeapi import FakeApi, ManualClock
from tests.fakeapi.clock import settle, until
from webhooks import material as m
from webhooks.keeper import Keeper, Place
from webhooks.material import Material

NAME = "pumice-webhooks-tls"
HOUR_S = 3_600.0


class Served(list[Material]):
    """What was put in force, in order; `refuses` what does not belong together."""

    refuses: Pair | None = None

    async def adopt(self, new: Material) -> None:
        if new.pair == self.refuses:
            raise BadPairError("no")
        self.append(new)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def api(clock: ManualClock) -> FakeApi:
    return FakeApi(clock, namespaces=("default", names.NAMESPACE))


@asynccontextmanager
async def keeping(
    api: FakeApi, clock: ManualClock, *, replicas: int = 1
) -> AsyncIterator[list[Served]]:
    """Run keepers until the block ends; yield what each has put in force."""
    served = [Served() for _ in range(replicas)]
    async with api.client() as client, asyncio.TaskGroup() as group:
        place = Place(names.NAMESPACE, NAME)
        keepers = [Keeper(client, place, HOSTS, s.adopt, clock) for s in served]
        running = [group.create_task(k.run(), name=f"keeper {i}") for i, k in enumerate(keepers)]
        yield served
        for task in running:
            task.cancel()


def stored(api: FakeApi) -> Material | None:
    secret = api.get(SECRETS, names.NAMESPACE, NAME)
    return m.read(secret.get("data")) if secret else None


def put(api: FakeApi, material: Material) -> None:
    """Store a content as somebody else would."""
    old = api.get(SECRETS, names.NAMESPACE, NAME)
    body = {"metadata": {"name": NAME, "namespace": names.NAMESPACE}, **(old or {})}
    body["data"] = m.written(material)
    if old is None:
        api.add(SECRETS, body)
    else:
        api.put(SECRETS, body)


def time_of(clock: ManualClock) -> datetime:
    return datetime.fromtimestamp(clock.now(), UTC)


def writes(api: FakeApi) -> int:
    return sum(call.method != "GET" for call in api.calls)


async def test_a_secret_is_made_and_put_in_force(api: FakeApi, clock: ManualClock) -> None:
    async with keeping(api, clock) as (served,):
        await until(lambda: served)
        assert served == [stored(api)]
        assert m.fault(served[0], HOSTS, time_of(clock)) == ""


async def test_a_good_secret_is_taken_as_it_is(api: FakeApi, clock: ManualClock) -> None:
    good = m.make(HOSTS, time_of(clock))
    put(api, good)
    async with keeping(api, clock) as (served,):
        await until(lambda: served)
        assert served == [good]
        await clock.advance(2 * HOUR_S)
        assert (served, writes(api)) == ([good], 0)


async def test_replicas_agree(api: FakeApi, clock: ManualClock) -> None:
    async with keeping(api, clock, replicas=3) as served:
        await until(lambda: all(s and s[-1] == stored(api) for s in served))
        assert {s[-1].pair for s in served} == {served[0][-1].pair}


async def test_a_certificate_is_renewed_when_its_time_comes(
    api: FakeApi, clock: ManualClock
) -> None:
    two_thirds = m.LEAF_LIFE * 2 / 3
    good = m.make(HOSTS, time_of(clock) - two_thirds + timedelta(hours=3))
    put(api, good)
    async with keeping(api, clock, replicas=2) as (one, two):
        await until(lambda: one and two)
        await clock.advance(2 * HOUR_S)
        assert (one, two) == ([good], [good])
        await clock.advance(2 * HOUR_S)
        assert one == two == [good, stored(api)]
        assert one[-1].bundle == good.bundle
        assert m.fault(one[-1], HOSTS, time_of(clock)) == ""


@pytest.mark.parametrize("days", [61, 91], ids=["due", "expired"])
async def test_one_that_came_due_while_nobody_looked_is_renewed_first(
    api: FakeApi, clock: ManualClock, days: int
) -> None:
    old = m.make(HOSTS, time_of(clock))
    put(api, old)
    await clock.advance(days * 24 * HOUR_S)
    async with keeping(api, clock) as (served,):
        await until(lambda: served)
        assert served == [stored(api)]
        assert served[0].bundle == old.bundle
        assert served[0].pair != old.pair


async def test_a_secret_that_is_deleted_is_made_again(api: FakeApi, clock: ManualClock) -> None:
    async with keeping(api, clock) as (served,):
        await until(lambda: served)
        async with api.client() as client:
            await client.delete(SECRETS, names.NAMESPACE, NAME)
        await until(lambda: len(served) == 2 and served[-1] == stored(api))


async def test_a_spoilt_certificate_of_ours_is_replaced(api: FakeApi, clock: ManualClock) -> None:
    async with keeping(api, clock) as (served,):
        await until(lambda: served)
        good, other = served[0], m.make(HOSTS, time_of(clock))
        put(api, Material(good.bundle, good.authority_key, Pair(good.pair.cert, other.pair.key)))
        await until(lambda: len(served) == 2)
        assert served[1].bundle == good.bundle
        assert m.fault(served[1], HOSTS, time_of(clock)) == ""


async def test_what_is_somebody_else_s_is_served_and_never_written(
    api: FakeApi, clock: ManualClock
) -> None:
    theirs = somebody_elses(*HOSTS)
    put(api, theirs)
    async with keeping(api, clock) as (served,):
        await until(lambda: served)
        await clock.advance(2 * HOUR_S)
        assert served == [theirs]
        assert writes(api) == 0
        new = somebody_elses(*HOSTS)
        put(api, new)
        await until(lambda: served == [theirs, new])


async def test_a_pair_of_somebody_else_s_that_does_not_work_is_told_once(
    api: FakeApi, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    theirs, broken = somebody_elses(*HOSTS), somebody_elses(*HOSTS)
    put(api, theirs)
    async with keeping(api, clock) as (served,):
        await until(lambda: served)
        served.refuses = broken.pair
        put(api, broken)
        await clock.advance(HOUR_S)
        assert served == [theirs]
        put(api, theirs)
        await settle()
    told = [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR]
    assert told == [
        f"secret {names.NAMESPACE}/{NAME}: it cannot be served with: no; it is not ours to renew"
        " (delete it, and we make our own)"
    ]


async def test_an_outage_is_waited_out(api: FakeApi, clock: ManualClock) -> None:
    api.fail(500, times=3, method="PATCH")
    async with keeping(api, clock) as (served,):
        await clock.advance(10)
        await until(lambda: served == [stored(api)])
