"""
Job plugins: what `spec.plugins` of a Job adds to it and to its pods.

A plugin has a hook for each moment in a Job's life. It reads the Job, changes the body of a pod
that is about to be made, or says what else is to be done. `REGISTRY` holds the plugins there are;
a Job that names another one runs without it, and is told so by an event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from pumice.core.api.batch import Job
from pumice.core.api.meta import Template
from pumice.core.jobs.types import Effect


class JobPlugin(Protocol):
    """The hooks; all but `on_pod_create` may run any number of times for one Job."""

    def on_pod_create(self, job: Job, body: Template) -> None:
        """Change the body of a new pod; its containers and metadata are its own copy."""
        ...

    def on_job_add(self, job: Job) -> list[Effect]:
        """Return what the Job needs before it has pods: run while it is pending."""
        ...

    def on_job_update(self, job: Job) -> list[Effect]:
        """Return what is to follow the Job's specification: run while it is alive."""
        ...

    def on_job_delete(self, job: Job) -> list[Effect]:
        """Return what is to be removed when all of the Job's pods are."""
        ...


#: name -> from the plugin's arguments to the plugin
REGISTRY: Final[Mapping[str, Callable[[list[str]], JobPlugin]]] = {}


def of(job: Job) -> list[JobPlugin]:
    """Return the Job's plugins, in the order of the registry."""
    wanted = job.spec.plugins or {}
    return [make(wanted[name] or []) for name, make in REGISTRY.items() if name in wanted]


def unavailable(job: Job) -> list[str]:
    """Return the names of the plugins that the Job asks for in vain."""
    return sorted((job.spec.plugins or {}).keys() - REGISTRY.keys())


def on_job_add(job: Job) -> list[Effect]:
    """Return what all plugins want when the Job begins."""
    return [effect for plugin in of(job) for effect in plugin.on_job_add(job)]


def on_job_update(job: Job) -> list[Effect]:
    """Return what all plugins want while the Job lives."""
    return [effect for plugin in of(job) for effect in plugin.on_job_update(job)]


def on_job_delete(job: Job) -> list[Effect]:
    """Return what all plugins want when the whole Job is killed."""
    return [effect for plugin in of(job) for effect in plugin.on_job_delete(job)]
