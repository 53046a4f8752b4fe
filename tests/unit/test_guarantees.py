"""What queues are guaranteed stays free for them, however many others there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from pumice.core.api.scheduling import PodGroupPhase
from pumice.core.conf import Configuration
from tests.builders import (
    ALL_FLAGS,
    DEFAULT_FLAGS,
    Thing,
    a_conf,
    a_job,
    a_plan,
    a_plugin,
    a_queue,
    nodes,
    placements,
    waits,
)

FLAT = {
    "proportion": a_plugin("proportion"),
    "capacity": a_plugin("capacity"),
    "capacity in a tree": a_plugin("capacity", *(DEFAULT_FLAGS | {"enableHierarchy"})),
}


def conf(divides: str) -> Configuration:
    return a_conf("enqueue allocate", ["gang"], ["predicates", FLAT[divides]])


def singles(queue: str, n: int, on: str = "") -> list[Iterable[Thing]]:
    """Return jobs of one pod and one cpu each."""
    phase: PodGroupPhase = "Running" if on else "Inqueue"
    return [a_job(f"{queue}{i}", queue=queue, phase=phase, on=[on] if on else ()) for i in range(n)]


def placed(divides: str, *things: Thing | Iterable[Thing]) -> Counter[str]:
    """Return how many pods of each queue are placed."""
    return Counter(pod[0] for pod in placements(a_plan(conf(divides), *things)))


@pytest.mark.parametrize("divides", FLAT)
def test_several_queues_together_leave_what_another_one_is_guaranteed(divides: str) -> None:
    world: list[Iterable[Thing]] = [
        nodes(n="8 64Gi"),
        [a_queue("root"), a_queue("kept", guarantee="2", deserved="2"), a_queue("a"), a_queue("b")],
        *singles("a", 8),
        *singles("b", 8),
    ]
    found = placed(divides, *world)
    assert found["a"] + found["b"] == 6
    found = placed(divides, *world, *singles("kept", 2))
    assert (found["a"] + found["b"], found["k"]) == (6, 2)


@pytest.mark.parametrize("divides", FLAT)
def test_one_that_is_guaranteed_some_leaves_others_theirs(divides: str) -> None:
    queues = [a_queue(q, guarantee="3", deserved="3") for q in ("g", "h")]
    found = placed(
        divides,
        nodes(n="8 64Gi"),
        [a_queue("root"), a_queue("o"), *queues],
        *singles("o", 2, on="n"),
        *singles("g", 6),
    )
    assert found == {"g": 3}


@pytest.mark.parametrize("divides", FLAT)
def test_what_is_used_of_a_guarantee_is_not_kept_twice(divides: str) -> None:
    found = placed(
        divides,
        nodes(n="8 64Gi"),
        [a_queue("root"), a_queue("kept", guarantee="4", deserved="4"), a_queue("a")],
        *singles("kept", 3, on="n"),
        *singles("a", 8),
    )
    assert found == {"a": 4}


def test_siblings_share_what_their_parent_may_have() -> None:
    """Each of three may have five of nine by itself, and is guaranteed two."""
    below = [a_queue(q, parent="up", guarantee="2", deserved="3") for q in ("q1", "q2", "q3")]
    up = a_queue("up", parent="root", capability="9", guarantee="9", deserved="9")
    plan = a_plan(
        a_conf("enqueue allocate", ["gang"], ["predicates", a_plugin("capacity", *ALL_FLAGS)]),
        nodes(n="64 64Gi"),
        [a_queue("root"), up, *below],
        a_job("a", 1, "4", queue="q1", created=0),
        a_job("b", 1, "4", queue="q2", created=1),
        a_job("c", 1, "2", queue="q3", created=2),
        a_job("d", 1, "2", queue="q2", created=3),
    )
    assert sorted(placements(plan)) == ["a-0", "c-0", "d-0"]
    assert "what is left of cpu is guaranteed to other queues than q2" in waits(plan)["b"]
