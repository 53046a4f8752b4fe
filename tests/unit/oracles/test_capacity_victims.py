"""capacity: who may take room back, and from whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from pumice.core.api.scheduling import Queue
from tests.builders import (
    ALL_FLAGS,
    a_cluster,
    a_conf,
    a_node,
    a_plugin,
    a_queue,
    a_session,
)
from tests.unit.oracles.cases import World, a_job

GPU = "a.b/gpu"


@dataclass(frozen=True)
class Case:
    """Queues, what runs in them, and what the pod `asking` of queue `own` asks for."""

    queues: Sequence[Queue]
    running: World
    asks: str
    #: newest first, as the session evicts them; None where the queue may not ask at all
    victims: list[str] | None
    level: int = 0


def held(name: str, queue: str, *asks: str) -> World:
    """Return one job for each running pod `<name>-<i>-0`."""
    return [
        a_job(f"{name}-{i}", asks=ask, queue=queue, phase="Running", on=["n"])
        for i, ask in enumerate(asks)
    ]


FLAT = {
    "room is taken back up to what is deserved": Case(
        [a_queue("other", deserved="2 4Gi"), a_queue("own", deserved="2 4Gi")],
        held("p", "other", "2 4Gi", "2 4Gi"),
        "2 4Gi",
        ["p-1-0"],
    ),
    "cpu that the queue holds too much of does not stop it from asking for devices": Case(
        [
            a_queue("other", deserved=f"2 4Gi {GPU}=10"),
            a_queue("own", deserved=f"2 4Gi {GPU}=10"),
        ],
        [
            *held("p", "other", f"0 0 {GPU}=10", f"0 0 {GPU}=10"),
            *held("q", "own", "2 4Gi", "2 4Gi"),
        ],
        f"0 0 {GPU}=10",
        ["p-1-0"],
    ),
    "one resource below the due is enough": Case(
        [
            a_queue("own", deserved="2 2Gi", capability="4 4Gi"),
            a_queue("other", deserved="0 0", capability="2 2Gi"),
        ],
        [*held("o", "own", "1 3Gi"), *held("p", "other", "1 1Gi")],
        "1 1Gi",
        ["p-0-0"],
    ),
    "none is not": Case(
        [
            a_queue("own", deserved="1 2Gi", capability="4 4Gi"),
            a_queue("other", deserved="0 0", capability="2 2Gi"),
        ],
        [*held("o", "own", "1 1Gi"), *held("p", "other", "1 1Gi")],
        "1 2Gi",
        None,
    ),
    "a queue that leaves some of its due gives nothing that it does not exceed": Case(
        [
            a_queue("whole", deserved=f"2 4Gi {GPU}=2"),
            a_queue("none"),
            a_queue("own", deserved=f"2 4Gi {GPU}=2"),
        ],
        [
            *held("w", "whole", "2 4Gi"),
            *held("p", "none", f"0 0 {GPU}=1"),
            *held("o", "own", f"2 1Gi {GPU}=1"),
        ],
        f"2 3Gi {GPU}=1",
        ["p-0-0"],
    ),
    "only what takes something that is asked for must go": Case(
        [a_queue("other", deserved="2 2Gi"), a_queue("own", deserved=f"2 4Gi {GPU}=1")],
        [
            *held("p", "other", "0 4Gi", "1 0", f"0 0 {GPU}=1"),
            *held("o", "own", "2 4Gi"),
        ],
        f"1 0 {GPU}=1",
        ["p-2-0"],
    ),
    "a queue that deserves devices alone keeps the cpu that goes with them": Case(
        [a_queue("other", deserved=f"0 0 {GPU}=1"), a_queue("own", deserved="2 2Gi")],
        held("p", "other", f"4 4Gi {GPU}=1"),
        "1 1Gi",
        [],
    ),
    "nobody asks for more than the queue may have": Case(
        [
            a_queue("own", deserved="8 64Gi", capability="8 64Gi"),
            a_queue("other", capability="2 5Gi"),
        ],
        [*held("o", "own", "7 60Gi"), *held("p", "other", "2 5Gi")],
        "2 5Gi",
        None,
    ),
    "a guarantee is kept": Case(
        [a_queue("other", deserved="2 0", guarantee="2 0"), a_queue("own", deserved="9 0")],
        held("p", "other", "1 0", "1 0", "1 0"),
        "3 0",
        ["p-2-0"],
    ),
    "of eight where six are due, two go": Case(
        [a_queue("own", deserved="4 0", guarantee="2 0"), a_queue("other", deserved="6 0")],
        [*held("o", "own", "2 0"), *held("p", "other", *["1 0"] * 8)],
        "2 0",
        ["p-7-0", "p-6-0"],
    ),
    "a closed queue may not ask": Case(
        [a_queue("own", deserved="2 2Gi", state="Closed"), a_queue("other")],
        held("p", "other", "1 1Gi"),
        "1 1Gi",
        None,
    ),
}
DUE_4 = [
    a_queue("root"),
    a_queue("pool", parent="root", deserved="4 4Gi", capability="4 4Gi"),
    a_queue("near", parent="pool", deserved="2 2Gi", capability="4 4Gi"),
    a_queue("own", parent="pool", deserved="2 2Gi", capability="4 4Gi"),
    a_queue("far", parent="root", deserved="2 2Gi", capability="4 4Gi"),
]
DEEP = [
    a_queue("root"),
    a_queue("grand-a", parent="root", deserved="2 2Gi", capability="4 4Gi"),
    a_queue("parent-a", parent="grand-a", deserved="2 2Gi", capability="2 2Gi"),
    a_queue("own", parent="parent-a", deserved="2 2Gi", capability="2 2Gi"),
    a_queue("grand-b", parent="root", deserved="3 3Gi", capability="4 4Gi"),
    a_queue("parent-b", parent="grand-b", deserved="1 1Gi", capability="2 2Gi"),
    a_queue("other", parent="parent-b", deserved="1 1Gi", capability="2 2Gi"),
]
PROJECTS = [
    a_queue("root"),
    a_queue("one", parent="root", deserved=f"0 0 {GPU}=1", capability=f"0 0 {GPU}=2"),
    a_queue("one-due", parent="one", deserved=f"0 0 {GPU}=1", capability=f"0 0 {GPU}=1"),
    a_queue("two", parent="root", deserved=f"0 0 {GPU}=3", capability=f"0 0 {GPU}=4"),
    a_queue("two-due", parent="two", deserved=f"0 0 {GPU}=3", capability=f"0 0 {GPU}=3"),
    a_queue("two-rest", parent="two"),
]
ONE = f"1 1Gi {GPU}=1"

TREE = {
    "the nearest relatives give first": Case(
        DUE_4,
        [*held("f", "far", "4 4Gi"), *held("p", "near", "2 2Gi", "2 2Gi")],
        "2 2Gi",
        ["p-1-0", "f-0-0"],
    ),
    "of devices alone": Case(
        [
            a_queue("root"),
            a_queue("up", parent="root", deserved=f"0 0 {GPU}=2"),
            a_queue("own", parent="up", deserved=f"0 0 {GPU}=2"),
            a_queue("other", parent="up"),
        ],
        held("p", "other", f"1 1Gi {GPU}=2 rdma/hca=1"),
        f"1 1Gi {GPU}=2 rdma/hca=1",
        ["p-0-0"],
    ),
    "the queue above may stand in for one that deserves nothing": Case(
        [
            a_queue("root"),
            a_queue("up", parent="root", deserved=f"0 0 {GPU}=1"),
            a_queue("own", parent="up"),
            a_queue("other", parent="root"),
        ],
        held("p", "other", f"1 1Gi {GPU}=4"),
        ONE,
        ["p-0-0"],
        level=1,
    ),
    "without a level it may not": Case(
        [
            a_queue("root"),
            a_queue("up", parent="root", deserved=f"0 0 {GPU}=1"),
            a_queue("own", parent="up"),
            a_queue("other", parent="root"),
        ],
        held("p", "other", f"1 1Gi {GPU}=4"),
        ONE,
        None,
    ),
    "another family gives until it holds its due": Case(
        [*PROJECTS, a_queue("own", parent="one")],
        held("p", "two-rest", *[ONE] * 4),
        ONE,
        ["p-3-0"],
        level=1,
    ),
    "within the family the queue above does not count": Case(
        [
            *PROJECTS,
            a_queue("own", parent="two", deserved=f"0 0 {GPU}=3"),
            a_queue("one-rest", parent="one"),
        ],
        [*held("p", "two-rest", *[ONE] * 3), *held("q", "one-rest", ONE)],
        ONE,
        ["p-2-0", "p-1-0", "p-0-0"],
        level=1,
    ),
    "a queue that holds its due gives nothing, whatever its family holds": Case(
        [
            a_queue("root"),
            a_queue("up", parent="root", deserved=f"0 0 {GPU}=1"),
            a_queue("other", parent="up", deserved=f"0 0 {GPU}=1"),
            a_queue("sibling", parent="up"),
            a_queue("up-2", parent="root", deserved=f"0 0 {GPU}=1"),
            a_queue("own", parent="up-2", deserved=f"0 0 {GPU}=1"),
        ],
        held("p", "other", ONE),
        ONE,
        [],
        level=1,
    ),
    "without a level only the queue itself is looked at": Case(
        DEEP, held("p", "other", "2 2Gi"), "2 2Gi", ["p-0-0"]
    ),
    "with one the queue above it, too": Case(
        DEEP, held("p", "other", "2 2Gi"), "2 2Gi", ["p-0-0"], level=1
    ),
    "with two, the next, which may be within its due": Case(
        DEEP, held("p", "other", "2 2Gi"), "2 2Gi", [], level=2
    ),
    "siblings that deserve nothing leave each other alone": Case(
        [
            a_queue("root"),
            a_queue("up", parent="root", deserved="4 4Gi", capability="4 4Gi"),
            a_queue("own", parent="up"),
            a_queue("other", parent="up"),
        ],
        held("p", "other", "2 2Gi"),
        "2 2Gi",
        [],
        level=1,
    ),
    "cousins as well, where the level reaches their common ancestor": Case(
        [
            a_queue("root"),
            a_queue("grand", parent="root", deserved="4 4Gi", capability="4 4Gi"),
            a_queue("up-a", parent="grand"),
            a_queue("own", parent="up-a"),
            a_queue("up-b", parent="grand"),
            a_queue("other", parent="up-b"),
        ],
        held("p", "other", "2 2Gi"),
        "2 2Gi",
        [],
        level=2,
    ),
    "at whatever depth they have it": Case(
        [
            a_queue("root"),
            a_queue("grand", parent="root", deserved="4 4Gi", capability="4 4Gi"),
            a_queue("up", parent="grand", deserved="1 1Gi", capability="2 2Gi"),
            a_queue("other", parent="up"),
            a_queue("own", parent="grand"),
        ],
        held("p", "other", "2 2Gi"),
        "2 2Gi",
        [],
        level=2,
    ),
}
CASES = {**{f"{name} (flat)": case for name, case in FLAT.items()}, **TREE}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_who_must_give(case: Case) -> None:
    flags = ["enablePreemptive", "enableReclaimable", "enableQueueOrder"]
    if case in TREE.values():
        flags.append("enableHierarchy")
    option = a_plugin("capacity", *flags, ancestorReclaimLevel=case.level)
    size = f"64 128Gi pods=99 {GPU}=32 rdma/hca=1001"
    asking = a_job("asking", asks=case.asks, queue="own")
    cluster = a_cluster(a_node("n", size), case.queues, *case.running, asking)
    assert not cluster.faults
    ssn = a_session(a_conf("reclaim", [option]), cluster)
    task = next(t for job in ssn.active for t in job.tasks.values() if t.name == "asking-0")
    others = [t for t in ssn.nodes.tasks_on("n").values() if t.job and not t.name.startswith("o-")]
    may_ask = ssn.is_preemptive(ssn.queues["own"], [task])
    got = [victim.name for victim in ssn.reclaimable(task, others)] if may_ask else None
    assert got == case.victims


GANGS = {
    "preempting within the queue is nobody's business here": ("gangpreempt", ["a", "b", "c", "d"]),
    "a whole gang takes back what is beyond the due": ("gangreclaim", ["a", "b"]),
}


@pytest.mark.parametrize(("action", "want"), GANGS.values(), ids=GANGS.keys())
def test_who_must_give_to_a_gang(action: str, want: list[str]) -> None:
    queues = [a_queue("own", deserved="4 0"), a_queue("other", deserved="2 0", guarantee="1 0")]
    running = [a_job(n, asks="1 0", queue="other", phase="Running", on=["n"]) for n in "abcd"]
    cluster = a_cluster(a_node("n", "9 9Gi"), queues, *running, a_job("asking", queue="own"))
    ssn = a_session(a_conf("reclaim", ["capacity"]), cluster)
    asking = next(job for job in ssn.active if job.name == "asking")
    candidates = list(ssn.nodes.tasks_on("n").values())
    victims = ssn.unified_evictable(action, asking, candidates)
    assert [victim.name.removesuffix("-0") for victim in victims] == want


def test_shares_follow_the_session_and_those_of_inner_queues_do_not() -> None:
    queues = [
        a_queue("root"),
        a_queue("x", parent="root", deserved="4 0"),
        a_queue("x1", parent="x", deserved="4 0"),
        a_queue("x2", parent="x", deserved="4 0"),
        a_queue("y", parent="root", deserved="4 0"),
    ]
    jobs = [
        a_job("in-x1", 4, "1 0", queue="x1"),
        a_job("in-x2", asks="1 0", queue="x2", on=["n"]),
        a_job("in-y", 2, "1 0", queue="y", on=["n", "n"]),
    ]
    option = a_plugin("capacity", "enableQueueOrder", "enableHierarchy")
    ssn = a_session(a_conf("allocate", [option]), a_cluster(a_node("n", "9 9Gi"), queues, *jobs))

    def order() -> list[str]:
        leaves = [ssn.queues[name] for name in ("x1", "x2", "y")]
        return [queue.name for queue in sorted(leaves, key=ssn.queue_key)]

    assert order() == ["x1", "x2", "y"]
    waiting = [t for job in ssn.active for t in job.tasks.values() if not t.node]
    statement = ssn.statement()
    statement.allocate(waiting, [0] * 4)
    assert order() == ["x2", "x1", "y"]
    statement.discard()
    assert order() == ["x1", "x2", "y"]


def test_a_queue_outside_the_tree_neither_asks_nor_gives() -> None:
    queues = [
        a_queue("lost", parent="nowhere", deserved="9 9Gi"),
        a_queue("ok", deserved="9 9Gi"),
    ]
    jobs = [
        a_job("in-lost", 2, "1 1Gi", queue="lost", on=["n"], phase="Running"),
        a_job("in-ok", 2, "1 1Gi", queue="ok", on=["n"], phase="Running"),
        a_job("new", queue="lost", least="1", phase="Pending"),
    ]
    ssn = a_session(
        a_conf("reclaim", [a_plugin("capacity", *ALL_FLAGS)]),
        a_cluster(a_node("n", "9 9Gi"), queues, *jobs),
    )
    tasks = {t.name: t for job in ssn.active for t in job.tasks.values()}
    gone, kept = tasks["in-lost-0"], tasks["in-ok-0"]
    lost, ok = (next(j for j in ssn.active if j.name == name) for name in ("new", "in-ok"))
    assert not ssn.is_preemptive(ssn.queues["lost"], [tasks["in-lost-1"]])
    assert ssn.reclaimable(tasks["in-lost-1"], [kept]) == []
    assert ssn.reclaimable(tasks["in-ok-1"], [gone]) == []
    assert ssn.unified_evictable("gangreclaim", lost, [kept]) == []
    assert ssn.unified_evictable("gangreclaim", ok, [gone]) == []
    assert not ssn.is_enqueueable(lost)
    told = "queue lost: its parent nowhere does not exist, nothing of it is scheduled"
    assert told in ssn.findings.warnings
    assert ssn.trouble(lost).message == "queue lost does not hang together with the root queue"
