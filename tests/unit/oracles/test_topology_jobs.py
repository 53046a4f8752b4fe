"""
Jobs on a network of three tiers: eight nodes of 8 cpu in four leaves, two spines, one root.

Each row says what is taken already, what a Job asks for, and where its pods are to be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from pumice.core import names
from pumice.core.api.scheduling import NetworkTopology, SubGroupPolicy
from tests.builders import (
    SOFT,
    a_conf,
    a_group,
    a_node,
    a_plan,
    a_pod,
    hypernodes,
    placements,
    within,
)

CONF = a_conf(
    "enqueue allocate backfill",
    ["priority", "gang", "conformance"],
    ["predicates", "proportion", "binpack", "network-topology-aware"],
)
NODES = [a_node(f"n{i}", "8 8Gi") for i in range(8)]
TREE = hypernodes(
    s0="1 n0 n1",
    s1="1 n2 n3",
    s2="1 n4 n5",
    s3="1 n6 n7",
    s4="2 @s0 @s1",
    s5="2 @s2 @s3",
    s6="3 @s4 @s5",
)
H1, H2 = within(1), within(2)


@dataclass(frozen=True)
class Parts:
    """How the pods of the Job are split."""

    size: int
    topology: NetworkTopology
    least: int = 0


@dataclass(frozen=True)
class Case:
    #: cpu that is taken, by node
    taken: str
    pods: int
    cpu: int
    topology: NetworkTopology | None
    parts: Parts | None = None
    least: int | None = None
    #: nodes on which pods of it run already
    on: str = ""
    #: all pods are on these nodes; empty where none may start
    nodes: str = ""
    #: or so many on each leaf
    leaves: Mapping[str, int] = field(default_factory=dict)


def alike(cpu: int) -> str:
    return " ".join(f"n{i}:{cpu}" for i in range(8))


CASES = {
    "the fuller leaf is filled": Case("n2:1 n3:1", 2, 2, H1, nodes="n2 n3"),
    "one that is too full is passed over": Case("n2:5 n3:5 n4:1", 2, 4, H1, nodes="n4 n5"),
    "every leaf has too little room": Case("n0:8 n1:7 n2:7 n3:8 n4:8 n5:7 n6:7 n7:8", 2, 2, H1),
    "the next tier, where no leaf has room": Case(
        "n0:7 n1:8 n2:7 n3:8 n4:8 n5:6 n6:8 n7:6", 2, 2, H2, nodes="n5 n7"
    ),
    "the next tier is too full as well": Case("n0:8 n1:8 n2:6 n3:8 n4:7 n5:7 n6:7 n7:6", 2, 2, H2),
    "a lost pod comes back": Case("n0:1", 2, 2, H1, on="n1", nodes="n0 n1"),
    "a wish, where the nodes with room are far apart": Case(
        "n0:8 n1:8 n2:8 n3:8 n4:8 n5:6 n6:8 n7:6", 2, 2, SOFT, nodes="n5 n7"
    ),
    "parts as wide as the Job": Case("n2:1 n3:1", 4, 2, H1, Parts(2, H1), nodes="n2 n3"),
    "parts of one, and too little room": Case(alike(6), 2, 4, H1, Parts(1, H1)),
    "parts of one, and room too far apart": Case(
        "n0:6 n1:2 n2:6 n3:2 n4:6 n5:2 n6:6 n7:2", 2, 4, H1, Parts(1, H1)
    ),
    "a Job of two tiers whose parts fit one leaf": Case(
        "n2:1 n3:1", 4, 2, H2, Parts(2, H1), nodes="n2 n3"
    ),
    "each part in a leaf of its own": Case(
        "n0:3 n2:3 n4:6 n5:6 n6:6 n7:6", 4, 3, H2, Parts(2, H1), leaves={"s0": 2, "s1": 2}
    ),
    "a lost pod of one of two parts": Case(
        "n6:1 n7:1", 4, 2, H2, Parts(2, H1), on="n6 n7 n6", nodes="n6 n7"
    ),
    "another leaf, where the first is too full": Case(
        "n0:6 n1:6 n2:1 n3:1", 4, 2, H2, Parts(2, H1), nodes="n2 n3"
    ),
    "parts of one, and too little room in either spine": Case(alike(6), 2, 4, H2, Parts(1, H1)),
    "every leaf has room for one of two": Case(alike(4), 2, 4, H2, Parts(2, within(0))),
    "wishes of parts inside the bound of the Job": Case(
        "n2:1 n3:1", 4, 2, H2, Parts(2, SOFT), nodes="n2 n3"
    ),
    "parts as near as they may be, in the spine that has room for all": Case(
        "n0:3 n1:3 n2:3 n3:5 n4:2 n6:2", 4, 4, H2, Parts(2, SOFT), leaves={"s2": 2, "s3": 2}
    ),
    "no spine has room for all parts": Case(
        "n0:6 n1:2 n2:2 n3:2 n4:6 n5:2 n6:2 n7:2", 4, 4, H2, Parts(2, SOFT)
    ),
    "bounds of parts inside a wish of the Job": Case(
        "n0:4 n2:6 n3:6 n4:4 n6:6 n7:6", 4, 3, SOFT, Parts(2, H1), leaves={"s0": 2, "s2": 2}
    ),
    "no leaf holds a part": Case(alike(2), 3, 8, SOFT, Parts(1, H1)),
    "bounds of parts alone": Case(
        "n0:4 n2:6 n3:6 n4:4 n6:6 n7:6", 4, 3, None, Parts(2, H1), leaves={"s0": 2, "s2": 2}
    ),
    "all parts are needed, and fit": Case(
        "n2:1 n3:1", 4, 3, H1, Parts(2, H1, 2), least=4, nodes="n2 n3"
    ),
    "more than is needed goes on into the next leaf": Case(
        "n2:1 n3:1", 8, 3, H2, Parts(2, H1, 4), least=4, leaves={"s0": 4, "s1": 4}
    ),
    "fewer parts are needed than pods": Case("", 12, 3, H1, Parts(2, H1, 4), least=4),
    "a lost part, where the leaf has no room for more": Case(
        "n6:1 n7:1", 8, 3, H1, Parts(2, H1, 2), least=4, on="n6 n7", leaves={"s3": 2}
    ),
    "a lost pod of a part": Case(
        "n6:1 n7:1", 4, 3, H2, Parts(2, H1, 2), least=4, on="n6 n7 n6", nodes="n6 n7"
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_where_the_pods_are(case: Case) -> None:
    taken = [word.split(":") for word in case.taken.split()]
    policies = []
    if case.parts:
        policies.append(
            SubGroupPolicy(
                name="w",
                match_label_keys=[names.PARTITION_ID],
                network_topology=case.parts.topology,
                sub_group_size=case.parts.size,
                min_sub_groups=case.parts.least,
            )
        )
    size = case.parts.size if case.parts else case.pods
    on = [*case.on.split(), *[""] * case.pods][: case.pods]
    pods = [
        a_pod(
            f"j-w-{i}",
            f"{case.cpu} 1Gi",
            job="j",
            node=node,
            labels={names.PARTITION_ID: f"{i // size}"},
        )
        for i, node in enumerate(on)
    ]
    least = case.pods if case.least is None else case.least
    plan = a_plan(
        CONF,
        NODES,
        TREE,
        [a_pod(f"r-{node}", f"{cpu} 0", node=node) for node, cpu in taken],
        a_group("j", least=least, topology=case.topology, policies=policies),
        pods,
    )
    there = {**{pod.metadata.uid: pod.spec.node_name for pod in pods if pod.spec.node_name}}
    placed = placements(plan)
    if case.leaves:
        leaf = {f"n{i}": f"s{i // 2}" for i in range(8)}
        assert Counter(leaf[node] for node in placed.values()) == case.leaves
    elif case.nodes:
        assert len({**there, **placed}) == case.pods
        assert {*there.values(), *placed.values()} <= {*case.nodes.split()}
    else:
        assert placed == {}
