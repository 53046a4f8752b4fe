"""
The pods of a Job: a task's template, passed through untouched, under names that say whose it is.

The template is raw JSON, so that fields of Kubernetes that we have never heard of reach the pod.
What is laid over it: name, owner, labels and annotations, scheduler and priority class where the
template names none, and the Job's volumes. The gate that holds the pod until it has a plan is put
on by the API server at creation, not here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from pumice.core import names
from pumice.core.api.batch import Job, TaskSpec
from pumice.core.api.meta import Template
from pumice.core.jobs import membership, plugins
from pumice.core.jobs.templates import MAIN, containers, extend, mapping

_COPIED = (names.PREEMPTABLE, names.COOLDOWN_TIME, names.REVOCABLE_ZONE)
_COPIED_LABELS = (names.PREEMPTABLE, names.COOLDOWN_TIME)
_BUDGETS = (names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE)
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def renderer(job: Job, task: TaskSpec, *, forwarding: bool = False) -> Callable[[int], Template]:
    """Return the function that renders the task's pods; what they share is made once."""
    template = mapping(task.template)
    meta = mapping(template.get("metadata"))
    annotations = mapping(meta.get("annotations")) | _annotations(job, task, forwarding)
    labels = mapping(meta.get("labels")) | _labels(job, task, forwarding)
    spec = _spec(job, mapping(template.get("spec")))
    hooks = plugins.of(job)
    for plugin in hooks:
        plugin.on_task(job, spec)

    def render(index: int) -> Template:
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
            plugin.on_pod(body)
        return body

    return render


def token(*parts: str) -> str:
    """Return 12 characters of 0-9a-z that the parts decide, where Volcano draws lots."""
    number = int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest(), "big")
    text = ""
    for _ in range(12):
        number, digit = divmod(number, len(_DIGITS))
        text += _DIGITS[digit]
    return text


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
