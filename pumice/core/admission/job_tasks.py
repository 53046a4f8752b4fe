"""The tasks of a Job: their sizes, names, partitions and the order that they depend on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

from pumice.core.admission import formats, policies, templates
from pumice.core.admission.errors import FieldError, listed
from pumice.core.api.batch import Job, PartitionPolicy, TaskSpec
from pumice.core.api.scheduling import NetworkTopology

NO_ORDER = "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG)"
TWO_TIERS = (
    "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"
)


def check(job: Job) -> Iterator[FieldError]:
    """Yield what is wrong with the tasks of a new Job."""
    named: set[str] = set()
    for index, task in enumerate(job.spec.tasks or ()):
        name, at = task.name or "", f"spec.tasks[{index}]"
        if minimum_of(task) > task.replicas:
            text = f"'minAvailable' is greater than 'replicas' in task: {name}"
            yield FieldError(f"{at}.minAvailable", f"{text}, job: {job.metadata.name}")
        if name in named:
            yield FieldError(f"{at}.name", f"duplicated task name {name}")
        named.add(name)
        yield from policies.check(task.policies, f"{at}.policies", "spec.tasks.policies")
        yield from _pod_name(job, name, index)
        yield from templates.check(task, index)
        yield from partitions(task, at, job.metadata.name)
    if not _is_ordered(job.spec.tasks or ()):
        yield FieldError("spec.tasks", NO_ORDER)


def minimum_of(task: TaskSpec) -> int:
    """Return how many pods the task asks for together, 0 where it leaves that open."""
    return task.min_available or 0


def total_replicas(tasks: Sequence[TaskSpec]) -> int:
    """Return the number of pods of all tasks."""
    return sum(task.replicas for task in tasks)


def partitions(task: TaskSpec, at: str, job: str) -> Iterator[FieldError]:
    """Yield what is wrong with the partitions of a task."""
    policy = task.partition_policy
    if policy is None:
        return
    at = f"{at}.partitionPolicy"
    if wrong := _arithmetic(task, policy):
        yield FieldError(at, f"{wrong} in task: {task.name or ''}, job: {job}")
    yield from topology(policy.network_topology, f"{at}.networkTopology")


def topology(wanted: NetworkTopology | None, field: str) -> Iterator[FieldError]:
    """Yield whether a tier is named in both ways."""
    if names_two_tiers(wanted):
        yield FieldError(field, TWO_TIERS)


def names_two_tiers(wanted: NetworkTopology | None) -> bool:
    """Tell whether a tier is given by number and by name."""
    if wanted is None:
        return False
    return wanted.highest_tier_allowed is not None and wanted.highest_tier_name != ""


def _arithmetic(task: TaskSpec, policy: PartitionPolicy) -> str:
    """Return the first number of a partition policy that is wrong."""
    if policy.total_partitions <= 0:
        return "'TotalPartitions' must be greater than 0"
    if policy.partition_size <= 0:
        return "'PartitionSize' must be greater than 0"
    if task.replicas != policy.total_partitions * policy.partition_size:
        return "'Replicas' are not equal to TotalPartitions*PartitionSize"
    least = policy.min_partitions * policy.partition_size
    if task.min_available is not None and policy.min_partitions and least != task.min_available:
        return "'MinAvailable' is not equal to MinPartitions*PartitionSize"
    return ""


def _pod_name(job: Job, task: str, index: int) -> Iterator[FieldError]:
    """Yield whether pods of the task cannot be named; as in Volcano, its place stands for them."""
    name = f"{job.metadata.name}-{task}-{index}"
    if wrong := formats.qualified_name(name):
        text = f"create pod with name {name} validate failed {listed(wrong)}"
        yield FieldError(f"spec.tasks[{index}].name", text)


def _is_ordered(tasks: Sequence[TaskSpec]) -> bool:
    """Tell whether the tasks can be started one after the other; a name listed twice counts."""
    if all(task.depends_on is None for task in tasks):
        return True
    known = {task.name or "" for task in tasks}
    order: TopologicalSorter[str] = TopologicalSorter()
    for task in tasks:
        wanted = (task.depends_on.name or []) if task.depends_on else []
        if not known.issuperset(wanted) or len(set(wanted)) < len(wanted):
            return False
        order.add(task.name or "", *wanted)
    try:
        order.prepare()
    except CycleError:
        return False
    return True
