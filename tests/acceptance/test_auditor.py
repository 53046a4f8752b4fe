"""
The auditor on a real control plane: it fails on a staged violation of each rule, and only then.

Nothing of Pumice runs here but its API and its roles. The test plays every part: it binds as the
extender, answers for the extender's ledger, and breaks one promise at a time.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest
from aiohttp import web

from pumice.local.controlplane import ControlPlane
from pumice.local.errors import ApiError
from pumice.local.install import apply, documents
from pumice.local.nodes import add_nodes
from pumice.local.paths import manifests
from pumice.local.users import USERS
from pumice.local.watching import Watched
from tests.acceptance.objects import a_pod, a_pod_group
from tests.auditor.report import Report
from tests.auditor.run import Auditor

pytestmark = pytest.mark.cluster

EXTENDER, CONTROLLERS = "pumice-extender", "pumice-controllers"
PODS = "/api/v1/namespaces/default/pods"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
NODE_CPU = 4
QUIET_S = 6.0
"""Long enough for the ledger to be read twice."""
SERIAL = itertools.count()


class Extender:
    """Answers the two debug endpoints of the extender with what the test puts in."""

    def __init__(self) -> None:
        self.entries: list[dict[str, str]] = []
        self.victims: list[str] = []
        self.unanswered = 0
        app = web.Application()
        app.router.add_get("/debug/ledger", self._ledger)
        app.router.add_get("/debug/sessions", self._sessions)
        self._runner = web.AppRunner(app, access_log=None)
        self.url = ""

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def writes_down(self, pod: dict[str, Any], state: str, node: str = "") -> None:
        """Put an entry into the ledger."""
        meta = pod["metadata"]
        entry = {"uid": meta["uid"], "namespace": meta["namespace"], "name": meta["name"]}
        self.entries.append({**entry, "job": "", "node": node, "state": state, "since": "0"})

    async def _ledger(self, _: web.Request) -> web.Response:
        return web.json_response({"entries": self.entries, "unanswered": self.unanswered})

    async def _sessions(self, _: web.Request) -> web.Response:
        return web.json_response([{"id": "1", "victims": self.victims}])


@dataclass
class Stage:
    """A control plane and the parts that a test plays on it."""

    plane: ControlPlane
    nodes: list[str]
    extender: Extender
    report: Path
    name: str = field(default_factory=lambda: f"s{next(SERIAL)}")

    def auditor(self, *, rules: str = "ABCDF", **options: Any) -> Auditor:
        """An auditor that knows who plays whom."""
        return Auditor(
            self.plane.kubeconfig("auditor"),
            self.plane.audit_log,
            extender_user=USERS[EXTENDER].name,
            extender_url=self.extender.url,
            own_users=[USERS[CONTROLLERS].name],
            scheduler_users=[USERS["pumice-scheduler"].name],
            rules=rules,
            report=self.report,
            **options,
        )

    def gang(self, size: int, *, cpu: int = 1) -> list[dict[str, Any]]:
        """Create a PodGroup whose minimum is its size, and its pods."""
        self.plane.api.post(GROUPS, a_pod_group(self.name, min_member=size))
        note = {"scheduling.k8s.io/group-name": self.name}
        bodies = [a_pod(f"{self.name}-{i}", annotations=note, cpu=cpu) for i in range(size)]
        return [self.plane.api.post(PODS, body) for body in bodies]

    def bind(self, pod: dict[str, Any], node: int = 0, *, user: str = EXTENDER) -> None:
        """Bind a pod as some user."""
        meta = {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        target = {"kind": "Node", "name": self.nodes[node]}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        self.plane.api_as(user).post(f"{PODS}/{meta['name']}/binding", body)

    def clear(self) -> None:
        """Delete all pods and groups, and wait until they are gone."""
        with_pods = Watched(self.plane.api, PODS).start()
        try:
            self.plane.api.delete(PODS, {"gracePeriodSeconds": 0})
            self.plane.api.delete(GROUPS)
            with_pods.wait(lambda found: not found, 30, "no pods")
        finally:
            with_pods.stop()


@pytest.fixture(scope="module")
def plane(
    binary_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane with Pumice's API and roles, but without its gate and its services."""
    directory = tmp_path_factory.mktemp("plane")
    with ControlPlane(directory, audit_level="RequestResponse") as running:
        files = [manifests() / "namespace.yaml"]
        for part in ("crds", "rbac"):
            files += sorted((manifests() / part).glob("*.yaml"))
        for body in itertools.chain.from_iterable(documents(file) for file in files):
            apply(running.api, body)
        accounts = Watched(running.api, "/api/v1/namespaces/default/serviceaccounts").start()
        accounts.wait(lambda found: "default/default" in found, 30, "the ServiceAccount")
        accounts.stop()
        yield running


@pytest.fixture(scope="module")
def nodes(plane: ControlPlane) -> list[str]:
    """Two small nodes."""
    return add_nodes(plane.api, 2, cpu=NODE_CPU)


@pytest.fixture
async def stage(plane: ControlPlane, nodes: list[str], tmp_path: Path) -> AsyncIterator[Stage]:
    """The scene of one test, cleared afterwards."""
    async with Extender() as extender:
        scene = Stage(plane, nodes, extender, tmp_path / "report.json")
        yield scene
        await asyncio.to_thread(scene.clear)


async def objections(auditor: Auditor) -> list[str]:
    """End the run and return the rules that it objects by; the program must fail the test."""
    with pytest.raises(AssertionError, match="the auditor objects"):
        await auditor.finish()
    return [violation.rule for violation in Report.read(auditor.report).violations]


async def test_a_clean_run_passes_all_rules_and_is_counted(stage: Stage) -> None:
    async with stage.auditor(rules="ABCDEF") as auditor:
        gang = stage.gang(2)
        for pod in gang:
            stage.bind(pod)
            stage.extender.writes_down(pod, "Bound", stage.nodes[0])
        report = await auditor.finish()

    figures = report.statistics
    user = USERS[EXTENDER].name
    assert report.violations == []
    assert (figures.pods_created, figures.pods_bound, figures.writes_per_pod) == (2, 2, 1.0)
    assert figures.writes.until_bound == {f"{user} create pods/binding": 2}
    assert [(b.pod, b.node, b.user) for b in figures.bindings] == [
        (f"default/{stage.name}-{i}", stage.nodes[0], user) for i in range(2)
    ]
    times = figures.gangs[f"default/{stage.name}"]
    assert (times.bound, times.minimum) == (2, 2)
    assert times.created < times.first_bound <= times.last_bound


async def test_a_gang_that_stays_partly_bound_is_objected_to(stage: Stage) -> None:
    async with stage.auditor(limit_s=1) as auditor:
        gang = stage.gang(2)
        stage.bind(gang[0])
        await auditor.wait_for_objection("A")
        stage.bind(gang[1])

        assert await objections(auditor) == ["A"]


async def test_what_the_test_says_of_time_is_heard(stage: Stage) -> None:
    async with stage.auditor(limit_s=0.2) as auditor:
        gang = stage.gang(3)
        async with auditor.paused():
            stage.bind(gang[0])
            await asyncio.sleep(0.5)
        await auditor.limit(20)
        await auditor.killed()
        stage.bind(gang[1])
        await asyncio.sleep(0.5)
        stage.bind(gang[2])

        assert (await auditor.finish()).violations == []


async def test_a_node_that_is_overfilled_is_objected_to(stage: Stage) -> None:
    async with stage.auditor() as auditor:
        for pod in stage.gang(2, cpu=NODE_CPU):
            stage.bind(pod)

        assert await objections(auditor) == ["B"]


async def test_a_binding_by_another_user_is_objected_to(stage: Stage) -> None:
    async with stage.auditor() as auditor:
        stage.bind(stage.gang(1)[0], user="admin")

        assert await objections(auditor) == ["C"]


async def test_a_delete_by_the_extender_is_objected_to_though_its_roles_forbid_it(
    stage: Stage,
) -> None:
    async with stage.auditor() as auditor:
        (pod,) = stage.gang(1)
        api = stage.plane.api_as(EXTENDER)
        with pytest.raises(ApiError, match="forbidden"):
            api.delete(f"{PODS}/{pod['metadata']['name']}")

        assert await objections(auditor) == ["D"]


async def test_an_eviction_by_the_extender_needs_a_decision(stage: Stage) -> None:
    async with stage.auditor() as auditor:
        decided, undecided = stage.gang(2)
        stage.extender.victims.append(decided["metadata"]["uid"])
        for pod in (decided, undecided):
            meta = {"name": pod["metadata"]["name"], "namespace": "default"}
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
            stage.plane.api_as(EXTENDER).post(f"{PODS}/{meta['name']}/eviction", body)

        assert await objections(auditor) == ["D"]
        name = undecided["metadata"]["name"]
        assert f"pod default/{name} " in Report.read(auditor.report).violations[0].sentence


async def test_a_ledger_that_lies_is_objected_to(stage: Stage) -> None:
    async with stage.auditor(rules="ABCDEF") as auditor:
        true, false = stage.gang(2)
        for pod in (true, false):
            stage.bind(pod)
        stage.extender.writes_down(true, "Bound", stage.nodes[0])
        stage.extender.writes_down(false, "Bound", stage.nodes[1])

        assert await objections(auditor) == ["E"]


async def test_a_ledger_is_compared_once_its_writes_are_answered(stage: Stage) -> None:
    async with stage.auditor(rules="E") as auditor:
        (pod,) = stage.gang(1)
        stage.extender.unanswered = 1
        stage.extender.writes_down(pod, "Bound", stage.nodes[0])
        await asyncio.sleep(QUIET_S)
        assert [v.object for v in (await auditor.so_far()).of("E")] == ["ledger"]
        stage.bind(pod)
        stage.extender.unanswered = 0

        assert (await auditor.finish()).violations == []


async def test_a_ledger_out_of_reach_is_objected_to(stage: Stage) -> None:
    stage.extender.url = "http://127.0.0.1:1"
    async with stage.auditor(rules="E", settle_s=3) as auditor:
        assert await objections(auditor) == ["E"]


async def test_a_patch_that_changes_nothing_is_objected_to(stage: Stage) -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Why", "message": "so"}
    async with stage.auditor() as auditor:
        (pod,) = stage.gang(1)
        path = f"{PODS}/{pod['metadata']['name']}/status"
        for _ in range(2):
            stage.plane.api_as(EXTENDER).patch(path, {"status": {"conditions": [condition]}})

        assert await objections(auditor) == ["F"]
