"""enqueue: which groups are let into their queues, and what the others are told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pytest

from pumice.core.conf import Configuration
from tests.builders import Thing, a_conf, a_job, a_node, a_plan, a_plugin, a_queue, nodes

QUEUE = a_plugin("proportion", "enableJobEnqueued")
BOTH = a_conf("enqueue", ["priority"], ["overcommit", "proportion"])


@dataclass(frozen=True)
class Case:
    world: Sequence[Thing | Iterable[Thing]]
    admitted: list[str]
    told: dict[str, str] = field(default_factory=dict)
    conf: Configuration = BOTH


BUSY: list[Thing | Iterable[Thing]] = [
    nodes(n1="2 2G", n2="2 2G"),
    [a_queue("q1", capability="2 2G"), a_queue("q2", capability="3 3G")],
    a_job("r1", asks="1 2G", queue="q1", resources="1 2G", phase="Running", on=["n1"]),
    a_job("r2", asks="2 1G", queue="q2", resources="2 1G", phase="Running", on=["n2"]),
]
ALONE = a_conf("enqueue", [QUEUE])
CASES = {
    "without a minimum nobody is asked": Case([a_job("a", phase="Pending")], ["a"]),
    "not even a closed queue": Case(
        [a_queue("default", state="Closed"), a_job("a", phase="Pending")], ["a"]
    ),
    "a phase that is not written yet is Pending": Case([a_job("a", phase="")], ["a"]),
    "those let in before are left alone": Case([a_job("a", phase="Inqueue")], []),
    "a minimum within the queue's capability": Case(
        [
            a_node("n", "16 16G"),
            a_queue("default", capability="8 8G"),
            a_job("a", phase="Pending", resources="8 8G"),
        ],
        ["a"],
    ),
    "a minimum beyond it": Case(
        [
            a_node("n", "16 16G"),
            a_queue("default", capability="1 1G"),
            a_job("a", phase="Pending", resources="8 8G"),
        ],
        [],
        {"a": "queue resource quota insufficient: insufficient cpu, insufficient memory"},
    ),
    "a minimum beyond the cluster": Case(
        [a_node("n", "4 16G"), *a_job("a", phase="Pending", resources="5")],
        [],
        {"a": "resource in cluster is overused: overused cpu"},
        a_conf("enqueue", ["overcommit"]),
    ),
    "only what is asked for is compared": Case(
        [*BUSY, a_job("a", queue="q1", phase="Pending", resources="1 0G")], ["a"], conf=ALONE
    ),
    "what is held counts": Case(
        [*BUSY, a_job("a", queue="q1", phase="Pending", resources="1 1G")],
        [],
        {"a": "queue resource quota insufficient: insufficient memory"},
        ALONE,
    ),
    "a closed queue lets in no minimum": Case(
        [
            a_node("n"),
            a_queue("default", state="Closed"),
            a_job("a", phase="Pending", resources="1 1G"),
        ],
        [],
        {"a": "queue default is not open"},
    ),
    "what was let in just now counts": Case(
        [
            a_node("n", "4 8G"),
            a_queue("default", capability="3 8G"),
            a_job("a", phase="Pending", resources="2", created=1),
            a_job("b", phase="Pending", resources="2", created=2),
            a_job("c", phase="Pending", resources="1", created=3),
        ],
        ["a", "c"],
        {"b": "queue resource quota insufficient: insufficient cpu"},
    ),
    "what was let in before and is not running counts": Case(
        [
            a_node("n", "4 8G"),
            a_queue("default", capability="3 8G"),
            a_job("a", phase="Inqueue", resources="2", created=1),
            a_job("b", phase="Pending", resources="2", created=2),
        ],
        [],
        {"b": "queue resource quota insufficient: insufficient cpu"},
    ),
    "what it has started counts once": Case(
        [
            a_node("n", "4 8G"),
            a_queue("default", capability="3 8G"),
            a_job("a", 2, phase="Inqueue", resources="2", created=1, on=["n", "n"]),
            a_job("b", phase="Pending", resources="1", created=2),
        ],
        ["b"],
        conf=ALONE,
    ),
    "what a job holds beyond its minimum does not count": Case(
        [
            a_node("n", "4 8G"),
            a_queue("default", capability="3 8G"),
            a_job("a", 3, gang=1, phase="Running", resources="1", on=["n", "n", "n"]),
            a_job("b", phase="Pending", resources="2"),
        ],
        ["b"],
        conf=ALONE,
    ),
    "a job of a queue that does not exist is left out": Case(
        [a_queue("other"), a_job("a", gang=0, queue="gone", phase="Pending")],
        [],
        {"a": "queue gone not found"},
    ),
    "queues take turns": Case(
        [
            [a_queue("q1"), a_queue("q2")],
            a_job("a", queue="q1", phase="Pending", created=1),
            a_job("b", queue="q1", phase="Pending", created=2),
            a_job("c", queue="q2", phase="Pending", created=3),
        ],
        ["a", "b", "c"],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_enqueue(case: Case) -> None:
    plan = a_plan(case.conf, *case.world)
    assert [e.job.split("/")[1] for e in plan.enqueued] == case.admitted
    told = {g.job.split("/")[1]: g.event[2] for g in plan.groups if g.event}
    assert {name: text for name, text in told.items() if name in case.told} == case.told
    waiting = {g.job.split("/")[1] for g in plan.groups if g.phase == "Pending"}
    assert not waiting & set(case.admitted)


def test_a_rejection_has_its_numbers() -> None:
    plan = a_plan(
        ALONE,
        a_node("n", "16 16G"),
        a_queue("default", capability="4 8G"),
        a_job("r", 2, asks="1 1G", phase="Running", on=["n", "n"], resources="2 2G"),
        a_job("a", phase="Pending", resources="3 1G"),
    )
    (group,) = [g for g in plan.groups if g.job == "ns/a"]
    assert group.reason is not None
    numbers = {k: v for k, v in group.reason.numbers.items() if k.endswith("cpu")}
    want = {"minimum cpu": 3000.0, "taken cpu": 2000.0, "capability cpu": 4000.0}
    assert {name: numbers[name] for name in want} == want


def test_an_admission_says_what_for() -> None:
    plan = a_plan(BOTH, a_node("n"), a_job("a", phase="Pending", resources="1 1Ki"))
    (admitted,) = plan.enqueued
    assert (admitted.group_uid, admitted.reason.message) == (
        "group-a",
        "the minimum of resources can be had",
    )
    assert admitted.reason.numbers == {"minimum cpu": 1000.0, "minimum memory": 1024.0}
