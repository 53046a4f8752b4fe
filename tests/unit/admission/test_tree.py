"""The tree of queues: how deep, how wide, and what a parent leaves for its children."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.admission import queues
from pumice.core.admission.queues import Rules
from pumice.core.api.scheduling import Queue
from tests.builders import a_queue
from tests.unit.admission.builders import messages, view
from tests.unit.admission.test_queues import holding


@dataclass(frozen=True)
class Case:
    standing: list[Queue]
    queue: Queue
    want: list[str] = field(default_factory=list)


def chain(length: int) -> list[Queue]:
    """Return queues one below the other: q1 below root, q2 below q1..."""
    return [a_queue(f"q{i}", parent=f"q{i - 1}" if i > 1 else "") for i in range(1, length + 1)]


CASES = {
    "a child of root": Case([], a_queue("q", parent="root", capability="4")),
    "a child of a queue": Case([a_queue("p")], a_queue("q", parent="p")),
    "the deepest that may be": Case(chain(4), a_queue("q5", parent="q4")),
    "one deeper": Case(
        chain(5), a_queue("q6", parent="q5"), ["queue q6 exceeds the maximum allowed depth of 5"]
    ),
    "a parent that is below": Case(
        chain(3),
        a_queue("q1", parent="q3"),
        ["queue q1 cannot be below queue q3, which is below it"],
    ),
    "a parent that there is not": Case(
        [],
        a_queue("q", parent="p"),
        ['failed to get parent queue p of queue q: queue.scheduling.volcano.sh "p" not found'],
    ),
    "a parent that holds pods": Case(
        [holding(a_queue("p"), "2")],
        a_queue("q", parent="p"),
        ["queue p cannot be the parent queue of queue q because it has allocated Pods: 2"],
    ),
    "a parent that holds what its children hold": Case(
        [holding(a_queue("p"), 2), holding(a_queue("q1", parent="p"), 2)],
        a_queue("q2", parent="p"),
    ),
    "a capability within the parent's": Case(
        [a_queue("p", capability="4 8Gi")], a_queue("q", parent="p", capability="4 8Gi")
    ),
    "a capability above the parent's": Case(
        [a_queue("p", capability="4 8Gi example.com/gpu=2")],
        a_queue("q", parent="p", capability="4500m 16Gi example.com/gpu=3"),
        [
            "queue q capability[cpu]=4500m exceeds its ancestor's capability=4",
            "queue q capability[memory]=16Gi exceeds its ancestor's capability=8Gi",
            "queue q capability[example.com/gpu]=3000.00 exceeds its ancestor's capability=2000.00",
        ],
    ),
    "a capability above that of the nearest ancestor that has one": Case(
        [a_queue("g", capability="4"), a_queue("p", parent="g", capability="0 1Gi")],
        a_queue("q", parent="p", capability="5"),
        ["queue q capability[cpu]=5 exceeds its ancestor's capability=4"],
    ),
    "a capability that no ancestor names": Case(
        [a_queue("p", capability="4")], a_queue("q", parent="p", capability="1 99Gi")
    ),
    "a capability below a descendant's": Case(
        [
            a_queue("a", parent="q"),
            a_queue("b", parent="a", capability="3"),
            a_queue("c", parent="q", capability="2"),
        ],
        a_queue("q", capability="1"),
        ["queue q capability[cpu]=1 is smaller than its descendants' max capability=3"],
    ),
    "a capability of the descendants' size": Case(
        [a_queue("a", parent="q", capability="3")], a_queue("q", capability="3")
    ),
    "children that deserve what their parent does": Case(
        [a_queue("p", deserved="4"), a_queue("a", parent="p", deserved="3")],
        a_queue("q", parent="p", deserved="1"),
    ),
    "children that deserve more than their parent": Case(
        [a_queue("p", deserved="4"), a_queue("a", parent="p", deserved="3")],
        a_queue("q", parent="p", deserved="2"),
        [
            "parent queue p validation failed: sum of children's deserved (cpu 5000.00, memory"
            " 0.00) exceeds parent's deserved limit (cpu 4000.00, memory 0.00)"
        ],
    ),
    "a child that is guaranteed something where its parent is not": Case(
        [a_queue("p", deserved="4")],
        a_queue("q", parent="p", deserved="1 example.com/gpu=1", guarantee="1"),
        [
            "parent queue p validation failed: sum of children's guarantee (cpu 1000.00, memory"
            " 0.00) exceeds parent's guarantee limit (cpu 0.00, memory 0.00)",
            "parent queue p validation failed: sum of children's deserved (cpu 1000.00, memory"
            " 0.00, example.com/gpu 1000.00) exceeds parent's deserved limit (cpu 4000.00, memory"
            " 0.00)",
        ],
    ),
    "children of root deserve what they like": Case(
        [a_queue("root", deserved="1"), a_queue("a", deserved="9")], a_queue("q", deserved="9")
    ),
    "a parent that deserves less than its children": Case(
        [a_queue("a", parent="q", deserved="2")],
        a_queue("q", deserved="1"),
        [
            "queue q validation failed: sum of children's deserved (cpu 2000.00, memory 0.00)"
            " exceeds parent's deserved limit (cpu 1000.00, memory 0.00)"
        ],
    ),
    "root itself is exempt": Case(
        [a_queue("a", deserved="2", capability="3")], a_queue("root", capability="1")
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_place_and_amounts(case: Case) -> None:
    assert messages(queues.check_create(case.queue, view(*case.standing), Rules())) == case.want


def test_the_depth_is_the_installation_s_choice() -> None:
    got = queues.check_create(a_queue("q3", parent="q2"), view(*chain(2)), Rules(max_depth=2))
    assert messages(got) == ["queue q3 exceeds the maximum allowed depth of 2"]


NAMES = st.sampled_from(("a", "b", "c", "d", "root"))


@given(st.dictionaries(NAMES, NAMES), NAMES, NAMES)
def test_a_tree_that_is_none_ends(parents: dict[str, str], name: str, parent: str) -> None:
    standing = view(*(a_queue(n, parent=p, capability="1") for n, p in parents.items()))
    queue = a_queue(name, parent=parent, capability="2")
    assert isinstance(queues.check_create(queue, standing, Rules()), list)
    assert isinstance(queues.check_delete(name, standing, Rules()), list)
