"""
When a step may begin: what it depends on, and what is asked of that.

Without a probe all targets must be Completed. A probe lets a step begin earlier, beside its
targets: it names tasks, and what enough of their pods (the task's minimum) must be or answer. A
target none of whose tasks is named must still be Completed; one that is Completed is ready,
whatever is asked of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from pumice.core.api.batch import Job, TaskSpec
from pumice.core.api.flow import Flow, Probe, TaskStatus
from pumice.core.flows.types import Check


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a step does not begin yet; all empty where it may."""

    #: targets that are not ready, whatever they would answer
    targets: tuple[str, ...] = ()
    #: what would have to answer, where nothing else is waited for
    checks: tuple[Check, ...] = ()
    #: tasks that a probe names and no target has
    unknown: tuple[str, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether the step may begin."""
        return not (self.targets or self.checks or self.unknown)


def waiting(
    step: Flow,
    jobs: Mapping[str, Job],
    done: Collection[str],
    answers: Mapping[Check, int],
) -> Waiting:
    """Tell what a step waits for, of the Jobs of its flow and the Completed ones, by step."""
    wanted = (step.depends_on.targets if step.depends_on else None) or ()
    open_targets = [name for name in dict.fromkeys(wanted) if name not in done]
    probe = (step.depends_on.probe if step.depends_on else None) or Probe()
    asked = set(_tasks_named(probe))
    if not asked or not open_targets:
        return Waiting(tuple(open_targets))
    there = {name: jobs[name] for name in open_targets if name in jobs}
    unready = {name for name in open_targets if name not in there}
    failing: list[Check] = []
    for name, job in there.items():
        tasks = _tasks_of(job, asked)
        if not tasks or not all(_is_in_phase(job, task, probe) for task in tasks):
            unready.add(name)
        for task in tasks:
            failing += (x for x in _checks(job, task, probe) if answers.get(x, 0) < _minimum(task))
    # A task that is not there yet may come with its Job, or have been that of one that is done.
    is_known = len(there) < len(set(wanted))
    unknown = () if is_known else tuple(sorted(asked - {""} - _task_names(there)))
    return Waiting(tuple(sorted(unready)), () if unready else tuple(failing), unknown)


def _tasks_named(probe: Probe) -> Iterator[str]:
    """Yield the tasks that a probe names; "" stands for all."""
    for checks in (probe.http_get_list, probe.tcp_socket_list, probe.task_status_list):
        for check in checks or ():
            yield check.task_name


def _tasks_of(job: Job, named: Collection[str]) -> list[TaskSpec]:
    tasks = job.spec.tasks or ()
    return [task for task in tasks if "" in named or task.name in named]


def _task_names(jobs: Mapping[str, Job]) -> set[str]:
    return {task.name or "" for job in jobs.values() for task in job.spec.tasks or ()}


def _minimum(task: TaskSpec) -> int:
    """Return how many pods of a task are enough."""
    return task.replicas if task.min_available is None else task.min_available


def _is_in_phase(job: Job, task: TaskSpec, probe: Probe) -> bool:
    """Tell whether enough pods of a task are in the phases asked for; those asked run at least."""
    state = (job.status.task_status_count or {}).get(task.name or "")
    pods = (state.phase if state else None) or {}
    asked = [_phases(x) for x in probe.task_status_list or () if x.task_name in ("", task.name)]
    if any(_checks(job, task, probe)):
        asked.append(("Running",))
    return all(sum(pods.get(phase, 0) for phase in phases) >= _minimum(task) for phases in asked)


def _phases(asked: TaskStatus) -> tuple[str, ...]:
    """Return the phases of pods that will do: one that has succeeded has been running."""
    match asked.phase.capitalize():
        case "Running":
            return ("Running", "Succeeded")
        case "Completed":
            return ("Succeeded",)
        case other:
            return (other,)


def _checks(job: Job, task: TaskSpec, probe: Probe) -> Iterator[Check]:
    """Yield what is to be asked of the pods of a task."""
    where = (job.metadata.name, job.metadata.uid, task.name or "")
    for get in probe.http_get_list or ():
        if get.task_name in ("", task.name):
            header = (get.http_header.name, get.http_header.value) if get.http_header else None
            yield Check(*where, get.port, get.path or "/", header)
    for socket in probe.tcp_socket_list or ():
        if socket.task_name in ("", task.name):
            yield Check(*where, socket.port)
