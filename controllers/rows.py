"""What the controllers keep of objects instead of the whole: rows for those that may be many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from pumice.core.api.core import Pod, PodSpec
from pumice.core.groups.reconcile import inheritable
from pumice.core.jobs.membership import owner_uid
from pumice.core.jobs.objects import fingerprint, following
from pumice.core.names import GROUP_NAME
from pumice.kube.resources import ConfigMap, Plain, ReplicaSet, Secret, StatefulSet


@dataclass(frozen=True, slots=True)
class Workload:
    """What is kept of a ReplicaSet or StatefulSet."""

    namespace: str
    uid: str
    replicas: int
    #: the revision that a StatefulSet is being brought to
    revision: str = ""
    #: those annotations that may go to its group
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobObject:
    """What is kept of an object that a plugin made for a Job."""

    name: str
    uid: str
    #: `namespace/name` and uid of the Job
    job: str
    job_uid: str
    #: fingerprint of those of its data that follow the Job
    data: str
    is_leaving: bool


def labels(obj: Plain) -> dict[str, str]:
    """Return the labels, which is all that is kept of a node."""
    return obj.metadata.labels or {}


def slim(pod: Pod) -> Pod:
    """Return the pod without what only its PodGroup is made from, once it names one."""
    if not (pod.metadata.annotations or {}).get(GROUP_NAME):
        return pod
    kept = PodSpec(scheduler_name=pod.spec.scheduler_name, node_name=pod.spec.node_name)
    return msgspec.structs.replace(pod, spec=kept)


def job_object(obj: Plain) -> JobObject:
    """Return the row."""
    meta = obj.metadata
    owner = meta.controller
    return JobObject(
        name=meta.name,
        uid=meta.uid,
        job=f"{meta.namespace}/{owner.name}" if owner else "",
        job_uid=owner_uid(meta),
        data=fingerprint(_following(obj)),
        is_leaving=meta.deletion_timestamp is not None,
    )


def _following(obj: Plain) -> dict[str, str]:
    if isinstance(obj, Secret):
        return following("Secret", obj.data)
    return following("ConfigMap", obj.data if isinstance(obj, ConfigMap) else None)


def workload(obj: ReplicaSet | StatefulSet) -> Workload:
    """Return the row; Kubernetes defaults replicas to 1."""
    meta = obj.metadata
    replicas = 1 if obj.spec.replicas is None else obj.spec.replicas
    revision = obj.status.update_revision if isinstance(obj, StatefulSet) else ""
    return Workload(meta.namespace, meta.uid, replicas, revision, inheritable(meta.annotations))


def owner(pod: Pod) -> str | None:
    """Return the uid of the object that controls the pod."""
    found = pod.metadata.controller
    return found.uid if found else None
