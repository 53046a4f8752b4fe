"""Objects in one line: Jobs, pods, queues as plain dictionaries, as a user would write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Object = dict[str, Any]

EXIT_AFTER = "pumice.dev/exit-after"
EXIT_CODE = "pumice.dev/exit-code"


def a_pod_spec(
    *,
    cpu: str | int | None = 1,
    memory: str | None = None,
    command: Sequence[str] = (),
    restart: str = "Never",
    grace_s: int = 3,
    requests: Mapping[str, str | int] | None = None,
    **spec: Any,
) -> Object:
    """Return a pod's spec with one container; `cpu=None` makes it best effort."""
    wanted = {"cpu": cpu, "memory": memory, **(requests or {})}
    asked = {key: str(amount) for key, amount in wanted.items() if amount is not None}
    container: Object = {"name": "main", "image": "busybox"}
    if asked:
        container["resources"] = {"requests": asked}
    if command:
        container["command"] = list(command)
    return {
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": grace_s,
        "containers": [container],
        **spec,
    }


def a_task(
    name: str = "worker",
    replicas: int = 1,
    *,
    min_available: int | None = None,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    policies: Sequence[Object] = (),
    partition: Object | None = None,
    **spec: Any,
) -> Object:
    """Return a task of a Job; further arguments are those of `a_pod_spec`."""
    metadata = {"annotations": dict(annotations or {}), "labels": dict(labels or {})}
    task: Object = {
        "name": name,
        "replicas": replicas,
        "template": {"metadata": metadata, "spec": a_pod_spec(**spec)},
    }
    if min_available is not None:
        task["minAvailable"] = min_available
    if policies:
        task["policies"] = list(policies)
    if partition:
        task["partitionPolicy"] = partition
    return task


def a_job(
    name: str,
    *tasks: Object,
    replicas: int = 1,
    min_available: int | None = None,
    queue: str = "default",
    policies: Sequence[Object] = (),
    namespace: str | None = None,
    annotations: Mapping[str, str] | None = None,
    max_retry: int | None = None,
    priority_class: str = "",
    **task: Any,
) -> Object:
    """
    Return a Job of the tasks given.

    Without tasks it has one, `worker`, of `replicas` pods, made of the further arguments.
    """
    chosen = list(tasks) or [a_task(replicas=replicas, **task)]
    spec: Object = {"schedulerName": "volcano", "queue": queue, "tasks": chosen}
    if min_available is not None:
        spec["minAvailable"] = min_available
    if policies:
        spec["policies"] = list(policies)
    if max_retry is not None:
        spec["maxRetry"] = max_retry
    if priority_class:
        spec["priorityClassName"] = priority_class
    metadata = {"name": name, "namespace": namespace, "annotations": dict(annotations or {})}
    return _object("batch.volcano.sh/v1alpha1", "Job", metadata, spec)


def a_pod(
    name: str,
    *,
    scheduler: str = "volcano",
    namespace: str | None = None,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    node: str | None = None,
    **spec: Any,
) -> Object:
    """Return a pod; further arguments are those of `a_pod_spec`."""
    body = a_pod_spec(**spec) | {"schedulerName": scheduler}
    if node:
        body["nodeName"] = node
    metadata = {
        "name": name,
        "namespace": namespace,
        "annotations": dict(annotations or {}),
        "labels": dict(labels or {}),
    }
    return _object("v1", "Pod", metadata, body)


def a_queue(name: str, **spec: Any) -> Object:
    """Return a queue."""
    body = {"weight": 1, **spec}
    return _object("scheduling.volcano.sh/v1beta1", "Queue", {"name": name}, body)


def a_pod_group(name: str, *, min_member: int, namespace: str | None = None, **spec: Any) -> Object:
    """Return a PodGroup."""
    body = {"minMember": min_member, "queue": "default", **spec}
    metadata = {"name": name, "namespace": namespace}
    return _object("scheduling.volcano.sh/v1beta1", "PodGroup", metadata, body)


def a_cron(
    name: str,
    command: Sequence[str] = ("echo", "done"),
    *,
    schedule: str = "* * * * *",
    **spec: Any,
) -> Object:
    """Return a CronJob of one pod."""
    job = {"schedulerName": "volcano", "tasks": [a_task(cpu="100m", command=command)]}
    body = {"schedule": schedule, "jobTemplate": {"spec": job}, **spec}
    return _object("batch.volcano.sh/v1alpha1", "CronJob", {"name": name}, body)


def a_job_template(
    name: str, command: Sequence[str] = ("echo", "done"), replicas: int = 1
) -> Object:
    """Return a JobTemplate of one task, `worker`."""
    task = a_task(replicas=replicas, cpu="100m", command=command)
    spec = {"schedulerName": "volcano", "tasks": [task]}
    return _object("flow.volcano.sh/v1alpha1", "JobTemplate", {"name": name}, spec)


def a_flow(
    steps: Mapping[str, Sequence[str]], *, more: Mapping[str, Object] | None = None, **spec: Any
) -> Object:
    """Return JobFlow `flow`: the targets of each step, by name, and what else is said of it."""
    flows = []
    for name, targets in steps.items():
        step: Object = {"name": name, **(more or {}).get(name, {})}
        if targets:
            step["dependsOn"] = {"targets": list(targets), **step.get("dependsOn", {})}
        flows.append(step)
    body = {"flows": flows, **spec}
    return _object("flow.volcano.sh/v1alpha1", "JobFlow", {"name": "flow"}, body)


def _object(version: str, kind: str, metadata: Object, spec: Object) -> Object:
    kept = {key: value for key, value in metadata.items() if value}
    return {"apiVersion": version, "kind": kind, "metadata": kept, "spec": spec}
