"""
dependsOn: tasks whose pods are made only when other tasks are far enough.

A task is far enough when at least its minAvailable pods have succeeded, or run with every
container ready. A task without a minimum is always far enough, and pods that exist are never
asked again. The gang does not know: its minimum must leave the dependent tasks out.
"""

from __future__ import annotations

from collections.abc import Mapping

from pumice.core.api.batch import Job, TaskSpec
from pumice.core.api.core import Pod
from pumice.core.jobs import membership as m


def is_met(job: Job, task: TaskSpec, pods: Mapping[str, Pod]) -> bool:
    """Tell whether pods of the task may be made now."""
    wanted = task.depends_on
    if wanted is None or not wanted.name:
        return True
    tasks = {other.name: other for other in job.spec.tasks or ()}
    ready = [name in tasks and _is_ready(job, tasks[name], pods) for name in wanted.name]
    if wanted.iteration == "any" and len(ready) > 1:
        return any(ready)
    return all(ready)


def _is_ready(job: Job, task: TaskSpec, pods: Mapping[str, Pod]) -> bool:
    if not task.min_available:
        return True
    named = (pods.get(m.pod_name(job, task, index)) for index in range(task.replicas))
    return sum(pod is not None and _is_up(pod) for pod in named) >= task.min_available


def _is_up(pod: Pod) -> bool:
    phase = m.phase_of(pod)
    if phase == "Running":
        return all(container.ready for container in pod.status.container_statuses or ())
    return phase == "Succeeded"
