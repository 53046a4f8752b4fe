"""
What a pod takes of a quota: the content of a PodGroup's `minResources`.

The keys are those of Kubernetes' ResourceQuota. Requests of the resources that every node has
count twice, as `cpu` and as `requests.cpu`; limits as `limits.cpu`; extended resources as
`requests.nvidia.com/gpu` and, as Volcano adds, as `nvidia.com/gpu`; each pod as `pods` and
`count/pods`. A finished pod takes a place among the objects and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pumice.core import quantity
from pumice.core.api.core import Container, Pod, PodStatus, ResourceRequirements
from pumice.core.api.meta import Quantity
from pumice.core.quantity import Exact
from pumice.core.requests import pod_requests

Usage = dict[str, Exact]
"""Amounts by quota key."""

_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_BINARY = ("memory", "storage", "hugepages-")


def pod_usage(pod: Pod) -> Usage:
    """Return what one pod takes; raise QuantityError for a malformed amount."""
    usage: Usage = {"count/pods": 1}
    if pod.status.phase in ("Succeeded", "Failed"):
        return usage
    usage["pods"] = 1
    for name, amount in pod_requests(pod).items():
        if name in _COMPUTE or name.startswith("hugepages-") or _is_extended(name):
            usage[name] = usage[f"requests.{name}"] = amount
    for name, amount in pod_limits(pod).items():
        if name in _COMPUTE:
            usage[f"limits.{name}"] = amount
    return usage


def pod_limits(pod: Pod) -> Usage:
    """Return the pod's limits: the rules of its requests, overhead only where a limit is."""
    spec = pod.spec
    capped = Pod(
        spec=msgspec.structs.replace(
            spec,
            containers=[_capped(c) for c in spec.containers or ()],
            init_containers=[_capped(c) for c in spec.init_containers or ()],
            resources=_limits_as_requests(spec.resources),
            overhead=None,
        ),
        status=PodStatus(),
    )
    limits = pod_requests(capped)
    del limits["pods"]
    for name, amount in (spec.overhead or {}).items():
        if limits.get(name):
            limits[name] += quantity.parse(amount)
    return limits


def add(total: Usage, usage: Mapping[str, Exact], times: int = 1) -> None:
    """Add a usage, so many times, to a total."""
    for name, amount in usage.items():
        total[name] = total.get(name, 0) + amount * times


def resource_list(usage: Mapping[str, Exact]) -> dict[str, Quantity]:
    """Return the usage as it stands in an object, by name; an empty one stays a list."""
    return {
        name: quantity.text(amount, binary=any(word in name for word in _BINARY))
        for name, amount in sorted(usage.items())
    }


def _capped(container: Container) -> Container:
    return msgspec.structs.replace(container, resources=_limits_as_requests(container.resources))


def _limits_as_requests(resources: ResourceRequirements | None) -> ResourceRequirements | None:
    return ResourceRequirements(requests=resources.limits) if resources else None


def _is_extended(name: str) -> bool:
    """Whether the resource is one that Kubernetes itself knows nothing of."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")
