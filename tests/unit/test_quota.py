"""What a pod takes of a quota, key by key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from pumice.core.api.core import Pod
from pumice.core.quota import Usage, add, pod_usage, resource_list

GI = 1024**3
MARKERS = {"pumice.dev/batch-pod": "1", "pumice.dev/free-pod": "1"}


@dataclass(frozen=True)
class Case:
    spec: dict[str, Any]
    want: Usage
    phase: str = ""


def a_container(**resources: dict[str, str]) -> dict[str, Any]:
    return {"name": "c", "resources": resources}


CASES = {
    "a pod that asks for nothing takes a place": Case(
        {"containers": [a_container()]},
        {"count/pods": 1, "pods": 1},
    ),
    "requests count under both keys": Case(
        {"containers": [a_container(requests={"cpu": "1500m", "memory": "1Gi"})] * 2},
        {
            "count/pods": 1,
            "pods": 1,
            "cpu": 3,
            "requests.cpu": 3,
            "memory": 2 * GI,
            "requests.memory": 2 * GI,
        },
    ),
    "limits alone make no requests": Case(
        {"containers": [a_container(limits={"cpu": "2", "ephemeral-storage": "1Gi"})]},
        {"count/pods": 1, "pods": 1, "limits.cpu": 2, "limits.ephemeral-storage": GI},
    ),
    "an init container counts where it is the largest": Case(
        {
            "containers": [a_container(limits={"cpu": "1"}, requests={"cpu": "1"})],
            "initContainers": [a_container(limits={"cpu": "4"}, requests={"cpu": "3"})],
        },
        {"count/pods": 1, "pods": 1, "cpu": 3, "requests.cpu": 3, "limits.cpu": 4},
    ),
    "overhead adds to requests, and to limits that there are": Case(
        {
            "containers": [a_container(limits={"cpu": "2"}, requests={"cpu": "1"})],
            "overhead": {"cpu": "1", "memory": "1Gi"},
        },
        {
            "count/pods": 1,
            "pods": 1,
            "cpu": 2,
            "requests.cpu": 2,
            "memory": GI,
            "requests.memory": GI,
            "limits.cpu": 3,
        },
    ),
    "limits of the pod replace those of its containers": Case(
        {"containers": [a_container(limits={"cpu": "2"})], "resources": {"limits": {"cpu": "5"}}},
        {"count/pods": 1, "pods": 1, "limits.cpu": 5},
    ),
    "an extended resource counts as such and as a request": Case(
        {"containers": [a_container(requests={"nvidia.com/gpu": "2"})]},
        {"count/pods": 1, "pods": 1, "nvidia.com/gpu": 2, "requests.nvidia.com/gpu": 2},
    ),
    "the markers of a shared kube-scheduler do not count": Case(
        {"containers": [a_container(requests=MARKERS, limits=MARKERS)]},
        {"count/pods": 1, "pods": 1},
    ),
    "huge pages count as such and as a request": Case(
        {"containers": [a_container(requests={"hugepages-2Mi": "1Gi"})]},
        {"count/pods": 1, "pods": 1, "hugepages-2Mi": GI, "requests.hugepages-2Mi": GI},
    ),
    "a native resource that no quota knows does not count": Case(
        {"containers": [a_container(requests={"kubernetes.io/batch-cpu": "2"})]},
        {"count/pods": 1, "pods": 1},
    ),
    "a finished pod is an object and nothing else": Case(
        {"containers": [a_container(requests={"cpu": "1"})]},
        {"count/pods": 1},
        phase="Succeeded",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_pod_usage(case: Case) -> None:
    pod = msgspec.convert({"spec": case.spec, "status": {"phase": case.phase}}, Pod)
    assert pod_usage(pod) == case.want


def test_usage_of_many_pods_is_written_as_kubernetes_writes_it() -> None:
    total: Usage = {}
    add(total, {"cpu": 1, "requests.memory": GI, "pods": 1}, 3)
    add(total, {"cpu": 2})
    assert resource_list(total) == {"cpu": "5", "pods": "3", "requests.memory": "3Gi"}
