"""Job plugins, pods of other schedulers, the end of finished Jobs, and the way back."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pumice.core import names
from pumice.local.watching import Watched
from tests.acceptance.bed import Bed, pod_path
from tests.acceptance.length import patient
from tests.acceptance.objects import Object, a_job, a_pod, a_task

pytestmark = pytest.mark.cluster

PATIENCE_S = 20.0
HOSTS_S = 0.1
"""Within so long after a Job was scaled its ConfigMap tells the hosts that there are."""
PATHS = {
    "configmap": "/api/v1/namespaces/{}/configmaps",
    "service": "/api/v1/namespaces/{}/services",
    "networkpolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
FOREIGN_GATE = "example.com/gate"


class Objects:
    """What plugins make in the test's namespace, watched."""

    def __init__(self, bed: Bed) -> None:
        self.watched = {
            kind: Watched(bed.api, path.format(bed.namespace), changed=bed.changed).start()
            for kind, path in PATHS.items()
        }
        self._namespace = bed.namespace

    def get(self, kind: str, name: str) -> Object | None:
        return self.watched[kind].get(f"{self._namespace}/{name}")

    def of(self, job: str) -> list[Object]:
        """Return those of a Job that there are."""
        wanted = {"configmap": f"{job}-svc", "service": job, "networkpolicy": job}
        found = (self.get(kind, name) for kind, name in wanted.items())
        return [obj for obj in found if obj is not None]

    def data(self, job: str) -> dict[str, str]:
        config: Object = self.get("configmap", f"{job}-svc") or {}
        data: dict[str, str] = config.get("data", {})
        return data


@pytest.fixture
def objects(bed: Bed) -> Iterator[Objects]:
    found = Objects(bed)
    yield found
    for watched in found.watched.values():
        watched.stop()


def hosts(job: str, replicas: int) -> dict[str, str]:
    """Return what the ConfigMap of a Job of one task is to hold."""
    found = [f"{job}-worker-{i}.{job}" for i in range(replicas)]
    return {
        "worker.host": "\n".join(found),
        "VC_WORKER_HOSTS": ",".join(found),
        "VC_WORKER_NUM": str(replicas),
    }


async def test_svc_and_env_from_the_first_pod_to_the_last(bed: Bed, objects: Objects) -> None:
    bed.nodes(4, cpu=4)
    job = a_job("meshed", replicas=3, min_available=1)
    job["spec"]["plugins"] = {"svc": [], "env": []}
    async with bed.auditor() as auditor:
        (made,) = bed.create(job)
        await bed.until(lambda: len(bed.running("meshed")) == 3, PATIENCE_S, "all run")
        await bed.until(lambda: len(objects.of("meshed")) == 3, PATIENCE_S, "the objects")

        owners = {obj["metadata"]["ownerReferences"][0]["uid"] for obj in objects.of("meshed")}
        assert owners == {made["metadata"]["uid"]}
        assert objects.data("meshed") == hosts("meshed", 3)
        check_pod(bed.pods_of("meshed")[2])

        took = [await scale(bed, objects, job, replicas) for replicas in (1, 0, 2, 4, 3)]
        assert statistics.median(took) < patient(HOSTS_S), took

        bed.end(*bed.running("meshed"))
        await bed.until(lambda: bed.job_phase("meshed") == "Completed", PATIENCE_S, "it ends")
        await bed.until(lambda: not objects.of("meshed"), PATIENCE_S, "the objects are gone")
        await auditor.finish()


async def scale(bed: Bed, objects: Objects, job: Object, replicas: int) -> float:
    """Scale Job `meshed`; return how long it took until its ConfigMap was right."""
    tasks = [{**job["spec"]["tasks"][0], "replicas": replicas}]
    bed.patch(job, {"spec": {"minAvailable": min(replicas, 1), "tasks": tasks}})
    wanted = hosts("meshed", replicas)
    took = await bed.until(lambda: objects.data("meshed") == wanted, PATIENCE_S, "the hosts")
    await bed.until(lambda: len(bed.running("meshed")) == replicas, PATIENCE_S, "pods follow")
    return took


def test_arguments_of_plugins_and_affinity_go_together(bed: Bed, objects: Objects) -> None:
    (_, second, _) = bed.nodes(3, cpu=4)
    here = {"key": "metadata.name", "operator": "In", "values": [second]}
    on_node = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [here]}]}}}
    mates = {"labelSelector": {"matchLabels": {"volcano.sh/job-name": "together"}}}
    by_host = {**mates, "topologyKey": "kubernetes.io/hostname"}
    quiet = a_job("quiet", replicas=2, affinity=on_node)
    quiet["spec"]["plugins"] = {
        "svc": ["--disable-network-policy=true", "--inject-hosts-env=false"]
    }
    together = a_job("together", replicas=2, affinity={"podAffinity": {REQUIRED: [by_host]}})
    # An argument that ssh does not know is passed over.
    together["spec"]["plugins"] = {"ssh": ["--no-root"]}
    bed.create(quiet, together)
    for name in ("quiet", "together"):
        bed.wait_phase(name, "Running", PATIENCE_S)

    bed.wait_for(lambda: len(objects.of("quiet")) == 2, PATIENCE_S, "ConfigMap and Service")
    assert objects.get("networkpolicy", "quiet") is None
    for pod in bed.running("quiet"):
        assert pod["spec"]["nodeName"] == second
        assert "env" not in pod["spec"]["containers"][0]
        assert "quiet-svc" in {volume["name"] for volume in pod["spec"]["volumes"]}
    pods = bed.running("together")
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 1
    secrets = [{v.get("secret", {}).get("secretName") for v in p["spec"]["volumes"]} for p in pods]
    assert all("together-ssh" in found for found in secrets)


def check_pod(pod: Object) -> None:
    """See in a pod, as the API server made it, what both plugins put there."""
    spec, name = pod["spec"], pod["metadata"]["name"]
    assert (spec["hostname"], spec["subdomain"]) == (name, "meshed")
    env = {entry["name"]: entry for entry in spec["containers"][0]["env"]}
    assert env["VC_TASK_INDEX"]["value"] == env["VK_TASK_INDEX"]["value"] == "2"
    assert env["VC_WORKER_NUM"]["valueFrom"]["configMapKeyRef"] == {
        "name": "meshed-svc",
        "key": "VC_WORKER_NUM",
    }
    mounts = {m["name"]: m["mountPath"] for m in spec["containers"][0]["volumeMounts"]}
    assert mounts["meshed-svc"] == "/etc/volcano"


def test_what_is_deleted_comes_back_and_a_namesake_gets_its_own(bed: Bed, objects: Objects) -> None:
    bed.nodes(2, cpu=4)
    job = a_job("again", replicas=2)
    job["spec"]["plugins"] = {"svc": []}
    bed.create(job)
    bed.wait_phase("again", "Running", PATIENCE_S)
    service = PATHS["service"].format(bed.namespace) + "/again"
    before = bed.api.get(service)["metadata"]["uid"]
    bed.api.delete(service)
    bed.wait_for(
        lambda: (found := objects.get("service", "again")) and found["metadata"]["uid"] != before,
        PATIENCE_S,
        "the Service is back",
    )

    bed.delete(job)
    (new,) = bed.create(job)
    uid = new["metadata"]["uid"]
    bed.wait_for(
        lambda: (
            [o["metadata"]["ownerReferences"][0]["uid"] for o in objects.of("again")] == [uid] * 3
        ),
        # The garbage collector sees kinds that are new to the cluster only every half a minute.
        3 * PATIENCE_S,
        "objects of the new Job",
    )
    bed.wait_phase("again", "Running", PATIENCE_S)


def test_pods_of_another_scheduler_are_the_jobs(bed: Bed) -> None:
    (node, *_) = bed.nodes(2, cpu=4)
    tasks = a_task("ours"), a_task("theirs", schedulerName="third")
    bed.create(a_job("mixed", *tasks, min_available=1))
    bed.wait_for(lambda: len(bed.bound("mixed")) == 1, PATIENCE_S, "our pod is bound")
    (theirs,) = (pod for pod in bed.pods_of("mixed") if not pod["spec"].get("nodeName"))
    assert "schedulingGates" not in theirs["spec"]

    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    meta = {"name": theirs["metadata"]["name"], "namespace": bed.namespace}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
    bed.api.post(f"{pod_path(theirs)}/binding", binding)
    bed.wait_for(
        lambda: (bed.job("mixed") or {}).get("status", {}).get("running") == 2,
        PATIENCE_S,
        "the Job counts both",
    )
    bed.end(*bed.running("mixed"))
    bed.wait_phase("mixed", "Completed", PATIENCE_S)


def test_a_finished_job_goes_with_all_it_owns(bed: Bed) -> None:
    bed.nodes(1, cpu=4)
    job = a_job("short", replicas=2)
    job["spec"]["ttlSecondsAfterFinished"] = 2
    bed.create(job)
    bed.wait_phase("short", "Running", PATIENCE_S)
    bed.end(*bed.running("short"))
    bed.wait_phase("short", "Completed", PATIENCE_S)
    bed.wait_for(lambda: bed.job("short") is None, PATIENCE_S, "the Job is gone")
    # Asked of the server: the watch of pods may be a moment behind that of Jobs.
    left = bed.api.get(f"/api/v1/namespaces/{bed.namespace}/pods")["items"]
    assert left == [], "they went before it"


def test_release_lets_all_go(bed: Bed) -> None:
    bed.nodes(1, cpu=8)
    bed.create(a_job("waits", replicas=5, nodeSelector={"no-node": "has-this"}))
    gated = a_pod("gated", schedulingGates=[{"name": FOREIGN_GATE}])
    bed.create(gated)
    held = [*(f"waits-worker-{i}" for i in range(5)), "gated"]
    bed.wait_for(lambda: all(OURS in gates(bed, name) for name in held), PATIENCE_S, "all held")

    assert release(bed, "--dry-run").splitlines()[-1] == "6 pods would be released."
    assert OURS in gates(bed, "gated")

    lines = release(bed).splitlines()
    assert f"{bed.namespace}/gated: released, still held by {FOREIGN_GATE}" in lines
    assert lines[-3] == "6 pods released."
    bed.wait_for(
        lambda: (
            {name: gates(bed, name) for name in held}
            == {name: [FOREIGN_GATE] if name == "gated" else [] for name in held}
        ),
        PATIENCE_S,
        "our gates are gone",
    )


OURS = names.GATE_HELD


def gates(bed: Bed, name: str) -> list[str]:
    """Return the gates of a pod."""
    pod: Object = bed.pod(name) or {"spec": {}}
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]


def release(bed: Bed, *arguments: str) -> str:
    """Run `pumice release --all` on the test's namespace and return what it prints."""
    kubeconfig = f"--kubeconfig={bed.plane.kubeconfig()}"
    command = [sys.executable, "-m", "pumice.cli.main", "release", "--all", kubeconfig]
    answer = subprocess.run(
        [*command, f"--namespace={bed.namespace}", *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    return answer.stdout
