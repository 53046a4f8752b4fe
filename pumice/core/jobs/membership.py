"""Which Job an object belongs to, and which of its Job's pods a pod is."""

from __future__ import annotations

from pumice.core import names
from pumice.core.api.batch import Job, TaskSpec
from pumice.core.api.core import ContainerStatus, Pod
from pumice.core.api.meta import ObjectMeta, Template
from pumice.core.api.scheduling import PodGroup
from pumice.core.jobs.types import RESTARTS, Restart

_REFUSALS = ("NodeAffinity", "UnexpectedAdmissionError")


def owner(job: Job) -> Template:
    """Return the reference that makes the Job the controller of an object."""
    return {
        "apiVersion": names.BATCH_API,
        "kind": "Job",
        "name": job.metadata.name,
        "uid": job.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owner_uid(meta: ObjectMeta) -> str:
    """Return the uid of the Job that controls the object, empty if none does."""
    owner = meta.controller
    if owner is None or owner.kind != "Job" or owner.api_version != names.BATCH_API:
        return ""
    return owner.uid


def job_key(pod: Pod) -> str:
    """
    Return `namespace/name` of the Job that made the pod, empty if none did.

    A pod counts when a Job controls it and the three annotations are there that every pod of a
    Job has; what else carries the annotations is not ours.
    """
    meta = pod.metadata
    notes = meta.annotations or {}
    name = notes.get(names.JOB_NAME, "")
    if not name or not owner_uid(meta) or names.TASK_SPEC not in notes or version(pod) is None:
        return ""
    return f"{meta.namespace}/{name}"


def group_job_key(group: PodGroup) -> str:
    """Return `namespace/name` of the Job that owns the PodGroup, empty if none does."""
    owner = group.metadata.controller
    if owner is None or not owner_uid(group.metadata):
        return ""
    return f"{group.metadata.namespace}/{owner.name}"


def group_name(job: Job) -> str:
    """Return the name of the Job's PodGroup; the uid keeps namesakes apart."""
    return f"{job.metadata.name}-{job.metadata.uid}"


def version(pod: Pod) -> int | None:
    """Return the status.version of the Job that the pod was made for."""
    text = (pod.metadata.annotations or {}).get(names.JOB_VERSION, "")
    try:
        return int(text)
    except ValueError:
        return None


def task_of(pod: Pod) -> str:
    """Return the name of the pod's task."""
    return (pod.metadata.annotations or {}).get(names.TASK_SPEC, "")


def partition_of(pod: Pod) -> str:
    """Return the pod's partition, empty where its task has none."""
    return (pod.metadata.labels or {}).get(names.PARTITION_ID, "")


def pod_name(job: Job, task: TaskSpec, index: int) -> str:
    """Return the name of one pod of a task."""
    return f"{job.metadata.name}-{task.name}-{index}"


def phase_of(pod: Pod) -> str:
    """Return the pod's phase; a pod without one is pending."""
    return pod.status.phase or "Pending"


def is_terminating(pod: Pod) -> bool:
    """Tell whether the pod is being deleted."""
    return pod.metadata.deletion_timestamp is not None


def is_out_of_sync(pod: Pod) -> bool:
    """Tell whether the pod is to be replaced without anybody calling it a failure."""
    return names.OUT_OF_SYNC in (pod.metadata.annotations or {}) or is_refused(pod)


def restart_notes(restart: Restart | None) -> dict[str, str]:
    """Return the annotations that tell for which restart a pod goes."""
    return {names.RESTART: f"{restart.retry} {restart.action}"} if restart else {}


def restart_of(pod: Pod) -> Restart | None:
    """Return for which restart a pod goes, None where it says nothing that makes sense."""
    retry, _, action = (pod.metadata.annotations or {}).get(names.RESTART, "").partition(" ")
    if action not in RESTARTS or not retry.isdecimal():
        return None
    return Restart(action, int(retry))


def is_refused(pod: Pod) -> bool:
    """
    Tell whether a kubelet refused the pod at its door.

    Such a pod is Failed although nothing of it ran: the node was fuller, or another one, than
    whoever bound the pod believed. It is placed anew instead of failing its Job.
    """
    status = pod.status
    if status.phase != "Failed":
        return False
    if not (status.reason.startswith("OutOf") or status.reason in _REFUSALS):
        return False
    containers = [*(status.init_container_statuses or ()), *(status.container_statuses or ())]
    return not any(_has_started(container) for container in containers)


def restarts(pod: Pod) -> int:
    """Return how often the pod's containers were restarted in place."""
    status = pod.status
    containers = [*(status.init_container_statuses or ()), *(status.container_statuses or ())]
    return sum(container.restart_count for container in containers)


def _has_started(container: ContainerStatus) -> bool:
    state = container.state
    now = state is not None and (state.running is not None or state.terminated is not None)
    return now or container.restart_count > 0
