"""
The containers of a pod template: what the API server would refuse about each of them.

The API server has the last word when the pods are made; what is checked here is what people get
wrong, so that a Job is refused at once instead of failing later, pod by pod.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from pumice.core import quantity
from pumice.core.admission import formats
from pumice.core.admission.errors import invalid
from pumice.core.api import core
from pumice.core.api.meta import Struct
from pumice.core.quantity import Exact, QuantityError

_MAX_PORT: Final = 65535
_PORT: Final = f"must be between 1 and {_MAX_PORT}, inclusive"
_OVERCOMMITTED: Final = frozenset({"cpu", "memory", "ephemeral-storage"})


class EnvVar(Struct):
    """A variable of a container's environment."""

    name: str = ""


class VolumeMount(Struct):
    """Where a volume stands in a container."""

    name: str = ""
    mount_path: str = ""


class Container(core.Container):
    """A container with what is checked of it."""

    env: list[EnvVar] | None = None
    volume_mounts: list[VolumeMount] | None = None


def check(
    containers: Sequence[Container], field: str, taken: set[str], volumes: Collection[str]
) -> Iterator[str]:
    """Yield what is wrong with a list of containers; names used are added to `taken`."""
    for index, container in enumerate(containers):
        at = f"{field}[{index}]"
        yield from _identity(container, at, taken)
        yield from _ports(container.ports or (), f"{at}.ports")
        yield from _environment(container.env or (), f"{at}.env")
        yield from _mounts(container.volume_mounts or (), f"{at}.volumeMounts", volumes)
        if container.resources:
            yield from resources(container.resources, f"{at}.resources")


def _identity(container: Container, at: str, taken: set[str]) -> Iterator[str]:
    if not container.name:
        yield f"{at}.name: Required value"
    else:
        wrong = formats.dns_label(container.name)
        yield from (invalid(f"{at}.name", container.name, why) for why in wrong)
        if container.name in taken:
            yield f'{at}.name: Duplicate value: "{container.name}"'
        taken.add(container.name)
    if not container.image.strip():
        yield f"{at}.image: Required value"


def _ports(ports: Sequence[core.ContainerPort], at: str) -> Iterator[str]:
    for index, port in enumerate(ports):
        if not port.container_port:
            yield f"{at}[{index}].containerPort: Required value"
        elif not 0 < port.container_port <= _MAX_PORT:
            yield invalid(f"{at}[{index}].containerPort", port.container_port, _PORT)
        if not 0 <= port.host_port <= _MAX_PORT:
            yield invalid(f"{at}[{index}].hostPort", port.host_port, _PORT)


def _environment(variables: Sequence[EnvVar], at: str) -> Iterator[str]:
    for index, variable in enumerate(variables):
        if not variable.name:
            yield f"{at}[{index}].name: Required value"
        else:
            wrong = formats.variable_name(variable.name)
            yield from (invalid(f"{at}[{index}].name", variable.name, w) for w in wrong)


def _mounts(mounts: Sequence[VolumeMount], at: str, volumes: Collection[str]) -> Iterator[str]:
    paths: set[str] = set()
    for index, mount in enumerate(mounts):
        if not mount.name:
            yield f"{at}[{index}].name: Required value"
        elif mount.name not in volumes:
            yield f'{at}[{index}].name: Not found: "{mount.name}"'
        if not mount.mount_path:
            yield f"{at}[{index}].mountPath: Required value"
        elif mount.mount_path in paths:
            yield invalid(f"{at}[{index}].mountPath", mount.mount_path, "must be unique")
        paths.add(mount.mount_path)


def resources(asked: core.ResourceRequirements, at: str) -> Iterator[str]:
    """Yield what is wrong with requests and limits."""
    limits: dict[str, Exact] = {}
    requests: dict[str, Exact] = {}
    for given, name, into in (
        (asked.limits, "limits", limits),
        (asked.requests, "requests", requests),
    ):
        for resource, amount in (given or {}).items():
            try:
                number = into[resource] = quantity.parse(amount)
            except QuantityError:
                yield invalid(f"{at}.{name}", amount, "is not a quantity")
                continue
            yield from _amount(resource, number, f"{at}.{name}[{resource}]", amount)
    for resource, number in requests.items():
        given_text = (asked.requests or {})[resource]
        yield from _against_limit(resource, number, limits, at, str(given_text))


def _amount(resource: str, number: Exact, at: str, given: object) -> Iterator[str]:
    if number < 0:
        yield invalid(at, given, "must be greater than or equal to 0")
    elif is_extended(resource) and not isinstance(number, int):
        yield invalid(at, given, "must be an integer")


def _against_limit(
    resource: str, number: Exact, limits: dict[str, Exact], at: str, given: str
) -> Iterator[str]:
    """Yield whether a request is beyond its limit, or differs from one that it must equal."""
    limit = limits.get(resource)
    if resource in _OVERCOMMITTED:
        if limit is not None and number > limit:
            text = quantity.text(limit)
            why = f"must be less than or equal to {resource} limit of {text}"
            yield invalid(f"{at}.requests", given, why)
    elif limit is None and is_extended(resource):
        why = "Limit must be set for non overcommitable resources"
        yield f"{at}.limits: Required value: {why}"
    elif limit is not None and number != limit:
        why = f"must be equal to {resource} limit of {quantity.text(limit)}"
        yield invalid(f"{at}.requests", given, why)


def is_extended(resource: str) -> bool:
    """Tell whether a resource is somebody's own: it has a domain that is not Kubernetes'."""
    domain, slash, _ = resource.rpartition("/")
    return bool(slash) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")


def asks_whole_cpus(container: core.Container) -> bool:
    """Tell whether a container asks for CPUs that it can have for itself."""
    asked = container.resources or core.ResourceRequirements()
    requests = asked.requests or asked.limits or {}
    try:
        amount = quantity.parse(requests.get("cpu", 0))
    except QuantityError:
        return False
    return isinstance(amount, int) and amount > 0
