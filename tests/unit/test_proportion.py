"""proportion: what queues deserve, and what follows from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.conf import Arguments
from pumice.core.ids import PodUid
from pumice.core.model.tasks import Task
from pumice.core.plugins.proportion import Attributes, Proportion, fill
from pumice.core.resources import EPSILON
from pumice.core.session import Session
from tests.builders import (
    Thing,
    a_cluster,
    a_conf,
    a_job,
    a_node,
    a_plan,
    a_queue,
    a_session,
    placements,
    waits,
)


@dataclass(frozen=True)
class Claim:
    """A queue's part in the filling; amounts as (cpu, memory, pods)."""

    request: Sequence[float]
    weight: int = 1
    capability: Sequence[float] = (np.inf, np.inf, np.inf)
    guarantee: Sequence[float] = (0.0, 0.0, 0.0)

    def attributes(self) -> Attributes:
        zeros = np.zeros(3)
        return Attributes(
            weight=self.weight,
            guarantee=np.array(self.guarantee),
            capability=np.array(self.capability),
            request=np.array(self.request),
            inqueue=zeros,
            elastic=zeros,
            allocated=[0.0] * 3,
            deserved=zeros,
        )


def cpu(amount: float) -> tuple[float, float, float]:
    return (amount, 0.0, 0.0)


def deserved(total: Sequence[float], *claims: Claim) -> list[list[float]]:
    queues = [claim.attributes() for claim in claims]
    fill(queues, np.array(total))
    return [queue.deserved.tolist() for queue in queues]


@dataclass(frozen=True)
class Fill:
    total: float
    claims: list[Claim]
    want: list[float]


FILLS = {
    "one queue gets what it asks for": Fill(10, [Claim(cpu(4))], [4]),
    "one queue gets no more than there is": Fill(10, [Claim(cpu(40))], [10]),
    "weights decide": Fill(12, [Claim(cpu(40)), Claim(cpu(40), weight=2)], [4, 8]),
    "what one leaves goes to the others": Fill(
        12, [Claim(cpu(2)), Claim(cpu(40)), Claim(cpu(40))], [2, 5, 5]
    ),
    "a capability bounds": Fill(
        12000,
        [
            Claim(cpu(2000)),
            Claim(cpu(20000), weight=2),
            Claim(cpu(20000), capability=cpu(3000)),
        ],
        [2000, 7000, 3000],
    ),
    "a guarantee is not lent": Fill(
        12, [Claim(cpu(0), guarantee=cpu(4)), Claim(cpu(40), capability=cpu(8))], [4, 8]
    ),
    "a weight of none gets nothing": Fill(12, [Claim(cpu(4), weight=0), Claim(cpu(4))], [0, 4]),
    "nobody asks": Fill(12, [Claim(cpu(0)), Claim(cpu(0))], [0, 0]),
}


@pytest.mark.parametrize("case", FILLS.values(), ids=FILLS.keys())
def test_what_queues_deserve(case: Fill) -> None:
    got = [row[0] for row in deserved(cpu(case.total), *case.claims)]
    assert got == pytest.approx(case.want)


def test_queues_that_do_not_compete_each_get_all_of_theirs() -> None:
    light = Claim((0.0, 4.0, 0.0))
    heavy = Claim((4.0, 0.0, 0.0), weight=3)
    assert deserved((4.0, 4.0, 0.0), light, heavy) == [[0.0, 4.0, 0.0], [4.0, 0.0, 0.0]]


def test_a_queue_that_is_met_within_the_tolerance_gets_its_last_unit() -> None:
    """A third three times over is less than one; the last task must not fail by that."""
    claims = [Claim(cpu(1.0)), Claim(cpu(1.0)), Claim(cpu(1.0))]
    assert [row[0] >= 1.0 for row in deserved(cpu(3.0 - EPSILON / 4), *claims)] == [True] * 3


def test_a_queue_does_not_lose_a_task_to_a_rounding_error() -> None:
    claims = [
        Claim(cpu(7000)),
        Claim(cpu(3000), weight=2, capability=cpu(1000)),
        Claim(cpu(6000), weight=3),
    ]
    assert deserved(cpu(11000), *claims) == [[4000, 0, 0], [1000, 0, 0], [6000, 0, 0]]


claims = st.builds(
    lambda request, weight: Claim(tuple(map(float, request)), weight),
    st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 5)),
    st.integers(1, 5),
)


@given(st.lists(claims, min_size=1, max_size=5), st.integers(0, 100))
def test_no_more_is_given_than_there_is_and_nobody_gets_more_than_asked(
    queues: list[Claim], total: int
) -> None:
    rows = np.array(deserved((float(total),) * 3, *queues))
    assert (rows.sum(axis=0) <= total + EPSILON * len(queues)).all()
    assert (rows <= np.array([q.request for q in queues]) + EPSILON).all()


@given(st.lists(claims, min_size=1, max_size=5), st.integers(0, 100))
def test_nothing_that_is_asked_for_is_left_over(queues: list[Claim], total: int) -> None:
    rows = np.array(deserved((float(total), 0.0, 0.0), *queues))[:, 0]
    asked = sum(q.request[0] for q in queues)
    assert rows.sum() == pytest.approx(min(float(total), asked), abs=EPSILON)


@dataclass(frozen=True)
class Held:
    """By whom a waiting pod is held, and in which words."""

    world: Sequence[Thing]
    message: str
    by_capacity: bool


HELD = {
    "the queue's own capability": Held(
        [a_node("n", "8 8Gi"), a_queue("default", capability="1 1Gi"), *a_job("j", 2)],
        "queue default holds 0 of the 1 cpu that it deserves",
        by_capacity=False,
    ),
    "the size of the cluster": Held(
        [a_node("n", "1500m 8Gi"), *a_job("j", 2)],
        "queue default holds 0 of the 1500m cpu that it deserves",
        by_capacity=True,
    ),
    "a queue that is closing": Held(
        [a_node("n", "8 8Gi"), a_queue("default", state="Closing"), *a_job("j", 2)],
        "queue default is not open",
        by_capacity=False,
    ),
}


@pytest.mark.parametrize("case", HELD.values(), ids=HELD.keys())
def test_who_holds_a_pod(case: Held) -> None:
    conf = a_conf("allocate", ["gang"], ["proportion"])
    plan = a_plan(conf, *case.world)
    (group,) = plan.groups
    note = group.pods[PodUid("j-1")]
    assert (note.message, note.by_capacity) == (case.message, case.by_capacity)
    assert case.message in waits(plan)["j"]


def a_shared_session() -> Session:
    """Return a session in which `rich` holds 3 of 4 cpu and `poor` 1, at equal weights."""
    return a_session(
        a_conf("allocate", ["proportion"]),
        a_cluster(
            a_node("n", "4 64Gi"),
            [a_queue("rich"), a_queue("poor")],
            a_job("r", 4, "1", queue="rich", on=["n"] * 3, phase="Running"),
            a_job("p", 3, "1", queue="poor", on=["n"], phase="Running"),
        ),
    )


def members(ssn: Session, job: str) -> list[Task]:
    return [t for j in ssn.active if j.name == job for t in j.tasks.values()]


def test_victims_are_taken_until_their_queue_has_its_due() -> None:
    ssn = a_shared_session()
    wanting = members(ssn, "p")[1]
    victims = ssn.reclaimable(wanting, members(ssn, "r")[:3])
    assert [task.name for task in victims] == ["r-0"]
    assert ssn.is_preemptive(ssn.queues["poor"], [wanting])
    assert not ssn.is_preemptive(ssn.queues["poor"], [wanting, wanting])


def test_order_and_limits_follow_the_session() -> None:
    ssn = a_shared_session()
    rich, poor = ssn.queues["rich"], ssn.queues["poor"]
    waiting = members(ssn, "p")[1]
    assert ssn.queue_key(poor) < ssn.queue_key(rich)
    assert [ssn.allocatable(q, waiting.cls, 5) for q in (rich, poor)] == [0, 1]
    statement = ssn.statement()
    statement.allocate([waiting], [0])
    assert ssn.allocatable(poor, waiting.cls, 5) == 0
    statement.discard()
    assert ssn.allocatable(poor, waiting.cls, 5) == 1


def test_a_queue_is_overused_when_it_holds_its_due_in_every_dimension() -> None:
    plugin = Proportion(Arguments())
    ssn = a_session(
        a_conf("allocate", []), a_cluster(a_node("n"), a_job("j", on=["n"], phase="Running"))
    )
    plugin.on_session_open(ssn)
    assert plugin.overused(ssn.queues["default"])
    ssn = a_session(
        a_conf("allocate", []), a_cluster(a_node("n"), a_job("j", 2, on=["n"], phase="Running"))
    )
    plugin = Proportion(Arguments())
    plugin.on_session_open(ssn)
    assert not plugin.overused(ssn.queues["default"])


@dataclass(frozen=True)
class Shared:
    """How many pods each group gets in one session of the usual plugins."""

    world: Sequence[Thing | Iterable[Thing]]
    want: dict[str, int]


SHARED = {
    "a task beyond the queue's capability waits, a smaller one behind it does not": Shared(
        [
            a_node("n", "16 16Gi"),
            a_queue("default", capability="4 64Gi"),
            a_job("a", asks="3 1Gi", on=["n"], phase="Running"),
            a_job("b", asks="4 1Gi", created=1),
            a_job("c", asks="1 1Gi", created=2),
        ],
        {"c": 1},
    ),
    "a capability in devices": Shared(
        [
            a_node("n", "16 16Gi nvidia.com/gpu=8"),
            a_queue("default", capability="80 128Gi nvidia.com/gpu=2"),
            [thing for i in range(4) for thing in a_job(f"t{i}", asks="1 1Gi nvidia.com/gpu=1")],
        ],
        {"t0": 1, "t1": 1},
    ),
    "a contended cluster is split by weight": Shared(
        [
            a_node("n", "8 16Gi"),
            [a_queue("light", weight=1, deserved="8"), a_queue("heavy", weight=3)],
            a_job("light", 8, gang=1, queue="light"),
            a_job("heavy", 8, gang=1, queue="heavy"),
        ],
        {"light": 2, "heavy": 6},
    ),
    "a guarantee that nobody uses is not lent": Shared(
        [
            a_node("n", "8 16Gi"),
            [a_queue("kept", guarantee="4"), a_queue("open")],
            a_job("o", 8, gang=1, queue="open"),
        ],
        {"o": 4},
    ),
    "queues that ask for different devices each get all of theirs": Shared(
        [
            a_node("n", "16 16Gi example.com/a=4 example.com/b=4"),
            [a_queue("qa", weight=1), a_queue("qb", weight=3)],
            a_job("a", 4, "100m example.com/a=1", gang=1, queue="qa"),
            a_job("b", 4, "100m example.com/b=1", gang=1, queue="qb"),
        ],
        {"a": 4, "b": 4},
    ),
}
USUAL = a_conf(
    "enqueue allocate backfill",
    ["priority", "gang", "conformance"],
    ["overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"],
)


@pytest.mark.parametrize("case", SHARED.values(), ids=SHARED.keys())
def test_what_queues_get(case: Shared) -> None:
    placed = Counter(uid.rsplit("-", 1)[0] for uid in placements(a_plan(USUAL, *case.world)))
    assert placed == case.want
