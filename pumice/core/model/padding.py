"""
Padding: by how much scores take a pod to be larger than it asks to be.

For kube-scheduler's scores, and for nothing else, a container without a cpu request counts as
100m and one without a memory request as 200Mi; else pods that ask for nothing would all go to
the node that looks emptiest. The padding of a pod is the difference that makes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from pumice.core.api.core import Container, Pod, ResourceList, ResourceRequirements
from pumice.core.requests import pod_requests
from pumice.core.resources import in_units

LEAST: Final[ResourceList] = {"cpu": "100m", "memory": "200Mi"}


class Padding(NamedTuple):
    """Thousandths of a cpu and bytes of memory on top of the requests."""

    cpu: float = 0.0
    memory: float = 0.0


NO_PADDING: Final = Padding()


def padding(pod: Pod) -> Padding:
    """Return the pod's padding; what is set for the pod as a whole needs none."""
    spec = pod.spec
    level = (spec.resources.requests or {}) if spec.resources else {}
    least = {name: amount for name, amount in LEAST.items() if name not in level}
    containers = [*(spec.init_containers or ()), *(spec.containers or ())]
    if not any(_lacks(container, least) for container in containers):
        return NO_PADDING
    padded = msgspec.structs.replace(
        spec,
        containers=[_padded(c, least) for c in spec.containers or ()],
        init_containers=[_padded(c, least) for c in spec.init_containers or ()],
    )
    asked = pod_requests(pod)
    deemed = pod_requests(msgspec.structs.replace(pod, spec=padded))
    return Padding(*(in_units(name, deemed.get(name, 0) - asked.get(name, 0)) for name in LEAST))


def _requests(container: Container) -> ResourceList:
    return (container.resources.requests or {}) if container.resources else {}


def _lacks(container: Container, least: ResourceList) -> bool:
    requests = _requests(container)
    return any(name not in requests for name in least)


def _padded(container: Container, least: ResourceList) -> Container:
    requests = ResourceRequirements(requests={**least, **_requests(container)})
    return msgspec.structs.replace(container, resources=requests)
