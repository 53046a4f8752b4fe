"""What each pod shape asks for, pod slot included."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest

from pumice.core.api.core import Pod
from pumice.core.quantity import Exact
from pumice.core.requests import pod_requests
from tests.shapes import GPU, SHAPES, Spec, as_admitted

MI = 1024**2


def asks(cpu: str | None = None, memory: int | None = None, **more: int) -> dict[str, Exact]:
    """Return requests: cpu as a decimal fraction, memory in bytes."""
    long = {"gpu": GPU, "storage": "ephemeral-storage", "huge": "hugepages-2Mi"}
    listed: dict[str, Exact | None] = {
        "cpu": None if cpu is None else Fraction(cpu),
        "memory": memory,
        **{long[k]: v for k, v in more.items()},
        "pods": 1,
    }
    return {name: amount for name, amount in listed.items() if amount is not None}


WANT: dict[str, dict[str, Exact]] = {
    "one container": asks("0.5", 256 * MI),
    "two containers add up": asks("0.75", 320 * MI),
    "nothing asked for": asks(),
    "zero asked for": asks("0", 0),
    "cpu alone": asks("1"),
    "memory alone": asks(memory=1024 * MI),
    "one container asks, the other does not": asks("0.7", 128 * MI),
    "limits alone become requests": asks("0.75", 192 * MI),
    "limits above requests": asks("0.25", 64 * MI),
    "a limit for cpu, a request for memory": asks("0.3", 96 * MI),
    "a decimal fraction of a cpu": asks("0.125", 100_000_000),
    "memory in plain bytes": asks("0.1", 123_456_789),
    "memory with an exponent": asks("0.1", 200_000_000),
    "ephemeral storage": asks("0.1", 64 * MI, storage=1024 * MI),
    "an extended resource": asks("1", 512 * MI, gpu=1),
    "extended resources of two containers": asks("2", 1024 * MI, gpu=3),
    "an extended resource given as a limit": asks(gpu=2),
    "huge pages": asks("0.2", 64 * MI, huge=4 * MI),
    "a small init container hides behind the containers": asks("0.5", 256 * MI),
    "a large init container decides": asks("2", 256 * MI),
    "init containers run one after the other": asks("0.9", 512 * MI),
    "an init container with a device that the pod lets go of": asks("0.2", 64 * MI, gpu=1),
    "a sidecar runs beside the containers": asks("0.7", 384 * MI),
    "two sidecars": asks("0.8", 416 * MI),
    "a sidecar before an init container runs beside it": asks("1.1", 192 * MI),
    "a sidecar after an init container does not": asks("0.9", 192 * MI),
    "sidecars around an init container": asks("0.8", 640 * MI),
    "each resource takes its own largest phase": asks("0.9", 732 * MI),
    "the pod as a whole asks for more than its containers": asks("1", 512 * MI),
    "the pod as a whole asks, its containers do not": asks("0.6", 300 * MI),
    "limits of the pod as a whole become its requests": asks("0.4", 160 * MI),
    "the pod as a whole asks for cpu, its containers for memory": asks("0.5", 200 * MI),
    "the pod as a whole above its init containers": asks("1", 512 * MI),
    "devices come from the containers, cpu from the pod as a whole": asks("1", 256 * MI, gpu=1),
}


def test_every_shape_is_pinned() -> None:
    assert WANT.keys() == SHAPES.keys()


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_requests(shape: Spec, request: pytest.FixtureRequest) -> None:
    pod = msgspec.convert({"spec": as_admitted(shape)}, Pod)

    assert pod_requests(pod) == WANT[request.node.callspec.id]
