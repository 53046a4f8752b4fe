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
    """Return the addresses of a task's pods, in the order of their indexes."""
    spec = mapping(mapping(task.template).get("spec"))
    host = text(spec.get("hostname"))
    domain = text(spec.get("subdomain")) or job.metadata.name
    if host:
        return [f"{host}.{domain}"] if task.replicas else []
    return [f"{membership.pod_name(job, task, i)}.{domain}" for i in range(task.replicas)]
