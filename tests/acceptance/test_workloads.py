"""Workloads of Kubernetes in two queues: one PodGroup each at every step, and none left behind."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from pumice.local.watching import key_of
from tests.acceptance.bed import Bed
from tests.acceptance.length import Length
from tests.acceptance.objects import Object, a_job, a_pod, a_pod_spec, a_queue

pytestmark = pytest.mark.cluster

GROUP = "scheduling.k8s.io/group-name"
QUEUE = "scheduling.volcano.sh/queue-name"
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"


def a_template(app: str, queue: str, *, cpu: str | int = "1", **spec: Any) -> Object:
    metadata = {"labels": {"app": app}, "annotations": {QUEUE: queue}}
    return {
        "metadata": metadata,
        "spec": a_pod_spec(cpu=cpu, **spec) | {"schedulerName": "volcano"},
    }


def a_set(kind: str, name: str, queue: str, replicas: int, **spec: Any) -> Object:
    """Return a Deployment or StatefulSet."""
    more = {"serviceName": name, "podManagementPolicy": "Parallel"} if kind == "StatefulSet" else {}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": a_template(name, queue, restart="Always", **spec),
            **more,
        },
    }


def a_kubernetes_job(name: str, queue: str, parallelism: int, **spec: Any) -> Object:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "parallelism": parallelism,
            "completions": parallelism,
            "backoffLimit": 0,
            "template": a_template(name, queue, **spec),
        },
    }


def a_controller(name: str, scheduler: str) -> Object:
    """Return a ReplicationController."""
    template = a_template(name, "default", restart="Always")
    template["spec"]["schedulerName"] = scheduler
    return {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"app": name}, "template": template},
    }


class Workloads:
    """Groups and pods of the test's namespace, by the workload that they belong to."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed

    def groups(self) -> list[Object]:
        mine = self.bed.pod_groups.values()
        return [g for g in mine if g["metadata"]["namespace"] == self.bed.namespace]

    def pods(self, app: str) -> list[Object]:
        return [
            pod
            for pod in self.bed.pods.values()
            if pod["metadata"]["namespace"] == self.bed.namespace
            and pod["metadata"].get("labels", {}).get("app") == app
            and "deletionTimestamp" not in pod["metadata"]
        ]

    def running(self, app: str) -> list[Object]:
        return [pod for pod in self.pods(app) if pod["status"].get("phase") == "Running"]

    def group(self, app: str) -> Object | None:
        """Return the one group that all pods of a workload name; None while they do not."""
        named = {pod["metadata"].get("annotations", {}).get(GROUP) for pod in self.pods(app)}
        if len(named) != 1:
            return None
        return self.bed.pod_groups.get(f"{self.bed.namespace}/{named.pop()}")

    def is_settled(self, app: str, pods: int, queue: str, **spec: object) -> bool:
        """Tell whether so many pods run, and their one group says what it should."""
        group = self.group(app)
        if group is None or len(self.running(app)) != pods or len(self.pods(app)) != pods:
            return False
        told = {**group["spec"], "cpu": group["spec"]["minResources"].get("cpu")}
        want = {"queue": queue, "minMember": 1, **spec}
        is_as_wanted = all(told[key] == value for key, value in want.items())
        return is_as_wanted and group["status"]["phase"] == "Running"


@pytest.fixture
def workloads(bed: Bed) -> Workloads:
    bed.nodes(8, cpu=64)
    bed.create(a_queue("qa"), a_queue("qb"))
    bed.wait_for(
        lambda: all(
            bed.queues.get(q, {}).get("status", {}).get("state") == "Open" for q in ("qa", "qb")
        ),
        10,
        "the queues are open",
    )
    return Workloads(bed)


def is_alone(workloads: Workloads, is_settled: Callable[[], bool]) -> bool:
    return is_settled() and len(workloads.groups()) == 1


def counted(bed: Bed, queue: str, phase: str) -> Callable[[], int]:
    return lambda: int(bed.queues.get(queue, {}).get("status", {}).get(phase, 0))


def test_a_deployment_rolled_over_again_and_again(
    bed: Bed, workloads: Workloads, length: Length
) -> None:
    deployment = a_set("Deployment", "web", "qa", 3)
    bed.create(deployment)
    bed.wait_for(lambda: workloads.is_settled("web", 3, "qa", cpu="1"), 20, "the first revision")
    seen = {group["metadata"]["uid"] for group in workloads.groups()}

    queue = "qa"
    for revision in range(2, length.revisions + 1):
        queue, cpu = ("qa", "qb")[revision % 2], f"{revision * 10}m"
        template = a_template("web", queue, cpu=cpu, restart="Always")
        bed.patch(deployment, {"spec": {"template": template}})
        is_over = partial(workloads.is_settled, "web", 3, queue, cpu=cpu)
        bed.wait_for(
            partial(is_alone, workloads, is_over),
            30,
            f"revision {revision}, and the group of the one before is gone",
        )
        (group,) = workloads.groups()
        assert group["metadata"]["uid"] not in seen
        seen.add(group["metadata"]["uid"])

    bed.patch(deployment, {"spec": {"replicas": 6}})
    bed.wait_for(lambda: workloads.is_settled("web", 6, queue), 20, "scaled up")
    bed.patch(deployment, {"spec": {"replicas": 0}})
    bed.wait_for(lambda: not workloads.groups(), 20, "no group at no replicas")
    bed.patch(deployment, {"spec": {"replicas": 2}})
    bed.wait_for(lambda: workloads.is_settled("web", 2, queue), 20, "a group again")
    bed.wait_for(lambda: counted(bed, queue, "running")() == 1, 5, "and the queue counts it")
    bed.delete(deployment)
    bed.wait_for(
        lambda: not workloads.groups() and not workloads.pods("web"), 30, "nothing is left"
    )
    bed.wait_for(lambda: counted(bed, queue, "running")() == 0, 5, "and the queue counts none")


def test_a_stateful_set_keeps_its_group_and_brings_it_up_to_date(
    bed: Bed, workloads: Workloads
) -> None:
    stateful = a_set("StatefulSet", "db", "qb", 3)
    stateful["metadata"]["annotations"] = {MIN_MEMBER: "2"}
    bed.create(stateful)
    bed.wait_for(
        lambda: workloads.is_settled("db", 3, "qb", cpu="2", minMember=2),
        20,
        "two of three together",
    )
    (group,) = workloads.groups()

    bed.patch(stateful, {"spec": {"template": a_template("db", "qb", cpu="2", restart="Always")}})
    bed.wait_for(
        lambda: workloads.is_settled("db", 3, "qb", cpu="4", minMember=2), 60, "the second revision"
    )
    (same,) = workloads.groups()
    assert same["metadata"]["uid"] == group["metadata"]["uid"]

    bed.patch(stateful, {"spec": {"replicas": 0}})
    bed.wait_for(lambda: not workloads.groups(), 20, "no group at no replicas")
    bed.delete(stateful)


def test_a_kubernetes_job_of_fifty_and_one_that_fails(bed: Bed, workloads: Workloads) -> None:
    wide, failing = a_kubernetes_job("wide", "qa", 50), a_kubernetes_job("failing", "qb", 1)
    bed.create(wide, failing)
    bed.wait_for(
        lambda: workloads.is_settled("wide", 50, "qa") and workloads.is_settled("failing", 1, "qb"),
        30,
        "both run",
    )
    assert len(workloads.groups()) == 2
    kept = {app: workloads.group(app) for app in ("wide", "failing")}

    bed.end(*workloads.pods("wide"))
    bed.end(*workloads.pods("failing"), code=1)

    def phase(app: str) -> str:
        group = kept[app]
        assert group is not None
        now = bed.pod_groups.get(f"{bed.namespace}/{group['metadata']['name']}", {})
        return str(now.get("status", {}).get("phase"))

    bed.wait_for(lambda: {phase(app) for app in kept} == {"Completed"}, 30, "both are over")
    for job in (wide, failing):
        bed.api.delete(
            f"/apis/batch/v1/namespaces/{bed.namespace}/jobs/{job['metadata']['name']}",
            {"propagationPolicy": "Background"},
        )
    bed.wait_for(lambda: not workloads.groups(), 30, "nothing is left behind")


def test_pods_behind_a_gate_of_others_have_a_group_and_start_when_it_is_gone(
    bed: Bed, workloads: Workloads
) -> None:
    gates = [{"name": "example.com/g1"}]
    bed.create(a_set("Deployment", "gated", "qa", 4, schedulingGates=gates))
    bed.wait_for(
        lambda: len(workloads.pods("gated")) == 4 and workloads.group("gated"), 20, "a group"
    )
    assert len(workloads.groups()) == 1
    pods = workloads.pods("gated")
    assert all(
        {"name": "example.com/g1"} in pod["spec"]["schedulingGates"]
        and "nodeName" not in pod["spec"]
        for pod in pods
    )

    for pod in pods:
        path = f"/api/v1/namespaces/{bed.namespace}/pods/{pod['metadata']['name']}"
        left = [g for g in pod["spec"]["schedulingGates"] if g not in gates]
        bed.api.patch(path, {"spec": {"schedulingGates": left}})
    bed.wait_for(lambda: workloads.is_settled("gated", 4, "qa"), 20, "they run")


def test_a_replication_controller_has_a_group_unless_its_scheduler_is_another(
    bed: Bed, workloads: Workloads
) -> None:
    ours, other = a_controller("rc", "volcano"), a_controller("other", "default-scheduler")
    bed.create(ours, other)
    bed.wait_for(lambda: workloads.is_settled("rc", 1, "default"), 20, "the group runs")
    bed.wait_for(lambda: workloads.pods("other"), 20, "the other has its pod")
    assert len(workloads.groups()) == 1
    assert GROUP not in workloads.pods("other")[0]["metadata"].get("annotations", {})


def test_groups_that_somebody_deletes_are_made_again_and_the_pods_run_on(
    bed: Bed, workloads: Workloads
) -> None:
    alone = a_pod("alone", labels={"app": "alone"}, annotations={QUEUE: "qb"})
    bed.create(a_set("Deployment", "web", "qa", 2), alone, a_job("job", replicas=2, queue="qb"))
    bed.wait_for(
        lambda: workloads.is_settled("web", 2, "qa") and workloads.is_settled("alone", 1, "qb"),
        20,
        "they run",
    )
    bed.wait_phase("job", "Running", 20)
    before = {key_of(group): group for group in workloads.groups()}
    pods = uids(workloads)
    assert len(before) == 3

    for group in before.values():
        bed.delete(group)

    def are_again() -> bool:
        now = {key_of(group): group for group in workloads.groups()}
        return now.keys() == before.keys() and all(
            group["metadata"]["uid"] != before[key]["metadata"]["uid"]
            and group["spec"] == before[key]["spec"]
            and group["status"]["phase"] == "Running"
            for key, group in now.items()
        )

    bed.wait_for(are_again, 20, "the groups run again")
    assert uids(workloads) == pods


def uids(workloads: Workloads) -> set[str]:
    """Return the uids of all pods of the test."""
    mine = workloads.bed.pods.items()
    return {pod["metadata"]["uid"] for key, pod in mine if key.startswith(workloads.bed.namespace)}
