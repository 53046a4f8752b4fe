"""The whole service on a fake API server: what is registered can be reached, and is answered."""

from __future__ import annotations

import base64
import json
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from pumice.core import names
from pumice.kube.clock import SystemClock
from pumice.kube.resources import (
    MUTATING_WEBHOOKS,
    NAMESPACES,
    QUEUES,
    SECRETS,
    VALIDATING_WEBHOOKS,
)
from tests.adapters.webhooks.test_tls import presented, serial
from tests.adapters.webhooks.world import (
    TABLE,
    a_job,
    a_service,
    asked,
    response,
    settings,
    trusting,
)
from tests.builders import a_queue
from tests.fakeapi import FakeApi, ManualClock
from tests.fakeapi.clock import eventually
from webhooks import material as m
from webhooks.files import CertificateFiles
from webhooks.register import NAME
from webhooks.service import SETTLE_S, Service


@pytest.fixture
def api() -> FakeApi:
    api = FakeApi(namespaces=(names.NAMESPACE,))
    notes = {"annotations": {names.QUEUE_NAME: "theirs"}}
    api.add(NAMESPACES, {"metadata": {"name": "default", **notes}})
    for name in ("root", "default", "theirs"):
        api.add(QUEUES, a_queue(name))
    return api


async def ready(service: Service) -> None:
    async def is_ready() -> bool:
        return service.is_ready

    await eventually(is_ready)


def registered(api: FakeApi) -> dict[str, dict[str, Any]]:
    """Return where each webhook is, as the API server is told."""
    found: dict[str, dict[str, Any]] = {}
    for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        body = api.get(resource, "", NAME)
        assert body is not None
        found |= {webhook["name"]: webhook["clientConfig"] for webhook in body["webhooks"]}
    return found


def trusted(api: FakeApi) -> set[bytes]:
    """Return the bundles that the API server is told to trust."""
    return {base64.b64decode(config["caBundle"]) for config in registered(api).values()}


async def call(config: dict[str, Any], body: bytes) -> Any:
    """Ask as the API server does: at the URL, trusting the bundle alone."""
    trust = trusting(base64.b64decode(config["caBundle"]))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
        headers = {"Content-Type": "application/json"}
        async with session.post(config["url"], data=body, headers=headers) as answer:
            assert answer.status == 200
            return response(await answer.read())


async def test_every_webhook_is_where_the_api_server_is_told(api: FakeApi) -> None:
    async with a_service(api, SystemClock()) as service:
        await ready(service)
        config = registered(api)
        # There is no admission policy on this API server: the gate is ours too.
        assert config.keys() == {webhook.name for webhook in TABLE.values()}
        answers = {
            webhook.path: (await call(config[webhook.name], asked(webhook, a_job())))["uid"]
            for webhook in TABLE.values()
        }
        assert answers == dict.fromkeys(TABLE, "u-1")


async def test_a_group_goes_to_the_queue_of_its_namespace(api: FakeApi) -> None:
    webhook = TABLE["/podgroups/mutate"]
    body = asked(webhook, {"metadata": {"name": "g"}, "spec": {"queue": "default"}})
    async with a_service(api, SystemClock()) as service:
        await ready(service)
        got = await call(registered(api)[webhook.name], body)
        assert got["patch"] == [{"op": "add", "path": "/spec/queue", "value": "theirs"}]


async def test_a_group_does_not_wait_for_a_namespace_that_cannot_be_read(api: FakeApi) -> None:
    webhook = TABLE["/podgroups/mutate"]
    body = asked(webhook, {"metadata": {"name": "g"}, "spec": {"queue": "default"}})
    async with a_service(api, SystemClock()) as service:
        await ready(service)
        api.fail(403, method="GET", path="/api/v1/namespaces/default")
        got = await call(registered(api)[webhook.name], body)
        assert got == {"uid": "u-1", "allowed": True}


async def test_a_queue_that_was_deleted_takes_no_more_jobs(api: FakeApi) -> None:
    webhook = TABLE["/jobs/validate"]
    body = asked(webhook, a_job(queue="theirs"))
    async with a_service(api, SystemClock()) as service:
        await ready(service)
        config = registered(api)[webhook.name]
        assert (await call(config, body))["allowed"]
        async with api.client() as client:
            await client.delete(QUEUES, "", "theirs")

        async def is_refused() -> bool:
            return not (await call(config, body))["allowed"]

        await eventually(is_refused)


async def test_a_second_replica_serves_with_what_the_first_one_made(api: FakeApi) -> None:
    async with a_service(api, SystemClock()) as first:
        await ready(first)
        before = trusted(api)
        made = first.keeper.material
    async with a_service(api, SystemClock()) as second:
        await ready(second)
        assert second.keeper.material == made
        assert trusted(api) == before


async def test_a_new_authority_is_trusted_before_its_certificate_is_served() -> None:
    clock = ManualClock(SystemClock().now())
    api = FakeApi(clock, namespaces=("default", names.NAMESPACE))
    async with a_service(api, clock) as service:
        await ready(service)
        port = service.server.config.port
        old = service.keeper.material
        assert old is not None
        hosts = settings(port).hosts
        new = m.make(hosts, datetime.fromtimestamp(clock.now(), UTC))
        secret = api.get(SECRETS, names.NAMESPACE, "pumice-webhooks-tls")
        assert secret is not None
        api.put(SECRETS, {**secret, "data": m.written(new)})

        await clock.advance(SETTLE_S / 2)
        assert trusted(api) == {new.bundle + old.bundle}
        assert await presented(port, trusting(old.bundle)) == serial(old.pair)

        await clock.advance(SETTLE_S)
        assert trusted(api) == {new.bundle + old.bundle}
        assert await presented(port, trusting(new.bundle)) == serial(new.pair)

        await clock.advance(SETTLE_S)
        assert trusted(api) == {new.bundle}


async def test_who_trusts_others_is_not_answered(api: FakeApi) -> None:
    async with a_service(api, SystemClock()) as service:
        await ready(service)
        port = service.server.config.port
        stranger = ssl.create_default_context()
        connector = aiohttp.TCPConnector(ssl=stranger)
        async with aiohttp.ClientSession(connector=connector) as session:
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await session.post(f"https://127.0.0.1:{port}/jobs/validate", data=json.dumps({}))


async def test_only_what_is_enabled_is_served_and_registered(api: FakeApi) -> None:
    paths = frozenset({"/queues/mutate", "/jobs/validate"})
    async with a_service(api, SystemClock(), paths=paths) as service:
        await ready(service)
        assert list(registered(api)) == ["mutatequeue.volcano.sh", "validatejob.volcano.sh"]


async def test_a_certificate_from_files_is_served_and_trusted(api: FakeApi, tmp_path: Path) -> None:
    made = m.make(("127.0.0.1",), datetime.now(UTC))
    files = CertificateFiles(*(tmp_path / name for name in ("tls.crt", "tls.key", "ca.crt")))
    files.certificate.write_bytes(made.pair.cert)
    files.key.write_bytes(made.pair.key)
    files.authority.write_bytes(made.bundle)
    async with a_service(api, SystemClock(), certificate=files) as service:
        await ready(service)
        assert trusted(api) == {made.bundle}
        config = registered(api)["validatejob.volcano.sh"]
        answer = await call(config, asked(TABLE["/jobs/validate"], a_job()))
        assert answer["allowed"]
        assert api.get(SECRETS, names.NAMESPACE, "pumice-webhooks-tls") is None
