"""The resource space and the comparison rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from pumice.core.api.core import ResourceList
from pumice.core.resources import (
    ResourceSpace,
    excess,
    fits,
    is_empty,
    minus,
    over_limit,
    plus,
    share,
    shortages,
    whole_units,
)

GPU = "nvidia.com/gpu"

VECTORS: dict[str, tuple[ResourceList | None, dict[str, float]]] = {
    "nothing": (None, {}),
    "cpu in thousandths": ({"cpu": "1500m"}, {"cpu": 1500.0}),
    "memory in bytes": ({"memory": "1Ki"}, {"memory": 1024.0}),
    "pods as they are": ({"pods": "110"}, {"pods": 110.0}),
    "ephemeral storage in thousandths": (
        {"ephemeral-storage": "1Ki"},
        {"ephemeral-storage": 1024e3},
    ),
    "one device is 1000": ({GPU: 1}, {GPU: 1000.0}),
    "huge pages": ({"hugepages-2Mi": "4Mi"}, {"hugepages-2Mi": 4 * 2.0**20 * 1000}),
    "volume slots": (
        {"attachable-volumes-csi-x": "2"},
        {"attachable-volumes-csi-x": 2000.0},
    ),
    "Kubernetes' own prefixed names": (
        {"kubernetes.io/something": "1"},
        {"kubernetes.io/something": 1000.0},
    ),
    "object counts are skipped": ({"count/pods": "5"}, {}),
    "quota names are skipped": ({"requests.cpu": "5", "requests.example.com/x": "1"}, {}),
    "bare unknown names are skipped": ({"storage": "5Gi", "bananas": "3"}, {}),
}


@pytest.mark.parametrize(("amounts", "want"), VECTORS.values(), ids=VECTORS.keys())
def test_a_resource_list_as_a_vector(
    amounts: ResourceList | None, want: Mapping[str, float]
) -> None:
    space = ResourceSpace()
    vector = space.vector(amounts)
    assert {n: v for n, v in zip(space.names, vector, strict=True) if v} == want


def test_rows_are_given_out_once_and_in_order() -> None:
    space = ResourceSpace()
    short = space.vector({"cpu": 1})
    space.vector({"example.com/b": 1})
    space.vector({"example.com/a": 1, "example.com/b": 1})

    assert space.names == ("cpu", "memory", "pods", "example.com/b", "example.com/a")
    assert short.tolist() == [1000.0, 0.0, 0.0]
    assert space.pad(short).tolist() == [1000.0, 0.0, 0.0, 0.0, 0.0]
    assert (space.find("example.com/a"), space.find("example.com/c")) == (4, None)


def test_limits_are_unlimited_where_not_named() -> None:
    assert ResourceSpace().limits({"cpu": "2"}).tolist() == [2000.0, np.inf, np.inf]


def test_amounts_as_text() -> None:
    space = ResourceSpace()
    vector = space.vector({"cpu": "1500m", "memory": "3Gi", "pods": 3, GPU: 2})
    want = {"cpu": "1500m", "memory": "3Gi", "pods": "3", GPU: "2"}
    assert space.amounts(vector) == want


def test_sums_of_vectors_of_different_length() -> None:
    short, long = np.array([1.0, 2.0]), np.array([10.0, 20.0, 30.0])
    assert plus(short, long).tolist() == [11.0, 22.0, 30.0]
    assert minus(short, long).tolist() == [-9.0, -18.0, -30.0]
    assert minus(long, short).tolist() == [9.0, 18.0, 30.0]
    assert excess(long, np.array([11.0, 5.0])).tolist() == [0.0, 15.0, 30.0]
    assert (short.tolist(), long.tolist()) == ([1.0, 2.0], [10.0, 20.0, 30.0])


@dataclass(frozen=True)
class Fit:
    need: list[float]
    room: list[float]
    short: list[int]


FITS = {
    "equal amounts fit": Fit([2.0, 3.0, 1.0], [2.0, 3.0, 1.0], []),
    "less than the tolerance over still fits": Fit([2.09], [2.0], []),
    "the tolerance over does not": Fit([2.1], [2.0], [0]),
    "pod slots count": Fit([0.0, 0.0, 1.0], [9.0, 9.0, 0.0], [2]),
    "a row that the room lacks is zero": Fit([1.0, 1.0, 1.0, 1.0], [9.0, 9.0, 9.0], [3]),
    "a row that the need lacks is zero": Fit([1.0], [9.0, 9.0, 9.0], []),
    "a row that is over-committed is short even for nothing": Fit([1.0, 0.0], [9.0, -1.0], [1]),
    "every short row is named": Fit([5.0, 5.0, 1.0], [1.0, 1.0, 1.0], [0, 1]),
}


@pytest.mark.parametrize("case", FITS.values(), ids=FITS.keys())
def test_fits_within_the_tolerance(case: Fit) -> None:
    need, room = np.array(case.need), np.array(case.room)
    assert shortages(need, room) == case.short
    assert fits(need, room) == (not case.short)


def test_a_limit_has_no_tolerance() -> None:
    ones = np.ones(3)
    assert over_limit(ones + 0.01, ones, ones) == [0, 1]


EMPTY = {
    "zeros": ([0.0, 0.0, 0.0], True),
    "a pod slot alone": ([0.0, 0.0, 1.0], True),
    "less than the tolerance": ([0.05, 0.05, 1.0], True),
    "some memory": ([0.0, 1.0, 1.0], False),
    "a device": ([0.0, 0.0, 1.0, 1000.0], False),
}


@pytest.mark.parametrize(("vector", "want"), EMPTY.values(), ids=EMPTY.keys())
def test_is_empty(vector: list[float], want: bool) -> None:
    assert is_empty(np.array(vector)) is want


def test_a_rounding_error_off_a_whole_unit_is_made_good() -> None:
    third = 10_000 / 3
    vector = np.array([3999.999999999999, 2**34 + 1e-5, third, 0.0])
    assert whole_units(vector).tolist() == [4000.0, 2.0**34, third, 0.0]


SHARES = {
    "a part": (1.0, 4.0, 0.25),
    "nothing of nothing": (0.0, 0.0, 0.0),
    "something of nothing": (1.0, 0.0, 1.0),
}


@pytest.mark.parametrize(("amount", "whole", "want"), SHARES.values(), ids=SHARES.keys())
def test_share(amount: float, whole: float, want: float) -> None:
    assert share(amount, whole) == want
