"""The process as a whole: one of several works, all of it is quiet, and it stops in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from controllers.flags import Settings
from controllers.main import Replica
from pumice.core import names
from pumice.kube.errors import NotLeading
from pumice.kube.lease import Election, LeadershipLostError, Terms
from pumice.kube.metrics import Metrics
from pumice.kube.resources import (
    CONFIG_MAPS,
    HYPERNODES,
    JOBS,
    LEASES,
    NODES,
    POD_GROUPS,
    PODS,
    QUEUES,
    REPLICA_SETS,
)
from tests.fakeapi.app import FakeApi
from tests.fakeapi.clock import ManualClock, settle
from tests.unit.jobs.builders import template

Json = dict[str, Any]
TERMS = Terms(names.NAMESPACE, "pumice-controllers")
RACKS = """
networkTopologyDiscovery:
- source: label
  enabled: true
  config: {networkTopologyTypes: {rack: [{nodeLabel: rack}]}}
"""


class Started:
    """One process: `kill` leaves no time for anything, `end` is SIGTERM."""

    def __init__(self, world: World, name: str, settings: Settings) -> None:
        self.client = world.api.client()
        self.election = Election(self.client, TERMS, name, clock=world.clock)
        self.replica = Replica(
            self.client, Metrics("volcano_"), settings, election=self.election, clock=world.clock
        )
        self.stop = asyncio.Event()
        self.task = asyncio.create_task(self.replica.run(self.stop))

    async def kill(self) -> None:
        self.client._transport = Gone()
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


class Gone:
    """A transport of a process that is no more."""

    async def send(self, _: object) -> Any:
        raise NotLeading("this process is no more")

    async def close(self) -> None:
        pass


class World:
    """An API server with something of everything, and the processes."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.api = FakeApi(self.clock, namespaces=("default", "ns", names.NAMESPACE))
        self.started: list[Started] = []
        self._read = 0

    def start(self, name: str = "a", **settings: Any) -> Started:
        made = Started(self, name, Settings(**settings))
        self.started.append(made)
        return made

    async def end(self) -> None:
        for each in self.started:
            each.task.cancel()
        await asyncio.gather(*(each.task for each in self.started), return_exceptions=True)

    def writes(self) -> list[str]:
        """Return what was written since the last time, Leases apart."""
        calls = self.api.calls[self._read :]
        self._read = len(self.api.calls)
        written = (call for call in calls if call.method != "GET")
        return [f"{c.method} {c.path}" for c in written if "/leases" not in c.path]

    def watched(self) -> set[str]:
        """Return the collections that were listed."""
        found = (call for call in self.api.calls if call.method == "GET")
        return {call.path.rpartition("/")[2] for call in found if "limit" in call.query}

    def fill(self) -> None:
        """Add a queue, a node with a rack, a Job, a Deployment's ReplicaSet and a plain pod."""
        api = self.api
        text = {"volcano-controller.conf": RACKS}
        body = {**meta("volcano-controller-configmap"), "data": text}
        api.add(CONFIG_MAPS, body, names.NAMESPACE)
        api.add(QUEUES, {**meta("q"), "spec": {"weight": 1}})
        api.add(NODES, meta("n0", labels={"rack": "r0"}))
        task = {"name": "w", "replicas": 2, "template": template("1")}
        plugins: Json = {"svc": [], "ssh": ["--ssh-private-key=a", "--ssh-public-key=b"]}
        api.add(
            JOBS, {**meta("j"), "spec": {"queue": "q", "tasks": [task], "plugins": plugins}}, "ns"
        )
        made = api.add(REPLICA_SETS, {**meta("rs"), "spec": {"replicas": 1}}, "ns")
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "controller": True}
        owners = [{**owner, "uid": made["metadata"]["uid"]}]
        spec = {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]}
        api.add(PODS, {**meta("of-rs", ownerReferences=owners), "spec": spec}, "ns")
        api.add(PODS, {**meta("alone"), "spec": spec}, "ns")

    async def settle(self) -> None:
        """Let everything come to what it will be: groups are let in, pods run."""
        await self.clock.advance(5)
        for group in self.api.all(POD_GROUPS):
            self.api.put(POD_GROUPS, {**group, "status": {"phase": "Inqueue"}})
        await self.clock.advance(5)
        for pod in self.api.all(PODS):
            spec, status = {**pod["spec"], "nodeName": "n0"}, {**pod["status"], "phase": "Running"}
            self.api.put(PODS, {**pod, "spec": spec, "status": status})
        for group in self.api.all(POD_GROUPS):
            self.api.put(POD_GROUPS, {**group, "status": {"phase": "Running"}})
        await self.clock.advance(20)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.end()


async def test_nothing_is_written_while_nothing_changes(world: World) -> None:
    world.fill()
    first = world.start()
    await world.settle()
    kinds = {path.split("/")[-1] for path in world.writes() if path.startswith("POST")}
    assert {"pods", "podgroups", "hypernodes", "queues", "secrets", "services"} <= kinds
    assert world.api.get(JOBS, "ns", "j")["status"]["state"]["phase"] == "Running"  # type: ignore[index]
    assert world.api.get(QUEUES, "", "q")["status"]["running"] == 1  # type: ignore[index]
    (rack,) = world.api.all(HYPERNODES)
    assert rack["status"]["nodeCount"] == 1

    await world.clock.advance(300)
    assert world.writes() == []

    await first.kill()
    world.start("b")
    await world.clock.advance(320)
    assert world.writes() == [], "nor does one that takes over write what is so already"
    assert world.api.objects.idle == []


async def test_one_that_waits_reads_nothing_and_takes_over_from_one_that_stops(
    world: World,
) -> None:
    world.fill()
    a = world.start("a")
    await settle()
    b = world.start("b")
    await world.settle()
    assert a.replica.is_ready
    assert b.replica.is_ready
    assert b.replica.report() == "waiting, a leads"

    a.stop.set()
    await a.task
    world.writes()
    world.api.add(PODS, {"metadata": {"name": "new"}, "spec": POD}, "ns")
    await world.clock.advance(4)
    assert b.replica.report().startswith("at work\n[+] ")
    assert "PATCH /api/v1/namespaces/ns/pods/new" in world.writes()


async def test_another_takes_over_within_the_lease_time_of_one_that_is_killed(
    world: World,
) -> None:
    world.fill()
    a = world.start("a")
    await settle()
    b = world.start("b")
    await world.settle()
    await a.kill()
    world.writes()
    world.api.add(PODS, {"metadata": {"name": "new"}, "spec": POD}, "ns")
    await world.clock.advance(TERMS.duration_s + 3)
    assert b.election.leads
    writes = world.writes()
    assert writes.count("PATCH /api/v1/namespaces/ns/pods/new") == 1
    assert len([w for w in writes if w.startswith("POST")]) == 1, "its PodGroup"


async def test_a_leader_that_loses_the_lease_writes_nothing_more_and_ends(world: World) -> None:
    a = world.start("a")
    await world.clock.advance(5)
    world.api.fail(503, times=1000, path="/leases/")
    world.api.fail(503, times=1000, method="PATCH", path="/podgroups")
    await world.clock.advance(TERMS.deadline_s)
    world.writes()
    world.api.add(PODS, {"metadata": {"name": "new"}, "spec": POD}, "ns")
    await world.clock.advance(5)
    assert world.writes() == []
    with pytest.raises(LeadershipLostError):
        await a.task


async def test_what_is_under_way_ends_before_the_lease_is_given_up(world: World) -> None:
    world.api.delay(2, method="POST", path="podgroups")
    a = world.start("a")
    await world.clock.advance(1)
    world.api.add(PODS, {"metadata": {"name": "new"}, "spec": POD}, "ns")
    await settle()
    a.stop.set()
    await world.clock.advance(1)
    assert a.election.leads
    await world.clock.advance(2)
    await a.task
    assert "PATCH /api/v1/namespaces/ns/pods/new" in world.writes()
    lease = world.api.get(LEASES, names.NAMESPACE, "pumice-controllers")
    assert lease is not None
    assert lease["spec"]["holderIdentity"] == ""


async def test_readiness_tells_which_informers_are_synced(world: World) -> None:
    world.api.delay(5, method="GET", path="/pods")
    a = world.start("a")
    await world.clock.advance(1)
    assert not a.replica.is_ready
    report = a.replica.report().splitlines()
    assert "[-] pods" in report
    assert "[+] queues.scheduling.volcano.sh" in report
    await world.clock.advance(10)
    assert a.replica.is_ready
    assert "[-] pods" not in a.replica.report()


WATCHED = {
    "queue-controller": {"queues", "podgroups", "commands"},
    "gc-controller": {"jobs"},
    "cronjob-controller": {"cronjobs", "jobs"},
    "jobflow-controller": {"jobflows", "jobtemplates", "jobs"},
    "jobtemplate-controller": {"jobtemplates", "jobs"},
    "hyperNode-controller": {"nodes", "hypernodes", "configmaps"},
    "pg-controller": {"pods", "podgroups", "replicasets", "statefulsets"},
}


@pytest.mark.parametrize(("controller", "want"), WATCHED.items(), ids=WATCHED)
async def test_only_what_a_controller_looks_at_is_watched(
    world: World, controller: str, want: set[str]
) -> None:
    world.start(controllers=(controller,))
    await world.clock.advance(3)
    assert world.watched() == want


async def test_secrets_are_never_listed(world: World) -> None:
    world.start()
    await world.clock.advance(3)
    assert "pods" in world.watched()
    assert "secrets" not in world.watched()


def meta(name: str, **more: Any) -> Json:
    return {"metadata": {"name": name, **more}}


POD: Json = {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]}
