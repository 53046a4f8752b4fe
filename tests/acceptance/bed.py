"""
The test bed: a cluster with Pumice in it, as a test wants to handle it.

A test gets a `Bed` with a namespace of its own and no nodes, sets the scene in a few lines, and
waits for what must come true by watches, never by the clock:

    bed.nodes(10, cpu=4)
    bed.create(a_job("gang", replicas=8, cpu=4, min_available=8))
    bed.wait_for(lambda: len(bed.bound("gang")) == 8, 10, "the gang is bound")

`until` is `wait_for` for a test that runs other things (a proxy, the auditor) on its event loop.
"""

from __future__ import annotations

import asyncio
import subprocess
import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, TypeVar

import yaml

from pumice.local.api import Api
from pumice.local.cluster import Cluster
from pumice.local.controlplane import API_SERVER
from pumice.local.errors import ApiError
from pumice.local.install import apply as apply_one
from pumice.local.install import collection_of, path_of
from pumice.local.nodes import NODES, add_nodes
from pumice.local.scheduler import PUMICE as KUBE_SCHEDULER
from pumice.local.toolchain import find_kubectl
from pumice.local.users import USERS
from pumice.local.watching import Watched, wait_for
from tests.acceptance.length import patient
from tests.acceptance.objects import EXIT_AFTER, EXIT_CODE, Object
from tests.auditor.run import Auditor

PATHS = {
    "pods": "/api/v1/pods",
    "nodes": NODES,
    "jobs": "/apis/batch.volcano.sh/v1alpha1/jobs",
    "pod_groups": "/apis/scheduling.volcano.sh/v1beta1/podgroups",
    "queues": "/apis/scheduling.volcano.sh/v1beta1/queues",
}
STANDING_QUEUES = ("root", "default")
CLEAR_TIMEOUT_S = 60.0
JOB_NAME = "volcano.sh/job-name"
WRITERS = 8
T = TypeVar("T")


class Bed:
    """One test's view of the cluster."""

    def __init__(self, cluster: Cluster, *, unwatched: Collection[str] = ()) -> None:
        """Prepare it; collections in `unwatched`, too large to follow, stay empty."""
        self.cluster = cluster
        self.plane = cluster.plane
        self.api: Api = cluster.plane.api
        self.namespace = ""
        self._namespaces: list[str] = []
        self.changed = threading.Condition()
        self._watched = {
            name: Watched(self.api, path, changed=self.changed, keep_history=True)
            for name, path in PATHS.items()
        }
        self._followed = [w for name, w in self._watched.items() if name not in unwatched]
        self.pods = self._watched["pods"]
        self.node_objects = self._watched["nodes"]
        self.jobs = self._watched["jobs"]
        self.pod_groups = self._watched["pod_groups"]
        self.queues = self._watched["queues"]

    def open(self) -> None:
        """Start watching and make a namespace to be alone in."""
        for watched in self._followed:
            watched.start()
        self.namespace = self.new_namespace()

    def close(self) -> None:
        """Remove everything the test made, nodes included, and stop watching."""
        try:
            self.clear()
        finally:
            self.stop()

    def stop(self) -> None:
        """Stop watching, and leave everything as it is."""
        for watched in self._followed:
            watched.stop()

    def new_namespace(self, prefix: str = "t") -> str:
        """Create a namespace and wait until pods can be created in it."""
        name = f"{prefix}-{uuid.uuid4().hex[:8]}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self.api.post("/api/v1/namespaces", body)
        self._namespaces.append(name)
        accounts = f"/api/v1/namespaces/{name}/serviceaccounts"
        watched = Watched(self.api, accounts).start()
        try:
            watched.wait(lambda found: f"{name}/default" in found, 30, "the ServiceAccount")
        finally:
            watched.stop()
        return name

    def nodes(self, count: int, **kind: Any) -> list[str]:
        """Create fake nodes alike; the arguments are those of `add_nodes`."""
        return add_nodes(self.api, count, **kind)

    def create(self, *objects: Object) -> list[Object]:
        """Create objects, in the test's namespace where they name none."""
        return [self.api.post(collection_of(body, self.namespace), body) for body in objects]

    def create_many(self, objects: Iterable[Object], writers: int = WRITERS) -> list[Object]:
        """Create objects with several connections at once."""
        with ThreadPoolExecutor(writers) as pool:
            return [answer for found in pool.map(self.create, objects) for answer in found]

    def apply(self, source: str | Object) -> list[Object]:
        """Apply YAML or an object, as `kubectl apply --server-side` does."""
        bodies = yaml.safe_load_all(source) if isinstance(source, str) else [source]
        return [apply_one(self.api, body, self.namespace) for body in bodies if body]

    def delete(self, body: Object, *, grace_s: int | None = None) -> None:
        """Delete an object."""
        options = None if grace_s is None else {"gracePeriodSeconds": grace_s}
        self.api.delete(path_of(body, self.namespace), options)

    def patch(self, body: Object, change: Object) -> Object:
        """Change an object by a merge patch."""
        answer: Object = self.api.patch(path_of(body, self.namespace), change)
        return answer

    def admit(self) -> None:
        """Let the pods of every gang be created, room or not, as the extender would with room."""
        for group in list(self.pod_groups.values()):
            if group.get("status", {}).get("phase") in (None, "", "Pending"):
                self.patch(group, {"status": {"phase": "Inqueue"}})

    def end(self, *pods: Object, code: int = 0) -> None:
        """Make running pods end with an exit code; those that are gone have ended."""
        notes = {"metadata": {"annotations": {EXIT_AFTER: "0", EXIT_CODE: str(code)}}}

        def end_one(pod: Object) -> None:
            try:
                self.api.patch(pod_path(pod), notes)
            except ApiError as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    raise

        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(end_one, pods))

    def cordon(self, node: str, on: bool = True) -> None:
        """Make a node unschedulable, or schedulable again."""
        self.api.patch(f"{NODES}/{node}", {"spec": {"unschedulable": on}})

    def resize(self, node: str, **amounts: str) -> None:
        """Change what a node can allocate."""
        status = {"status": {"allocatable": amounts, "capacity": amounts}}
        self.api.patch(f"{NODES}/{node}/status", status)

    def pods_of(self, job: str) -> list[Object]:
        """Return the pods of a Job, by name."""
        mine = [pod for pod in self._in_namespace() if label(pod, JOB_NAME) == job]
        return sorted(mine, key=lambda pod: pod["metadata"]["name"])

    def bound(self, job: str) -> list[Object]:
        """Return the pods of a Job that are on a node and not about to go."""
        return [
            pod
            for pod in self.pods_of(job)
            if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]
        ]

    def running(self, job: str) -> list[Object]:
        """Return the pods of a Job that run."""
        return [pod for pod in self.bound(job) if pod["status"].get("phase") == "Running"]

    def pod(self, name: str) -> Object | None:
        """Return a pod of the test's namespace."""
        return self.pods.get(f"{self.namespace}/{name}")

    def job(self, name: str) -> Object | None:
        """Return a Job of the test's namespace."""
        return self.jobs.get(f"{self.namespace}/{name}")

    def job_phase(self, name: str) -> str:
        """Return the phase of a Job; empty while it has none."""
        phase: str = (self.job(name) or {}).get("status", {}).get("state", {}).get("phase", "")
        return phase

    def pod_group(self, job: str) -> Object | None:
        """Return the PodGroup of a Job, which is named after the Job and its uid."""
        found = self.job(job)
        if found is None:
            return None
        return self.pod_groups.get(f"{self.namespace}/{job}-{found['metadata']['uid']}")

    def group_phase(self, job: str) -> str:
        """Return the phase of a Job's PodGroup; empty while there is none."""
        phase: str = (self.pod_group(job) or {}).get("status", {}).get("phase", "")
        return phase

    def shows_running(self, job: str) -> bool:
        """
        Tell whether as many pods are seen to run here as the Job counts.

        Pods and Jobs come by watches of their own: where a Job is seen to run or to be over, the
        news of its pods may still be on the way.
        """
        counted: int = (self.job(job) or {}).get("status", {}).get("running", 0)
        return len(self.running(job)) == counted

    def wait_for(self, check: Callable[[], object], timeout_s: float, what: str = "") -> float:
        """Wait until the check holds on the watched objects; return the seconds it took."""
        try:
            return wait_for(self.changed, check, patient(timeout_s), what)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.summary()}") from None

    async def never(self, check: Callable[[], object], for_s: float, what: str) -> None:
        """Watch for so long that something does not come true; fail as soon as it does."""
        try:
            after_s = await asyncio.to_thread(wait_for, self.changed, check, for_s)
        except TimeoutError:
            return
        raise AssertionError(f"after {after_s:.2f} s: {what}\n{self.summary()}")

    async def until(self, check: Callable[[], object], timeout_s: float, what: str = "") -> float:
        """Wait as `wait_for` does, leaving the event loop free."""
        return await asyncio.to_thread(self.wait_for, check, timeout_s, what)

    async def aside(self, call: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Make a blocking call (a restart, say) in a thread, leaving the event loop free."""
        return await asyncio.to_thread(call, *arguments, **named)

    def wait_phase(self, job: str, phase: str, timeout_s: float) -> float:
        """Wait until a Job has a phase, and the pods that it counts as running are seen, too."""
        return self.wait_for(
            lambda: self.job_phase(job) == phase and self.shows_running(job),
            timeout_s,
            f"Job {job} is {phase}",
        )

    def summary(self) -> str:
        """Return what there is in the test's namespace, a line each; for error messages."""
        lines = [f"nodes: {len(self.node_objects)}"]
        for kind, watched in (("job", self.jobs), ("podgroup", self.pod_groups)):
            for key, item in watched.items():
                status = item.get("status", {})
                phase = status.get("state", {}).get("phase") or status.get("phase", "-")
                reasons = [c.get("message", "") for c in status.get("conditions", [])[-1:]]
                lines.append(f"{kind} {key}: {phase} {' '.join(reasons)}".rstrip())
        for pod in self._in_namespace():
            gates = [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]
            node = pod["spec"].get("nodeName", "-")
            phase = pod["status"].get("phase", "-")
            lines.append(f"pod {pod['metadata']['name']}: {phase} on {node} {gates or ''}".rstrip())
        return "\n".join(lines[:60])

    def kill(self, component: str, number: int = 9) -> None:
        """Kill extender, controllers, kube-scheduler or kube-apiserver."""
        self.plane.processes.kill(component, number)

    def restart(self, component: str, *, ready: bool = True) -> None:
        """Start a component again as it was started, and wait until it is ready."""
        self.plane.processes.restart(component)
        if ready:
            self.wait_ready(component)

    def wait_ready(self, component: str) -> None:
        """Wait until a component is ready."""
        if component == API_SERVER:
            self.plane.wait_ready()
        elif component == KUBE_SCHEDULER:
            if self.cluster.scheduler:
                self.cluster.scheduler.wait_ready()
        else:
            service = {"extender": self.cluster.extender, "controllers": self.cluster.controllers}
            service[component].wait_ready()

    def kubectl(self, *arguments: str, input_text: str | None = None) -> str:
        """Run kubectl as the administrator, in the test's namespace; return what it prints."""
        options = [f"--kubeconfig={self.plane.kubeconfig()}", f"--namespace={self.namespace}"]
        answer = subprocess.run(
            [find_kubectl(), *options, *arguments],
            input=input_text,
            capture_output=True,
            text=True,
        )
        if answer.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {answer.stderr.strip()}")
        return answer.stdout

    def auditor(self, **options: Any) -> Auditor:
        """Return an auditor of this cluster, to be entered with `async with`."""
        folder = self.plane.audit_log.parent
        return Auditor(
            self.plane.kubeconfig("auditor"),
            self.plane.audit_log,
            extender_user=USERS["pumice-extender"].name,
            extender_url=self.cluster.extender.url,
            own_users=[USERS["pumice-controllers"].name, USERS["pumice-webhooks"].name],
            scheduler_users=[USERS[self.cluster.scheduler_user].name],
            report=folder / f"auditor-{uuid.uuid4().hex[:8]}.json",
            **options,
        )

    def clear(self) -> None:
        """Remove the test's namespaces with all that is in them, queues and nodes, and wait."""
        for name in self._namespaces:
            # First the namespace: in one that ends, nothing can be created any more.
            self.api.delete(f"/api/v1/namespaces/{name}")
            for path in (PATHS["jobs"], PATHS["pod_groups"], PATHS["pods"]):
                root, _, plural = path.rpartition("/")
                self.api.delete(f"{root}/namespaces/{name}/{plural}", {"gracePeriodSeconds": 0})
        self.wait_for(self._is_empty, CLEAR_TIMEOUT_S, "the test's objects are gone")
        for name in list(self.queues):
            if name not in STANDING_QUEUES:
                self.api.delete(f"{PATHS['queues']}/{name}")
        for name in list(self.node_objects):
            self.api.delete(f"{NODES}/{name}")
        self.wait_for(lambda: not self.node_objects, CLEAR_TIMEOUT_S, "the nodes are gone")

    def _is_empty(self) -> bool:
        return not any(
            item["metadata"]["namespace"] in self._namespaces
            for watched in (self.pods, self.jobs, self.pod_groups)
            for item in watched.values()
        )

    def _in_namespace(self) -> Sequence[Object]:
        return [pod for pod in self.pods.values() if pod["metadata"]["namespace"] == self.namespace]


def pod_path(pod: Object) -> str:
    """Return the path of a pod."""
    meta = pod["metadata"]
    return f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"


def label(body: Object, key: str) -> str | None:
    """Return a label of an object."""
    value: str | None = body["metadata"].get("labels", {}).get(key)
    return value
