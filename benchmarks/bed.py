"""A cluster to measure on: 1,000 nodes, a namespace for each run, everything gone after it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.audit import Account, account
from pumice.local.api import Api
from pumice.local.cluster import Cluster
from pumice.local.watching import Watched, wait_for

WRITERS = 8
TIMEOUT_S = 180.0
Object = dict[str, Any]


class Bed:
    """Runs things in a namespace and reads off what they cost."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.api: Api = cluster.plane.api
        self.pods = Watched(self.api, "/api/v1/pods").start()

    def close(self) -> None:
        """Stop watching."""
        self.pods.stop()

    @contextmanager
    def namespace(self) -> Iterator[str]:
        """Make a namespace for one run, and empty it afterwards."""
        name = f"bench-{uuid.uuid4().hex[:6]}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self.api.post("/api/v1/namespaces", body)
        accounts = Watched(self.api, f"/api/v1/namespaces/{name}/serviceaccounts").start()
        accounts.wait(lambda found: f"{name}/default" in found, 30, "the ServiceAccount")
        accounts.stop()
        try:
            yield name
        finally:
            self._empty(name)

    def create(self, path: str, bodies: Sequence[Object]) -> None:
        """Create objects over several connections."""
        self.create_each([(path, body) for body in bodies])

    def create_each(self, posts: Sequence[tuple[str, Object]]) -> None:
        """Post bodies, each to a path of its own, over several connections."""
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(lambda post: self.api.post(*post), posts))

    def wait_bound(self, namespace: str, pods: int) -> None:
        """Wait until so many pods of a namespace have a node."""
        prefix = f"{namespace}/"

        def bound() -> bool:
            found = (p for k, p in self.pods.items() if k.startswith(prefix))
            return sum(bool(p["spec"].get("nodeName")) for p in found) >= pods

        wait_for(self.pods.changed, bound, TIMEOUT_S, f"{pods} pods of {namespace} are bound")

    def account(self, namespace: str, submitted: str = "pods") -> Account:
        """Return what a run wrote and how long it took."""
        return account(Path(self.cluster.plane.audit_log), namespace, submitted)

    def _empty(self, namespace: str) -> None:
        jobs = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs"
        now = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        self.api.delete(jobs)
        self.api.delete(f"/api/v1/namespaces/{namespace}/pods", now)
        prefix = f"{namespace}/"
        wait_for(
            self.pods.changed,
            lambda: not any(key.startswith(prefix) for key in self.pods),
            TIMEOUT_S,
            f"{namespace} is empty",
        )
        self.api.delete(f"/api/v1/namespaces/{namespace}")


def a_pod(name: str, scheduler: str, node: str = "") -> Object:
    """Return a pod of 1 CPU; with a node, born pinned to it."""
    spec: Object = {
        "schedulerName": scheduler,
        "containers": [
            {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}},
        ],
    }
    if node:
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        spec["affinity"] = {"nodeAffinity": required}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def a_job(name: str, pods: int) -> Object:
    """Return a gang of one-CPU pods."""
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    task = {"name": "w", "replicas": pods, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"schedulerName": "volcano", "minAvailable": pods, "tasks": [task]},
    }
