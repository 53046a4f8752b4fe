"""Sessions over small clusters: nodes and pods in, a session with some plugins open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pumice.core import names
from pumice.core.api.core import Node, Pod
from pumice.core.cluster import Cluster
from pumice.core.conf import Arguments, Configuration, PluginOption
from pumice.core.model.tasks import Task, TaskClass
from pumice.core.session import Session
from tests import builders


def a_node(
    name: str,
    labels: Mapping[str, str] | None = None,
    *,
    pods: str = "110",
    taints: Sequence[Mapping[str, str]] = (),
    images: Mapping[str, int] | None = None,
    cpu: str = "8",
    memory: str = "16Gi",
    more: Mapping[str, str] | None = None,
) -> Node:
    """Return a node that offers 8 cpu and 16Gi, unless it is said otherwise."""
    offered = {"cpu": cpu, "memory": memory, "pods": pods, **(more or {})}
    held = [{"names": [image], "sizeBytes": size} for image, size in (images or {}).items()]
    raw = {
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": offered, "images": held},
    }
    return msgspec.convert(raw, Node)


def a_pod(
    name: str,
    labels: Mapping[str, str] | None = None,
    *,
    node: str = "",
    group: str = "g",
    spec: Mapping[str, Any] | None = None,
    cpu: str = "1",
    memory: str = "1Gi",
    more: Mapping[str, str] | None = None,
) -> Pod:
    """Return a pod of a group, running where a node is given; it asks for 1 cpu and 1Gi."""
    asked = {"cpu": cpu, "memory": memory, **(more or {})}
    raw = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": name,
            "labels": dict(labels or {}),
            "annotations": {names.GROUP_NAME: group},
        },
        "spec": {
            "schedulerName": "volcano",
            "nodeName": node,
            "containers": [{"name": "c", "resources": {"requests": asked}}],
            **(spec or {}),
        },
        "status": {"phase": "Running" if node else "Pending"},
    }
    return msgspec.convert(raw, Pod)


def a_cluster(nodes: Sequence[Node], pods: Sequence[Pod]) -> Cluster:
    """Return a cluster with the groups that the pods name."""
    groups = {(p.metadata.annotations or {})[names.GROUP_NAME]: None for p in pods}
    cluster = builders.a_cluster(nodes, [builders.a_group(name) for name in groups], pods)
    assert not cluster.faults
    return cluster


def a_session(
    nodes: Sequence[Node],
    pods: Sequence[Pod],
    plugins: Mapping[str, Mapping[str, object]],
) -> Session:
    """Return an open session with these plugins and their arguments, all in one tier."""
    tier = tuple(PluginOption(name, arguments=Arguments(args)) for name, args in plugins.items())
    ssn = builders.a_session(Configuration((), (tier,)), a_cluster(nodes, pods))
    assert not ssn.findings.warnings
    return ssn


def pending(ssn: Session) -> dict[str, Task]:
    """Return the waiting tasks by name."""
    return {t.name: t for job in ssn.active for t in job.tasks.values() if not t.node}


def classes(ssn: Session) -> dict[str, TaskClass]:
    """Return the classes of waiting tasks by the tasks' names."""
    return {name: task.cls for name, task in pending(ssn).items()}
