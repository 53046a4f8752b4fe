"""
`pumice demo`: the main job, told as it happens.

Two Jobs that each need 60 % of a small cluster: one starts whole, the other waits and says why.
A small elastic Job slips in meanwhile. The first ends, the second starts whole. Everything is
real but the kubelets: API server, kube-scheduler, our extender and controllers.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from typing import Any

from pumice.local.cluster import Cluster
from pumice.local.nodes import CPU
from pumice.local.toolchain import find_kubectl
from pumice.local.watching import Watched, wait_for

NODES = 20
RUNS_S = 8
TIMEOUT_S = 60.0
PATHS = {
    "pods": "/api/v1/pods",
    "jobs": "/apis/batch.volcano.sh/v1alpha1/jobs",
    "groups": "/apis/scheduling.volcano.sh/v1beta1/podgroups",
}
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
Object = dict[str, Any]


def a_job(name: str, replicas: int, cpu: int, minimum: int, seconds: int) -> Object:
    """Return a Job whose pods sleep."""
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sleep", str(seconds)],
        "resources": {"requests": {"cpu": str(cpu)}},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulerName": "volcano",
            "minAvailable": minimum,
            "tasks": [{"name": "worker", "replicas": replicas, "template": template}],
        },
    }


class Story:
    """Tells what happens in the cluster, with the time since the start."""

    def __init__(self, cluster: Cluster, say: Callable[[str], None] = print) -> None:
        self._cluster = cluster
        self._print = say
        self._began = time.monotonic()
        self._pods = Watched(cluster.plane.api, PATHS["pods"]).start()
        changed = self._pods.changed
        self._jobs = Watched(cluster.plane.api, PATHS["jobs"], changed=changed).start()
        self._groups = Watched(cluster.plane.api, PATHS["groups"], changed=changed).start()

    def close(self) -> None:
        """Stop watching."""
        for watched in (self._pods, self._jobs, self._groups):
            watched.stop()

    def say(self, text: str) -> None:
        """Print a line with the time."""
        self._print(f"[{time.monotonic() - self._began:5.1f} s] {text}")

    def submit(self, job: Object) -> None:
        """Create a Job and say what it needs."""
        self._cluster.plane.api.post(JOBS, job)
        spec = job["spec"]
        task = spec["tasks"][0]
        cpu = task["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"]
        self.say(
            f"kubectl create -f {job['metadata']['name']}.yaml: {task['replicas']} pods of "
            f"{cpu} CPU, at least {spec['minAvailable']} together"
        )

    def starts(self, name: str, at_least: int) -> None:
        """Wait until a Job runs, and say how it came about."""
        before = time.monotonic()
        self._until(lambda: len(self.on_nodes(name)) >= at_least, f"{name} starts")
        self._until(lambda: self._phase(name) == "Running", f"{name} is Running")
        pods = self.on_nodes(name)
        nodes = {pod["spec"]["nodeName"] for pod in pods}
        took = time.monotonic() - before
        self.say(f"  {name} is Running: {len(pods)} pods on {len(nodes)} nodes, after {took:.2f} s")
        # The next session says so of the group, too.
        self._until(lambda: self._group(name).get("phase") == "Running", f"{name}'s group runs")

    def waits(self, name: str) -> None:
        """Wait until a Job says why it waits, and repeat it."""
        self._until(lambda: self.reason(name), f"{name} says why it waits")
        self.say(f"  {name} waits, {len(self.on_nodes(name))} of its pods have a node:")
        self._print(f"            {self.reason(name)}")

    def ends(self, name: str) -> None:
        """Wait until a Job is completed."""
        self._until(lambda: self._phase(name) == "Completed", f"{name} ends")
        self.say(f"  {name} is Completed, its room is free")

    def on_nodes(self, name: str) -> list[Mapping[str, Any]]:
        """Return the pods of a Job that have a node and are not finished."""
        return [
            pod
            for pod in self._pods.values()
            if pod["metadata"].get("labels", {}).get("volcano.sh/job-name") == name
            and pod["spec"].get("nodeName")
            and pod["status"].get("phase") not in ("Succeeded", "Failed")
        ]

    def reason(self, name: str) -> str:
        """Return what the PodGroup of a Job says of why it waits."""
        for condition in self._group(name).get("conditions", ()):
            if condition["type"] == "Unschedulable" and condition["status"] == "True":
                return str(condition.get("message", ""))
        return ""

    def _group(self, name: str) -> Object:
        """Return the status of a Job's PodGroup."""
        for group in self._groups.values():
            if any(owner["name"] == name for owner in group["metadata"].get("ownerReferences", ())):
                status: Object = group.get("status", {})
                return status
        return {}

    def _phase(self, name: str) -> str:
        job = self._jobs.get(f"default/{name}", {})
        return str(job.get("status", {}).get("state", {}).get("phase", ""))

    def _until(self, check: Callable[[], object], what: str) -> None:
        wait_for(self._pods.changed, check, TIMEOUT_S, what)


def run() -> None:
    """Start a cluster, tell the story, and say where to look."""
    began = time.monotonic()
    print(f"Starting etcd, kube-apiserver, kube-scheduler, Pumice and {NODES} simulated nodes ...")
    with Cluster(nodes=NODES) as cluster:
        total = NODES * CPU
        print(f"Ready after {time.monotonic() - began:.1f} s: {total} CPU on {NODES} nodes.\n")
        story = Story(cluster)
        try:
            tell(story)
        finally:
            story.close()
        _look(cluster)
    print("Keep a cluster of your own with `.venv/bin/pumice cluster up`.")


def tell(story: Story) -> None:
    """Tell the story."""
    gang = NODES * 6 // 10
    story.say("Two Jobs that each need 60 % of the cluster:")
    story.submit(a_job("first", gang, CPU, gang, RUNS_S))
    story.starts("first", gang)
    story.submit(a_job("second", gang, CPU, gang, RUNS_S))
    story.waits("second")
    story.say("A small elastic Job slips in beside them:")
    story.submit(a_job("elastic", 6, CPU // 2, 1, 2 * RUNS_S))
    story.starts("elastic", 6)
    story.say("The first Job ends, the second starts whole:")
    story.ends("first")
    story.starts("second", gang)


def _look(cluster: Cluster) -> None:
    kubeconfig = str(cluster.plane.kubeconfig())
    print("\n$ kubectl get vcjob,podgroup,queue")
    command = [str(find_kubectl()), "--kubeconfig", kubeconfig, "get", "vcjob,podgroup,queue"]
    print(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
