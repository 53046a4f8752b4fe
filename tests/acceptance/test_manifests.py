"""Installing with one file: accepted whole, enough rights and no more needed, and gone again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pumice.cli.demo import a_job as a_demo_job
from pumice.core.names import GATE_HELD, NAMESPACE
from pumice.local.errors import ApiError
from pumice.local.install import documents, is_gated, path_of
from pumice.local.nodes import CPU
from pumice.local.paths import manifests
from tests.acceptance.admission import wait_until
from tests.acceptance.bed import Bed, label
from tests.acceptance.installed import PODS, Installed
from tests.acceptance.objects import Object, a_job, a_pod, a_queue

pytestmark = pytest.mark.cluster

PATIENCE_S = 20.0
COLLECTED_S = 60.0
"""Kubernetes' garbage collector looks for new kinds every half minute."""
IN_FORCE_S = 2.0
ACCOUNTS = f"system:serviceaccount:{NAMESPACE}:"
CONFIGURATION = f"/api/v1/namespaces/{NAMESPACE}/configmaps/pumice-scheduler"
ENDING = "because it is being terminated"
SCHEDULER = f"{ACCOUNTS}pumice-scheduler"
OURS = "app.kubernetes.io/part-of=pumice"


@pytest.fixture(scope="module")
def cluster(
    binary_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    """A cluster made by `kubectl apply -f`."""
    with Installed(tmp_path_factory.mktemp("cluster")) as running:
        yield running


# Applying.


def test_every_object_is_accepted_and_none_is_there_twice(cluster: Installed) -> None:
    bodies = [*documents(cluster.file)]
    assert [line.rpartition(" ")[2] for line in cluster.printed.splitlines()] == [
        "created" for _ in bodies
    ]
    assert len({path_of(body) for body in bodies}) == len(bodies)


def test_applying_again_changes_nothing(cluster: Installed) -> None:
    def versions() -> dict[str, Any]:
        found = (cluster.plane.api.get(path_of(body)) for body in documents(cluster.file))
        return {
            f"{body['kind']} {body['metadata']['name']}": body["metadata"]["resourceVersion"]
            for body in found
        }

    before = versions()
    printed = cluster.apply()
    assert {line.rpartition(" ")[2] for line in printed.splitlines()} == {"unchanged"}, printed
    assert versions() == before


def test_every_probe_and_every_metrics_port_answers(cluster: Installed) -> None:
    for pod in cluster.pods.values():
        for container in pod.containers:
            assert pod.answers(container, "livenessProbe"), container["name"]
    ours = {name: pod.get("metrics", "/metrics").splitlines() for name, pod in cluster.pods.items()}
    assert all(any(line.startswith("process_") for line in lines) for lines in ours.values())


def test_kube_scheduler_tells_its_figures_to_those_who_may_read_them(cluster: Installed) -> None:
    pod = cluster.pods["pumice-scheduler"]
    with pytest.raises(OSError, match="403"):
        pod.get("scheduler", "/metrics", "HTTPS")
    admin = cluster.plane.pair("admin").write(cluster.plane.certs, "reader")
    assert "scheduler_pending_pods" in pod.get("scheduler", "/metrics", "HTTPS", admin)


# Working.


def test_gangs_start_whole_and_one_that_waits_says_why(bed: Bed) -> None:
    bed.nodes(20)
    bed.create(of_the_demo(bed, "first", 12, CPU, 12))
    bed.wait_for(lambda: bed.group_phase("first") == "Running", PATIENCE_S, "the first runs")
    bed.create(of_the_demo(bed, "second", 12, CPU, 12))
    bed.wait_for(lambda: reason(bed, "second"), PATIENCE_S, "the second says why it waits")
    bed.create(of_the_demo(bed, "elastic", 6, CPU // 2, 1))
    bed.wait_for(lambda: len(bed.running("elastic")) == 6, PATIENCE_S, "the small one slips in")

    assert len(bed.running("first")) == 12
    assert bed.bound("second") == []
    assert f"{12 * CPU} cpu asked for" in reason(bed, "second")

    bed.end(*bed.running("first"))
    bed.wait_phase("first", "Completed", PATIENCE_S)
    bed.wait_for(lambda: len(bed.running("second")) == 12, PATIENCE_S, "the second starts whole")
    cpu = str(12 * CPU + 6 * CPU // 2)
    bed.wait_for(lambda: allocated(bed).get("cpu") == cpu, PATIENCE_S, "the queue says so")
    assert binders(bed) == {SCHEDULER}


def allocated(bed: Bed) -> dict[str, str]:
    """Return what the default queue says is in use."""
    found: dict[str, str] = bed.queues["default"].get("status", {}).get("allocated", {})
    return found


def of_the_demo(bed: Bed, name: str, replicas: int, cpu: int, minimum: int) -> Object:
    job = a_demo_job(name, replicas, cpu, minimum, 600)
    job["metadata"]["namespace"] = bed.namespace
    return job


def reason(bed: Bed, job: str) -> str:
    """Return what a Job's PodGroup says of why it waits."""
    conditions = (bed.pod_group(job) or {}).get("status", {}).get("conditions", ())
    said = [
        c["message"] for c in conditions if (c["type"], c["status"]) == ("Unschedulable", "True")
    ]
    return said[0] if said else ""


def binders(bed: Bed) -> set[str]:
    """Return who bound pods, by the audit log."""
    return {
        line["user"]["username"]
        for line in audited(bed.plane.audit_log)
        if line["objectRef"].get("subresource") == "binding"
    }


def audited(log: Path) -> Iterator[Any]:
    with log.open() as lines:
        yield from map(json.loads, lines)


def test_whatever_the_controllers_make_and_remove_they_may(bed: Bed) -> None:
    bed.nodes(2, cpu=8)
    bed.create(a_queue("research"), *documents(manifests() / "examples" / "deployment.yaml"))
    meshed = a_job("meshed", replicas=2, min_available=2)
    meshed["spec"] |= {"plugins": {"svc": [], "env": []}, "ttlSecondsAfterFinished": 1}
    storing = a_job("storing")
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    storing["spec"]["volumes"] = [{"mountPath": "/data", "volumeClaim": claim}]
    bed.create(meshed, storing)

    bed.wait_for(lambda: len(bed.running("meshed")) == 2, PATIENCE_S, "the pods of the Job run")
    bed.wait_for(lambda: len(grouped(bed)) == 3, PATIENCE_S, "those of the Deployment, too")
    made = bed.kubectl("get", "services,configmaps,networkpolicies,pvc", "--output=name")
    assert {name.partition("/")[0] for name in made.split() if "kube-root-ca" not in name} == {
        "service",
        "configmap",
        "networkpolicy.networking.k8s.io",
        "persistentvolumeclaim",
    }
    bed.create(a_command("AbortJob", bed.job("storing")))
    bed.wait_phase("storing", "Aborted", PATIENCE_S)
    bed.end(*bed.running("meshed"))
    bed.wait_for(lambda: not bed.job("meshed"), COLLECTED_S, "the Job's time to live is over")
    bed.api.delete(f"/apis/apps/v1/namespaces/{bed.namespace}/deployments/web")
    bed.wait_for(lambda: not grouped(bed), PATIENCE_S, "the Deployment is gone")


def grouped(bed: Bed) -> list[Object]:
    """Return the running pods of the example Deployment."""
    return [
        pod
        for pod in bed.pods.values()
        if label(pod, "app") == "web" and pod["status"].get("phase") == "Running"
    ]


def a_command(action: str, job: Object | None) -> Object:
    assert job
    target = {"apiVersion": job["apiVersion"], "kind": "Job", "controller": True}
    target |= {key: job["metadata"][key] for key in ("name", "uid")}
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"name": "c"},
        "action": action,
        "target": target,
    }


def test_the_webhooks_are_asked_by_way_of_their_service(bed: Bed) -> None:
    with pytest.raises(ApiError, match="unable to find job queue") as refused:
        bed.create(a_job("lost", queue="nowhere"))
    assert 'admission webhook "validatejob.volcano.sh" denied the request' in str(refused.value)


def test_a_changed_configuration_is_in_force_at_once(bed: Bed, cluster: Installed) -> None:
    ((file, text),) = bed.api.get(CONFIGURATION)["data"].items()
    log = bed.plane.processes.log("extender")

    def change(new: str, said: str) -> None:
        before = log.read_text().count(said)
        bed.api.patch(CONFIGURATION, {"data": {file: new}})
        cluster.pods["pumice-scheduler"].mount()
        wait_until(lambda: log.read_text().count(said) > before, IN_FORCE_S)

    change(text.replace("allocate", "alocate"), "configuration refused")
    change(text.replace(", backfill", ""), "configuration in force")
    change(text, "configuration in force")


def test_nothing_was_forbidden(cluster: Installed) -> None:
    """Whatever the tests before this one made the components do."""
    names = [c["name"] for pod in cluster.pods.values() for c in pod.containers]
    logs = [cluster.plane.processes.log(name).read_text() for name in names]
    said = [line for log in logs for line in log.splitlines() if "forbidden" in line.lower()]
    refused = [
        line["requestURI"] + line["responseStatus"]["message"]
        for line in audited(cluster.plane.audit_log)
        if line["user"]["username"].startswith(ACCOUNTS) and line["responseStatus"]["code"] == 403
    ]
    assert names == ["controllers", "kube-scheduler", "extender", "webhooks"]
    # Tests remove their namespaces, in which nobody may make anything meanwhile.
    assert [line for line in said + refused if ENDING not in line] == []


# Uninstalling, as the README has it; these come last.


def test_uninstalled_it_leaves_no_pod_waiting_and_the_others_alone(
    bed: Bed, cluster: Installed
) -> None:
    (node, _) = bed.nodes(2, cpu=2)
    bed.create(a_job("kept", replicas=2, min_available=2))
    bed.wait_for(lambda: len(bed.running("kept")) == 2, PATIENCE_S, "the Job runs")
    bed.create(a_pod("other", scheduler="default-scheduler", node=node), a_pod("held", cpu=64))
    bed.wait_for(lambda: phase(bed, "other") == "Running" and held(bed), PATIENCE_S, "the scene")
    before = uids(bed)

    cluster.kubectl("delete", "mutatingadmissionpolicybinding", "pumice-gate")
    wait_until(lambda: not is_gated(bed.api), PATIENCE_S)
    release(cluster)
    bed.wait_for(lambda: not held(bed), PATIENCE_S, "no pod is held")
    delete(cluster, f"--selector={OURS}", "--ignore-not-found")

    assert {body["kind"] for body in left(cluster)} == {"CustomResourceDefinition"}
    wait_until(lambda: not registered(cluster), PATIENCE_S)
    bed.create(a_job("later"))
    assert len(bed.running("kept")) == 2
    assert uids(bed) == before

    delete(cluster, "--ignore-not-found")

    assert left(cluster) == []
    bed.wait_for(lambda: not bed.pods_of("kept"), COLLECTED_S, "with its Job the Job's pods go")
    assert uids(bed).keys() == {"other", "held"}


def release(cluster: Installed) -> None:
    command = [sys.executable, "-m", "pumice.cli.main", "release", "--all"]
    subprocess.run([*command, f"--kubeconfig={cluster.plane.kubeconfig()}"], check=True)


def delete(cluster: Installed, *options: str) -> None:
    """Delete what the file holds; the pods among it end as on a cluster."""
    with ThreadPoolExecutor(1) as pool:
        deleting = pool.submit(
            cluster.kubectl, "delete", f"--filename={cluster.file}", "--timeout=60s", *options
        )
        wait_until(lambda: not pods_of_ours(cluster), PATIENCE_S)
        for pod in cluster.pods.values():
            pod.stop()
        deleting.result()


def pods_of_ours(cluster: Installed) -> list[Object]:
    found: list[Object] = cluster.plane.api.get(PODS)["items"]
    return found


def left(cluster: Installed) -> list[Object]:
    """Return what is still there of what the file holds."""
    return [body for body in documents(cluster.file) if cluster.plane.api.exists(path_of(body))]


def registered(cluster: Installed) -> str:
    kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
    return cluster.kubectl("get", kinds, "--output=name")


def phase(bed: Bed, name: str) -> str:
    found: str = (bed.pod(name) or {}).get("status", {}).get("phase", "")
    return found


def held(bed: Bed) -> list[Object]:
    return [
        pod
        for pod in bed.pods.values()
        if any(gate["name"] == GATE_HELD for gate in pod["spec"].get("schedulingGates", ()))
    ]


def uids(bed: Bed) -> dict[str, str]:
    """Return name -> uid of the pods of the test."""
    return {
        pod["metadata"]["name"]: pod["metadata"]["uid"]
        for pod in bed.pods.values()
        if pod["metadata"]["namespace"] == bed.namespace
    }
