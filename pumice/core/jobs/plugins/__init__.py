"""
Job plugins: what `spec.plugins` of a Job adds to it and to its pods, one file each.

A plugin changes the bodies of pods that are about to be made, and names the objects beside pods
that the Job is to have while it lives. It only renders: `pumice.core.jobs.objects` compares with
what there is. A Job that names a plugin that there is not is refused.

Beside the plugins this package holds what several of them need: how arguments are read, and
which addresses pods have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pumice.core.api.batch import Job
from pumice.core.jobs.plugins.env import Env
from pumice.core.jobs.plugins.hcclrank import HcclRank
from pumice.core.jobs.plugins.mpi import Mpi
from pumice.core.jobs.plugins.plugin import JobPlugin
from pumice.core.jobs.plugins.pytorch import Pytorch
from pumice.core.jobs.plugins.ray import Ray
from pumice.core.jobs.plugins.ssh import Ssh, secret_name
from pumice.core.jobs.plugins.svc import Svc
from pumice.core.jobs.plugins.tensorflow import Tensorflow
from pumice.core.jobs.types import Wanted

_KINDS: Final = (Env, Svc, Ssh, Mpi, Pytorch, Tensorflow, Ray, HcclRank)
#: name -> plugin, in the order in which pods go through their hands
REGISTRY: Final[Mapping[str, type[JobPlugin]]] = {kind.name: kind for kind in _KINDS}
_ENTRY: Final = "plugin-"


def of(job: Job) -> list[JobPlugin]:
    """Return the Job's plugins, in the order of the registry."""
    wanted = job.spec.plugins or {}
    return [kind(wanted[name] or []) for name, kind in REGISTRY.items() if name in wanted]


def objects(job: Job) -> list[Wanted]:
    """Return the objects that all plugins want."""
    return [wanted for plugin in of(job) for wanted in plugin.objects(job)]


def secrets(job: Job) -> list[str]:
    """Return the names of the Secrets that plugins want."""
    wanted = job.spec.plugins or {}
    return [secret_name(job)] if wanted.keys() & {Ssh.name, Mpi.name} else []


def resources(job: Job) -> dict[str, str]:
    """Return the entries of status.controlledResources for the plugins."""
    return {f"{_ENTRY}{plugin.name}": plugin.name for plugin in of(job) if plugin.is_listed}


def without_resources(controlled: Mapping[str, str] | None) -> dict[str, str] | None:
    """Return status.controlledResources without what plugins made."""
    kept = {k: v for k, v in (controlled or {}).items() if not k.startswith(_ENTRY)}
    return kept or None


def refusals(job: Job) -> list[str]:
    """Return why the Job cannot run with the plugins that it names."""
    missing = sorted((job.spec.plugins or {}).keys() - REGISTRY.keys())
    unmet = [(plugin.name, plugin.refusal(job)) for plugin in of(job)]
    return [f"failed to get plugin {name}" for name in missing] + [
        f"job plugin {name}: {text}" for name, text in unmet if text
    ]


def faults(job: Job) -> list[str]:
    """Return what of the Job's wishes for plugins is not followed, and why."""
    return [
        f"job plugin {plugin.name}: {text}" for plugin in of(job) for text in plugin.faults(job)
    ]
