"""
What we rely on of the API server, tested on the fake one and on a real kube-apiserver.

Where a test fails on the real server, our belief was wrong; where it fails on the fake alone,
the quick tests prove nothing.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import pytest

from pumice.kube import wire
from pumice.kube.client import Client, Preconditions, Selector
from pumice.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Invalid,
    KubeError,
    NotFound,
)
from pumice.kube.patches import ApplyPatch, JsonPatch, MergePatch, Patch, StrategicPatch
from pumice.kube.resources import (
    COMMANDS,
    CONFIG_MAPS,
    JOBS,
    NODES,
    POD_GROUPS,
    PODS,
    QUEUES,
    AnyResource,
)
from tests.fakeapi import eventually
from tests.fakeapi.conftest import Server

HELD = {"name": "pumice.dev/held"}
WRONG = Preconditions(uid="00000000-0000-0000-0000-000000000000")
STALE = Preconditions(resource_version="1")
LABEL = MergePatch({"metadata": {"labels": {"a": "b"}}})


def a_pod(name: str = "p", *, gates: list[dict[str, str]] | None = None, **spec: Any) -> Any:
    containers = [{"name": "c", "image": "i"}]
    whole = {"containers": containers, "schedulerName": "nobody", **spec}
    if gates:
        whole["schedulingGates"] = gates
    return {"metadata": {"name": name}, "spec": whole}


def a_map(name: str, **labels: str) -> Any:
    return {"metadata": {"name": name, "labels": labels}, "data": {"k": "v"}}


def a_job(name: str = "j") -> Any:
    task = {"name": "w", "replicas": 1, "template": {"spec": a_pod()["spec"]}}
    return {"metadata": {"name": name}, "spec": {"minAvailable": 1, "tasks": [task]}}


def required(*terms: Any) -> Any:
    rule = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"nodeAffinity": {rule: {"nodeSelectorTerms": list(terms)}}}


def on_node(name: str) -> Any:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}


ZONED = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}


# Identity.


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


# Preconditions.


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


# Patches.


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


# Pods.


async def held(server: Server, **spec: Any) -> str:
    pod = await server.client.create(PODS, server.namespace, a_pod(gates=[HELD], **spec))
    return pod.metadata.uid


@dataclass(frozen=True)
class GateCase:
    patch: dict[str, Any]
    spec: dict[str, Any] = field(default_factory=dict)
    gated: bool = True
    refused: bool = False


GATES = {
    "the gate goes and a pin comes in one write": GateCase(
        {"schedulingGates": None, "affinity": required(on_node("n"))}
    ),
    "a pin is added to a term": GateCase(
        {"affinity": required({**ZONED, **on_node("n")})}, {"affinity": required(ZONED)}
    ),
    "a term may not be replaced": GateCase(
        {"affinity": required(on_node("n"))}, {"affinity": required(ZONED)}, refused=True
    ),
    "a term may not be added": GateCase(
        {"affinity": required(ZONED, on_node("n"))}, {"affinity": required(ZONED)}, refused=True
    ),
    "a selector may be added": GateCase({"nodeSelector": {"a": "b"}}),
    "a selector may not be changed": GateCase(
        {"nodeSelector": {"a": "c"}}, {"nodeSelector": {"a": "b"}}, refused=True
    ),
    "a gate may not be added": GateCase(
        {"schedulingGates": [HELD, {"name": "x.y/z"}]}, refused=True
    ),
    "a gate may not come back": GateCase({"schedulingGates": [HELD]}, gated=False, refused=True),
    "a pin may not come without the gate": GateCase(
        {"affinity": required(on_node("n"))}, gated=False, refused=True
    ),
    "a node may not be written": GateCase({"nodeName": "n"}, gated=False, refused=True),
    "the priority may not change": GateCase({"priority": 7}, refused=True),
}


@pytest.mark.parametrize("case", GATES.values(), ids=GATES.keys())
async def test_gates(server: Server, case: GateCase) -> None:
    client, ns = server.client, server.namespace
    gates = [HELD] if case.gated else None
    made = await client.create(PODS, ns, a_pod(gates=gates, **case.spec))
    try:
        await client.patch(PODS, ns, "p", MergePatch({"spec": case.patch}))
    except Invalid:
        assert case.refused
        assert await client.get(PODS, ns, "p") == made
    else:
        assert not case.refused


async def test_a_held_pod_says_so(server: Server) -> None:
    await held(server)
    pod = await server.client.get(PODS, server.namespace, "p")
    said = [(c.type, c.status, c.reason) for c in pod.status.conditions or ()]
    assert said == [("PodScheduled", "False", "SchedulingGated")]


async def test_binding(server: Server) -> None:
    client, ns = server.client, server.namespace
    uid = await held(server)
    await client.patch_status(PODS, ns, "p", MergePatch({"status": {"nominatedNodeName": "n"}}))
    with pytest.raises(Conflict):  # The gate is on.
        await client.bind(ns, "p", "n", uid=uid)
    await client.patch(PODS, ns, "p", MergePatch({"spec": {"schedulingGates": None}, **LABEL.body}))
    with pytest.raises(Conflict):
        await client.bind(ns, "p", "n", uid=WRONG.uid)

    await client.bind(ns, "p", "n", uid=uid, annotations={"x": "y"})

    pod = await client.get(PODS, ns, "p")
    said = [(c.type, c.status) for c in pod.status.conditions or ()]
    assert (pod.spec.node_name, pod.metadata.annotations, pod.status.nominated_node_name, said) == (
        "n",
        {"x": "y"},
        "",
        [("PodScheduled", "True")],
    )
    for node in ("n", "other"):
        with pytest.raises(Conflict):
            await client.bind(ns, "p", node, uid=uid)
    patch = MergePatch({"status": {"nominatedNodeName": "other"}})
    with pytest.raises(Invalid):
        await client.patch_status(PODS, ns, "p", patch)


async def test_a_pod_without_a_node_goes_at_once(server: Server) -> None:
    client, ns = server.client, server.namespace
    await client.create(PODS, ns, a_pod())
    await client.delete(PODS, ns, "p")
    with pytest.raises(NotFound):
        await client.get(PODS, ns, "p")


async def test_a_bound_pod_takes_its_time(server: Server) -> None:
    client, ns = server.client, server.namespace
    uid = (await client.create(PODS, ns, a_pod())).metadata.uid
    await client.bind(ns, "p", "n", uid=uid)

    first = await client.delete(PODS, ns, "p")
    again = await client.delete(PODS, ns, "p")
    assert first is not None
    assert again is not None
    assert first.metadata.deletion_timestamp
    assert first.metadata.deletion_grace_period_seconds == 30
    assert again.metadata.resource_version == first.metadata.resource_version

    await client.delete(PODS, ns, "p", grace_s=0)
    with pytest.raises(NotFound):
        await client.get(PODS, ns, "p")


async def test_a_pod_being_deleted_is_not_bound(server: Server) -> None:
    client, ns = server.client, server.namespace
    body = a_pod()
    body["metadata"]["finalizers"] = ["x.y/z"]
    uid = (await client.create(PODS, ns, body)).metadata.uid
    await client.delete(PODS, ns, "p")
    with pytest.raises(Conflict):
        await client.bind(ns, "p", "n", uid=uid)


async def test_an_eviction_deletes_and_says_why(server: Server) -> None:
    client, ns = server.client, server.namespace
    uid = (await client.create(PODS, ns, a_pod())).metadata.uid
    await client.bind(ns, "p", "n", uid=uid)

    await client.evict(ns, "p", uid=uid)
    await client.evict(ns, "p", uid=uid)  # A second time is no error.

    pod = await client.get(PODS, ns, "p")
    said = {(c.type, c.status, c.reason) for c in pod.status.conditions or ()}
    assert pod.metadata.deletion_timestamp
    assert ("DisruptionTarget", "True", "EvictionByEvictionAPI") in said


# Deletion.


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


# Lists and watches.


async def test_a_list_comes_in_pages(server: Server) -> None:
    client, ns = server.client, server.namespace
    made = {f"m{i}" for i in range(5)}
    for name in made:
        await client.create(CONFIG_MAPS, ns, a_map(name, mine="yes"))

    pages = [p async for p in client.pages(CONFIG_MAPS, Selector(ns, "mine=yes"), size=2)]

    assert [len(p.items) for p in pages] == [2, 2, 1]
    assert {m.metadata.name for p in pages for m in p.items} == made
    assert len({p.resource_version for p in pages}) == 1


SELECTORS = {
    "a=1": {"one"},
    "a!=1": {"two", "none"},
    "a in (1,2)": {"one", "two"},
    "a notin (1)": {"two", "none"},
    "a": {"one", "two"},
    "!a": {"none"},
    "a,a!=2": {"one"},
}


async def test_label_selectors(server: Server) -> None:
    client, ns = server.client, server.namespace
    await client.create(CONFIG_MAPS, ns, a_map("one", a="1", mine="y"))
    await client.create(CONFIG_MAPS, ns, a_map("two", a="2", mine="y"))
    await client.create(CONFIG_MAPS, ns, a_map("none", mine="y"))
    got = {
        text: {
            m.metadata.name for m in await client.list(CONFIG_MAPS, Selector(ns, f"mine,{text}"))
        }
        for text in SELECTORS
    }
    assert got == SELECTORS
    with pytest.raises(KubeError):
        await client.list(CONFIG_MAPS, Selector(ns, "a in ("))


async def test_field_selectors(server: Server) -> None:
    client, ns = server.client, server.namespace
    await client.create(PODS, ns, a_pod("p"))
    await client.create(PODS, ns, a_pod("q", schedulerName="volcano"))

    async def select(fields: str) -> set[str]:
        return {p.metadata.name for p in await client.list(PODS, Selector(ns, fields=fields))}

    assert await select("spec.schedulerName=volcano") == {"q"}
    assert await select("spec.schedulerName!=volcano,status.phase=Pending") == {"p"}
    assert await select("metadata.name=p,spec.nodeName=") == {"p"}
    with pytest.raises(ApiError):
        await select("spec.bogus=1")


async def changes(
    server: Server, since: str, count: int, labels: str = ""
) -> list[tuple[str, str, dict[str, str] | None]]:
    """Return the first changes of config maps that a watch tells, checking their versions."""
    told: list[tuple[str, str, dict[str, str] | None]] = []
    last = int(since)
    select = Selector(server.namespace, labels)
    watch = server.client.watch(
        CONFIG_MAPS, select, resource_version=since, lasting_s=30, silence_s=10
    )
    async with aclosing(watch):
        async for change in watch:
            if isinstance(change, wire.Change):
                assert int(change.object.metadata.resource_version) > last
                last = int(change.object.metadata.resource_version)
                told.append(
                    (change.type, change.object.metadata.name, change.object.metadata.labels)
                )
            if len(told) == count:
                break
    return told


async def test_a_watch_tells_history_and_news(server: Server) -> None:
    client, ns = server.client, server.namespace
    start = (await client.create(CONFIG_MAPS, ns, a_map("m"))).metadata.resource_version
    await client.patch(CONFIG_MAPS, ns, "m", LABEL)
    watching = asyncio.create_task(changes(server, start, 3))
    await asyncio.sleep(0)
    await client.delete(CONFIG_MAPS, ns, "m")
    await client.create(CONFIG_MAPS, ns, a_map("m", c="d"))

    assert await watching == [
        ("MODIFIED", "m", {"a": "b"}),
        ("DELETED", "m", {"a": "b"}),
        ("ADDED", "m", {"c": "d"}),
    ]


async def test_a_watch_through_a_selector(server: Server) -> None:
    client, ns = server.client, server.namespace
    start = (await client.create(CONFIG_MAPS, ns, a_map("m"))).metadata.resource_version
    await client.patch(CONFIG_MAPS, ns, "m", LABEL)
    await client.patch(CONFIG_MAPS, ns, "m", MergePatch({"metadata": {"labels": {"a": "c"}}}))
    await client.create(CONFIG_MAPS, ns, a_map("n"))

    assert await changes(server, start, 2, "a=b") == [
        ("ADDED", "m", {"a": "b"}),
        ("DELETED", "m", {"a": "b"}),
    ]


async def test_a_watch_ends_with_a_bookmark(server: Server) -> None:
    made = await server.client.create(CONFIG_MAPS, server.namespace, a_map("m", mine="y"))
    version = made.metadata.resource_version
    # Where nothing at all has changed there is nothing to mark, and no bookmark comes.
    await server.client.create(CONFIG_MAPS, server.namespace, a_map("not-selected"))
    told = [
        change
        async for change in server.client.watch(
            CONFIG_MAPS,
            Selector(server.namespace, "mine"),
            resource_version=version,
            lasting_s=server.watch_s,
            silence_s=10,
        )
    ]
    assert told
    assert all(isinstance(t, wire.Bookmark) for t in told)
    assert all(
        int(t.resource_version) >= int(version) for t in told if isinstance(t, wire.Bookmark)
    )


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
