"""
A changed Job: its size and its priority may change, and nothing else of its specification.

Metadata is free. The name of a claim that the controller made for a volume is not the user's
change, so it is not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from pumice.core.admission import job_tasks
from pumice.core.admission.errors import FieldError
from pumice.core.api.batch import Job, JobSpec, TaskSpec, VolumeSpec

TASKS: Final = "job updates may not add or remove tasks"
FIXED: Final = (
    "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec`"
    " and `PriorityClassName`"
)


def check(old: Job, new: Job) -> list[FieldError]:
    """Return what is wrong with the change."""
    tasks = new.spec.tasks or []
    found = [*_sizes(new, tasks)]
    found += job_tasks.topology(new.spec.network_topology, "spec.networkTopology")
    if len(tasks) != len(old.spec.tasks or []):
        return [*found, FieldError("spec.tasks", TASKS)]
    return found + [FieldError(field, FIXED) for field in _changed(old.spec, new.spec)]


def _sizes(job: Job, tasks: Sequence[TaskSpec]) -> Iterator[FieldError]:
    for index, task in enumerate(tasks):
        at, name = f"spec.tasks[{index}]", task.name or ""
        if task.replicas < 0:
            yield FieldError(f"{at}.replicas", f"'replicas' must be >= 0 in task: {name}")
        if job_tasks.minimum_of(task) < 0:
            yield FieldError(f"{at}.minAvailable", f"'minAvailable' must be >= 0 in task: {name}")
        if job_tasks.minimum_of(task) > task.replicas:
            text = f"'minAvailable' must be <= 'replicas' in task: {name}"
            yield FieldError(f"{at}.minAvailable", text)
        yield from job_tasks.partitions(task, at, job.metadata.name)
    least = job.spec.min_available
    if least > job_tasks.total_replicas(tasks):
        text = "job 'minAvailable' must not be greater than total replicas"
        yield FieldError("spec.minAvailable", text)
    if least < 0:
        yield FieldError("spec.minAvailable", "job 'minAvailable' must be >= 0")


def _changed(old: JobSpec, new: JobSpec) -> list[str]:
    """Return the fields that changed and may not, as paths."""
    before, after = _kept(old), _kept(new)
    return [f"spec.{key}" for key in before | after if before.get(key) != after.get(key)]


def _kept(spec: JobSpec) -> dict[str, Any]:
    """Return what must stay; absent, null and empty are the same."""
    plugins = spec.plugins or {}
    spec = msgspec.structs.replace(
        spec,
        min_available=0,
        priority_class_name="",
        tasks=[
            msgspec.structs.replace(t, replicas=0, min_available=None) for t in spec.tasks or ()
        ],
        volumes=[_asked(volume) for volume in spec.volumes or ()],
        plugins=None,
    )
    kept: dict[str, Any] = _without_empty(msgspec.to_builtins(spec))
    # A plugin without arguments is a plugin all the same.
    return kept | {"plugins": {name: given or [] for name, given in plugins.items()}}


def _asked(volume: VolumeSpec) -> VolumeSpec:
    """Return a volume as the user asked for it."""
    if volume.volume_claim is None:
        return volume
    return msgspec.structs.replace(volume, volume_claim_name="")


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _without_empty(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in (None, {}, [])}
    return [_without_empty(item) for item in value] if isinstance(value, list) else value
