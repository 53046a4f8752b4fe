"""Kernels: how many copies fit, and the greedy rule against placing one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.kernels import copies_that_fit, greedy
from pumice.core.resources import Floats, Ints

NodeScore = Callable[[float, int], float]
"""(base of the node, copies that it then holds) -> score"""

COPIES = {
    "exactly": ([[4.0], [8.0]], [2.0, 4.0], (0, 1), [2.0]),
    "the scarcest resource decides": ([[9.0], [8.0]], [1.0, 4.0], (0, 1), [2.0]),
    "within the tolerance": ([[3.95], [0.0]], [2.0, 0.0], (0,), [2.0]),
    "short by the tolerance": ([[3.9], [0.0]], [2.0, 0.0], (0,), [1.0]),
    "an over-committed node takes none": ([[-4.0], [8.0]], [1.0, 0.0], (0,), [0.0]),
    "nor does one whose memory is, of what asks for cpu": (
        [[4.0, 4.0], [-0.1, -0.05]],
        [1.0, 0.0],
        (0,),
        [0.0, 4.0],
    ),
    "one with too few devices takes what asks for none": (
        [[4.0], [8.0], [9.0], [-1.0]],
        [1.0, 0.0, 0.0, 0.0],
        (0,),
        [4.0],
    ),
    "what is not asked for does not matter": ([[4.0], [0.0]], [1.0, 5.0], (0,), [4.0]),
    "nothing is asked for": ([[4.0], [8.0]], [0.0, 0.0], (), [np.inf]),
}


@pytest.mark.parametrize(("room", "req", "rows", "want"), COPIES.values(), ids=COPIES.keys())
def test_copies_that_fit(
    room: list[list[float]], req: list[float], rows: Sequence[int], want: list[float]
) -> None:
    assert copies_that_fit(np.array(room), np.array(req), rows).tolist() == want


@dataclass(frozen=True)
class World:
    """Nodes as (base, how many copies fit), and a score; `fills` if it never falls."""

    nodes: list[tuple[float, int]]
    score: NodeScore
    fills: bool


SCORES: dict[str, tuple[NodeScore, bool]] = {
    "rises": (lambda base, copies: base + copies, True),
    "stays": (lambda base, copies: base, True),
    "falls": (lambda base, copies: base - copies, False),
    "falls in steps": (lambda base, copies: base - copies // 2, False),
    "rises, then falls": (lambda base, copies: base - abs(copies - 3), False),
    "goes up and down": (lambda base, copies: base + copies * 7 % 4, False),
}

worlds = st.builds(
    lambda nodes, score: World(nodes, *score),
    st.lists(st.tuples(st.integers(0, 4).map(float), st.integers(0, 6)), max_size=8),
    st.sampled_from(list(SCORES.values())),
)


def one_by_one(world: World, m: int) -> list[int]:
    """Place tasks one after the other, each on the best node, the first among equals."""
    held = [0] * len(world.nodes)
    picks: list[int] = []
    for _ in range(m):
        scores = [
            (world.score(base, held[i] + 1), -i)
            for i, (base, fit) in enumerate(world.nodes)
            if held[i] < fit
        ]
        if not scores:
            break
        best = -max(scores)[1]
        held[best] += 1
        picks.append(best)
    return picks


def at_once(world: World, m: int, *, fills: bool) -> list[int]:
    base = np.array([base for base, _ in world.nodes])
    copies = np.array([float(fit) for _, fit in world.nodes])

    def score(at: Ints, numbers: Ints) -> Floats:
        return np.array([[world.score(float(base[i]), int(t)) for t in numbers] for i in at])

    first = np.array([world.score(b, 1) if fit else -np.inf for b, fit in world.nodes])
    picks: list[int] = greedy(first, copies, m, score, fills=fills).tolist()
    return picks


@given(worlds, st.integers(1, 40))
def test_the_sequence_is_that_of_one_task_after_the_other(world: World, m: int) -> None:
    assert at_once(world, m, fills=False) == one_by_one(world, m)


@given(worlds.filter(lambda world: world.fills), st.integers(1, 40))
def test_filling_gives_the_same_where_no_score_falls(world: World, m: int) -> None:
    assert at_once(world, m, fills=True) == one_by_one(world, m)


def test_looks_as_far_ahead_as_needed() -> None:
    """One node takes far more copies than an even spread would give it."""
    world = World([(0.0, 1), (1000.0, 60), (0.0, 1)], SCORES["falls"][0], fills=False)
    assert at_once(world, 62, fills=False) == [1] * 60 + [0, 2]


def test_no_nodes() -> None:
    assert at_once(World([], SCORES["stays"][0], fills=True), 3, fills=False) == []
