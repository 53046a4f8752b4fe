"""binpack: the figures of Volcano's plugin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from pumice.core.conf import Arguments
from pumice.core.plugins.binpack import NAME, Weights, score
from tests.unit.sessions import a_node, a_pod, a_session, classes

NODES = [
    a_node("n1", cpu="2", memory="4Gi"),
    a_node("n2", cpu="4", memory="16Gi", more={"nvidia.com/gpu": "4"}),
    a_node("n3", cpu="2", memory="4Gi", more={"example.com/foo": "16"}),
]
PENDING = [
    a_pod("p1", cpu="1", memory="1Gi"),
    a_pod("p2", cpu="1.5", memory="0"),
    a_pod("p3", cpu="2", memory="10Gi", more={"nvidia.com/gpu": "2"}),
    a_pod("p4", cpu="3", memory="4Gi", more={"example.com/foo": "3"}),
]


@dataclass(frozen=True)
class One:
    """One node of 8 cpu and 16 GiB that holds 2 and 4; a pod of 2 and 2."""

    want: float
    weights: Mapping[int, float] = field(default_factory=lambda: {0: 1.0, 1: 1.0})
    alloc: tuple[float, float] = (8, 16)
    used: tuple[float, float] = (4, 6)


ONES = {
    "the mean of both shares": One(43.75),
    "cpu counts five times": One(47.916666, {0: 5.0, 1: 1.0}),
    "what the node does not offer adds nothing, but counts": One(25.0, alloc=(8, 0), used=(4, 0)),
    "what is over-committed makes it 0": One(0, used=(9, 6)),
    "weights of zero make it 0": One(0, {0: 0.0, 1: 0.0}),
    "nothing asked for makes it 0": One(0, {}),
}


@pytest.mark.parametrize("case", ONES.values(), ids=ONES.keys())
def test_the_score_of_a_node(case: One) -> None:
    got = score(case.weights, np.array(case.alloc)[:, None], np.array(case.used)[:, None])

    assert got.tolist() == [pytest.approx(case.want)]


def test_negative_weights_count_as_1() -> None:
    arguments = {"binpack.cpu": -1, "binpack.resources": "a.b/c", "binpack.resources.a.b/c": -5}

    assert Weights.parse(Arguments(arguments)) == Weights(1, {"cpu": 1, "memory": 1, "a.b/c": 1})


def test_a_weight_of_zero_switches_the_plugin_off() -> None:
    ssn = a_session(NODES, PENDING, {NAME: {"binpack.weight": 0}})

    assert not ssn.points.node_order


def test_room_that_is_promised_counts_as_free() -> None:
    ssn = a_session(NODES, PENDING, {NAME: {}})
    (order,) = ssn.points.node_order
    (cls,) = (cls for name, cls in classes(ssn).items() if name == "p1")
    ssn.nodes.pipelined[0, 1] = 2000.0
    used = ssn.nodes.used[:, 1:2, None] + ssn.nodes.pipelined[:, 1:2, None]
    used[:3] += cls.req[:, None, None]

    got = order.score(cls, np.array([1]), ssn.nodes.alloc[:, 1:2, None], used)

    assert got.tolist() == [[pytest.approx((0.25 + 1 / 16) / 2 * 100)]]
