"""
Defaults of a Job that its CRD cannot give: they depend on other fields or on our configuration.

A Job that came in while nobody stood in front of the API server has none of them, so whoever
reads a Job applies them in memory. They are the same for everyone, and giving them twice
changes nothing.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pumice.core import names
from pumice.core.api.batch import Job, PodTemplate, TaskSpec

MAX_RETRY: Final = 3
NEED_SVC: Final = frozenset({"tensorflow", "mpi", "pytorch", "ray"})
NEED_SSH: Final = frozenset({"mpi"})


def defaults(job: Job, scheduler_name: str = names.DEFAULT_SCHEDULER) -> Job:
    """
    Return the job with everything filled in, in the order of Volcano's `/jobs/mutate`.

    Zero and absent are the same for plain numbers, so `maxRetry: 0` becomes 3 and
    `minAvailable: 0` the sum of the tasks' minima. The argument is not changed.
    """
    spec = job.spec
    tasks = None
    if spec.tasks is not None:
        tasks = [_task(task, index) for index, task in enumerate(spec.tasks)]
    spec = msgspec.structs.replace(
        spec,
        queue=spec.queue or names.DEFAULT_QUEUE,
        scheduler_name=spec.scheduler_name or scheduler_name,
        max_retry=spec.max_retry or MAX_RETRY,
        tasks=tasks,
        min_available=spec.min_available or sum(t.min_available or 0 for t in tasks or ()),
        plugins=_plugins(spec.plugins),
    )
    return msgspec.structs.replace(job, spec=spec)


def _task(task: TaskSpec, index: int) -> TaskSpec:
    minimum = task.min_available
    if minimum is None:
        partitions = task.partition_policy
        minimum = partitions.min_partitions * partitions.partition_size if partitions else 0
        minimum = minimum or task.replicas
    return msgspec.structs.replace(
        task,
        name=task.name or f"default{index}",
        min_available=minimum,
        max_retry=task.max_retry or MAX_RETRY,
        template=_template(task.template),
    )


def _template(template: PodTemplate | None) -> PodTemplate | None:
    """Return the template with the DNS policy that lets pods on the host's network find ours."""
    spec = (template or {}).get("spec")
    if not isinstance(spec, dict) or not spec.get("hostNetwork") or spec.get("dnsPolicy"):
        return template
    return {**(template or {}), "spec": {**spec, "dnsPolicy": "ClusterFirstWithHostNet"}}


def _plugins(plugins: dict[str, list[str] | None] | None) -> dict[str, list[str] | None] | None:
    """Return the plugins with those that others stand on."""
    if plugins is None:
        return None
    needed: dict[str, list[str] | None] = {}
    if plugins.keys() & NEED_SVC:
        needed["svc"] = []
    if plugins.keys() & NEED_SSH:
        needed["ssh"] = []
    return needed | plugins
