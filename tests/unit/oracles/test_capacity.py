"""capacity: what queues may have, side by side and in a tree."""

from __future__ import annotations

import pytest

from tests.builders import a_cluster, a_conf, a_node, a_plugin, a_queue, a_session, nodes
from tests.unit.oracles.cases import Case, World, a_job, check

FLAT = ("enabledAllocatable", "enablePreemptive", "enableReclaimable", "enableQueueOrder")
TWO = nodes(n1="2 4Gi pods=10", n2="2 4Gi pods=10")

ALLOCATION = {
    "a queue below its capability gets more": Case(
        [
            nodes(n1="2 4Gi pods=10"),
            a_queue("q", capability="2 2Gi"),
            a_job("held", asks="1 1Gi", queue="q", phase="Running", on=["n1"]),
            a_job("new", asks="1 1Gi", queue="q"),
        ],
        {"new-0": "n1"},
    ),
    "a queue that would be above it does not": Case(
        [
            TWO,
            a_queue("q", capability="1500m 1536Mi"),
            a_job("held", asks="1 1Gi", queue="q", phase="Running", on=["n1"]),
            a_job("new", asks="1 1Gi", queue="q"),
        ],
    ),
    "the queue of highest priority goes first": Case(
        [
            TWO,
            [a_queue(n, priority=p, capability="2 4Gi") for n, p in (("a", 5), ("b", 1), ("c", 9))],
            a_job("held", asks="2 4Gi", queue="a", phase="Running", on=["n1"]),
            a_job("later", asks="2 4Gi", queue="b"),
            a_job("first", asks="2 4Gi", queue="c"),
        ],
        {"first-0": "n2"},
    ),
    "what another queue is guaranteed is not given": Case(
        [
            nodes(n1="4 8Gi pods=10"),
            [a_queue("q"), a_queue("kept", guarantee="3 1Gi")],
            a_job("new", 2, "1 1Gi", gang=1, queue="q"),
            a_job("own", 3, "1 0", queue="kept", gang=3),
        ],
        {"new-0": "n1", "own-0": "n1", "own-1": "n1", "own-2": "n1"},
    ),
}


@pytest.mark.parametrize("case", ALLOCATION.values(), ids=ALLOCATION.keys())
def test_side_by_side(case: Case) -> None:
    check(case, a_conf("allocate", [a_plugin("capacity", *FLAT), "predicates"]))


BUSY: World = [
    nodes(n1="3 3G pods=10", n2="3 3G pods=10"),
    [
        a_queue("a", deserved="2 2G", capability="2 2G"),
        a_queue("b", deserved="2 2G", capability="3 3G"),
    ],
    a_job("in-a", gang=1, asks="1 3G", least="1 3G", queue="a", phase="Running", on=["n1"]),
    a_job("in-b", gang=1, asks="3 1G", least="3 1G", queue="b", phase="Running", on=["n2"]),
]
"""Queue `a` holds more memory than it may have."""

ADMISSION = {
    "what is not asked for is not compared": Case(
        [*BUSY, a_job("new", asks="1 0G", least="1 0G", queue="a", phase="Pending")],
        {"new-0": "n1"},
    ),
    "what is, is": Case(
        [*BUSY, a_job("new", asks="1 1G", least="1 1G", queue="a", phase="Pending")],
        phases={"new": "Pending"},
    ),
    "a queue that may have more lets it in": Case(
        [
            *BUSY,
            a_queue("a", capability="4 6G"),
            a_job("new", asks="1 1G", gang=1, least="1 1G", queue="a", phase="Pending"),
        ],
        phases={"new": "Inqueue"},
    ),
    "a closed queue lets nothing in": Case(
        [*BUSY, a_queue("c", state="Closed"), a_job("new", least="1", queue="c", phase="Pending")],
        phases={"new": "Pending"},
    ),
}


@pytest.mark.parametrize("case", ADMISSION.values(), ids=ADMISSION.keys())
def test_admission(case: Case) -> None:
    flags = ("enabledAllocatable", "enablePreemptive", "enabledOverused", "enableJobEnqueued")
    check(case, a_conf("enqueue allocate", [a_plugin("capacity", *flags)]))


HALVES = [
    a_queue("root"),
    a_queue("left", parent="root", capability="4 4Gi"),
    a_queue("right", parent="root", capability="4 4Gi"),
    a_queue("small", parent="left", capability="1 1Gi"),
    a_queue("large", parent="left", capability="3 3Gi"),
]
UNIT = [
    a_queue("root"),
    a_queue("unit", parent="root", capability="6 10Gi"),
    a_queue("kid", parent="unit", capability="0 5Gi"),
]
POOL = [
    a_queue("root"),
    a_queue("pool", parent="root", deserved="4 4Gi", capability="4 4Gi pods=10"),
    *[
        a_queue(name, parent="pool", deserved=due, capability="4 4Gi pods=4")
        for name, due in (("a", "2 2Gi"), ("b", "2 2Gi"), ("c", "0 0"))
    ],
]
EIGHT = a_node("n1", "8 8Gi pods=11")

TREE = {
    "a leaf gets what it may have": Case(
        [EIGHT, HALVES, a_job("j", asks="1 1Gi", queue="small")], {"j-0": "n1"}
    ),
    "a queue with others below it gets nothing": Case(
        [EIGHT, HALVES, a_job("j", asks="1 1Gi", queue="left", phase="Pending")]
    ),
    "that stops none of the others": Case(
        [
            EIGHT,
            HALVES,
            a_job("inner", asks="1 1Gi", queue="left"),
            a_job("j", asks="1 1Gi", queue="small"),
        ],
        {"j-0": "n1"},
    ),
    "a gang goes beyond what its queue deserves": Case(
        [EIGHT, POOL, a_job("j", 2, "2 2Gi", gang=2, queue="a")], {"j-0": "n1", "j-1": "n1"}
    ),
    "nobody goes beyond what the queue above may have": Case(
        [
            EIGHT,
            POOL,
            a_job("in-a", asks="2 2Gi", queue="a", phase="Running", on=["n1"]),
            a_job("in-b", asks="2 2Gi", queue="b", phase="Running", on=["n1"]),
            a_job("j", asks="3 3Gi", queue="c"),
        ]
    ),
    "a limit that is not set is that of the queue above": Case(
        [
            EIGHT,
            [
                a_queue("root"),
                a_queue("up", parent="root", capability="0 4Gi"),
                a_queue("down", parent="up", capability="0 2Gi"),
            ],
            a_job("j", asks="1 0", queue="down"),
        ],
        {"j-0": "n1"},
    ),
    "and holds where that queue has one": Case(
        [
            a_node("n1", "16 16Gi"),
            UNIT,
            a_job("fits", asks="2 1Gi", queue="kid", on=["n1"], phase="Running"),
            a_job("beyond", asks="5 1Gi", queue="kid"),
            a_job("within", asks="4 1Gi", queue="kid"),
        ],
        {"within-0": "n1"},
    ),
    "the same of devices": Case(
        [
            a_node("n2", "8 8Gi pods=10 a.b/gpu=8 hugepages-1Gi=0"),
            [
                a_queue("root"),
                a_queue("up", parent="root"),
                a_queue("x", parent="up", capability="4 4Gi a.b/gpu=4"),
                a_queue("y", parent="up", capability="4 4Gi a.b/gpu=4"),
            ],
            a_job("in-x", asks="1 1Gi a.b/gpu=4", queue="x"),
            a_job("in-y", asks="1 1Gi a.b/gpu=4", queue="y"),
        ],
        {"in-x-0": "n2", "in-y-0": "n2"},
    ),
    "the queue above lets in what it may have itself": Case(
        [
            EIGHT,
            [
                a_queue("root"),
                a_queue("up", parent="root", capability="2 4Gi"),
                a_queue("x", parent="up"),
                a_queue("y", parent="up"),
            ],
            a_job("in-x", 0, least="2 4Gi", queue="x", phase="Pending", gang=1),
            a_job("in-y", 0, least="2 4Gi", queue="y", phase="Pending", gang=1),
        ],
        phases={"in-x": "Inqueue", "in-y": "Pending"},
    ),
    "what a sibling is guaranteed is not given": Case(
        [
            EIGHT,
            [
                a_queue("root"),
                a_queue("up", parent="root", capability="4 8Gi"),
                a_queue("x", parent="up"),
                a_queue("kept", parent="up", guarantee="3 0"),
            ],
            a_job("j", 2, "1 1Gi", gang=1, queue="x"),
        ],
        {"j-0": "n1"},
    ),
    "queues whose parent is missing get nothing, and stop nobody": Case(
        [
            EIGHT,
            [a_queue("lost", parent="nowhere"), a_queue("ok")],
            a_job("in-lost", asks="1 1Gi", queue="lost"),
            a_job("in-ok", asks="1 1Gi", queue="ok"),
        ],
        {"in-ok-0": "n1"},
    ),
    "queues in a circle get nothing": Case(
        [
            EIGHT,
            [a_queue("x", parent="y"), a_queue("y", parent="x"), a_queue("z", parent="y")],
            a_job("j", asks="1 1Gi", queue="z"),
        ],
    ),
}


@pytest.mark.parametrize("case", TREE.values(), ids=TREE.keys())
def test_in_a_tree(case: Case) -> None:
    flags = (*FLAT, "enableHierarchy", "enableJobEnqueued")
    check(case, a_conf("enqueue allocate", [a_plugin("capacity", *flags), "predicates"]))


def test_queues_are_compared_where_their_paths_part() -> None:
    queues = [
        a_queue("root"),
        a_queue("a", parent="root", deserved="6 0"),
        a_queue("a1", parent="a", deserved="6 0"),
        a_queue("a2", parent="a", deserved="2 0"),
        a_queue("b", parent="root", deserved="8 0"),
    ]
    jobs = [
        a_job("in-a1", asks="0 1Gi", queue="a1", on=["n"]),
        a_job("in-a2", asks="3 1Gi", queue="a2", on=["n"]),
        a_job("in-b", asks="2 1Gi", queue="b", on=["n"]),
    ]
    option = a_plugin("capacity", "enableQueueOrder", "enableHierarchy")
    ssn = a_session(a_conf("allocate", [option]), a_cluster(a_node("n", "16 16Gi"), queues, *jobs))
    ordered = sorted(ssn.queues.values(), key=ssn.queue_key)
    assert [queue.name for queue in ordered] == ["b", "a1", "a2", "root", "a"]
