"""What a pod asks for: containers, sidecars, init containers, overhead, pod level, resize."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import pytest

from pumice.core.api.core import (
    Container,
    ContainerStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from pumice.core.quantity import Exact, QuantityError
from pumice.core.requests import pod_requests
from tests.builders import amounts


def asks(text: str, name: str = "c") -> Container:
    return Container(name=name, resources=ResourceRequirements(requests=amounts(text)))


def sidecar(text: str, name: str = "s") -> Container:
    container = asks(text, name)
    container.restart_policy = "Always"
    return container


def held(text: str, name: str = "c") -> ContainerStatus:
    return ContainerStatus(name=name, allocated_resources=amounts(text))


INFEASIBLE = PodCondition(type="PodResizePending", status="True", reason="Infeasible")


@dataclass(frozen=True)
class Case:
    want: dict[str, Exact]
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)


GI = 2**30
CASES = {
    "a pod that asks for nothing takes a slot": Case({"pods": 1}),
    "a container without resources": Case({"pods": 1}, PodSpec(containers=[Container(name="c")])),
    "containers add up": Case(
        {"cpu": Fraction(5, 2), "memory": 3 * GI, "pods": 1},
        PodSpec(containers=[asks("2 1Gi", "a"), asks("500m 2Gi", "b")]),
    ),
    "the largest init container counts where it is larger": Case(
        {"cpu": 3, "memory": 4 * GI, "pods": 1},
        PodSpec(
            init_containers=[asks("3 1Gi", "i"), asks("1 4Gi", "j")],
            containers=[asks("2 2Gi")],
        ),
    ),
    "a sidecar runs beside the containers": Case(
        {"cpu": 3, "pods": 1},
        PodSpec(init_containers=[sidecar("1")], containers=[asks("2")]),
    ),
    "an init container runs beside the sidecars before it": Case(
        {"cpu": 5, "pods": 1},
        PodSpec(
            init_containers=[sidecar("1"), asks("4", "i"), sidecar("1", "t")],
            containers=[asks("2")],
        ),
    ),
    "an init container does not run beside the sidecars after it": Case(
        {"cpu": 4, "pods": 1},
        PodSpec(init_containers=[asks("4", "i"), sidecar("1")], containers=[asks("2")]),
    ),
    "overhead comes on top of the largest phase": Case(
        {"cpu": Fraction(41, 10), "memory": GI, "pods": 1},
        PodSpec(
            init_containers=[asks("4", "i")],
            containers=[asks("2")],
            overhead=amounts("100m 1Gi"),
        ),
    ),
    "pod-level requests replace the sum": Case(
        {"cpu": 3, "memory": 2 * GI, "pods": 1},
        PodSpec(
            containers=[asks("1 1Gi", "a"), asks("1 1Gi", "b")],
            resources=ResourceRequirements(requests=amounts("3")),
        ),
    ),
    "devices cannot be asked for at pod level": Case(
        {"cpu": 1, "pods": 1},
        PodSpec(
            containers=[asks("1")],
            resources=ResourceRequirements(requests=amounts("nvidia.com/gpu=2")),
        ),
    ),
    "pod-level requests leave overhead on top": Case(
        {"cpu": Fraction(31, 10), "pods": 1},
        PodSpec(
            containers=[asks("1")],
            resources=ResourceRequirements(requests=amounts("3")),
            overhead=amounts("100m"),
        ),
    ),
    "devices add up": Case(
        {"nvidia.com/gpu": 3, "pods": 1},
        PodSpec(containers=[asks("nvidia.com/gpu=1", "a"), asks("nvidia.com/gpu=2", "b")]),
    ),
    "a container that shrinks holds the old amount until it is done": Case(
        {"cpu": 4, "pods": 1},
        PodSpec(containers=[asks("2")]),
        PodStatus(container_statuses=[held("4")]),
    ),
    "a container that grows is asked for at once": Case(
        {"cpu": 4, "pods": 1},
        PodSpec(containers=[asks("4")]),
        PodStatus(container_statuses=[held("2")]),
    ),
    "what is in effect counts besides what is allocated": Case(
        {"cpu": 5, "pods": 1},
        PodSpec(containers=[asks("2")]),
        PodStatus(
            container_statuses=[
                ContainerStatus(
                    name="c",
                    allocated_resources=amounts("3"),
                    resources=ResourceRequirements(requests=amounts("5")),
                )
            ]
        ),
    ),
    "an infeasible resize is not asked for": Case(
        {"cpu": 2, "pods": 1},
        PodSpec(containers=[asks("9")]),
        PodStatus(container_statuses=[held("2")], conditions=[INFEASIBLE]),
    ),
    "a marker that stands for nothing is not asked for": Case(
        {"cpu": 2, "pods": 1},
        PodSpec(containers=[asks("2 pumice.dev/batch-pod=1 pumice.dev/free-pod=1")]),
    ),
    "a sidecar can be resized too": Case(
        {"cpu": 6, "pods": 1},
        PodSpec(init_containers=[sidecar("1")], containers=[asks("2")]),
        PodStatus(init_container_statuses=[held("4", "s")]),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_pod_requests(case: Case) -> None:
    assert pod_requests(Pod(spec=case.spec, status=case.status)) == case.want


def test_a_malformed_amount_is_refused() -> None:
    with pytest.raises(QuantityError, match="'plenty'"):
        pod_requests(Pod(spec=PodSpec(containers=[asks("plenty")])))
