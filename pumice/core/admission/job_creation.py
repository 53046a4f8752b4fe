"""
A new Job: what must hold before it is stored.

Some of these rules stand in the CRD too, where nothing can switch them off; they are repeated
here so that a Job that never met the API server's schema can be judged, and so that everything
that is wrong is said at once. Rules that need the queues are here alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pumice.core import names
from pumice.core.admission import formats, job_tasks, policies, views
from pumice.core.admission.errors import FieldError, listed
from pumice.core.admission.views import Queues
from pumice.core.api.batch import Job, TaskSpec, VolumeSpec
from pumice.core.api.job_rules import JOB_PLUGINS, NO_TASKS
from pumice.core.jobs.plugins.arguments import Flag, parse

NO_MASTER: Final = "The specified mpi master task was not found"
BOTH_CLAIMS: Final = (
    "conflict: If you want to use an existing PVC, just specify VolumeClaimName."
    "If you want to create a new PVC, you do not need to specify VolumeClaimName"
)
ROOT: Final = "can not submit job to root queue"

_MPI = "mpi"
_MPI_MASTER = Flag("master", "master")
_MPI_OTHERS = (Flag("worker", "worker"), Flag("port", 22))


def check(job: Job, queues: Queues) -> list[FieldError]:
    """Return what is wrong, in the order of Volcano's `/jobs/validate`."""
    found = check_alone(job)
    return [*found, *_queue(job.spec.queue, queues)] if job.spec.tasks else found


def check_alone(job: Job) -> list[FieldError]:
    """Return what is wrong with the Job itself, wherever its specification stands."""
    spec = job.spec
    tasks = spec.tasks or []
    if not tasks:
        return [FieldError("spec.tasks", NO_TASKS)]
    return [
        *_mpi_master(spec.plugins or {}, tasks),
        *job_tasks.topology(spec.network_topology, "spec.networkTopology"),
        *job_tasks.check(job),
        *_job_name(job.metadata.name),
        *_minimum(spec.min_available, tasks),
        *policies.check(spec.policies, "spec.policies", "spec.policies"),
        *_plugins(spec.plugins or {}),
        *_volumes(spec.volumes or ()),
    ]


def _mpi_master(
    plugins: dict[str, list[str] | None], tasks: Sequence[TaskSpec]
) -> list[FieldError]:
    if _MPI not in plugins:
        return []
    master = parse(plugins[_MPI] or (), _MPI_MASTER, *_MPI_OTHERS).get(_MPI_MASTER)
    if any(task.name == master for task in tasks):
        return []
    return [FieldError("spec.plugins[mpi]", NO_MASTER)]


def _job_name(name: str) -> Iterator[FieldError]:
    if wrong := formats.qualified_name(name):
        text = f"create job with name {name} validate failed {listed(wrong)}"
        yield FieldError("metadata.name", text)


def _minimum(least: int, tasks: Sequence[TaskSpec]) -> Iterator[FieldError]:
    if least > job_tasks.total_replicas(tasks):
        text = "job 'minAvailable' should not be greater than total replicas in tasks"
        yield FieldError("spec.minAvailable", text)


def _plugins(plugins: dict[str, list[str] | None]) -> Iterator[FieldError]:
    for name in plugins:
        if name not in JOB_PLUGINS:
            yield FieldError(f"spec.plugins[{name}]", f"unable to find job plugin: {name}")


def _volumes(volumes: Sequence[VolumeSpec]) -> Iterator[FieldError]:
    paths: set[str] = set()
    for index, volume in enumerate(volumes):
        at = f"spec.volumes[{index}]"
        if not volume.mount_path:
            yield FieldError(f"{at}.mountPath", "mountPath is required")
        elif volume.mount_path in paths:
            yield FieldError(f"{at}.mountPath", f"duplicated mountPath: {volume.mount_path}")
        paths.add(volume.mount_path)
        yield from _claim(volume, at)


def _claim(volume: VolumeSpec, at: str) -> Iterator[FieldError]:
    name = volume.volume_claim_name
    if not name and volume.volume_claim is None:
        yield FieldError(at, "either VolumeClaim or VolumeClaimName must be specified")
    if name and volume.volume_claim is not None:
        yield FieldError(at, BOTH_CLAIMS)
    if name and (wrong := formats.dns_subdomain(name)):
        text = f"invalid VolumeClaimName {name} : {listed(wrong)}"
        yield FieldError(f"{at}.volumeClaimName", text)


def _queue(name: str, queues: Queues) -> Iterator[FieldError]:
    queue = queues.get(name)
    if queue is None:
        yield FieldError("spec.queue", f"unable to find job queue: {views.not_found(name)}")
        return
    if queue.status.state != "Open":
        text = f"can only submit job to queue with state `Open`, queue `{name}` status is"
        yield FieldError("spec.queue", f"{text} `{queue.status.state}`")
    if name == names.ROOT_QUEUE:
        yield FieldError("spec.queue", ROOT)
    elif children := queues.children(name):
        text = f"can only submit job to leaf queue, queue `{name}` has {len(children)} child queues"
        yield FieldError("spec.queue", text)
