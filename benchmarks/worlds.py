"""Worlds of API objects for the engine, as the watch would bring them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pumice.core.api.core import Node, Pod
from pumice.core.api.scheduling import NetworkTopology, PodGroup, Queue
from pumice.core.api.topology import HyperNode
from pumice.core.cluster import Cluster

CREATED = "2026-01-01T00:00:00Z"


GPU = "nvidia.com/gpu"


def a_node(name: str, cpu: int = 32, memory: str = "128Gi", pods: int = 110, gpus: int = 0) -> Node:
    """Return a node."""
    amounts = {"cpu": str(cpu), "memory": memory, "pods": str(pods)}
    if gpus:
        amounts[GPU] = str(gpus)
    body = {
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": amounts, "capacity": amounts},
    }
    return msgspec.convert(body, Node)


def a_group(name: str, minimum: int, phase: str = "Inqueue", queue: str = "default") -> PodGroup:
    """Return the PodGroup of a job."""
    body = {
        "metadata": {"name": name, "namespace": "b", "uid": name, "creationTimestamp": CREATED},
        "spec": {"minMember": minimum, "queue": queue},
        "status": {"phase": phase},
    }
    return msgspec.convert(body, PodGroup)


def a_pod(name: str, group: str, cpu: str = "1", node: str = "", gpus: int = 0) -> Pod:
    """Return a held pod of a job, or one that runs on a node."""
    asked = {"cpu": cpu, **({GPU: str(gpus)} if gpus else {})}
    gates = [] if node else [{"name": "pumice.dev/held"}]
    body = {
        "metadata": {
            "name": name,
            "namespace": "b",
            "uid": name,
            "creationTimestamp": CREATED,
            "annotations": {
                "scheduling.k8s.io/group-name": group,
                "volcano.sh/task-spec": "worker",
            },
            "labels": {"volcano.sh/job-name": group, "volcano.sh/task-index": name},
        },
        "spec": {
            "schedulerName": "volcano",
            "nodeName": node,
            "schedulingGates": gates,
            "containers": [{"name": "main", "resources": {"requests": asked}}],
        },
        "status": {"phase": "Running" if node else "Pending"},
    }
    return msgspec.convert(body, Pod)


def a_cluster(nodes: int, queues: Iterable[str] = ("default",), gpus: int = 0) -> Cluster:
    """Return a cluster of equal, empty nodes."""
    cluster = Cluster()
    for queue in queues:
        body = {"metadata": {"name": queue, "uid": queue}, "status": {"state": "Open"}}
        cluster.set_queue(msgspec.convert(body, Queue))
    for i in range(nodes):
        cluster.set_node(a_node(f"n{i:05}", gpus=gpus))
    return cluster


def add_jobs(
    cluster: Cluster,
    jobs: int,
    pods: int,
    prefix: str = "j",
    queue: str = "default",
    gpus: int = 0,
    topology: NetworkTopology | None = None,
    cpu: int = 1,
) -> None:
    """Add waiting jobs of equal pods."""
    for j in range(jobs):
        name = f"{prefix}{j:05}"
        group = a_group(name, pods, queue=queue)
        group.spec.network_topology = topology
        cluster.set_pod_group(group)
        for p in range(pods):
            cluster.set_pod(a_pod(f"{name}-worker-{p}", name, str(cpu), gpus=gpus))


def add_racks(cluster: Cluster, racks: int, nodes: int) -> None:
    """Add HyperNodes of tier 1, each over so many nodes, in their order."""
    for r in range(racks):
        names = [f"n{i:05}" for i in range(r * nodes, (r + 1) * nodes)]
        members = [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in names]
        body = {"metadata": {"name": f"rack-{r}"}, "spec": {"tier": 1, "members": members}}
        cluster.set_hypernode(msgspec.convert(body, HyperNode))


def add_running(
    cluster: Cluster, jobs: int, pods: int, nodes: int, queue: str = "default", gpus: int = 0
) -> None:
    """Add jobs that run, their pods dealt out over the nodes."""
    serial = 0
    for j in range(jobs):
        name = f"r{j:05}"
        cluster.set_pod_group(a_group(name, pods, "Running", queue))
        for p in range(pods):
            node = f"n{serial % nodes:05}"
            serial += 1
            cluster.set_pod(a_pod(f"{name}-worker-{p}", name, node=node, gpus=gpus))
