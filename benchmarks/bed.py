"""A cluster to measure on: 1,000 nodes, a namespace for each run, everything gone after it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from benchmarks.audit import LOOK_S, Account, Tail, account
from pumice.local.api import Api
from pumice.local.cluster import Cluster

WRITERS = 8
TIMEOUT_S = 180.0
Object = dict[str, Any]


class Bed:
    """Runs things in a namespace and reads off what they cost."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.api: Api = cluster.plane.api

    @contextmanager
    def namespace(self) -> Iterator[str]:
        """Make a namespace for one run, and empty it afterwards."""
        name = self.new_namespace()
        try:
            yield name
        finally:
            self._empty(name)

    def new_namespace(self) -> str:
        """Make a namespace, and wait until pods can be created in it."""
        name = f"bench-{uuid.uuid4().hex[:6]}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self.api.post("/api/v1/namespaces", body)
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        self.until(lambda: self.api.exists(account), "the ServiceAccount is there")
        return name

    def tail(self) -> Tail:
        """Begin to count writes."""
        return Tail(self.cluster.plane.audit_log)

    def create(self, path: str, bodies: Sequence[Object]) -> None:
        """Create objects over several connections."""
        self.create_each([(path, body) for body in bodies])

    def create_each(self, posts: Sequence[tuple[str, Object]]) -> None:
        """Post bodies, each to a path of its own, over several connections."""
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(lambda post: self.api.post(*post), posts))

    def account(self, namespace: str, submitted: str = "pods") -> Account:
        """Return what a run wrote and how long it took."""
        return account(self.cluster.plane.audit_log, namespace, submitted)

    def _empty(self, namespace: str) -> None:
        jobs = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs"
        now = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        self.api.delete(jobs)
        self.api.delete(f"/api/v1/namespaces/{namespace}/pods", now)
        pods = f"/api/v1/namespaces/{namespace}/pods"
        self.until(lambda: not self.api.get(pods, limit="1")["items"], f"{namespace} is empty")
        path = f"/api/v1/namespaces/{namespace}"
        self.api.delete(path)
        # What clears it away is busy until it is gone, and would take from the next run.
        self.until(lambda: not self.api.exists(path), f"{namespace} is gone")

    def until(self, check: Callable[[], bool], what: str, timeout_s: float = TIMEOUT_S) -> None:
        """Look again and again until the check holds."""
        deadline = time.monotonic() + timeout_s
        while not check():
            if time.monotonic() > deadline:
                raise TimeoutError(what)
            time.sleep(LOOK_S)


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
