"""binpack: the score of each node for each pod, in tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from pumice.core.resources import pad
from tests.builders import a_cluster, a_conf, a_group, a_plugin, a_pod, a_session, nodes
from tests.unit.oracles.cases import World

GPU, FOO = "nvidia.com/gpu", "example.com/foo"
WORLD: World = [
    nodes(n1="2 4Gi", n2=f"4 16Gi {GPU}=4", n3=f"2 4Gi {FOO}=16"),
    a_group("j"),
    a_pod("r1", "1 1Gi", node="n1"),
    a_pod("r3", "1500m 0", node="n3"),
    [
        a_pod(name, asks, job="j")
        for name, asks in {
            "small": "1 1Gi",
            "cpu alone": "1500m 0",
            "with gpu": f"2 10Gi {GPU}=2",
            "with foo": f"3 4Gi {FOO}=3",
            "nothing": "",
        }.items()
    ],
]
"""`n1` holds a pod of 1 cpu and 1Gi, `n3` one of 1.5 cpu."""


@dataclass(frozen=True)
class Case:
    arguments: Mapping[str, object]
    #: pod -> the scores of n1, n2, n3
    want: Mapping[str, list[float]]


CASES = {
    "all weights given": Case(
        {
            "binpack.weight": 10,
            "binpack.cpu": 2,
            "binpack.memory": 3,
            "binpack.resources": f"{GPU}, {FOO}",
            f"binpack.resources.{GPU}": 7,
            f"binpack.resources.{FOO}": 8,
        },
        {
            "small": [700, 137.5, 0],
            "cpu alone": [0, 375, 0],
            "with gpu": [0, 531.25, 0],
            "with foo": [0, 173.076923076, 0],
            "nothing": [0, 0, 0],
        },
    ),
    "a resource that is not named counts for nothing": Case(
        {"binpack.resources": GPU, f"binpack.resources.{GPU}": 23},
        {
            "small": [75, 15.625, 0],
            "cpu alone": [0, 37.5, 0],
            "with gpu": [0, 50.5, 0],
            "with foo": [0, 50, 0],
        },
    ),
    "weights that are not given are 1": Case(
        {"binpack.resources": f"{GPU}, {FOO}"},
        {"small": [75, 15.625, 0], "with gpu": [0, 162.5 / 3, 0], "with foo": [0, 100 / 3, 0]},
    ),
    "a negative weight is 1, and so is one of the wrong type": Case(
        {"binpack.cpu": -5, "binpack.memory": "3"}, {"small": [75, 15.625, 0]}
    ),
    "a resource of weight 0 is neither counted nor over-committed": Case(
        {"binpack.cpu": 0}, {"small": [50, 6.25, 25], "cpu alone": [0, 0, 0]}
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_scores(case: Case) -> None:
    plugin = a_plugin("binpack", "enableNodeOrder", **case.arguments)
    ssn = a_session(a_conf("allocate", [plugin]), a_cluster(*WORLD))
    waiting = {task.name: task.cls for job in ssn.active for task in job.tasks.values()}
    (order,) = ssn.points.node_order

    def scores(name: str) -> list[float]:
        cls = waiting[name]
        used = ssn.nodes.used + pad(cls.req, ssn.nodes.rows)[:, None]
        alone = order.score(cls, np.arange(3), ssn.nodes.alloc[:, :, None], used[:, :, None])
        found: list[float] = alone[:, 0].tolist()
        return found

    assert {name: scores(name) for name in case.want} == {
        name: pytest.approx(row) for name, row in case.want.items()
    }
