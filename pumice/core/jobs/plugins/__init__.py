"""
Job plugins: what `spec.plugins` of a Job adds to it and to its pods, one file each.

A plugin changes the bodies of pods that are about to be made, and names the objects beside pods
that the Job is to have while it lives. It only renders: `pumice.core.jobs.objects` compares with
what there is. `REGISTRY` holds the plugins there are; a Job that names another one runs without
it, and is told so by an event.

Beside the plugins this package holds what several of them need: how arguments are read, and
which addresses pods have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from pumice.core.api.batch import Job
from pumice.core.api.meta import Template
from pumice.core.jobs.plugins.env import Env
from pumice.core.jobs.plugins.svc import Svc
from pumice.core.jobs.types import Wanted


class JobPlugin(Protocol):
    """What the Job controller asks of a plugin; the same Job always gives the same answers."""

    @property
    def fault(self) -> str:
        """Return what is wrong with the plugin's arguments; empty if nothing is."""
        ...

    def on_task(self, job: Job, spec: Template) -> None:
        """Change what the pods of a task have in common: their specification."""
        ...

    def on_pod(self, body: Template) -> None:
        """Change a new pod; its body is shared with the others but for the uppermost fields."""
        ...

    def objects(self, job: Job) -> list[Wanted]:
        """Return the objects that the Job is to have while it lives."""
        ...


#: name -> from the plugin's arguments to the plugin
REGISTRY: Final[Mapping[str, Callable[[Sequence[str]], JobPlugin]]] = {"env": Env, "svc": Svc}
_ENTRY: Final = "plugin-"


def of(job: Job) -> list[JobPlugin]:
    """Return the Job's plugins, in the order of the registry."""
    wanted = job.spec.plugins or {}
    return [make(wanted[name] or []) for name, make in REGISTRY.items() if name in wanted]


def objects(job: Job) -> list[Wanted]:
    """Return the objects that all plugins want."""
    return [wanted for plugin in of(job) for wanted in plugin.objects(job)]


def resources(job: Job) -> dict[str, str]:
    """Return the entries of status.controlledResources for the plugins."""
    return {f"{_ENTRY}{name}": name for name in REGISTRY if name in (job.spec.plugins or {})}


def without_resources(controlled: Mapping[str, str] | None) -> dict[str, str] | None:
    """Return status.controlledResources without what plugins made."""
    kept = {k: v for k, v in (controlled or {}).items() if not k.startswith(_ENTRY)}
    return kept or None


def faults(job: Job) -> list[str]:
    """Return what of the Job's wishes for plugins is not followed, and why."""
    missing = sorted((job.spec.plugins or {}).keys() - REGISTRY.keys())
    return [f"job plugin {name} is not available yet" for name in missing] + [
        plugin.fault for plugin in of(job) if plugin.fault
    ]
