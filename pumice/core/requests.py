"""
What a pod asks for, by the rules of Kubernetes.

Containers run together and add up. Init containers run one after the other, each beside the
sidecars declared before it (init containers that restart always), so of those phases the
largest counts. Pod-level requests replace the sum of the containers, overhead comes on top, and
every pod takes one pod slot. While a container is resized in place, the node may still hold the
old amount or already the new one: the largest of what is specified, allocated and in effect
counts, and an infeasible resize counts as not asked for.

The marker resources tell a shared kube-scheduler which pods are ours. No node has any, and
nobody counts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pumice.core import names, quantity
from pumice.core.api.core import Container, ContainerStatus, Pod, ResourceList
from pumice.core.quantity import Exact

Requests = dict[str, Exact]


def pod_requests(pod: Pod) -> Requests:
    """Return the pod's requests by resource name; raise QuantityError for a malformed amount."""
    total = _sum_of_containers(pod)
    level = pod.spec.resources
    for name, amount in ((level.requests or {}) if level else {}).items():
        if _is_pod_level(name):
            total[name] = quantity.parse(amount)
    _add(total, _exact(pod.spec.overhead))
    for marker in names.MARKERS & total.keys():
        del total[marker]
    total["pods"] = 1
    return total


def _sum_of_containers(pod: Pod) -> Requests:
    spec, status = pod.spec, pod.status
    ignore_spec = _resize_is_infeasible(pod)
    running = _by_name(status.container_statuses)
    starting = _by_name(status.init_container_statuses)
    total: Requests = {}
    for container in spec.containers or ():
        _add(total, _held(container, running.get(container.name), ignore_spec))
    sidecars: Requests = {}
    largest: Requests = {}
    for container in spec.init_containers or ():
        if container.restart_policy == "Always":
            held = _held(container, starting.get(container.name), ignore_spec)
            _add(total, held)
            _add(sidecars, held)
            phase = sidecars
        else:
            phase = dict(sidecars)
            _add(phase, _requests(container))
        _raise_to(largest, phase)
    _raise_to(total, largest)
    return total


def _held(container: Container, status: ContainerStatus | None, ignore_spec: bool) -> Requests:
    """Return what counts for a container that may be in the middle of a resize."""
    asked = _requests(container)
    if status is None or (status.allocated_resources is None and status.resources is None):
        return asked
    held: Requests = {} if ignore_spec else asked
    _raise_to(held, _exact(status.allocated_resources))
    _raise_to(held, _exact(status.resources.requests if status.resources else None))
    return held


def _requests(container: Container) -> Requests:
    return _exact(container.resources.requests if container.resources else None)


def _exact(amounts: ResourceList | None) -> Requests:
    return {name: quantity.parse(amount) for name, amount in (amounts or {}).items()}


def _by_name(statuses: Iterable[ContainerStatus] | None) -> dict[str, ContainerStatus]:
    return {status.name: status for status in statuses or ()}


def _resize_is_infeasible(pod: Pod) -> bool:
    return any(
        c.type == "PodResizePending" and c.reason == "Infeasible" and c.status == "True"
        for c in pod.status.conditions or ()
    )


def _is_pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _add(total: Requests, more: Mapping[str, Exact]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Requests, least: Mapping[str, Exact]) -> None:
    for name, amount in least.items():
        if amount > total.get(name, 0) or name not in total:
            total[name] = amount
