"""
What a Job's minimum takes of the cluster: `minResources` of its PodGroup.

The minimum is a number of pods; which pods they are decides what they take. Tasks are asked in the
order of their templates' priority, highest first. Where the Job's minimum covers the tasks' own
minima, those are served first and the rest is filled up; where it does not, tasks are taken whole,
one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pumice.core import quantity, quota
from pumice.core.api.batch import JobSpec, TaskSpec
from pumice.core.api.core import Pod, ResourceList
from pumice.core.jobs.templates import mapping


class TemplateError(ValueError):
    """A task's template does not say in a readable way what its pods ask for."""


def min_resources(spec: JobSpec, priorities: Mapping[str, int]) -> ResourceList:
    """Return the sum over the pods of the minimum; raise TemplateError where none can be."""
    total: quota.Usage = {}
    for task, pods in selection(spec, priorities):
        if pods:
            quota.add(total, _usage(task), pods)
    return quota.resource_list(total)


def selection(spec: JobSpec, priorities: Mapping[str, int]) -> list[tuple[TaskSpec, int]]:
    """Return how many pods of each task count, as Volcano's calcPGMinResources."""
    tasks = sorted(spec.tasks or (), key=lambda task: -_priority(task, priorities))
    left = spec.min_available
    minima = sum(x.replicas if x.min_available is None else x.min_available for x in tasks)
    if left < minima:
        return _take(tasks, [task.replicas for task in tasks], left)
    first = _take(tasks, [task.min_available or 0 for task in tasks], left)
    left -= sum(taken for _, taken in first)
    rest = _take(tasks, [max(x.replicas - (x.min_available or 0), 0) for x in tasks], left)
    return [(task, a + b) for (task, a), (_, b) in zip(first, rest, strict=True)]


def same(one: ResourceList, other: ResourceList) -> bool:
    """Tell whether two lists mean the same amounts, however they are spelled."""
    try:
        exact = [{k: quantity.parse(v) for k, v in amounts.items()} for amounts in (one, other)]
    except quantity.QuantityError:
        return one == other
    return exact[0] == exact[1]


def _take(tasks: list[TaskSpec], limits: list[int], left: int) -> list[tuple[TaskSpec, int]]:
    taken = []
    for task, limit in zip(tasks, limits, strict=True):
        pods = min(limit, left)
        taken.append((task, pods))
        left -= pods
    return taken


def _priority(task: TaskSpec, priorities: Mapping[str, int]) -> int:
    name = mapping(mapping(task.template).get("spec")).get("priorityClassName", "")
    return priorities.get(name, 0) if isinstance(name, str) else 0


def _usage(task: TaskSpec) -> quota.Usage:
    """Return what one pod takes by its template, which no admission has filled in yet."""
    spec = mapping(mapping(task.template).get("spec"))
    try:
        return quota.pod_usage(msgspec.convert({"spec": spec}, Pod))
    except (msgspec.ValidationError, quantity.QuantityError) as error:
        raise TemplateError(f"template of task {task.name}: {error}") from error
