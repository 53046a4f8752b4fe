"""resource-strategy-fit: what is filled, what is spread, what is spared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from pumice.core import names
from pumice.core.extension import Code
from pumice.core.session import Session
from tests.builders import (
    a_cluster,
    a_conf,
    a_group,
    a_job,
    a_node,
    a_plugin,
    a_pod,
    a_session,
)
from tests.unit.oracles.views import refused, scores

T4, A10 = "nvidia.com/t4", "nvidia.com/a10"
FOUR = {
    "n1": "32 64Gi",
    "n2": f"8 16Gi {T4}=16",
    "n3": f"8 16Gi {A10}=16",
    "n4": f"8 16Gi {T4}=8 {A10}=16",
}
PODS = {
    "p1": "1 1Gi",
    "p2": f"1500m 0 {T4}=2",
    "p3": f"2 4Gi {A10}=2",
    "p4": f"3 4Gi {T4}=1 {A10}=3",
}


def a_world(
    arguments: Mapping[str, object],
    *,
    nodes: Mapping[str, str] = FOUR,
    asks: Mapping[str, str] = PODS,
    notes: Mapping[str, str] | None = None,
    held: str = "",
) -> Session:
    cluster = a_cluster(
        [a_node(name, size) for name, size in nodes.items()],
        a_group("g"),
        [a_pod(name, text, job="g", annotations=notes) for name, text in asks.items()],
        a_job("held", asks=held, on=[next(iter(nodes))]) if held else [],
    )
    return a_session(a_conf("allocate", [a_plugin("resource-strategy-fit", **arguments)]), cluster)


@dataclass(frozen=True)
class Case:
    arguments: Mapping[str, object]
    want: Mapping[str, list[float]] = field(default_factory=dict)


CASES = {
    "nodes with scarce devices are spared": Case(
        {
            "resourceStrategyFitWeight": 0,
            "sra": {
                "enable": True,
                "resources": f"{T4}, {A10}",
                "weight": 5,
                "resourceWeight": {T4: 2, A10: 3},
            },
        },
        {
            "p1": [500, 300, 200, 0],
            "p2": [0, 300, 0, 0],
            "p3": [0, 0, 200, 0],
            "p4": [0, 0, 0, 0],
        },
    ),
    "devices are filled up, cpu is spread": Case(
        {
            "resourceStrategyFitWeight": 8,
            "resources": {
                T4: {"type": "MostAllocated", "weight": 3},
                "cpu": {"type": "LeastAllocated", "weight": 1},
            },
            "sra": {"enable": True, "resources": T4, "weight": 0, "resourceWeight": {T4: 2}},
        },
        {
            "p1": [775, 700, 700, 700],
            "p2": [190.625, 237.5, 162.5, 312.5],
            "p3": [750, 600, 600, 600],
            "p4": [181.25, 162.5, 125, 200],
        },
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_scores(case: Case) -> None:
    ssn = a_world(case.arguments)
    assert {pod: list(scores(ssn, pod).values()) for pod in case.want} == case.want


ONE = {"n": "16 64Gi a.b/gpu=8"}
MIXED = {"a.b/gpu": {"type": "MostAllocated", "weight": 2}, "cpu": {"weight": 1}}


def score(
    resources: object,
    asks: str = "4 0 a.b/gpu=2",
    *,
    held: str = "4 0 a.b/gpu=2",
    notes: Mapping[str, str] | None = None,
) -> float:
    arguments = {"resources": resources}
    ssn = a_world(arguments, nodes=ONE, asks={"p": asks}, notes=notes, held=held)
    return scores(ssn)["n"]


def own(weights: str) -> dict[str, str]:
    return {names.STRATEGY_TYPE: "MostAllocated", names.STRATEGY_WEIGHT: weights}


def test_a_worked_example() -> None:
    assert score(MIXED) == 500  # (4/8 * 2 + 8/16 * 1) / 3 * 100 * 10


def test_a_name_goes_before_a_prefix_and_a_long_one_before_a_short_one() -> None:
    most = {"type": "MostAllocated"}
    asks = "0 0 a.b/gpu=2"
    assert score({"a.b/*": most, "a.b/gpu": {}}, asks) == 500
    assert score({"a.b/*": most}, "0 0 a.b/gpu=1") == 375
    assert score({"a.b/gpu": {}}, "0 0 a.b/gpu=1") == 625
    assert score({"other/*": most}, asks) == 0


def test_a_pod_may_bring_its_own() -> None:
    asks = "6 0 a.b/gpu=2"
    assert score(MIXED, asks, notes=own('{"cpu": 1}')) == 625  # 10/16
    assert score(MIXED, asks, notes=own("cpu=1")) == 0


def test_what_does_not_fit_scores_nothing() -> None:
    assert score(MIXED, asks="4 0 a.b/gpu=7") == 0


@pytest.mark.parametrize("name", ["*", "a*b/x", "a.b/*x"])
def test_a_pattern_that_is_none_is_told(name: str) -> None:
    (warning,) = a_world({"resources": {name: {}}}).findings.warnings
    assert name in warning


KEPT = {
    "as much as must be left is left": ("30 30G", "4 4G", True),
    "less than must be": ("30 30G", "10 10G", False),
    "pods that ask for a device may take it": ("30 30G", "10 10G a.b/gpu=1", True),
}


@pytest.mark.parametrize(("idle", "asks", "fits"), KEPT.values(), ids=KEPT.keys())
def test_what_is_kept_beside_idle_devices(idle: str, asks: str, fits: bool) -> None:
    rates = {"a.b/gpu.cpu": 4, "a.b/gpu.memory": 4}
    arguments = {
        "proportional": {"enable": True, "resources": "a.b/gpu", "resourceProportion": rates}
    }
    ssn = a_world(arguments, nodes={"n": f"{idle} a.b/gpu=6"}, asks={"p": asks})
    message = "proportional of resource a.b/gpu check failed"
    assert refused(ssn) == ({} if fits else {"n": (Code.UNRESOLVABLE, message)})


def test_many_pods_at_once_leave_as_much() -> None:
    arguments = {
        "proportional": {
            "enable": True,
            "resources": "a.b/gpu",
            "resourceProportion": {"a.b/gpu.cpu": 4, "a.b/gpu.memory": 1},
        }
    }
    ssn = a_world(arguments, nodes={"n": "10 20G a.b/gpu=2"}, asks={"p": "1 1G"})
    (task,) = ssn.active[0].tasks.values()
    assert len(ssn.views.of_task(task).picks(9)) == 2
