"""preempt: who goes for whom within a queue, and who does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pumice.core.api.core import Affinity, PodAffinity, PodAffinityTerm
from pumice.core.api.meta import LabelSelector
from pumice.core.conf import Arguments
from tests.builders import a_conf, a_plugin, a_priority_class, a_queue, nodes
from tests.unit.oracles.evictions import Case, a_job, check, runs, waits

TIER = [
    a_plugin("conformance", "enablePreemptable"),
    a_plugin("gang", "enablePreemptable", "enableJobPipelined", "enableJobStarving"),
    a_plugin(
        "priority",
        "enableTaskOrder",
        "enableJobOrder",
        "enablePreemptable",
        "enableJobPipelined",
        "enableJobStarving",
    ),
]
CONF = a_conf(
    "preempt",
    [*TIER, a_plugin("proportion", "enabledOverused", "enabledAllocatable", "enableQueueOrder")],
)
RANKS = [a_priority_class("low", 10), a_priority_class("high", 100000)]
SMALL, LARGE = nodes(n="2 2G pods=10"), nodes(n="12 12G pods=10")
ONE_SLOT = nodes(n="12 12G pods=1")

CASES = {
    "what is idle is enough": Case(
        [
            RANKS,
            nodes(n="10 10G pods=10"),
            a_job("j", [runs("a"), runs("b"), waits("c")], gang=3, roles=3),
        ],
        promised={"j": ["n"]},
    ),
    "a gang that has its minimum takes from nobody": Case(
        [
            RANKS,
            nodes(n="3 3G pods=10"),
            a_job("a", [runs("a-0"), runs("a-1")], roles=2),
            a_job("b", [runs("b-0"), waits("b-1")], roles=2),
        ],
        promised={"b": []},
    ),
    "a pod that may not be evicted stays": Case(
        [
            RANKS,
            SMALL,
            a_job("low", [runs("goes"), runs("stays", stays=True)], priority="low", roles=2),
            a_job("high", [waits("a"), waits("b")], priority="high", roles=2),
        ],
        ["goes"],
        {"high": ["n"]},
    ),
    "several go for a large one": Case(
        [
            RANKS,
            nodes(n="6 6G pods=10"),
            a_job("low", [runs("a"), runs("b"), runs("c", stays=True)], priority="low", roles=3),
            a_job("high", [waits("large", "5 5G")], priority="high", roles=1),
        ],
        ["a", "b"],
    ),
    "the queue's limit makes one go though the node has room": Case(
        [
            RANKS,
            LARGE,
            a_queue("default", capability="4 4G"),
            a_job("low", [runs("a", "3 3G")], gang=0, priority="low"),
            a_job("high", [waits("b", "3 3G")], priority="high", roles=1),
        ],
        ["a"],
        {"high": ["n"]},
    ),
    "nobody goes where queue and node have room": Case(
        [
            RANKS,
            LARGE,
            a_queue("default", capability="6 6G"),
            a_job("low", [runs("a", "3 3G")], priority="low"),
            a_job("high", [waits("b", "3 3G")], priority="high", roles=1),
        ],
        promised={"high": ["n"]},
    ),
    "the lesser pod of a job goes first": Case(
        [
            RANKS,
            LARGE,
            a_queue("default", capability="3 3G"),
            a_job(
                "low",
                [runs("stays", stays=True), runs("lesser"), runs("better", priority=100000)],
                priority="low",
            ),
            a_job("high", [waits("b")], priority="high", roles=1),
        ],
        ["lesser"],
    ),
    "one that asks for nothing goes for its slot": Case(
        [
            RANKS,
            ONE_SLOT,
            a_queue("default", capability="6 6G"),
            a_job("low", [runs("a", "")], gang=0, priority="low"),
            a_job("high", [waits("b", "3 3G")], priority="high", roles=1),
        ],
        ["a"],
        {"high": ["n"]},
    ),
    "also for another that asks for nothing": Case(
        [
            RANKS,
            ONE_SLOT,
            a_queue("default", capability="6 6G"),
            a_job("low", [runs("a", "")], gang=0, priority="low"),
            a_job("high", [waits("b", "")], priority="high", roles=1),
        ],
        ["a"],
    ),
    "one that asks for something stays for one that does not": Case(
        [
            RANKS,
            ONE_SLOT,
            a_queue("default", capability="6 6G"),
            a_job("low", [runs("a")], gang=0, priority="low"),
            a_job("high", [waits("b", "")], priority="high", roles=1),
        ],
    ),
    "nobody goes for a pod that does not want it": Case(
        [
            RANKS,
            nodes(n="1 1Gi pods=1"),
            a_job("low", [runs("a")], gang=0, priority="low"),
            a_job("high", [waits("b", policy="Never")], priority="high"),
        ],
        promised={"high": []},
    ),
    "all stay where the queue may not have it even without them": Case(
        [
            RANKS,
            nodes(n="10 10G pods=10"),
            a_queue("default", capability="3 3G"),
            a_job("low", [runs("a"), runs("b")], priority="low", roles=2),
            a_job("high", [waits("c", "4 4G")], priority="high", roles=1),
        ],
        promised={"high": []},
    ),
    "on a node where it is in vain all stay": Case(
        [
            RANKS,
            nodes(n="3 3G pods=10", m="4 4G pods=10"),
            a_queue("default", capability="6 6G"),
            a_job("low-a", [runs("a")], gang=0, priority="low"),
            a_job("high", [waits("c", "3 3G")], priority="high", roles=1),
            a_job("low-b", [runs("b", "4 4G", on="m")], gang=0, priority="low"),
        ],
        ["b"],
        {"high": ["m"]},
    ),
    "each queue is served": Case(
        [
            RANKS,
            SMALL,
            [a_queue("q1"), a_queue("q2", capability="4 4G")],
            a_job("other", [runs("r")], queue="q1", roles=1),
            a_job("low", [runs("a")], queue="q2", gang=0, priority="low"),
            a_job("high", [waits("b")], queue="q2", priority="high", roles=1),
        ],
        ["a"],
    ),
    "a job of the same priority stays": Case(
        [
            RANKS,
            nodes(n="1 1G pods=10"),
            a_job("a", [runs("a-0")], gang=0, priority="low"),
            a_job("b", [waits("b-0")], priority="low"),
        ],
    ),
    "a gang that gets room for a part of it alone takes none": Case(
        [
            RANKS,
            SMALL,
            a_job("low", [runs("a"), runs("b", stays=True)], gang=0, priority="low"),
            a_job("high", [waits("c"), waits("d")], gang=2, priority="high"),
        ],
        promised={"high": []},
    ),
    "one that frees nothing of what is asked for stays": Case(
        [
            RANKS,
            nodes(n="4 4G pods=10 a.b/gpu=1"),
            a_job("first", [runs("gpu", "1 1G a.b/gpu=1")], gang=0, priority="low"),
            a_job("last", [runs("plain")], gang=0, priority="low"),
            a_job("high", [waits("c", "1 1G a.b/gpu=1")], priority="high"),
        ],
        ["gpu"],
    ),
    "one stays that goes for one task where another leaves enough for both": Case(
        [
            RANKS,
            nodes(n="3 3G pods=10"),
            a_job(
                "low",
                [runs("small", priority=1), runs("large", "2 2G", priority=2)],
                gang=0,
                priority="low",
            ),
            a_job("high", [waits("c"), waits("d")], gang=2, priority="high"),
        ],
        ["large"],
        {"high": ["n"]},
    ),
    "free room elsewhere is taken before anybody goes on a better node": Case(
        [
            RANKS,
            nodes(n="1 1G pods=10", m="1 1G pods=10"),
            a_job("low", [runs("a")], gang=0, priority="low"),
            a_job("high", [waits("c")], priority="high"),
        ],
        promised={"high": ["m"]},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_preempt(case: Case) -> None:
    check(case, CONF)


APART = Affinity(
    pod_anti_affinity=PodAffinity(
        required=[
            PodAffinityTerm(
                label_selector=LabelSelector(match_labels={"app": "apart"}),
                topology_key="kubernetes.io/hostname",
            )
        ]
    )
)
TWO = nodes(n="2 2Gi pods=2")

TRIED = {
    "who goes is who keeps the pod away": Case(
        [
            RANKS,
            TWO,
            a_queue("default", capability="2 2G"),
            a_job("low-a", [runs("kin", apart=APART)], gang=0, priority="low"),
            a_job("low-b", [runs("stranger")], gang=0, priority="low"),
            a_job("high", [waits("c", apart=APART)], priority="high", roles=1),
        ],
        ["kin"],
        {"high": ["n"]},
    ),
    "a queue takes from itself, however high another one stands": Case(
        [
            RANKS,
            TWO,
            [
                a_queue("q1", priority=1, deserved="1 1G", capability="1 1G"),
                a_queue("q2", priority=10, deserved="1 1G", capability="1 1G"),
            ],
            a_job("other", [runs("a")], queue="q2", priority="high", phase="Running"),
            a_job("low", [runs("b")], gang=0, queue="q1", priority="low", phase="Running"),
            a_job("high", [waits("c")], queue="q1", priority="high"),
        ],
        ["b"],
    ),
    "the least important victims decide on the node": Case(
        [
            RANKS,
            nodes(n="2 2G pods=9", m="2 2G pods=9", o="2 2G pods=9"),
            a_job(
                "low",
                [
                    runs("one-high", "2 2G", on="n", priority=9),
                    runs("two-a", on="m", priority=3),
                    runs("two-b", on="m", priority=3),
                    runs("one-low", "2 2G", on="o", priority=3),
                ],
                gang=0,
                priority="low",
            ),
            a_job("high", [waits("c", "2 2G")], priority="high"),
        ],
        ["one-low"],
        {"high": ["o"]},
    ),
}


@pytest.mark.parametrize("case", TRIED.values(), ids=TRIED.keys())
def test_preempt_by_trial(case: Case) -> None:
    tier = [
        *TIER,
        a_plugin("proportion", "enabledAllocatable", "enableQueueOrder", "enablePredicate"),
        a_plugin("predicates", "enablePreemptable", "enablePredicate"),
        a_plugin("capacity", "enableQueueOrder"),
    ]
    arguments = Arguments(
        {"enableTopologyAwarePreemption": True, "minCandidateNodesPercentage": 100}
    )
    check(case, replace(a_conf("preempt", tier), configurations={"preempt": arguments}))
