"""The registration: made, kept right, and no wider than it must be."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pumice.core import names
from pumice.core.admission.resource_groups import parse
from pumice.kube.resources import (
    MUTATING_POLICIES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    VALIDATING_WEBHOOKS,
    AnyResource,
)
from tests.adapters.webhooks.world import TABLE
from tests.fakeapi import FakeApi, ManualClock
from tests.fakeapi.clock import settle
from webhooks.metrics import Metrics
from webhooks.register import NAME, Endpoint, Gate, Registrar, entry
from webhooks.table import webhooks

SERVICE = Endpoint(names.NAMESPACE, "pumice-webhooks")
URL = Endpoint(names.NAMESPACE, "pumice-webhooks", "https://127.0.0.1:8443/")
OLD, NEW = (
    f"-----BEGIN CERTIFICATE-----\n{name}\n-----END CERTIFICATE-----\n".encode()
    for name in ("old", "new")
)
BOTH = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def api(clock: ManualClock) -> FakeApi:
    """An API server that has the admission policy with the gate."""
    api = FakeApi(clock, namespaces=("default", names.NAMESPACE))
    api.add(MUTATING_POLICIES, {"metadata": {"name": "pumice-gate"}})
    return api


@asynccontextmanager
async def registering(
    api: FakeApi, clock: ManualClock, *, gate: Gate = "auto", bundle: bytes = b"ca"
) -> AsyncIterator[Registrar]:
    """Run a registrar until the block ends."""
    async with api.client() as client, asyncio.TaskGroup() as group:
        table = list(TABLE.values())
        registrar = Registrar(client, table, SERVICE, Metrics(), clock, gate=gate)
        running = group.create_task(registrar.run(), name="registrar")
        await registrar.put(bundle)
        yield registrar
        running.cancel()


def stored(api: FakeApi, resource: AnyResource) -> dict[str, Any]:
    found = api.get(resource, "", NAME)
    assert found is not None
    return found


def names_of(api: FakeApi, resource: AnyResource) -> list[str]:
    return [webhook["name"] for webhook in stored(api, resource)["webhooks"]]


def bundles(api: FakeApi) -> set[bytes]:
    return {
        base64.b64decode(webhook["clientConfig"]["caBundle"])
        for resource in BOTH
        for webhook in stored(api, resource)["webhooks"]
    }


def writes(api: FakeApi) -> Sequence[str]:
    return [call.path for call in api.calls if call.method != "GET"]


async def test_both_objects_are_made_and_belong_to_our_namespace(
    api: FakeApi, clock: ManualClock
) -> None:
    async with registering(api, clock) as registrar:
        assert registrar.is_registered
        home = api.get(NAMESPACES, "", names.NAMESPACE)
        assert home is not None
        for resource in BOTH:
            (owner,) = stored(api, resource)["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["uid"]) == ("Namespace", home["metadata"]["uid"])
        assert names_of(api, MUTATING_WEBHOOKS) == [
            "mutatejob.volcano.sh",
            "mutatequeue.volcano.sh",
            "mutatepodgroup.volcano.sh",
        ]
        assert names_of(api, VALIDATING_WEBHOOKS) == [
            "validatejob.volcano.sh",
            "validatequeue.volcano.sh",
            "validatecronjob.volcano.sh",
            "validatejobflow.volcano.sh",
            "validatejobtemplate.volcano.sh",
            "validatehypernodes.volcano.sh",
            "validatepodgroup.volcano.sh",
            "validatepod.volcano.sh",
        ]
        assert bundles(api) == {b"ca"}


async def test_what_is_right_is_not_written_again(api: FakeApi, clock: ManualClock) -> None:
    async with registering(api, clock):
        pass
    before = len(writes(api))
    # A newer API server may know fields that we do not.
    for resource in BOTH:
        body = stored(api, resource)
        body["webhooks"] = [{**w, "newField": "default"} for w in body["webhooks"]]
        api.put(resource, body)
    async with registering(api, clock):
        await clock.advance(600)
    assert len(writes(api)) == before


def without_first(webhooks: list[Any]) -> list[Any]:
    return webhooks[1:]


def harmless(webhooks: list[Any]) -> list[Any]:
    return [{**webhooks[0], "failurePolicy": "Ignore"}, *webhooks[1:]]


def wider(webhooks: list[Any]) -> list[Any]:
    return [{**webhooks[0], "namespaceSelector": {}}, *webhooks[1:]]


def untrusted(webhooks: list[Any]) -> list[Any]:
    config = {**webhooks[0]["clientConfig"], "caBundle": ""}
    return [{**webhooks[0], "clientConfig": config}, *webhooks[1:]]


@pytest.mark.parametrize("change", [without_first, harmless, wider, untrusted])
@pytest.mark.parametrize("resource", BOTH, ids=lambda resource: resource.kind)
async def test_what_somebody_changed_is_put_right(
    api: FakeApi, clock: ManualClock, resource: AnyResource, change: Any
) -> None:
    async with registering(api, clock):
        right = stored(api, resource)
        api.put(resource, {**right, "webhooks": change(right["webhooks"])})
        await clock.advance(2)
        assert stored(api, resource)["webhooks"] == right["webhooks"]


async def test_what_somebody_deleted_is_made_again(api: FakeApi, clock: ManualClock) -> None:
    async with registering(api, clock):
        right = stored(api, VALIDATING_WEBHOOKS)
        async with api.client() as client:
            await client.delete(VALIDATING_WEBHOOKS, "", NAME)
        await clock.advance(2)
        assert stored(api, VALIDATING_WEBHOOKS)["webhooks"] == right["webhooks"]


async def test_a_new_authority_is_told_before_put_returns(api: FakeApi, clock: ManualClock) -> None:
    async with registering(api, clock) as registrar:
        await registrar.put(NEW)
        assert bundles(api) == {NEW}


async def test_authorities_that_others_trust_stay_until_ours_shall_be_alone(
    api: FakeApi, clock: ManualClock
) -> None:
    async with (
        registering(api, clock, bundle=NEW + OLD),
        registering(api, clock, bundle=OLD) as other,
    ):
        await clock.advance(120)
        assert bundles(api) == {NEW + OLD}
        await other.put(NEW)
        assert bundles(api) == {NEW + OLD}
        await other.put(NEW, alone=True)
        assert bundles(api) == {NEW}


async def test_an_outage_is_waited_out(api: FakeApi, clock: ManualClock) -> None:
    api.fail(503, times=3, method="PATCH")

    async def pass_time() -> None:
        await clock.advance(5)

    turning = asyncio.create_task(pass_time(), name="time")
    async with registering(api, clock) as registrar:
        assert registrar.is_registered
    await turning


GATES: dict[str, tuple[Gate, bool, bool]] = {
    "where the policy is there the webhook is not": ("auto", True, False),
    "where it is not the webhook is": ("auto", False, True),
    "the webhook is forced": ("on", True, True),
    "the webhook is forbidden": ("off", False, False),
}


@pytest.mark.parametrize(("gate", "policy", "want"), GATES.values(), ids=GATES.keys())
async def test_the_gate(clock: ManualClock, gate: Gate, policy: bool, want: bool) -> None:
    api = FakeApi(clock, namespaces=("default", names.NAMESPACE))
    if policy:
        api.add(MUTATING_POLICIES, {"metadata": {"name": "pumice-gate"}})
    async with registering(api, clock, gate=gate):
        assert ("mutatepod.volcano.sh" in names_of(api, MUTATING_WEBHOOKS)) is want


async def test_the_gate_goes_when_the_policy_comes(clock: ManualClock) -> None:
    api = FakeApi(clock, namespaces=("default", names.NAMESPACE))
    async with registering(api, clock):
        assert "mutatepod.volcano.sh" in names_of(api, MUTATING_WEBHOOKS)
        api.add(MUTATING_POLICIES, {"metadata": {"name": "pumice-gate"}})
        await clock.advance(61)
        assert "mutatepod.volcano.sh" not in names_of(api, MUTATING_WEBHOOKS)


def test_an_entry_is_whole() -> None:
    assert entry(TABLE["/pods/mutate"], SERVICE, b"ca") == {
        "name": "mutatepod.volcano.sh",
        "clientConfig": {
            "service": {
                "namespace": "pumice-system",
                "name": "pumice-webhooks",
                "path": "/pods/mutate",
                "port": 443,
            },
            "caBundle": "Y2E=",
        },
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
                "scope": "*",
            }
        ],
        "failurePolicy": "Ignore",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {
            "matchExpressions": [
                {
                    "key": "kubernetes.io/metadata.name",
                    "operator": "NotIn",
                    "values": ["kube-system", "pumice-system"],
                }
            ]
        },
        "objectSelector": {},
        "sideEffects": "None",
        "timeoutSeconds": 2,
        "admissionReviewVersions": ["v1"],
        "matchConditions": [
            {
                "name": "our-scheduler",
                "expression": "has(object.spec.schedulerName)"
                " && object.spec.schedulerName in ['volcano']",
            },
            {
                "name": "no-node-yet",
                "expression": "!has(object.spec.nodeName) || object.spec.nodeName == ''",
            },
        ],
        "reinvocationPolicy": "IfNeeded",
    }


def test_a_url_takes_the_place_of_the_service() -> None:
    config = entry(TABLE["/jobs/validate"], URL, b"ca")["clientConfig"]
    assert config == {"url": "https://127.0.0.1:8443/jobs/validate", "caBundle": "Y2E="}


def test_what_others_depend_on_is_never_refused_for_our_absence() -> None:
    policies = {webhook.resource: set[str]() for webhook in TABLE.values()}
    for webhook in TABLE.values():
        policies[webhook.resource].add(webhook.failure_policy)
    assert policies == {
        "jobs": {"Fail"},
        "queues": {"Fail"},
        "cronjobs": {"Fail"},
        "jobflows": {"Fail"},
        "jobtemplates": {"Fail"},
        "hypernodes": {"Ignore"},
        "podgroups": {"Ignore"},
        "pods": {"Ignore"},
    }


GROUPS = """
resourceGroups:
- object: {key: namespace, value: [training]}
"""


async def test_pods_of_resource_groups_are_brought_too_whatever_the_policy(
    clock: ManualClock,
) -> None:
    api = FakeApi(clock, namespaces=("default", names.NAMESPACE))
    api.add(MUTATING_POLICIES, {"metadata": {"name": "pumice-gate"}})
    async with registering(api, clock) as registrar:
        assert "mutatepod.volcano.sh" not in names_of(api, MUTATING_WEBHOOKS)

        registrar.bring(webhooks(["volcano"], parse(GROUPS)))
        await settle()

        (body,) = (
            webhook
            for webhook in stored(api, MUTATING_WEBHOOKS)["webhooks"]
            if webhook["name"] == "mutatepod.volcano.sh"
        )
        assert body["failurePolicy"] == "Ignore"
        assert body["matchConditions"][0]["expression"] == (
            "has(object.spec.schedulerName) && object.spec.schedulerName in ['volcano']"
            ' || request.namespace in ["training"]'
        )


async def test_what_is_not_enabled_any_more_is_not_brought_any_more(
    api: FakeApi, clock: ManualClock
) -> None:
    async with registering(api, clock) as registrar:
        registrar.bring([TABLE["/jobs/validate"]])
        await settle()
        assert names_of(api, MUTATING_WEBHOOKS) == []
        assert names_of(api, VALIDATING_WEBHOOKS) == ["validatejob.volcano.sh"]
