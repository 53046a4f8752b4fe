"""
What a change of an object means for its Job.

A pod is judged by the phase it shows, also when it is seen for the first time: what ended while no
controller ran is found at the next start. The version in the request keeps this harmless, because
whoever acted on that end already raised the Job's version or removed the pod. A pod that goes for a
restart says so: where whoever began that restart is no more, it is begun again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pumice.core.api.batch import Event, Job, TaskSpec
from pumice.core.api.bus import Command
from pumice.core.api.core import Pod
from pumice.core.api.scheduling import PodGroup
from pumice.core.jobs import membership as m
from pumice.core.jobs import policies
from pumice.core.jobs.types import Request

SYNCED = Request(event="OutOfSync")
"""The request that asks for nothing but a look at the Job."""


def pod_changed(old: Pod | None, new: Pod, job: Job | None, peers: Iterable[Pod]) -> Request:
    """
    Return the request for a pod that appeared or changed.

    `peers` are the pods of the Job, this one included as it is now. They are only walked where a
    policy of the Job listens to an event of a whole task.
    """
    if m.is_out_of_sync(new):
        request = _request(new, "OutOfSync")
        # Whoever sees its own marks come back is at it already.
        restart = m.restart_of(new) if old is None else None
        return replace(request, action=restart.action, retry=restart.retry) if restart else request
    phase, before = m.phase_of(new), m.phase_of(old) if old else ""
    if phase == "Failed" and before != "Failed":
        return _request(new, "PodFailed", _exit_code(new))
    if phase == "Succeeded" and before != "Succeeded":
        completed = _is_completed(new, job, peers)
        return _request(new, "TaskCompleted" if completed else "OutOfSync")
    if phase in ("Running", "Pending"):
        # A pod that runs when it is first seen may have been restarted while nobody looked.
        is_judged = phase == before or (old is None and phase == "Running")
        if is_judged and _is_failed(new, job, peers):
            return _request(new, "TaskFailed")
        if phase != before:
            return _request(new, "PodRunning" if phase == "Running" else "PodPending")
    return _request(new, "OutOfSync")


def pod_deleted(pod: Pod) -> Request:
    """Return the request for a pod that is gone."""
    return _request(pod, "OutOfSync" if m.is_out_of_sync(pod) else "PodEvicted")


def group_changed(old: PodGroup | None, new: PodGroup) -> Request | None:
    """Return the request for a PodGroup whose phase moved: `Unknown`, or a look at the Job."""
    if old is not None and old.status.phase == new.status.phase:
        return None
    event: Event = "Unknown" if new.status.phase == "Unknown" else "OutOfSync"
    return Request(event=event, job_uid=m.owner_uid(new.metadata))


def job_changed(old: Job | None, new: Job) -> Request | None:
    """Return the request for a Job that is new, or whose specification or phase moved."""
    if old is not None and old.metadata.uid == new.metadata.uid:
        same = old.status.state.phase == new.status.state.phase and old.spec == new.spec
        if same and old.metadata.deletion_timestamp == new.metadata.deletion_timestamp:
            return None
    return SYNCED


def command_issued(command: Command) -> Request:
    """Return the request for a Command: its action, unchecked, on whichever Job has the name."""
    return Request(event="CommandIssued", action=command.action)


def _request(pod: Pod, event: Event, exit_code: int = 0) -> Request:
    return Request(
        event=event,
        job_uid=m.owner_uid(pod.metadata),
        version=m.version(pod),
        task=m.task_of(pod),
        pod=pod.metadata.name,
        pod_uid=pod.metadata.uid,
        partition=m.partition_of(pod),
        exit_code=exit_code,
    )


def _exit_code(pod: Pod) -> int:
    """Return how the first container ended; the others are not asked, as in Volcano."""
    for container in pod.status.container_statuses or ():
        ended = container.state.terminated if container.state else None
        return ended.exit_code if ended else 0
    return 0


def _task(pod: Pod, job: Job | None) -> TaskSpec | None:
    name = m.task_of(pod)
    return next((x for x in job.spec.tasks or () if x.name == name), None) if job else None


def _is_completed(pod: Pod, job: Job | None, peers: Iterable[Pod]) -> bool:
    """Tell whether all pods of the task have succeeded."""
    task = _task(pod, job)
    if job is None or task is None or not task.replicas:
        return False
    if not policies.listens(job, m.task_of(pod), "TaskCompleted"):
        return False
    mine = (x for x in peers if m.task_of(x) == task.name)
    return sum(m.phase_of(x) == "Succeeded" for x in mine) >= task.replicas


def _is_failed(pod: Pod, job: Job | None, peers: Iterable[Pod]) -> bool:
    """Tell whether the task's containers were restarted in place too often: a level, no edge."""
    task = _task(pod, job)
    if job is None or task is None or not task.replicas or task.max_retry < 0:
        return False
    if not policies.listens(job, m.task_of(pod), "TaskFailed"):
        return False
    alive = (x for x in peers if m.task_of(x) == task.name)
    count = sum(m.restarts(x) for x in alive if m.phase_of(x) in ("Running", "Pending"))
    return count >= (task.max_retry or 3)
