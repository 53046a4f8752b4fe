"""reclaim: what queues take back from each other, and what they do not."""

from __future__ import annotations

import pytest

from tests.builders import a_conf, a_plan, a_plugin, a_priority_class, a_queue, nodes, placements
from tests.builders import a_job as a_job_of_age
from tests.unit.oracles.evictions import Case, a_job, check, runs, waits

TIER = [
    a_plugin("conformance", "enableReclaimable"),
    a_plugin("gang", "enableReclaimable", "enableJobStarving"),
    a_plugin("proportion", "enableReclaimable", "enableQueueOrder", "enablePreemptive"),
]
CONF = a_conf("reclaim", TIER)
RANKED = a_conf(
    "reclaim",
    [*TIER, a_plugin("priority", "enableReclaimable", "enableJobOrder", "enableTaskOrder")],
)
RANKS = [a_priority_class(n, v) for n, v in (("low", 100), ("middle", 500), ("high", 1000))]
TWO_QUEUES = [a_queue("q1"), a_queue("q2")]
THREE_OF_Q1 = a_job(
    "a",
    [runs("keeps", stays=True), runs("gives"), runs("stays", stays=True)],
    queue="q1",
    phase="Running",
)

CASES = {
    "a queue that holds more than its due gives": Case(
        [
            nodes(n="3 3Gi pods=10"),
            TWO_QUEUES,
            THREE_OF_Q1,
            a_job("b", [waits("c")], queue="q2"),
        ],
        ["gives"],
        {"b": ["n"]},
    ),
    "not for a pod that does not want it": Case(
        [
            nodes(n="3 3Gi pods=10"),
            TWO_QUEUES,
            THREE_OF_Q1,
            a_job("b", [waits("c", policy="Never")], queue="q2"),
        ],
    ),
    "not for a queue that is closed": Case(
        [
            nodes(n="3 3Gi pods=10"),
            [a_queue("q1"), a_queue("q2", state="Closed")],
            THREE_OF_Q1,
            a_job("b", [waits("c")], queue="q2"),
        ],
    ),
    "not a queue that does not lend": Case(
        [
            nodes(n="3 3Gi pods=10"),
            [a_queue("q1", reclaimable=False), a_queue("q2")],
            THREE_OF_Q1,
            a_job("b", [waits("c")], queue="q2"),
        ],
    ),
    "of queues that are alike the one that comes last gives": Case(
        [
            RANKS,
            nodes(n="4 4Gi pods=10"),
            [*TWO_QUEUES, a_queue("q3")],
            a_job("a", [runs("a-0"), runs("a-1")], queue="q1", priority="middle"),
            a_job("b", [runs("b-0"), runs("b-1", stays=True)], queue="q2", priority="low"),
            a_job("c", [waits("c-0")], queue="q3", priority="high"),
        ],
        ["b-0"],
    ),
    "the queue of lower priority gives": Case(
        [
            nodes(n="4 4Gi pods=10"),
            [a_queue("q1", priority=5), a_queue("q2", priority=10), a_queue("q3", priority=1)],
            a_job("a", [runs("a-0"), runs("a-1", stays=True)], queue="q1"),
            a_job("b", [runs("b-0"), runs("b-1", stays=True)], queue="q2"),
            a_job("c", [waits("c-0")], queue="q3"),
        ],
        ["a-0"],
    ),
    "what is idle counts before anybody goes": Case(
        [
            RANKS,
            nodes(n="10 2Gi pods=10"),
            [a_queue("q1", priority=1), a_queue("q2", priority=2), a_queue("q3", weight=3)],
            a_job("a", [runs("a-0")], gang=0, queue="q1", priority="middle", phase="Running"),
            a_job("b", [runs("b-0")], gang=0, queue="q2", priority="middle", phase="Running"),
            a_job("c", [waits("c-0", "2 1G")], queue="q3", priority="middle"),
        ],
        ["a-0"],
    ),
    "the second task is served where the first does not want it": Case(
        [
            RANKS,
            nodes(n="2 2G pods=10"),
            TWO_QUEUES,
            a_job(
                "a",
                [runs("stays", stays=True), runs("gives")],
                queue="q1",
                priority="low",
                phase="Running",
            ),
            a_job(
                "b",
                [waits("b-0", policy="Never"), waits("b-1")],
                gang=2,
                queue="q2",
                priority="high",
            ),
        ],
        ["gives"],
    ),
    "nobody goes where the node has room": Case(
        [
            nodes(n="10 10G pods=10"),
            [a_queue("q1"), a_queue("q2", weight=9)],
            a_job("a", [runs("a-0", "2 2G")], gang=0, queue="q1", phase="Running"),
            a_job("b", [waits("b-0", "3 3G")], queue="q2"),
        ],
        promised={"b": ["n"]},
    ),
    "nor where another node has": Case(
        [
            nodes(n="2 2G pods=10", m="2 2G pods=10"),
            [a_queue("q1"), a_queue("q2", weight=9)],
            a_job("a", [runs("a-0", "2 2G")], gang=0, queue="q1", phase="Running"),
            a_job("b", [waits("b-0", "2 2G")], queue="q2"),
        ],
        promised={"b": ["m"]},
    ),
    "nobody goes for what the queue does not deserve": Case(
        [
            nodes(n="3 3Gi pods=10"),
            TWO_QUEUES,
            a_job("a", [runs("a-0"), runs("a-1")], gang=0, queue="q1", phase="Running"),
            a_job("b", [runs("b-0"), waits("b-1")], gang=2, queue="q2"),
        ],
    ),
}
BY_RANK = ("of queues that", "what is idle", "the second task")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_reclaim(case: Case) -> None:
    name = next(name for name, row in CASES.items() if row is case)
    check(case, RANKED if name.startswith(BY_RANK) else CONF)


BY_DUE = {
    "a queue below its due takes from one above it": Case(
        [
            nodes(n="2 4Gi pods=10", m="2 4Gi pods=10"),
            [a_queue(q, deserved="2 4Gi") for q in ("q1", "q2")],
            a_job(
                "a",
                [runs("stays", "2 4Gi", stays=True), runs("gives", "2 4Gi", on="m")],
                queue="q1",
                phase="Running",
            ),
            a_job("b", [waits("c", "2 4Gi")], queue="q2"),
        ],
        ["gives"],
        {"b": ["m"]},
    ),
    "one that is closed does not": Case(
        [
            nodes(n="3 3Gi pods=10"),
            [a_queue("q1", deserved="1 1Gi"), a_queue("q2", deserved="1 1Gi", state="Closed")],
            THREE_OF_Q1,
            a_job("b", [waits("c")], queue="q2"),
        ],
    ),
    "what a sibling gives back counts towards the limit above both": Case(
        [
            nodes(n="8 8Gi pods=11"),
            a_queue("root"),
            a_queue("up", parent="root", deserved="4 4Gi pods=10", capability="4 4Gi pods=10"),
            [
                a_queue(q, parent="up", deserved="2 2Gi pods=2", capability="4 4Gi pods=4")
                for q in ("a", "b")
            ],
            a_queue("far", parent="root", deserved="2 2Gi pods=1", capability="4 4Gi pods=4"),
            a_job("f", [runs("far", "4 4Gi")], queue="far", phase="Running"),
            a_job(
                "a",
                [runs("stays", "2 2Gi", stays=True), runs("gives", "2 2Gi")],
                queue="a",
                phase="Running",
            ),
            a_job("b", [waits("c", "2 2Gi")], queue="b"),
        ],
        ["gives"],
        {"b": ["n"]},
    ),
}


@pytest.mark.parametrize("case", BY_DUE.values(), ids=BY_DUE.keys())
def test_reclaim_by_what_queues_deserve(case: Case) -> None:
    flags = [f"enable{word}" for word in ("Preemptive", "Reclaimable", "QueueOrder", "Hierarchy")]
    capacity = a_plugin("capacity", "enabledAllocatable", *flags)
    tier = [capacity, a_plugin("predicates", "enablePredicate")]
    check(case, a_conf("reclaim", [*tier, a_plugin("gang", "enableJobStarving")]))


def test_without_anybody_who_says_what_starves_nobody_goes() -> None:
    ranks = {"q1": 5, "q2": 1, "q3": 10}
    queues = [a_queue(q, priority=p, capability="2 4Gi") for q, p in ranks.items()]
    plan = a_plan(
        a_conf("allocate reclaim", [a_plugin("proportion", "enableQueueOrder")]),
        nodes(n1="2 4Gi pods=10", n2="2 4Gi pods=10"),
        queues,
        a_job_of_age("a", 1, "2 4Gi", queue="q1", phase="Running", on=["n1"], created=0),
        a_job_of_age("b", 1, "2 4Gi", queue="q2", created=0),
        a_job_of_age("c", 1, "2 4Gi", queue="q3", created=0),
    )
    assert (placements(plan), plan.evictions) == ({"c-0": "n2"}, ())
