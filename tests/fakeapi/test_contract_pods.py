"""
The contract of the API server: gates, binding, eviction and deletion of pods.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from pumice.kube.errors import Conflict, Invalid, NotFound
from pumice.kube.patches import MergePatch
from pumice.kube.resources import (
    PODS,
)
from tests.fakeapi.bodies import (
    HELD,
    LABEL,
    WRONG,
    ZONED,
    a_pod,
    on_node,
    required,
)
from tests.fakeapi.conftest import Server


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


async def test_a_binding_may_presume_a_version(server: Server) -> None:
    client, ns = server.client, server.namespace
    first = (await client.create(PODS, ns, a_pod())).metadata
    changed = (await client.patch(PODS, ns, "p", LABEL)).metadata
    with pytest.raises(Conflict) as refused:
        await client.bind(ns, "p", "n", uid=first.uid, resource_version=first.resource_version)
    assert f"ResourceVersion in precondition: {first.resource_version}" in str(refused.value)

    await client.bind(ns, "p", "n", uid=first.uid, resource_version=changed.resource_version)


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
