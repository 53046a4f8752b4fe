"""
An API server in memory with 50,000 pods in 5,000 groups: `python -m benchmarks.crowd PORT`.

The pods are on a node and name the group of their ReplicaSet: nothing is to be done for them. At
`/writes` it says how many writes it has had.
"""

from __future__ import annotations

import sys
from typing import Any

import uvicorn

from pumice.kube.resources import POD_GROUPS, PODS
from tests.fakeapi.app import FakeApi

GROUPS, PODS_PER_GROUP = 5_000, 10
Object = dict[str, Any]


class Counting:
    """The application, with a count of what was written."""

    def __init__(self, api: FakeApi) -> None:
        self._api = api
        self._writes = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == "/writes":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": str(self._writes).encode()})
            return
        self._writes += scope.get("method", "GET") != "GET"
        await self._api(scope, receive, send)


def fill(api: FakeApi) -> None:
    """Add the groups, which run, and their pods."""
    for number in range(GROUPS):
        uid = f"00000000-0000-4000-8000-{number:012}"
        name = f"podgroup-{uid}"
        spec = {"minMember": 1, "queue": "default", "minResources": {"cpu": "1", "pods": "1"}}
        status = {"phase": "Running", "running": PODS_PER_GROUP}
        api.add(POD_GROUPS, {"metadata": {"name": name}, "spec": spec, "status": status})
        for index in range(PODS_PER_GROUP):
            api.add(PODS, a_pod(f"web-{number}-{index}", uid, group=name))
    api.compact()


def a_pod(name: str, owner: str, *, group: str) -> Object:
    """Return a pod of a ReplicaSet, as large as those of a small service."""
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": owner}
    meta = {
        "name": name,
        "labels": {"app": "web", "pod-template-hash": owner[-8:], "tier": "front"},
        "annotations": {"scheduling.k8s.io/group-name": group},
        "ownerReferences": [{**reference, "controller": True, "blockOwnerDeletion": True}],
    }
    container = {
        "name": "main",
        "image": "registry.example.com/team/web:1.0.0",
        "env": [{"name": f"SETTING_{i}", "value": "x" * 20} for i in range(8)],
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
    }
    spec = {"schedulerName": "volcano", "nodeName": "somewhere", "containers": [container]}
    conditions = [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Ready")]
    return {
        "metadata": meta,
        "spec": spec,
        "status": {"phase": "Running", "conditions": conditions},
    }


if __name__ == "__main__":
    crowd = FakeApi()
    fill(crowd)
    uvicorn.run(Counting(crowd), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
