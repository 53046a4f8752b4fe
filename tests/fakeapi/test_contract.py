"""
What we rely on of the API server, tested on the fake one and on a real kube-apiserver.

Where a test of the contract fails on the real server, our belief was wrong; where it fails on the
fake alone, the quick tests prove nothing. Here: identity, preconditions, deletion, owners.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from pumice.kube.client import Client, Preconditions, Selector
from pumice.kube.errors import AlreadyExists, ApiError, Conflict, Invalid, NotFound
from pumice.kube.patches import JsonPatch, MergePatch, Patch, StrategicPatch
from pumice.kube.resources import (
    CONFIG_MAPS,
    JOBS,
    NODES,
    POD_GROUPS,
    PODS,
    QUEUES,
    AnyResource,
)
from tests.fakeapi import eventually
from tests.fakeapi.bodies import (
    HELD,
    LABEL,
    STALE,
    WRONG,
    a_job,
    a_map,
    a_pod,
)
from tests.fakeapi.conftest import Server


async def test_a_created_object_has_identity_and_version(server: Server) -> None:
    made = await server.client.create(CONFIG_MAPS, server.namespace, a_map("m"))
    got = await server.client.get(CONFIG_MAPS, server.namespace, "m")

    assert got == made
    assert made.metadata.uid
    assert made.metadata.resource_version
    assert made.metadata.creation_timestamp
    assert made.metadata.key == f"{server.namespace}/m"


async def test_a_name_is_taken_once(server: Server) -> None:
    await server.client.create(CONFIG_MAPS, server.namespace, a_map("m"))
    with pytest.raises(AlreadyExists):
        await server.client.create(CONFIG_MAPS, server.namespace, a_map("m"))


async def test_generate_name_makes_names(server: Server) -> None:
    body = {"metadata": {"generateName": "m-"}}
    one = await server.client.create(CONFIG_MAPS, server.namespace, body)
    two = await server.client.create(CONFIG_MAPS, server.namespace, body)

    assert one.metadata.name.startswith("m-")
    assert one.metadata.name != two.metadata.name


async def test_what_is_absent_is_not_found(server: Server) -> None:
    client, ns = server.client, server.namespace
    for call in (
        client.get(PODS, ns, "nobody"),
        client.patch(PODS, ns, "nobody", LABEL),
        client.delete(PODS, ns, "nobody"),
        client.bind(ns, "nobody", "n", uid="u"),
        client.evict(ns, "nobody", uid="u"),
        client.create(CONFIG_MAPS, "no-such-namespace", a_map("m")),
    ):
        with pytest.raises(NotFound):
            await call


@dataclass(frozen=True)
class Bad:
    resource: AnyResource
    body: Any
    status: int


BAD = {
    "a pod without containers": Bad(PODS, {"metadata": {"name": "p"}, "spec": {}}, 422),
    "a pod with a priority in words": Bad(PODS, a_pod(priority="high"), 400),
    "a name with capitals": Bad(CONFIG_MAPS, a_map("M"), 422),
    "no name": Bad(CONFIG_MAPS, {"metadata": {}}, 422),
    "a gate and a node": Bad(PODS, a_pod(gates=[HELD], nodeName="n"), 422),
    "a group with a negative minimum": Bad(
        POD_GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": -1}}, 422
    ),
    "a queue with a weight in words": Bad(
        QUEUES, {"metadata": {"name": "q"}, "spec": {"weight": "much"}}, 422
    ),
    "a version of its own": Bad(
        CONFIG_MAPS, {"metadata": {"name": "m", "resourceVersion": "5"}}, 500
    ),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
async def test_refuses(server: Server, bad: Bad) -> None:
    namespace = server.namespace if bad.resource.namespaced else ""
    with pytest.raises(ApiError) as caught:
        await server.client.create(bad.resource, namespace, bad.body)
    assert caught.value.status == bad.status


@dataclass(frozen=True)
class Presumed:
    resource: AnyResource
    body: Any
    patch: Patch
    given: Preconditions
    subresource: str = ""


MESSAGE = {"status": {"message": "m"}}
PRESUMED = {
    "merge, another uid": Presumed(PODS, a_pod(), LABEL, WRONG),
    "merge, an old version": Presumed(PODS, a_pod(), LABEL, STALE),
    "merge, custom kind, another uid": Presumed(JOBS, a_job(), LABEL, WRONG),
    "merge, custom kind, an old version": Presumed(JOBS, a_job(), LABEL, STALE),
    "status, another uid": Presumed(PODS, a_pod(), MergePatch(MESSAGE), WRONG, "status"),
    "status, an old version": Presumed(PODS, a_pod(), MergePatch(MESSAGE), STALE, "status"),
    "status, custom kind, an old version": Presumed(
        JOBS, a_job(), MergePatch({"status": {"running": 1}}), STALE, "status"
    ),
    "strategic, another uid": Presumed(PODS, a_pod(), StrategicPatch(LABEL.body), WRONG),
    "json, another uid": Presumed(
        PODS, a_pod(), JsonPatch([{"op": "add", "path": "/metadata/labels", "value": {}}]), WRONG
    ),
    "json, an old version": Presumed(
        PODS, a_pod(), JsonPatch([{"op": "add", "path": "/metadata/labels", "value": {}}]), STALE
    ),
    "json, custom kind, another uid": Presumed(
        JOBS, a_job(), JsonPatch([{"op": "add", "path": "/metadata/labels", "value": {}}]), WRONG
    ),
}


@pytest.mark.parametrize("case", PRESUMED.values(), ids=PRESUMED.keys())
async def test_a_patch_that_presumes_wrongly_conflicts(server: Server, case: Presumed) -> None:
    client, ns = server.client, server.namespace
    made = await client.create(case.resource, ns, case.body)
    name = made.metadata.name

    with pytest.raises(Conflict):
        await client.patch(
            case.resource, ns, name, case.patch, subresource=case.subresource, given=case.given
        )
    assert await client.get(case.resource, ns, name) == made

    right = Preconditions(made.metadata.uid, made.metadata.resource_version)
    now = await client.patch(
        case.resource, ns, name, case.patch, subresource=case.subresource, given=right
    )
    assert now.metadata.uid == made.metadata.uid
    assert int(now.metadata.resource_version) >= int(made.metadata.resource_version)


@pytest.mark.parametrize("given", [WRONG, STALE], ids=["another uid", "an old version"])
async def test_a_delete_that_presumes_wrongly_conflicts(
    server: Server, given: Preconditions
) -> None:
    client, ns = server.client, server.namespace
    await client.create(PODS, ns, a_pod())
    with pytest.raises(Conflict):
        await client.delete(PODS, ns, "p", given=given)
    await client.get(PODS, ns, "p")


async def test_finalizers_hold_an_object(server: Server) -> None:
    client, ns = server.client, server.namespace
    body = a_map("m")
    body["metadata"]["finalizers"] = ["x.y/z"]
    await client.create(CONFIG_MAPS, ns, body)

    await client.delete(CONFIG_MAPS, ns, "m")
    assert (await client.get(CONFIG_MAPS, ns, "m")).metadata.deletion_timestamp
    more = MergePatch({"metadata": {"finalizers": ["x.y/z", "x.y/w"]}})
    with pytest.raises(Invalid):
        await client.patch(CONFIG_MAPS, ns, "m", more)

    await client.patch(CONFIG_MAPS, ns, "m", MergePatch({"metadata": {"finalizers": None}}))
    with pytest.raises(NotFound):
        await client.get(CONFIG_MAPS, ns, "m")


async def owned_by(server: Server, owner: Any, name: str, **more: Any) -> None:
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        **more,
    }
    body = a_map(name)
    body["metadata"]["ownerReferences"] = [reference]
    await server.client.create(CONFIG_MAPS, server.namespace, body)


async def names(client: Client, namespace: str) -> set[str]:
    maps = await client.list(CONFIG_MAPS, Selector(namespace))
    return {m.metadata.name for m in maps} - {"kube-root-ca.crt"}


@pytest.mark.parametrize(
    ("propagation", "left"),
    [("Background", set()), ("Foreground", set()), ("Orphan", {"child"})],
)
async def test_owners(server: Server, propagation: Any, left: set[str]) -> None:
    client, ns = server.client, server.namespace
    owner = await client.create(CONFIG_MAPS, ns, a_map("owner"))
    await owned_by(server, owner, "child", blockOwnerDeletion=True)

    await client.delete(CONFIG_MAPS, ns, "owner", propagation=propagation)

    async def done() -> bool:
        return await names(client, ns) == left

    await eventually(done)


async def test_cluster_scoped_objects(server: Server) -> None:
    client = server.client
    name = f"node-{server.namespace}"
    made = await client.create(NODES, "", {"metadata": {"name": name}})
    assert made.metadata.key == name
    patch = MergePatch({"status": {"capacity": {"cpu": "4"}}})
    got = await client.patch_status(NODES, "", name, patch)
    assert got.status.capacity == {"cpu": "4"}
    await client.delete(NODES, "", name)
    with pytest.raises(NotFound):
        await client.get(NODES, "", name)
