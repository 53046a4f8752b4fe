"""admission-init: the Secret is good when it exits, and what was good is not touched."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from cryptography import x509

from pumice.kube.clock import Clock
from pumice.kube.resources import SECRETS
from tests.adapters.webhooks.test_material import somebody_elses
from tests.fakeapi import FakeApi, ManualClock
from webhooks import init
from webhooks import material as m
from webhooks.keeper import Place
from webhooks.material import Material

DAY_S = 86_400.0
PLACE = Place("volcano-system", "volcano-admission-secret")
HOSTS = init.hosts("volcano-admission-service", PLACE.namespace)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def api(clock: ManualClock) -> FakeApi:
    return FakeApi(clock, namespaces=(PLACE.namespace,))


async def written(api: FakeApi, clock: Clock, hosts: tuple[str, ...] = HOSTS) -> bool:
    async with api.client() as client:
        return await init.write(client, PLACE, hosts, clock)


def add(api: FakeApi, material: Material) -> None:
    meta = {"name": PLACE.name, "namespace": PLACE.namespace}
    api.add(SECRETS, {"metadata": meta, "data": m.written(material)})


def stored(api: FakeApi) -> Material:
    secret = api.get(SECRETS, PLACE.namespace, PLACE.name)
    assert secret is not None
    found = m.read(secret["data"])
    assert found is not None
    return found


async def test_a_secret_is_made_with_what_a_server_needs(api: FakeApi, clock: ManualClock) -> None:
    assert await written(api, clock)
    found = stored(api)
    assert m.fault(found, HOSTS, datetime.fromtimestamp(clock.now(), UTC)) == ""
    leaf = x509.load_pem_x509_certificate(found.pair.cert)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [
        "volcano-admission-service.volcano-system.svc",
        "volcano-admission-service.volcano-system",
        "volcano-admission-service",
    ]


async def test_an_upgrade_leaves_a_good_one_alone(api: FakeApi, clock: ManualClock) -> None:
    await written(api, clock)
    before = stored(api)
    await clock.advance(DAY_S)
    assert not await written(api, clock)
    assert stored(api) == before


async def test_it_outlives_years_without_an_upgrade(api: FakeApi, clock: ManualClock) -> None:
    await written(api, clock)
    before = stored(api)
    await clock.advance(6 * 365 * DAY_S)
    assert not await written(api, clock)
    assert stored(api) == before
    assert m.expiry(before) > datetime.fromtimestamp(clock.now() + 3 * 365 * DAY_S, UTC)


async def test_one_that_is_due_is_renewed_by_the_same_authority(
    api: FakeApi, clock: ManualClock
) -> None:
    before = m.make(HOSTS, datetime.fromtimestamp(clock.now(), UTC))
    add(api, before)
    await clock.advance(80 * DAY_S)
    assert await written(api, clock)
    after = stored(api)
    assert after.pair != before.pair
    assert after.bundle == before.bundle


async def test_one_for_another_service_is_made_anew(api: FakeApi, clock: ManualClock) -> None:
    await written(api, clock, init.hosts("other", PLACE.namespace))
    assert await written(api, clock)
    assert m.fault(stored(api), HOSTS, datetime.fromtimestamp(clock.now(), UTC)) == ""


async def test_somebody_else_s_for_other_names_is_overwritten(
    api: FakeApi, clock: ManualClock
) -> None:
    theirs = somebody_elses("example.com")
    add(api, theirs)
    assert await written(api, clock)
    assert stored(api).bundle != theirs.bundle


@pytest.mark.parametrize("given", [[], ["--service=s"], ["--secret=s"]])
def test_service_and_secret_must_be_named(
    given: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        init.arguments(given)
    assert "required" in capsys.readouterr().err


def test_the_namespace_is_default_where_none_is_named() -> None:
    args = init.arguments(["--service=s", "--secret=t"])
    assert (args.service, args.secret, args.namespace) == ("s", "t", "default")
