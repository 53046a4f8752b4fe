"""Whose turn it is: queues by what they hold of their due, looked at again after each job."""

from __future__ import annotations

import pytest

from tests.builders import a_conf, a_plugin, a_queue, nodes
from tests.unit.oracles.cases import Case, a_job, check

CONF = a_conf(
    "allocate",
    [
        a_plugin("drf", "enablePreemptable", "enableJobOrder"),
        a_plugin("proportion", "enableQueueOrder", "enableReclaimable"),
        a_plugin("predicates", "enablePredicate"),
        a_plugin("nodeorder", "enableNodeOrder"),
    ],
)
TWO_QUEUES = [a_queue("a"), a_queue("b")]
RUNNING = a_job("running", queue="a", on=["n"], phase="Running")

CASES = {
    "the queue that holds less goes first": Case(
        [
            nodes(n="5 5G pods=10"),
            TWO_QUEUES,
            RUNNING,
            a_job("x", asks="2 2G", queue="a"),
            a_job("y", asks="3 2G", queue="b"),
        ],
        {"y-0": "n"},
    ),
    "what it was given counts for its next turn": Case(
        [
            nodes(n="5 5G pods=10"),
            TWO_QUEUES,
            RUNNING,
            a_job("x", asks="2 2G", queue="a"),
            a_job("large", asks="2 2G", queue="b"),
            a_job("small", queue="b"),
        ],
        {"large-0": "n", "x-0": "n"},
    ),
    "a job with nothing to place does not take its queue's turn": Case(
        [nodes(n="5 5G pods=10"), TWO_QUEUES, RUNNING, a_job("x", asks="2 2G", queue="a")],
        {"x-0": "n"},
    ),
    "a heavier queue has more turns": Case(
        [
            nodes(n="4 8G pods=10"),
            [a_queue("a"), a_queue("b", weight=3)],
            a_job("x", 4, queue="a"),
            a_job("y", 4, queue="b"),
        ],
        {"x-0": "n", "y-0": "n", "y-1": "n", "y-2": "n"},
    ),
    "priority goes before the share": Case(
        [
            nodes(n="2 5G pods=10"),
            [a_queue("a", priority=1), a_queue("b")],
            RUNNING,
            a_job("x", queue="a"),
            a_job("y", queue="b"),
        ],
        {"x-0": "n"},
    ),
    "in a queue the job that holds less goes first": Case(
        [
            nodes(n="4 8G pods=10"),
            a_job("a", 3, on=["n", "n"], phase="Running"),
            a_job("b", 2, on=["n"], phase="Running"),
        ],
        {"b-1": "n"},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_whose_turn_it_is(case: Case) -> None:
    check(case, CONF)
