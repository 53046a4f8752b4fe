"""
The contract of the API server: patches of objects and of their status.
"""

from __future__ import annotations

from typing import Any

import pytest

from pumice.kube.client import Preconditions
from pumice.kube.errors import ApiError, Conflict, Invalid, NotFound
from pumice.kube.patches import ApplyPatch, JsonPatch, MergePatch, StrategicPatch
from pumice.kube.resources import (
    COMMANDS,
    CONFIG_MAPS,
    JOBS,
    POD_GROUPS,
    PODS,
    AnyResource,
)
from tests.fakeapi.bodies import (
    LABEL,
    WRONG,
    a_job,
    a_map,
    a_pod,
)
from tests.fakeapi.conftest import Server


async def test_a_patch_that_changes_nothing_writes_nothing(server: Server) -> None:
    client, ns = server.client, server.namespace
    bodies: dict[AnyResource, Any] = {PODS: a_pod(), JOBS: a_job(), CONFIG_MAPS: a_map("m")}
    for resource, body in bodies.items():
        name = (await client.create(resource, ns, body)).metadata.name
        one = await client.patch(resource, ns, name, LABEL)
        two = await client.patch(resource, ns, name, LABEL)
        assert two.metadata == one.metadata


async def test_the_status_is_apart(server: Server) -> None:
    client, ns = server.client, server.namespace
    made = await client.create(JOBS, ns, {**a_job(), "status": {"running": 1}})
    both = MergePatch({"spec": {"maxRetry": 9}, "status": {"running": 2}, **LABEL.body})

    by_status = await client.patch_status(JOBS, ns, "j", both)
    by_main = await client.patch(JOBS, ns, "j", MergePatch({**both.body, "status": {"running": 7}}))

    got = [
        (o.spec.max_retry, o.status.running, o.metadata.labels, o.metadata.generation)
        for o in (made, by_status, by_main)
    ]
    assert got == [(3, 0, None, 1), (3, 2, None, 1), (9, 2, {"a": "b"}, 2)]


async def test_the_status_of_a_pod_takes_labels_along(server: Server) -> None:
    client, ns = server.client, server.namespace
    await client.create(PODS, ns, a_pod())
    body = {"status": {"message": "m"}, "spec": {"priority": 7}, **LABEL.body}
    got = await client.patch_status(PODS, ns, "p", MergePatch(body))
    assert (got.status.message, got.metadata.labels) == ("m", {"a": "b"})
    assert got.spec.priority != 7


async def test_a_group_and_a_command_have_no_status_apart(server: Server) -> None:
    client, ns = server.client, server.namespace
    group = {"metadata": {"name": "g"}, "spec": {"minMember": 2}, "status": {"phase": "Pending"}}
    made = await client.create(POD_GROUPS, ns, group)
    changed = await client.patch_status(
        POD_GROUPS,
        ns,
        "g",
        MergePatch({"status": {"phase": "Inqueue"}}),
        given=Preconditions(uid=made.metadata.uid),
    )
    assert [(o.status.phase, o.metadata.generation) for o in (made, changed)] == [
        ("Pending", 1),
        ("Inqueue", 2),
    ]
    without: list[AnyResource] = [POD_GROUPS, COMMANDS]
    for resource in without:
        with pytest.raises(NotFound):
            await client.patch(resource, ns, "g", LABEL, subresource="status")


async def test_a_strategic_patch_merges_conditions_by_type(server: Server) -> None:
    client, ns = server.client, server.namespace
    await client.create(PODS, ns, a_pod())
    for kind, reason in (("A", "1"), ("B", "2"), ("A", "3")):
        condition = {"type": kind, "status": "False", "reason": reason}
        patch = StrategicPatch({"status": {"conditions": [condition]}})
        got = await client.patch_status(PODS, ns, "p", patch)
    assert {(c.type, c.reason) for c in got.status.conditions or ()} == {("A", "3"), ("B", "2")}


async def test_custom_kinds_take_no_strategic_patch(server: Server) -> None:
    await server.client.create(JOBS, server.namespace, a_job())
    with pytest.raises(ApiError) as caught:
        await server.client.patch(JOBS, server.namespace, "j", StrategicPatch(LABEL.body))
    assert caught.value.status == 415


JSON_FAULTS: dict[str, list[dict[str, Any]]] = {
    "a test that fails": [{"op": "test", "path": "/metadata/name", "value": "x"}],
    "a path that is not there": [{"op": "remove", "path": "/metadata/labels/x"}],
    "an operation unknown": [{"op": "frobnicate", "path": "/metadata/labels"}],
}


@pytest.mark.parametrize("ops", JSON_FAULTS.values(), ids=JSON_FAULTS.keys())
async def test_a_json_patch_fails_whole(server: Server, ops: list[dict[str, Any]]) -> None:
    client, ns = server.client, server.namespace
    made = await client.create(CONFIG_MAPS, ns, a_map("m"))
    first = {"op": "replace", "path": "/data/k", "value": "w"}
    with pytest.raises(Invalid):
        await client.patch(CONFIG_MAPS, ns, "m", JsonPatch([first, *ops]))
    assert await client.get(CONFIG_MAPS, ns, "m") == made


async def test_apply_owns_fields(server: Server) -> None:
    client, ns = server.client, server.namespace

    async def apply(data: dict[str, str], manager: str = "a", *, force: bool = True) -> Any:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data}
        return await client.patch(CONFIG_MAPS, ns, "m", ApplyPatch(body, manager, force))

    assert (await apply({"x": "1", "y": "1"})).data == {"x": "1", "y": "1"}
    assert (await apply({"z": "1"}, "b")).data == {"x": "1", "y": "1", "z": "1"}
    with pytest.raises(Conflict):
        await apply({"x": "2", "z": "1"}, "b", force=False)
    assert (await apply({"x": "2"})).data == {"x": "2", "z": "1"}
    one, two = await apply({"x": "2"}), await apply({"x": "2"})
    assert one.metadata.resource_version == two.metadata.resource_version


async def test_the_status_of_a_custom_kind_is_written_whatever_uid_is_presumed(
    server: Server,
) -> None:
    """Why the client insists on a resourceVersion there."""
    client, ns = server.client, server.namespace
    made = await client.create(JOBS, ns, a_job())
    patch = MergePatch({"metadata": {"uid": WRONG.uid}, "status": {"running": 2}})
    got = await client.patch_status(JOBS, ns, "j", patch)
    assert (got.status.running, got.metadata.uid) == (2, made.metadata.uid)
