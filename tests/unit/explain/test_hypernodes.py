"""Why a gang waits that must be within a HyperNode: which were tried, and the numbers compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pytest

from pumice.core.api.scheduling import SubGroupPolicy
from pumice.core.explain.answers import Cramped
from tests.builders import (
    SOFT,
    Thing,
    a_conf,
    a_group,
    a_hypernode,
    a_job,
    a_pod,
    a_queue,
    hypernodes,
    nodes,
    within,
)
from tests.unit.explain.builders import a_picture, explained

CONF = a_conf(
    "enqueue allocate backfill",
    ["priority", "gang"],
    ["predicates", "proportion", "binpack", "network-topology-aware"],
)
PAIRS: list[Thing] = [
    *nodes(n1="2 8Gi", n2="2 8Gi", n3="2 8Gi", n4="2 8Gi"),
    *hypernodes(s0="1 n1 n2", s1="1 n3 n4", s2="2 @s0 @s1"),
]
PART = SubGroupPolicy(
    name="w", match_label_keys=["part"], network_topology=within(1), sub_group_size=3
)


@dataclass(frozen=True)
class Case:
    """A world with a group `j` that waits."""

    world: Sequence[Thing | Iterable[Thing]]
    obstacle: str
    sentence: str
    tried: Sequence[Cramped] = ()


CASES = {
    "every leaf has room in all, and nodes for too few": Case(
        [
            nodes(n1="3 8Gi", n2="3 8Gi", n3="5 8Gi", n4="1 8Gi"),
            hypernodes(s0="1 n1 n2", s1="1 n3 n4"),
            a_job("j", 3, "2", topology=within(1)),
        ],
        "room",
        "The gang needs 3 pods at the same time within one HyperNode of tier 1 or below, and none"
        " of the 2 that come into question will do (s0: 2 find a node; s1: 2 find a node).",
        [Cramped("s0", 2, 3), Cramped("s1", 2, 3)],
    ),
    "no leaf has room for all of them": Case(
        [*PAIRS, a_job("j", 3, "2", topology=within(1)), a_pod("r", "1", node="n4")],
        "room",
        "The gang needs 3 pods at the same time within one HyperNode of tier 1 or below, and none"
        " of the 2 that come into question will do (s0: not enough cpu for all of them; s1: not"
        " enough cpu for all of them).",
        [Cramped("s0", 0, 3, "cpu", "6", "4"), Cramped("s1", 0, 3, "cpu", "6", "3")],
    ),
    "by the name of a tier": Case(
        [
            nodes(n="2 8Gi"),
            a_hypernode("rack", 1, "n", tier_name="rack"),
            a_job("j", 2, "2", topology=within("rack")),
        ],
        "room",
        "The gang needs 2 pods at the same time within one HyperNode of tier rack or below, and the"
        " only one left will not do (rack: not enough cpu for all of them).",
        [Cramped("rack", 0, 2, "cpu", "4", "2")],
    ),
    "a sub-group": Case(
        [
            *PAIRS,
            a_group("j", least=3, policies=[PART]),
            [a_pod(f"p{i}", "2", job="j", labels={"part": "a"}) for i in range(3)],
        ],
        "room",
        "A sub-group of the gang needs 3 pods at the same time within one HyperNode of tier 1 or"
        " below, and none of the 2 that come into question will do (s0: not enough cpu for all of"
        " them; s1: not enough cpu for all of them).",
        [Cramped("s0", 0, 3, "cpu", "6", "4"), Cramped("s1", 0, 3, "cpu", "6", "4")],
    ),
    "one more, when the others fill their leaf": Case(
        [*PAIRS, a_job("j", 3, "2", gang=2, on=["n1", "n2"], topology=within(1))],
        "room",
        "The job has the pods that it needs; 1 more finds no node where all are within one"
        " HyperNode of tier 1 or below (s0: none finds a node).",
        [Cramped("s0", 0, 1)],
    ),
    "by a wish all nodes are tried": Case(
        [*PAIRS, a_job("j", 2, "3", topology=SOFT)],
        "room",
        "The gang needs 2 pods at the same time, but none of them finds a node (4 nodes: not enough"
        " cpu for a pod that asks for 3).",
    ),
    "there are no HyperNodes": Case(
        [nodes(n="9"), a_job("j", topology=within(1))],
        "",
        "The pods must be within one HyperNode of tier 1, and there are no HyperNodes.",
    ),
    "no HyperNode is of that name": Case(
        [*PAIRS, a_job("j", topology=within("rack"))],
        "",
        "The pods must be within one HyperNode of tier rack, and there is none.",
    ),
    "the pods that run are too far apart already": Case(
        [*PAIRS, a_job("j", 3, gang=3, on=["n1", "n3"], topology=within(1))],
        "",
        "Pods that have a node already are not within one HyperNode of tier 1.",
    ),
    "the queue": Case(
        [
            *PAIRS,
            a_queue("default", capability="1"),
            a_job("j", 2, topology=within(1)),
        ],
        "queue",
        "The gang needs 2 pods at the same time, but only 1 of them may be placed: queue default"
        " holds 0 of the 1 cpu that it deserves, and a pod asks for 1.",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_why_it_waits(case: Case) -> None:
    found = explained(a_picture(*case.world, conf=CONF))
    assert found.sentence == case.sentence
    assert found.obstacle == case.obstacle
    if case.tried:
        assert list(found.hypernodes) == list(case.tried)
