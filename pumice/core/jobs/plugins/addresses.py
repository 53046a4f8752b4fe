"""
Where pods of a Job find each other: `host.domain`, resolved by the headless Service of `svc`.

The host is the template's hostname, else the pod's name; the domain is the template's subdomain,
else the Job's name. A task whose template sets the hostname has one address for all its pods.
"""

from __future__ import annotations

from pumice.core.api.batch import Job, TaskSpec
from pumice.core.jobs import membership
from pumice.core.jobs.templates import mapping, text


def addresses(job: Job, task: TaskSpec) -> list[str]:
    """Return the addresses of a task's pods, each once, in the order of their indexes."""
    return [f"{host}.{domain(job, task)}" for host in hosts(job, task)]


def address(job: Job, task: TaskSpec, index: int) -> str:
    """Return the address of one pod, which it may share with others."""
    host = _hostname(task) or membership.pod_name(job, task, index)
    return f"{host}.{domain(job, task)}"


def hosts(job: Job, task: TaskSpec) -> list[str]:
    """Return the names of a task's pods within their domain, each once."""
    if host := _hostname(task):
        return [host] if task.replicas else []
    return [membership.pod_name(job, task, index) for index in range(task.replicas)]


def domain(job: Job, task: TaskSpec) -> str:
    """Return the domain of a task's pods."""
    return text(_spec(task).get("subdomain")) or job.metadata.name


def task_named(job: Job, name: str) -> TaskSpec | None:
    """Return a task of the Job."""
    return next((task for task in job.spec.tasks or () if task.name == name), None)


def _hostname(task: TaskSpec) -> str:
    return text(_spec(task).get("hostname"))


def _spec(task: TaskSpec) -> dict[str, object]:
    return mapping(mapping(task.template).get("spec"))
