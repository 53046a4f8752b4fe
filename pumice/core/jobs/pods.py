"""
The pods of a Job: a task's template, passed through untouched, under names that say whose it is.

The template is raw JSON, so that fields of Kubernetes that we have never heard of reach the pod.
What is laid over it: name, owner, labels and annotations, scheduler and priority class where the
template names none, and the Job's volumes. The gate that holds the pod
until it has a plan comes last, on the finished pod.
"""

from __future__ import annotations

import hashlib
from typing import Protocol

from pumice.core import names
from pumice.core.api.batch import Job, TaskSpec
from pumice.core.api.meta import Template
from pumice.core.jobs import membership, plugins
from pumice.core.jobs.templates import MAIN, containers, extend, mapping

_COPIED = (names.PREEMPTABLE, names.COOLDOWN_TIME, names.REVOCABLE_ZONE)
_COPIED_LABELS = (names.PREEMPTABLE, names.COOLDOWN_TIME)
_BUDGETS = (names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class Render(Protocol):
    """Renders one pod of a task."""

    def __call__(self, index: int, node: str = "") -> Template:
        """Return the pod's body; with a node, it may run on that one alone."""
        ...


def renderer(job: Job, task: TaskSpec, *, forwarding: bool = False) -> Render:
    """Return the function that renders the task's pods; what they share is made once."""
    template = mapping(task.template)
    meta = mapping(template.get("metadata"))
    annotations = mapping(meta.get("annotations")) | _annotations(job, task, forwarding)
    labels = mapping(meta.get("labels")) | _labels(job, task, forwarding)
    spec = _spec(job, mapping(template.get("spec")))
    hooks = plugins.of(job)
    for plugin in hooks:
        plugin.on_task(job, task, spec)

    def render(index: int, node: str = "") -> Template:
        own = {names.TASK_INDEX: str(index)}
        part = {}
        if task.partition_policy is not None:
            part[names.PARTITION_ID] = str(index // max(task.partition_policy.partition_size, 1))
        body = {
            "metadata": {
                "name": membership.pod_name(job, task, index),
                "namespace": job.metadata.namespace,
                "labels": labels | own | part,
                "annotations": annotations | own,
                "ownerReferences": [membership.owner(job)],
            },
            "spec": dict(spec) if hooks else spec,
        }
        for plugin in hooks:
            plugin.on_pod(index, body)
        return _pinned(body, node) if node else body

    return render


def held(body: Template) -> Template:
    """
    Return the pod behind our gate, or as it is where it must not be held.

    The rule is that of the admission policy, which would put the gate on as well; but there it
    costs a third of the creation.
    """
    spec = mapping(body.get("spec"))
    annotations = mapping(mapping(body.get("metadata")).get("annotations"))
    if (
        spec.get("schedulerName") != names.DEFAULT_SCHEDULER
        or spec.get("nodeName")
        or annotations.get(names.QUEUE_ALLOCATION_GATE) == "true"
        or any(mapping(gate).get("name") == names.GATE_HELD for gate in _gates(spec))
    ):
        return body
    extend(spec, "schedulingGates", [{"name": names.GATE_HELD}])
    return {**body, "spec": spec}


def _gates(spec: Template) -> list[Template]:
    gates = spec.get("schedulingGates")
    return gates if isinstance(gates, list) else []


def token(*parts: str) -> str:
    """Return 12 characters of 0-9a-z that the parts decide, where Volcano draws lots."""
    number = int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest(), "big")
    text = ""
    for _ in range(12):
        number, digit = divmod(number, len(_DIGITS))
        text += _DIGITS[digit]
    return text


def _pinned(body: Template, node: str) -> Template:
    """Return the body with a pin, as a release of a held pod adds it; nothing shared is changed."""
    pin = {"key": "metadata.name", "operator": "In", "values": [node]}
    spec = body["spec"]
    affinity = mapping(spec.get("affinity"))
    of_nodes = mapping(affinity.get("nodeAffinity"))
    required = mapping(of_nodes.get(_REQUIRED))
    # Any one of the terms is enough for a node, so each has to name it; an empty one allows none.
    terms = [
        {**term, "matchFields": [*term.get("matchFields", ()), pin]} if term else term
        for term in required.get("nodeSelectorTerms") or ()
    ]
    required |= {"nodeSelectorTerms": terms or [{"matchFields": [pin]}]}
    affinity |= {"nodeAffinity": of_nodes | {_REQUIRED: required}}
    meta = body["metadata"]
    annotations = meta["annotations"] | {names.PLANNED_NODE: node}
    return {"metadata": meta | {"annotations": annotations}, "spec": spec | {"affinity": affinity}}


def _annotations(job: Job, task: TaskSpec, forwarding: bool) -> dict[str, str]:
    given = job.metadata.annotations or {}
    notes = {
        names.TASK_SPEC: task.name or "default",
        names.GROUP_NAME: membership.group_name(job),
        names.JOB_NAME: job.metadata.name,
        names.JOB_QUEUE_NAME: job.spec.queue,
        names.JOB_VERSION: str(job.status.version),
        names.TEMPLATE_UID: f"{job.metadata.name}-{task.name}",
        names.JOB_RETRY_COUNT: str(job.status.retry_count),
    }
    if task.topology_policy:
        notes[names.NUMA_POLICY] = task.topology_policy
    notes |= {key: given[key] for key in _COPIED if key in given}
    notes |= {key: given[key] for key in [k for k in _BUDGETS if k in given][:1]}
    return notes | ({names.JOB_FORWARDING: "true"} if forwarding else {})


def _labels(job: Job, task: TaskSpec, forwarding: bool) -> dict[str, str]:
    given = job.metadata.labels or {}
    labels = {
        names.JOB_NAME: job.metadata.name,
        names.TASK_SPEC: task.name or "default",
        names.JOB_NAMESPACE: job.metadata.namespace,
        names.JOB_QUEUE_NAME: job.spec.queue,
    }
    labels |= {key: given[key] for key in _COPIED_LABELS if key in given}
    return labels | ({names.JOB_FORWARDING: "true"} if forwarding else {})


def _spec(job: Job, spec: Template) -> Template:
    """Return the pod's specification; the template's own lists are not changed."""
    if not spec.get("schedulerName") and job.spec.scheduler_name:
        spec["schedulerName"] = job.spec.scheduler_name
    if not spec.get("priorityClassName") and job.spec.priority_class_name:
        spec["priorityClassName"] = job.spec.priority_class_name
    volumes, mounts = _volumes(job)
    if volumes:
        extend(spec, "volumes", volumes)
        for box in containers(spec, MAIN):
            extend(box, "volumeMounts", mounts)
    return spec


def _volumes(job: Job) -> tuple[list[Template], list[Template]]:
    """Return the pod's volumes and every main container's mounts; a claim counts once."""
    volumes: list[Template] = []
    mounts: list[Template] = []
    seen: set[str] = set()
    for volume in job.spec.volumes or ():
        claim = volume.volume_claim_name
        if not claim or claim in seen:
            continue
        seen.add(claim)
        name = f"{job.metadata.name}-{token(job.metadata.uid, claim)}"
        volumes.append({"name": name, "persistentVolumeClaim": {"claimName": claim}})
        mounts.append({"name": name, "mountPath": volume.mount_path})
    return volumes, mounts
