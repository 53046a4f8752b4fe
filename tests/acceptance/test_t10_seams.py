"""T10: pods that come another way than from our Job controller, through our gate, to our plan."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pumice.local.install import apply, documents, is_gated
from pumice.local.paths import manifests
from tests.acceptance.bed import Bed, label, pod_path
from tests.acceptance.objects import Object, a_job, a_pod, a_pod_group, a_pod_spec
from tests.fakeapi.clock import eventually

pytestmark = pytest.mark.cluster
LAYOUTS = ("own", "shared")

PATIENCE_S = 20.0
STAYS_S = 3.0
POLICIES = "/apis/admissionregistration.k8s.io/v1"
APP = "app"


async def test_a_gang_whose_gates_somebody_takes_off_still_starts_whole(bed: Bed) -> None:
    nodes = bed.nodes(4, cpu=2)
    filler = a_pod("filler", scheduler="nobody", node=nodes[0], cpu=1)
    bed.create(filler)
    async with bed.auditor() as auditor:
        bed.create(a_job("gang", replicas=4, cpu=2, min_available=4))
        await bed.until(lambda: len(bed.pods_of("gang")) == 4, PATIENCE_S, "the pods are there")
        for pod in bed.pods_of("gang"):
            bed.api.patch(pod_path(pod), {"spec": {"schedulingGates": None}})
        await bed.never(lambda: bed.bound("gang"), STAYS_S, "a part of the gang was bound")
        bed.delete(filler, grace_s=0)
        await until_running(bed, "gang", 4)
        await auditor.finish()


async def test_a_template_with_a_node_runs_there(bed: Bed) -> None:
    nodes = bed.nodes(2)
    async with bed.auditor() as auditor:
        bed.create(a_job("gang", replicas=4, min_available=4, nodeName=nodes[1]))
        await until_running(bed, "gang", 4)
        await auditor.finish()
    assert {pod["spec"]["nodeName"] for pod in bed.pods_of("gang")} == {nodes[1]}


async def test_a_deployment_rolls_and_its_pods_stay_free(bed: Bed) -> None:
    bed.nodes(5, cpu=8)
    deployment = a_workload("apps/v1", "Deployment", replicas=20)
    async with bed.auditor() as auditor:
        bed.create(deployment)
        await bed.until(lambda: running(bed) == 20, PATIENCE_S, "the Deployment runs")
        bed.patch(deployment, {"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}})
        await bed.until(
            lambda: len(bed.pods) == running(bed) == running(bed, version="2") == 20,
            3 * PATIENCE_S,
            "the new pods run, the old ones are gone",
        )
        await auditor.finish()
    assert [pod["spec"]["affinity"] for pod in bed.pods.values() if "affinity" in pod["spec"]] == []


async def test_a_kubernetes_job_without_retries_does_not_fail(bed: Bed) -> None:
    bed.nodes(2, cpu=2)
    job = a_workload(
        "batch/v1",
        "Job",
        pod={"command": ["sleep", "1"]},
        parallelism=4,
        completions=8,
        backoffLimit=0,
    )
    async with bed.auditor() as auditor:
        bed.create(job)
        await bed.until(lambda: succeeded(bed) == 8, 2 * PATIENCE_S, "all its pods ran and ended")
        await auditor.finish()
    assert {pod["status"]["phase"] for pod in bed.pods.values()} == {"Succeeded"}
    status = bed.api.get(f"/apis/batch/v1/namespaces/{bed.namespace}/jobs/{APP}")["status"]
    assert (status["succeeded"], status.get("failed", 0)) == (8, 0)


async def test_without_the_gate_policy_pods_start_as_well(bed: Bed) -> None:
    bed.nodes(4, cpu=2)
    async with bed.auditor() as auditor:
        with without_policy(bed):
            await eventually(lambda: bed.aside(lambda: not is_gated(bed.api)))
            bed.create(a_pod_group("gang", min_member=8))
            notes = {"scheduling.k8s.io/group-name": "gang"}
            bed.create(*(a_pod(f"gang-{i}", annotations=notes) for i in range(8)))
            await bed.until(lambda: run_by_now(bed) == 8, PATIENCE_S, "all of them run")
        report = await auditor.finish()
    gated = [s for s in bed.pods.history if s.object["spec"].get("schedulingGates")]
    assert gated == []
    assert len(report.statistics.bindings) == 8


def run_by_now(bed: Bed) -> int:
    """Count the pods that run."""
    return sum(pod["status"].get("phase") == "Running" for pod in bed.pods.values())


async def until_running(bed: Bed, job: str, count: int) -> None:
    """Wait until a Job and so many of its pods run."""
    await bed.until(
        lambda: len(bed.running(job)) == count and bed.job_phase(job) == "Running",
        PATIENCE_S,
        f"{job} runs",
    )


def a_workload(
    version: str, kind: str, *, pod: dict[str, Any] | None = None, **spec: Any
) -> Object:
    """Return a Deployment or a Kubernetes Job whose pods name our scheduler."""
    labels = {APP: APP}
    restart = "Never" if kind == "Job" else "Always"
    template = {
        "metadata": {"labels": labels},
        "spec": a_pod_spec(restart=restart, **(pod or {})) | {"schedulerName": "volcano"},
    }
    body: Object = {"template": template, **spec}
    if kind == "Deployment":
        body["selector"] = {"matchLabels": labels}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": APP}, "spec": body}


def running(bed: Bed, **labels: str) -> int:
    """Count the pods that run and have the labels."""
    return sum(
        pod["status"].get("phase") == "Running"
        and "deletionTimestamp" not in pod["metadata"]
        and all(label(pod, key) == value for key, value in labels.items())
        for pod in bed.pods.values()
    )


def succeeded(bed: Bed) -> int:
    """Count the pods that have succeeded."""
    return sum(pod["status"].get("phase") == "Succeeded" for pod in bed.pods.values())


@contextmanager
def without_policy(bed: Bed) -> Iterator[None]:
    """Take the gate policy's binding away for a while."""
    bindings = [
        body
        for body in documents(manifests() / "admission" / "gate.yaml")
        if body["kind"] == "MutatingAdmissionPolicyBinding"
    ]
    for body in bindings:
        name = body["metadata"]["name"]
        bed.api.delete(f"{POLICIES}/mutatingadmissionpolicybindings/{name}")
    try:
        yield
    finally:
        for body in bindings:
            apply(bed.api, body)
