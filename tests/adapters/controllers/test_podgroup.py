"""The PodGroup controller against the in-memory API server."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.podgroup import PodGroupController
from pumice.core import names
from pumice.kube.resources import (
    DAEMON_SETS,
    KUBERNETES_JOBS,
    POD_GROUPS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    AnyResource,
)
from tests.adapters.controllers.world import World
from tests.fakeapi.clock import settle, until

Json = dict[str, Any]


class GroupWorld(World[PodGroupController]):
    """A world with the PodGroup controller in it."""

    def __init__(self) -> None:
        super().__init__(
            lambda made, **options: PodGroupController(
                made.client, made.caches, made.events, clock=made.clock, **options
            )
        )

    def add_replica_set(self, replicas: int = 2, **annotations: str) -> str:
        """Add ReplicaSet `rs` and return its uid."""
        made = self.api.add(
            REPLICA_SETS,
            {
                "metadata": {"name": "rs", "annotations": annotations},
                "spec": {"replicas": replicas},
            },
            "ns",
        )
        return str(made["metadata"]["uid"])

    def scale(self, replicas: int) -> None:
        old = self.api.get(REPLICA_SETS, "ns", "rs")
        assert old is not None
        self.api.put(REPLICA_SETS, {**old, "spec": {"replicas": replicas}})

    def add_stateful_set(self, revision: str) -> str:
        """Add StatefulSet `rs`, which is being brought to a revision, and return its uid."""
        body = {"metadata": {"name": "rs"}, "spec": {"replicas": 2}}
        made = self.api.add(STATEFUL_SETS, body, "ns")
        self.roll(revision)
        return str(made["metadata"]["uid"])

    def roll(self, revision: str) -> None:
        old = self.api.get(STATEFUL_SETS, "ns", "rs")
        assert old is not None
        self.api.put(STATEFUL_SETS, {**old, "status": {"updateRevision": revision}})

    def add_pod(
        self,
        name: str,
        owner: str = "",
        scheduler: str = "volcano",
        *,
        kind: str = "apps/v1 ReplicaSet",
        cpu: str = "1",
        revision: str = "",
        gate: str = "",
        **annotations: str,
    ) -> str:
        """Add a pod, of an object `rs` where its uid is given, and return the pod's uid."""
        labels = {"controller-revision-hash": revision} if revision else {}
        meta: Json = {"name": name, "annotations": annotations, "labels": labels}
        if owner:
            version, _, kind = kind.partition(" ")
            meta["ownerReferences"] = [
                {
                    "apiVersion": version,
                    "kind": kind,
                    "name": "rs",
                    "uid": owner,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ]
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        spec: Json = {"schedulerName": scheduler, "containers": [container]}
        if gate:
            spec["schedulingGates"] = [{"name": gate}]
        made = self.api.add(PODS, {"metadata": meta, "spec": spec}, "ns")
        return str(made["metadata"]["uid"])

    def group_of(self, pod: str) -> str:
        got = self.api.get(PODS, "ns", pod)
        assert got is not None
        return str(got["metadata"].get("annotations", {}).get(names.GROUP_NAME, ""))

    @property
    def groups(self) -> dict[str, Json]:
        return {group["metadata"]["name"]: group for group in self.api.all(POD_GROUPS)}


@pytest.fixture
def world() -> GroupWorld:
    return GroupWorld()


async def test_a_pod_on_its_own_gets_a_group_of_its_own(world: GroupWorld) -> None:
    async with world.running():
        uid = world.add_pod("p", **{names.QUEUE_NAME: "q"})
        await until(lambda: world.group_of("p"))

    group = world.groups[f"podgroup-{uid}"]
    assert world.group_of("p") == f"podgroup-{uid}"
    assert group["metadata"]["ownerReferences"][0]["uid"] == uid
    assert group["spec"]["minMember"] == 1
    assert group["spec"]["queue"] == "q"
    assert group["spec"]["minResources"]["requests.cpu"] == "1"
    assert group["status"] == {"phase": "Pending"}


async def test_pods_of_a_replica_set_share_one_group_that_is_created_once(
    world: GroupWorld,
) -> None:
    uid = world.add_replica_set(3, **{names.GROUP_MIN_MEMBER: "2"})
    for i in range(3):
        world.add_pod(f"p{i}", uid)
    async with world.running():
        await until(lambda: all(world.group_of(f"p{i}") for i in range(3)))
        await settle()

    assert set(world.groups) == {f"podgroup-{uid}"}
    assert world.groups[f"podgroup-{uid}"]["spec"]["minMember"] == 2
    first, *rest = world.writes()
    assert first == "POST podgroups"
    assert sorted(rest) == ["PATCH pods/p0", "PATCH pods/p1", "PATCH pods/p2"]


async def test_pods_that_come_later_join_the_group(world: GroupWorld) -> None:
    uid = world.add_replica_set()
    world.add_pod("p0", uid)
    async with world.running():
        await until(lambda: world.group_of("p0"))
        world.writes()
        world.add_pod("p1", uid)
        await until(lambda: world.group_of("p1"))
        assert world.writes() == ["PATCH pods/p1"]


async def test_pods_of_others_and_pods_with_a_group_are_left_alone(world: GroupWorld) -> None:
    world.add_pod("other", scheduler="default-scheduler")
    world.add_pod("grouped", **{names.GROUP_NAME: "mine"})
    async with world.running():
        await world.clock.advance(5)
    assert world.groups == {}
    assert world.writes() == []


async def test_every_scheduler_name_is_served(world: GroupWorld) -> None:
    world.add_pod("a")
    world.add_pod("b", scheduler="volcano-2")
    async with world.running(["volcano", "volcano-2"]):
        await until(lambda: world.group_of("a") and world.group_of("b"))


async def test_a_workload_at_zero_has_no_group_and_gets_one_again(world: GroupWorld) -> None:
    uid = world.add_replica_set(1)
    world.add_pod("p0", uid)
    async with world.running():
        await until(lambda: world.group_of("p0"))
        world.scale(0)
        await until(lambda: world.groups == {})

        world.scale(1)
        world.add_pod("p1", uid)
        await until(lambda: world.group_of("p1"))
        assert set(world.groups) == {f"podgroup-{uid}"}


async def test_a_group_that_was_just_deleted_is_made_anew_for_pods_that_come_at_once(
    world: GroupWorld,
) -> None:
    uid = world.add_replica_set(1)
    world.add_pod("p0", uid)
    async with world.running():
        await until(lambda: world.group_of("p0"))
        for watch in world.api.watches:
            if watch.resource == POD_GROUPS:
                watch.silence()
        world.scale(0)
        await until(lambda: world.groups == {})
        world.scale(1)
        world.add_pod("p1", uid)
        await world.clock.advance(10)
        assert world.group_of("p1") in world.groups


async def test_a_group_that_somebody_deletes_is_made_again_for_the_pods_that_name_it(
    world: GroupWorld,
) -> None:
    uid = world.add_replica_set(2, **{names.GROUP_MIN_MEMBER: "2"})
    for i in range(2):
        world.add_pod(f"p{i}", uid, **{names.QUEUE_NAME: "q"})
    alone = world.add_pod("alone", cpu="3")
    async with world.running():
        await until(lambda: all(world.group_of(name) for name in ("p0", "p1", "alone")))
        await settle()
        before = world.groups
        world.writes()
        for group in before.values():
            world.api.objects.delete(POD_GROUPS, group, {})
        await world.clock.advance(2)
        assert sorted(world.writes()) == ["POST podgroups", "POST podgroups"]

    assert set(world.groups) == {f"podgroup-{uid}", f"podgroup-{alone}"}
    for name, group in world.groups.items():
        assert group["metadata"]["uid"] != before[name]["metadata"]["uid"]
        assert group["spec"] == before[name]["spec"]


async def test_a_group_that_was_deleted_while_nobody_looked_is_made_again(
    world: GroupWorld,
) -> None:
    uid = world.add_pod("p")
    async with world.running():
        await until(lambda: world.group_of("p"))
    (group,) = world.groups.values()
    world.api.objects.delete(POD_GROUPS, group, {})
    async with world.running():
        await world.clock.advance(2)
    assert set(world.groups) == {f"podgroup-{uid}"}


async def test_a_group_that_goes_with_its_pods_stays_away(world: GroupWorld) -> None:
    uid = world.add_replica_set(1)
    world.add_pod("p0", uid)
    world.add_pod("over")
    async with world.running():
        await until(lambda: world.group_of("p0") and world.group_of("over"))
        over = world.api.get(PODS, "ns", "over")
        assert over is not None
        world.api.put(PODS, {**over, "status": {"phase": "Succeeded"}})
        await settle()
        world.writes()
        for group in world.groups.values():
            world.api.objects.delete(POD_GROUPS, group, {})
        pod = world.api.get(PODS, "ns", "p0")
        assert pod is not None
        world.api.objects.delete(PODS, pod, {"gracePeriodSeconds": 30})
        await world.clock.advance(10)
        assert world.writes() == []


async def test_a_stateful_set_that_is_rolled_over_keeps_its_group_up_to_date(
    world: GroupWorld,
) -> None:
    uid = world.add_stateful_set("r1")
    kind = "apps/v1 StatefulSet"
    world.add_pod("p0", uid, kind=kind, revision="r1")
    async with world.running():
        await until(lambda: world.group_of("p0"))
        world.roll("r2")
        await settle()
        world.writes()
        world.add_pod("p1", uid, kind=kind, revision="r2", cpu="3")
        await until(lambda: world.group_of("p1"))
        assert world.writes() == ["PATCH podgroups/podgroup-" + uid, "PATCH pods/p1"]
        (group,) = world.groups.values()
        assert group["spec"]["minResources"]["cpu"] == "3"

        world.add_pod("p2", uid, kind=kind, revision="r1")
        await until(lambda: world.group_of("p2"))
        assert world.writes() == ["PATCH pods/p2"], "a pod of the old revision has no say"


OPERATORS = {
    "a Kubeflow PyTorchJob": "kubeflow.org/v1 PyTorchJob",
    "the driver of a SparkApplication": "sparkoperator.k8s.io/v1beta2 SparkApplication",
    "executors, which their driver owns": "v1 Pod",
    "a RayCluster": "ray.io/v1 RayCluster",
    "an Argo Workflow": "argoproj.io/v1alpha1 Workflow",
    "a ReplicationController": "v1 ReplicationController",
}


@pytest.mark.parametrize("kind", OPERATORS.values(), ids=OPERATORS.keys())
async def test_pods_of_any_operator_share_a_group_that_goes_with_their_owner(
    world: GroupWorld, kind: str
) -> None:
    async with world.running():
        for name in ("p0", "p1"):
            world.add_pod(name, "owner-1", kind=kind, **{names.QUEUE_NAME: "q"})
        await until(lambda: world.group_of("p0") and world.group_of("p1"))

    (group,) = world.groups.values()
    assert group["metadata"]["name"] == "podgroup-owner-1"
    (owner,) = group["metadata"]["ownerReferences"]
    assert f"{owner['apiVersion']} {owner['kind']}" == kind
    assert (group["spec"]["minMember"], group["spec"]["queue"]) == (1, "q")
    assert [call.path for call in world.api.calls if "/rs" in call.path] == []


@pytest.mark.parametrize("resource", [DAEMON_SETS, KUBERNETES_JOBS], ids=str)
async def test_a_daemon_set_or_kubernetes_job_says_what_its_group_is_like(
    world: GroupWorld, resource: AnyResource
) -> None:
    notes = {names.GROUP_MIN_MEMBER: "3", names.SLA_WAITING_TIME: "1h"}
    made = world.api.add(resource, {"metadata": {"name": "rs", "annotations": notes}}, "ns")
    kind = f"{resource.api_version} {resource.kind}"
    async with world.running():
        world.add_pod("p", made["metadata"]["uid"], kind=kind)
        await until(lambda: world.group_of("p"))

    (group,) = world.groups.values()
    assert group["spec"]["minMember"] == 3
    assert group["metadata"]["annotations"] == {names.SLA_WAITING_TIME: "1h"}


async def test_nothing_is_inherited_where_that_is_turned_off(world: GroupWorld) -> None:
    uid = world.add_replica_set(2, **{names.GROUP_MIN_MEMBER: "2"})
    async with world.running(inherits=False):
        world.add_pod("p", uid)
        await until(lambda: world.group_of("p"))
    assert world.groups[f"podgroup-{uid}"]["spec"]["minMember"] == 1


async def test_pods_behind_gates_of_others_have_their_group_and_keep_the_gates(
    world: GroupWorld,
) -> None:
    uid = world.add_replica_set(2)
    async with world.running():
        for name in ("p0", "p1"):
            world.add_pod(name, uid, gate="g1")
        await until(lambda: world.group_of("p0") and world.group_of("p1"))

    assert set(world.groups) == {f"podgroup-{uid}"}
    pod = world.api.get(PODS, "ns", "p0")
    assert pod is not None
    assert pod["spec"]["schedulingGates"] == [{"name": "g1"}]


async def test_a_group_that_is_refused_is_told_to_its_pod_and_others_go_on(
    world: GroupWorld,
) -> None:
    world.api.fail(422, method="POST", path="podgroups", reason="Invalid")
    async with world.running():
        world.add_pod("bad")
        await until(lambda: world.events())
        world.add_pod("good")
        await until(lambda: world.group_of("good"))
        assert world.events() == {
            ("bad", "FailedCreatePodGroup", "Failed to create PodGroup: 422 was ordered")
        }
        assert world.group_of("bad") == ""


async def test_a_group_that_is_forbidden_now_is_tried_again_and_told_once(
    world: GroupWorld,
) -> None:
    world.api.fail(403, method="POST", path="podgroups", reason="Forbidden", times=5)
    async with world.running():
        world.add_pod("p")
        await world.clock.advance(10)
        assert world.group_of("p")
        assert len(world.events()) == 1


async def test_an_outage_is_waited_out(world: GroupWorld) -> None:
    world.api.lose(method="POST", path="podgroups", applied=True)
    world.api.fail(503, method="PATCH", path="/pods/", times=2)
    async with world.running():
        uid = world.add_pod("p")
        await world.clock.advance(10)
        assert world.group_of("p") == f"podgroup-{uid}"
        assert len(world.groups) == 1


async def test_a_pod_that_went_meanwhile_needs_nothing(world: GroupWorld) -> None:
    world.api.delay(2, method="POST", path="podgroups")
    async with world.running():
        world.add_pod("p")
        await world.clock.advance(1)
        pod = world.api.get(PODS, "ns", "p")
        assert pod is not None
        world.api.objects.delete(PODS, pod, {"gracePeriodSeconds": 0})
        await world.clock.advance(10)
        assert world.events() == set()


async def test_a_malformed_pod_is_reported_and_the_others_go_on(world: GroupWorld) -> None:
    world.add_pod("bad")
    bad = world.api.get(PODS, "ns", "bad")
    assert bad is not None
    spec = {**bad["spec"], "priority": "high"}
    world.api.put(PODS, {**bad, "spec": spec})
    world.add_pod("good")
    async with world.running():
        await until(lambda: world.group_of("good"))
        await settle()
        assert {(name, reason) for name, reason, _ in world.events()} == {("bad", "Malformed")}
