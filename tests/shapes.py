"""
Pod shapes: every way in which the parts of a pod add up to what it asks for.

`SHAPES` gives, by a sentence, the specification of a pod that the API server accepts as it is.
None needs a RuntimeClass or a volume. The API server fills in requests where only limits are
given, and `as_admitted` does the same for tests without one. What each shape asks for stands in
`tests/unit/test_requests_of_shapes.py`; kube-scheduler is the judge of it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

Spec = dict[str, Any]
GPU: Final = "nvidia.com/gpu"
IMAGE: Final = "registry.k8s.io/pause:3.10"


def _resources(
    requests: Mapping[str, str] | None, limits: Mapping[str, str] | None = None
) -> dict[str, Any]:
    parts = {"requests": requests, "limits": limits}
    return {name: dict(part) for name, part in parts.items() if part is not None}


def a_container(
    name: str = "main",
    requests: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return a container; one that asks for nothing by default."""
    return {"name": name, "image": IMAGE, "resources": _resources(requests, limits)}


def a_sidecar(name: str, requests: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return an init container that restarts always."""
    return {**a_container(name, requests), "restartPolicy": "Always"}


def a_spec(
    *containers: dict[str, Any],
    init: list[dict[str, Any]] | None = None,
    level: dict[str, Any] | None = None,
) -> Spec:
    """Return a pod specification; `level` are resources of the pod as a whole."""
    spec: Spec = {"containers": list(containers) or [a_container()]}
    if init:
        spec["initContainers"] = init
    if level is not None:
        spec["resources"] = level
    return spec


def amounts(cpu: str | None = None, memory: str | None = None, **more: str) -> dict[str, str]:
    """Return a resource list; `gpu`, `storage` and `huge` are short for longer names."""
    long = {"gpu": GPU, "storage": "ephemeral-storage", "huge": "hugepages-2Mi"}
    listed = {"cpu": cpu, "memory": memory, **{long[k]: v for k, v in more.items()}}
    return {name: amount for name, amount in listed.items() if amount is not None}


SHAPES: Final[dict[str, Spec]] = {
    "one container": a_spec(a_container(requests=amounts("500m", "256Mi"))),
    "two containers add up": a_spec(
        a_container("a", amounts("500m", "256Mi")), a_container("b", amounts("250m", "64Mi"))
    ),
    "nothing asked for": a_spec(a_container()),
    "zero asked for": a_spec(a_container(requests=amounts("0", "0"))),
    "cpu alone": a_spec(a_container(requests=amounts("1"))),
    "memory alone": a_spec(a_container(requests=amounts(memory="1Gi"))),
    "one container asks, the other does not": a_spec(
        a_container("a", amounts("700m", "128Mi")), a_container("b")
    ),
    "limits alone become requests": a_spec(a_container(limits=amounts("750m", "192Mi"))),
    "limits above requests": a_spec(
        a_container(requests=amounts("250m", "64Mi"), limits=amounts("2", "1Gi"))
    ),
    "a limit for cpu, a request for memory": a_spec(
        a_container(requests=amounts(memory="96Mi"), limits=amounts("300m"))
    ),
    "a decimal fraction of a cpu": a_spec(a_container(requests=amounts("0.125", "100M"))),
    "memory in plain bytes": a_spec(a_container(requests=amounts("100m", "123456789"))),
    "memory with an exponent": a_spec(a_container(requests=amounts("100m", "2e8"))),
    "ephemeral storage": a_spec(a_container(requests=amounts("100m", "64Mi", storage="1Gi"))),
    "an extended resource": a_spec(
        a_container(requests=amounts("1", "512Mi", gpu="1"), limits=amounts(gpu="1"))
    ),
    "extended resources of two containers": a_spec(
        a_container("a", amounts("1", "512Mi", gpu="1"), amounts(gpu="1")),
        a_container("b", amounts("1", "512Mi", gpu="2"), amounts(gpu="2")),
    ),
    "an extended resource given as a limit": a_spec(a_container(limits=amounts(gpu="2"))),
    "huge pages": a_spec(
        a_container(
            requests=amounts("200m", "64Mi", huge="4Mi"),
            limits=amounts("200m", "64Mi", huge="4Mi"),
        )
    ),
    "a small init container hides behind the containers": a_spec(
        a_container(requests=amounts("500m", "256Mi")),
        init=[a_container("init", amounts("100m", "64Mi"))],
    ),
    "a large init container decides": a_spec(
        a_container(requests=amounts("500m", "256Mi")),
        init=[a_container("init", amounts("2", "64Mi"))],
    ),
    "init containers run one after the other": a_spec(
        a_container(requests=amounts("100m", "64Mi")),
        init=[
            a_container("first", amounts("900m", "64Mi")),
            a_container("second", amounts("300m", "512Mi")),
        ],
    ),
    "an init container with a device that the pod lets go of": a_spec(
        a_container(requests=amounts("200m", "64Mi")),
        init=[a_container("init", amounts("100m", "64Mi", gpu="1"), amounts(gpu="1"))],
    ),
    "a sidecar runs beside the containers": a_spec(
        a_container(requests=amounts("500m", "256Mi")),
        init=[a_sidecar("side", amounts("200m", "128Mi"))],
    ),
    "two sidecars": a_spec(
        a_container(requests=amounts("500m", "256Mi")),
        init=[
            a_sidecar("one", amounts("200m", "128Mi")),
            a_sidecar("two", amounts("100m", "32Mi")),
        ],
    ),
    "a sidecar before an init container runs beside it": a_spec(
        a_container(requests=amounts("100m", "64Mi")),
        init=[
            a_sidecar("side", amounts("200m", "128Mi")),
            a_container("init", amounts("900m", "64Mi")),
        ],
    ),
    "a sidecar after an init container does not": a_spec(
        a_container(requests=amounts("100m", "64Mi")),
        init=[
            a_container("init", amounts("900m", "64Mi")),
            a_sidecar("side", amounts("200m", "128Mi")),
        ],
    ),
    "sidecars around an init container": a_spec(
        a_container(requests=amounts("100m", "64Mi")),
        init=[
            a_sidecar("before", amounts("200m", "128Mi")),
            a_container("init", amounts("600m", "512Mi")),
            a_sidecar("after", amounts("400m", "256Mi")),
        ],
    ),
    "each resource takes its own largest phase": a_spec(
        a_container(requests=amounts("800m", "64Mi")),
        init=[
            a_sidecar("side", amounts("100m", "32Mi")),
            a_container("init", amounts("200m", "700Mi")),
        ],
    ),
    "the pod as a whole asks for more than its containers": a_spec(
        a_container(requests=amounts("250m", "64Mi")),
        level=_resources(amounts("1", "512Mi")),
    ),
    "the pod as a whole asks, its containers do not": a_spec(
        a_container(), level=_resources(amounts("600m", "300Mi"))
    ),
    "limits of the pod as a whole become its requests": a_spec(
        a_container(), level=_resources(None, amounts("400m", "160Mi"))
    ),
    "the pod as a whole asks for cpu, its containers for memory": a_spec(
        a_container(requests=amounts(memory="200Mi")), level=_resources(amounts("500m"))
    ),
    "the pod as a whole above its init containers": a_spec(
        a_container(requests=amounts("100m", "64Mi")),
        init=[a_container("init", amounts("900m", "64Mi"))],
        level=_resources(amounts("1", "512Mi")),
    ),
    "devices come from the containers, cpu from the pod as a whole": a_spec(
        a_container(requests=amounts("100m", "64Mi", gpu="1"), limits=amounts(gpu="1")),
        level=_resources(amounts("1", "256Mi")),
    ),
}


def as_admitted(spec: Spec) -> Spec:
    """
    Return the specification with the requests that the API server fills in.

    A container's limits become its requests where it has none. Where the pod as a whole has
    limits, it is given the requests that its containers make together, and for what none of
    them asks for its limits. (The shapes that need it have no init containers.)
    """
    admitted = copy.deepcopy(spec)
    for container in [*admitted["containers"], *admitted.get("initContainers", ())]:
        _fill(container["resources"], container["resources"].get("limits", {}))
    level = admitted.get("resources", {})
    if level.get("limits"):
        asked = [c["resources"].get("requests", {}) for c in admitted["containers"]]
        assert not any(asked), "add up the containers' requests here before such a shape is added"
        _fill(level, level["limits"])
    return admitted


def _fill(resources: dict[str, Any], amounts: Mapping[str, str]) -> None:
    if amounts:
        resources["requests"] = {**amounts, **resources.get("requests", {})}
