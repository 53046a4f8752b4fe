"""Kinds that only some plugins read: watched while those are configured, and never in the way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from extender.model import Model, Urgency
from extender.optional import ABSENT_S
from extender.watching import Watching
from pumice.core.conf import DEFAULT, Configuration, parse
from pumice.core.devices.geometries import KEY
from pumice.core.model.inputs import Inputs
from pumice.kube.resources import (
    CLAIMS,
    CONFIG_MAPS,
    CSI_CAPACITIES,
    CSI_DRIVERS,
    CSI_NODES,
    NUMA_TOPOLOGIES,
    QUOTAS,
    STORAGE_CLASSES,
    VOLUMES,
    AnyResource,
)
from tests.builders import a_pod
from tests.fakeapi import FakeApi, ManualClock, settle
from tests.volumes import a_mounting_pod

QUOTA = {"metadata": {"name": "q"}, "spec": {"hard": {"cpu": "4"}}}
CPUS = {"metadata": {"name": "n0"}, "spec": {"policies": {"CPUManagerPolicy": "static"}}}


def naming(*plugins: str) -> Configuration:
    names = "".join(f"\n  - name: {name}" for name in plugins)
    return parse(f"actions: allocate\ntiers:\n- plugins:{names}\n")


class Watches:
    """The watches of an extender on an API server in memory."""

    def __init__(self, api: FakeApi, clock: ManualClock) -> None:
        self.api, self.clock = api, clock
        self.model = Model(now=clock.monotonic)
        self.woken: list[Urgency] = []
        client = api.client()
        self.watching = Watching.of(client, clock, self.model, self.woken.append, lambda _: None)

    @property
    def inputs(self) -> Inputs:
        return self.model.cluster.inputs

    async def follow(self, conf: Configuration) -> None:
        self.watching.follow(conf)
        await settle()

    def asked_for(self, plural: str) -> int:
        return sum(plural in call.path for call in self.api.calls)


@pytest.fixture
async def watches() -> AsyncIterator[Watches]:
    clock = ManualClock()
    made = Watches(FakeApi(clock, namespaces=("ns",)), clock)
    made.api.add(QUOTAS, QUOTA, "ns")
    made.api.add(NUMA_TOPOLOGIES, CPUS)
    async with asyncio.TaskGroup() as group:
        tasks = made.watching.run(group)
        await settle()
        yield made
        for task in tasks:
            task.cancel()


async def test_nothing_is_asked_for_that_nobody_reads(watches: Watches) -> None:
    await watches.follow(DEFAULT)
    assert [watches.asked_for(kind) for kind in ("resourcequotas", "numatopologies")] == [0, 0]
    assert watches.watching.missing() == ""


async def test_what_a_plugin_reads_is_watched_while_it_is_configured(watches: Watches) -> None:
    await watches.follow(naming("resourcequota", "numa-aware"))
    assert set(watches.inputs.quotas["ns"]) == {"q"}
    assert set(watches.inputs.numa) == {"n0"}

    await watches.follow(naming("numa-aware"))
    assert watches.inputs.quotas["ns"] == {}
    assert set(watches.inputs.numa) == {"n0"}

    watches.api.objects.delete(NUMA_TOPOLOGIES, watches.api.all(NUMA_TOPOLOGIES)[0], {})
    await settle()
    assert watches.inputs.numa == {}


async def test_until_it_is_known_there_are_no_sessions(watches: Watches) -> None:
    watches.api.fail(500, times=10**9, path="resourcequotas")
    await watches.follow(naming("resourcequota"))
    assert watches.watching.missing() == "resourcequotas"
    assert watches.watching.age(watches.clock.monotonic()) == float("inf")


@pytest.mark.parametrize("code", [403, 404], ids=["forbidden", "no such kind"])
async def test_a_cluster_without_the_kind_goes_on_without(
    watches: Watches, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    watches.api.fail(code, times=3, path="numatopologies")
    await watches.follow(naming("numa-aware"))
    assert watches.watching.missing() == ""
    assert watches.watching.age(watches.clock.monotonic()) < 60
    await watches.clock.advance(2 * ABSENT_S)
    assert watches.inputs.numa == {}
    assert caplog.text.count("going on without") == 1

    await watches.clock.advance(2 * ABSENT_S)
    assert set(watches.inputs.numa) == {"n0"}


@pytest.mark.parametrize("kind", ["persistentvolumeclaims", "csinodes"])
async def test_what_cannot_be_read_of_volumes_is_known(kind: str) -> None:
    clock = ManualClock()
    made = Watches(FakeApi(clock, namespaces=("ns",)), clock)
    made.api.fail(403, times=3, path=kind)
    unread = []
    async with asyncio.TaskGroup() as group:
        tasks = made.watching.run(group)
        await made.follow(DEFAULT)
        for _ in range(3):
            unread.append(made.watching.unread_storage())
            await clock.advance(2 * ABSENT_S)
        for task in tasks:
            task.cancel()
    # Of the kinds of CSI the rest does not depend.
    assert unread == ([True, True, False] if kind == "persistentvolumeclaims" else [False] * 3)


CONFIG = {"data": {KEY: "nvidia: ["}}


async def test_one_object_may_be_named_and_another_one_later(watches: Watches) -> None:
    faults = watches.model.cluster.faults
    for name in ("cards", "others"):
        watches.api.add(CONFIG_MAPS, {**CONFIG, "metadata": {"name": name}}, "ns")

    await watches.follow(sharing("cards"))
    assert faults.keys() == {"configmap ns/cards"}
    await watches.follow(sharing("others"))
    assert faults.keys() == {"configmap ns/others"}
    await watches.follow(DEFAULT)
    assert faults == {}


def sharing(config: str) -> Configuration:
    arguments = {
        "deviceshare.VGPUEnable": True,
        "deviceshare.KnownGeometriesCMNamespace": "ns",
        "deviceshare.KnownGeometriesCMName": config,
    }
    plugin = {"name": "deviceshare", "arguments": arguments}
    return parse(json.dumps({"actions": "allocate", "tiers": [{"plugins": [plugin]}]}))


STORED: dict[AnyResource, tuple[str, str]] = {
    CLAIMS: ("claims", "ns"),
    VOLUMES: ("volumes", ""),
    STORAGE_CLASSES: ("classes", ""),
    CSI_NODES: ("csi_nodes", ""),
    CSI_DRIVERS: ("drivers", ""),
    CSI_CAPACITIES: ("capacities", "ns"),
}


@pytest.mark.parametrize("kind", STORED, ids=str)
async def test_what_decides_where_volumes_are_is_known(watches: Watches, kind: AnyResource) -> None:
    known, namespace = STORED[kind]
    await watches.follow(DEFAULT)
    stored = watches.api.add(kind, {"metadata": {"name": "x"}}, namespace)
    await settle()
    objects = getattr(watches.inputs.storage, known)
    assert [obj.metadata.name for obj in objects.values()] == ["x"]

    watches.api.objects.delete(kind, stored, {})
    await settle()
    assert objects == {}


async def test_a_change_of_storage_wakes_where_a_pod_waits_with_claims(watches: Watches) -> None:
    watches.model.set_pod(a_pod("plain"))
    watches.model.set_pod(a_mounting_pod("runs", "a", node="n0"))
    watches.woken.clear()
    watches.api.add(CLAIMS, {"metadata": {"name": "a"}}, "ns")
    await settle()
    assert set(watches.woken) == {Urgency.NEVER}

    watches.model.set_pod(a_mounting_pod("waits", "a"))
    watches.woken.clear()
    watches.api.add(VOLUMES, {"metadata": {"name": "v"}})
    await settle()
    assert set(watches.woken) == {Urgency.NOW}
