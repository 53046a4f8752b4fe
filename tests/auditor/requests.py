"""
How much of a node a pod takes, from the rules of the Kubernetes documentation.

Containers run together, so their requests add up; so do sidecars (init containers with
`restartPolicy: Always`), which stay. Ordinary init containers run one at a time beside the
sidecars started before them, so only the largest of these moments counts. Requests of the pod
as a whole replace the sum for the resources they name. Overhead comes on top, and each pod takes
one of the node's pod slots. Resources that only mark a pod for kube-scheduler take nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache

import msgspec

SUFFIXES: dict[str, Fraction] = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    **{letter: Fraction(10 ** (3 * i)) for i, letter in enumerate("kMGTPE", start=1)},
    **{f"{letter}i": Fraction(1024**i) for i, letter in enumerate("KMGTPE", start=1)},
}
QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)")
UNOFFERED = (
    "pumice.dev/batch-pod",
    "pumice.dev/free-pod",
    "volcano.sh/vgpu-memory-percentage",
)
"""What pods ask for and no node offers: marks, and a share of whichever card it is."""
Amounts = dict[str, Fraction]
Texts = Mapping[str, str | int | float]
Combine = Callable[[Fraction, Fraction], Fraction]


class Resources(msgspec.Struct):
    """The requests of a container or a pod."""

    requests: dict[str, str | int | float] = {}


class Container(msgspec.Struct, rename="camel"):
    """A container, its requests and whether it stays."""

    resources: Resources = msgspec.field(default_factory=Resources)
    restart_policy: str = ""


class PodResources(msgspec.Struct, rename="camel"):
    """The fields of a pod's spec that say what it takes."""

    containers: list[Container] = []
    init_containers: list[Container] = []
    resources: Resources | None = None
    overhead: dict[str, str | int | float] = {}


@lru_cache(maxsize=65536)
def quantity(text: str | int | float) -> Fraction:
    """Return the exact number that a quantity stands for; raise ValueError when it is none."""
    found = QUANTITY.fullmatch(str(text).strip())
    if found is None:
        raise ValueError(f"not a quantity: {text!r}")
    number, exponent, suffix = found.groups()
    scale = Fraction(10) ** int(exponent) if exponent else SUFFIXES[suffix or ""]
    return Fraction(number) * scale


def amounts(texts: Texts) -> Amounts:
    """Return the numbers of a resource list."""
    return {name: quantity(text) for name, text in texts.items()}


def pod_requests(spec: PodResources) -> Amounts:
    """Return what the pod takes of its node, without its pod slot."""
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers:
        asked = amounts(container.resources.requests)
        if container.restart_policy == "Always":
            sidecars = added(sidecars, asked)
            asked = {}
        peak = larger(peak, added(sidecars, asked))
    running = [amounts(container.resources.requests) for container in spec.containers]
    total = larger(added(sidecars, *running), peak)
    if spec.resources is not None:
        total |= amounts(spec.resources.requests)
    for name in UNOFFERED:
        total.pop(name, None)
    return added(total, amounts(spec.overhead))


def added(first: Mapping[str, Fraction], *others: Mapping[str, Fraction]) -> Amounts:
    """Return the sum, resource by resource."""
    return _merged((first, *others), lambda a, b: a + b)


def larger(first: Mapping[str, Fraction], second: Mapping[str, Fraction]) -> Amounts:
    """Return the larger of the two, resource by resource."""
    return _merged((first, second), max)


def _merged(lists: Iterable[Mapping[str, Fraction]], combine: Combine) -> Amounts:
    merged: Amounts = {}
    for amounts_of_one in lists:
        for name, amount in amounts_of_one.items():
            merged[name] = combine(merged.get(name, Fraction(0)), amount)
    return merged
