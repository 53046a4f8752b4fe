"""
The quality of service of a pod, by Kubernetes' rules.

A pod is guaranteed if each of its containers asks for cpu and memory and may use no more than it
asks for, best effort if none asks for, or is limited in, either, and burstable otherwise.
"""

from __future__ import annotations

from enum import IntEnum

from pumice.core import quantity
from pumice.core.api.core import Container, Pod, ResourceList
from pumice.core.quantity import Exact


class Quality(IntEnum):
    """The qualities, those first that are promised least."""

    BEST_EFFORT = 0
    BURSTABLE = 1
    GUARANTEED = 2


def quality(pod: Pod) -> Quality:
    """Return the pod's quality of service; raise QuantityError for a malformed amount."""
    containers = [*(pod.spec.containers or ()), *(pod.spec.init_containers or ())]
    if not any(_amounts(c) for c in containers):
        return Quality.BEST_EFFORT
    guaranteed = all(_is_guaranteed(c) for c in containers)
    return Quality.GUARANTEED if guaranteed else Quality.BURSTABLE


def whole_cpus(pod: Pod) -> tuple[tuple[str, int], ...]:
    """
    Return containers that may have cpus of their own, and how many whole ones each asks for.

    The kubelet's static policy gives such cpus in guaranteed pods; a container that asks for a
    part of a cpu shares the others with everybody.
    """
    containers = pod.spec.containers or ()
    if not any(c.resources and c.resources.limits for c in containers):
        return ()
    if quality(pod) is not Quality.GUARANTEED:
        return ()
    asked = ((c.name, _exact(c.resources.limits)["cpu"]) for c in containers if c.resources)
    return tuple((name, int(cpus)) for name, cpus in asked if cpus >= 1 and cpus == int(cpus))


def _amounts(container: Container) -> bool:
    asked = container.resources
    return asked is not None and any(
        amount > 0 for part in (asked.requests, asked.limits) for amount in _exact(part).values()
    )


def _is_guaranteed(container: Container) -> bool:
    asked = container.resources
    limits = _exact(asked.limits) if asked else {}
    if not asked or not all(limits.get(name) for name in ("cpu", "memory")):
        return False
    return {**limits, **_exact(asked.requests)} == limits


def _exact(amounts: ResourceList | None) -> dict[str, Exact]:
    return {
        name: quantity.parse(amount)
        for name, amount in (amounts or {}).items()
        if name in ("cpu", "memory")
    }
