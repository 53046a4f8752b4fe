"""
Fake nodes, many and quickly.

A node is created with its status, Ready condition included, in one request: nothing has to be
patched afterwards and no taint to be taken away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from pumice.local.api import Api, Object
from pumice.local.kwok import NODE_LABEL, NODE_LABEL_VALUE

NODES = "/api/v1/nodes"
WRITERS = 8
CPU = 32
"""What a node has where nothing else is said."""
NODE_INFO = {
    "architecture": "amd64",
    "bootID": "",
    "containerRuntimeVersion": "kwok",
    "kernelVersion": "kwok",
    "kubeProxyVersion": "",
    "kubeletVersion": "kwok",
    "machineID": "",
    "operatingSystem": "linux",
    "osImage": "",
    "systemUUID": "",
}
CONDITIONS = {
    "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
    "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}


def a_node(
    name: str,
    *,
    cpu: str | int = CPU,
    memory: str = "128Gi",
    pods: int = 110,
    zone: str = "zone-0",
    extra: Mapping[str, str | int] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Object] = (),
) -> Object:
    """Return a node that is Ready and that KWOK looks after; `extra` are further resources."""
    resources = {"cpu": str(cpu), "memory": memory, "pods": str(pods)}
    resources |= {key: str(amount) for key, amount in (extra or {}).items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                NODE_LABEL: NODE_LABEL_VALUE,
                "kubernetes.io/hostname": name,
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "topology.kubernetes.io/zone": zone,
                **(labels or {}),
            },
        },
        "spec": {"taints": list(taints)},
        "status": {
            "allocatable": resources,
            "capacity": resources,
            "conditions": _conditions(),
            "addresses": [{"type": "Hostname", "address": name}],
            "nodeInfo": NODE_INFO,
        },
    }


def add_nodes(
    api: Api,
    count: int,
    *,
    prefix: str = "node-",
    zones: int = 1,
    cpu: str | int = CPU,
    memory: str = "128Gi",
    pods: int = 110,
    extra: Mapping[str, str | int] | None = None,
    labels: Mapping[str, str] | None = None,
) -> list[str]:
    """Create nodes `<prefix>0`, `<prefix>1`, ... alike but for their zones; return their names."""
    width = len(str(count - 1))
    nodes = [
        a_node(
            f"{prefix}{index:0{width}}",
            cpu=cpu,
            memory=memory,
            pods=pods,
            zone=f"zone-{index % zones}",
            extra=extra,
            labels=labels,
        )
        for index in range(count)
    ]
    create_all(api, NODES, nodes)
    return [node["metadata"]["name"] for node in nodes]


def create_all(api: Api, path: str, objects: Iterable[Object]) -> list[Object]:
    """Create many objects with a few connections; the first failure is raised."""
    with ThreadPoolExecutor(WRITERS) as pool:
        return list(pool.map(lambda body: api.post(path, body), objects))


def _conditions() -> list[Object]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        for kind, (status, reason, message) in CONDITIONS.items()
    ]
