"""T4: gangs whose members need each other bound, and gangs that only look like it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pytest

from tests.acceptance.bed import Bed
from tests.acceptance.length import patient
from tests.acceptance.objects import Object, a_job, a_task

pytestmark = pytest.mark.cluster
LAYOUTS = ("own", "shared")

RUNNING_S = 2.0
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def term(role: str, topology_key: str) -> Object:
    """Return the term that means the pods of a role in the same domain."""
    return {"labelSelector": {"matchLabels": {"role": role}}, "topologyKey": topology_key}


def near(role: str, topology_key: str) -> Object:
    """Return the affinity to pods of a role."""
    terms = [term(role, topology_key)]
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def apart(role: str, topology_key: str) -> Object:
    """Return the anti-affinity to pods of a role."""
    terms = [term(role, topology_key)]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def spread(role: str) -> list[Object]:
    """Return the constraint that spreads the pods of a role evenly over zones."""
    selector = {"matchLabels": {"role": role}}
    rest = {"topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return [{"maxSkew": 1, **rest}]


@dataclass(frozen=True)
class Case:
    tasks: Sequence[Object]
    holds: Callable[[Mapping[str, Sequence[str]]], bool]
    """What must be true of the nodes, by role."""


def zones(nodes: Sequence[str]) -> Counter[str]:
    """Count pods by zone: nodes with even numbers are in the one, odd ones in the other."""
    return Counter(str(int(node.removeprefix("node-")) % 2) for node in nodes)


ROLE = {name: {"role": name} for name in ("worker", "ps")}

CASES = {
    "workers need the ps near them and come first": Case(
        [
            a_task("worker", 4, labels=ROLE["worker"], affinity=near("ps", HOST)),
            a_task("ps", 1, labels=ROLE["ps"]),
        ],
        lambda on: {*on["worker"]} == {*on["ps"]},
    ),
    "four pods are spread over two zones": Case(
        [a_task("worker", 4, labels=ROLE["worker"], topologySpreadConstraints=spread("worker"))],
        lambda on: set(zones(on["worker"]).values()) == {2},
    ),
    "members want each other in one zone": Case(
        [a_task("worker", 4, labels=ROLE["worker"], affinity=near("worker", ZONE))],
        lambda on: len(zones(on["worker"])) == 1,
    ),
    "members want a node each": Case(
        [a_task("worker", 4, labels=ROLE["worker"], affinity=apart("worker", HOST))],
        lambda on: len(set(on["worker"])) == 4,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_a_gang_is_released_in_the_order_that_it_needs(bed: Bed, case: Case) -> None:
    bed.nodes(10, zones=2)
    total = sum(task["replicas"] for task in case.tasks)
    async with bed.auditor() as auditor:
        bed.create(a_job("gang", *case.tasks, min_available=total))
        took = await bed.until(
            lambda: bed.job_phase("gang") == "Running" and len(bed.running("gang")) == total,
            20,
            "the gang runs",
        )
        await auditor.finish()

    on: dict[str, list[str]] = {}
    for pod in bed.pods_of("gang"):
        on.setdefault(pod["metadata"]["labels"]["role"], []).append(pod["spec"]["nodeName"])
    assert case.holds(on), on
    assert took < patient(RUNNING_S)
