"""Small objects for the contract tests."""

from __future__ import annotations

from typing import Any

from pumice.kube.client import Preconditions
from pumice.kube.patches import MergePatch

HELD = {"name": "pumice.dev/held"}
WRONG = Preconditions(uid="00000000-0000-0000-0000-000000000000")
STALE = Preconditions(resource_version="1")
LABEL = MergePatch({"metadata": {"labels": {"a": "b"}}})


def a_pod(name: str = "p", *, gates: list[dict[str, str]] | None = None, **spec: Any) -> Any:
    containers = [{"name": "c", "image": "i"}]
    whole = {"containers": containers, "schedulerName": "nobody", **spec}
    if gates:
        whole["schedulingGates"] = gates
    return {"metadata": {"name": name}, "spec": whole}


def a_map(name: str, **labels: str) -> Any:
    return {"metadata": {"name": name, "labels": labels}, "data": {"k": "v"}}


def a_job(name: str = "j") -> Any:
    task = {"name": "w", "replicas": 1, "template": {"spec": a_pod()["spec"]}}
    return {"metadata": {"name": name}, "spec": {"minAvailable": 1, "tasks": [task]}}


def required(*terms: Any) -> Any:
    rule = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"nodeAffinity": {rule: {"nodeSelectorTerms": list(terms)}}}


def on_node(name: str) -> Any:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}


ZONED = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
