"""How amounts are compared: with the rows that are asked for, and with what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from pumice.core.resources import UNLIMITED, Floats, ResourceSpace, is_below, over_limit

Amounts = Mapping[str, int]
"""In units: thousandths of a cpu or a device, bytes."""

GPU, A, B = "nvidia.com/gpu", "a.b/one", "a.b/two"


@dataclass(frozen=True)
class Requested:
    amount: Amounts
    limit: Amounts
    asked: Amounts
    over: list[str]


REQUESTED = {
    "what is asked for is over": Requested(
        {"cpu": 5000}, {"cpu": 4000, "memory": 2000}, {"cpu": 1000}, ["cpu"]
    ),
    "only that counts": Requested(
        {"cpu": 3000, "memory": 3000}, {"cpu": 4000, "memory": 2000}, {"memory": 1000}, ["memory"]
    ),
    "nothing is asked for": Requested({"cpu": 4, "memory": 4000}, {}, {}, []),
    "a device that the limit does not name": Requested(
        {"cpu": 4, "memory": 4000, GPU: 1},
        {"cpu": 8, "memory": 8000},
        {"cpu": 4, "memory": 2000, GPU: 1},
        [GPU],
    ),
    "equal is not over, and a trifle more is": Requested(
        {"cpu": 4000, "memory": 2001},
        {"cpu": 4000, "memory": 2000},
        {"cpu": 1, "memory": 1},
        ["memory"],
    ),
    "a device that none is held of is never over": Requested(
        {"cpu": 4000}, {"cpu": 4000}, {"cpu": 1, GPU: 1000}, []
    ),
    "pod slots are left out": Requested({"pods": 9}, {"pods": 1}, {"pods": 1}, []),
}


def vector(space: ResourceSpace, amounts: Amounts, missing: float = 0.0) -> Floats:
    """Return amounts given in units."""
    names = [*amounts]
    for name in names:
        space.row(name)
    found = space.of({}, missing)
    for name, amount in amounts.items():
        found[space.row(name)] = amount
    return found


@pytest.mark.parametrize("case", REQUESTED.values(), ids=REQUESTED.keys())
def test_what_is_over_of_what_is_asked_for(case: Requested) -> None:
    space = ResourceSpace()
    amount, limit, asked = (vector(space, a) for a in (case.amount, case.limit, case.asked))
    assert [space.names[row] for row in over_limit(amount, limit, asked)] == case.over


@dataclass(frozen=True)
class Below:
    amount: Amounts
    limit: Amounts
    missing: float
    want: bool


BELOW = {
    "nothing is not below nothing": Below({}, {}, 0.0, False),
    "nothing is below something": Below({}, {"cpu": 4000, "memory": 2000, A: 1000}, 0.0, True),
    "one that is equal is not": Below({"cpu": 1, "memory": 2}, {"cpu": 2, "memory": 2}, 0.0, False),
    "a scalar that the limit lacks is nothing there": Below(
        {"cpu": 1, "memory": 1, A: 1}, {"cpu": 2, "memory": 2}, 0.0, False
    ),
    "a scalar that the limit does not name is unlimited": Below(
        {"cpu": 1000, "memory": 1000, A: 1000, B: 2000},
        {"cpu": 2000, "memory": 2000, B: 3000},
        UNLIMITED,
        True,
    ),
    "a scalar that is unlimited is below no limit": Below(
        {"cpu": 1000, "memory": 1000, B: 1000},
        {"cpu": 2000, "memory": 2000, A: 1000, B: 2000},
        UNLIMITED,
        False,
    ),
    "what neither names is not compared": Below(
        {"cpu": 1, "memory": 1}, {"cpu": 2, "memory": 2}, UNLIMITED, True
    ),
}


@pytest.mark.parametrize("case", BELOW.values(), ids=BELOW.keys())
def test_strictly_below(case: Below) -> None:
    space = ResourceSpace((A, B))
    amount, limit = (vector(space, a, case.missing) for a in (case.amount, case.limit))
    assert is_below(amount, limit, case.missing) is case.want
