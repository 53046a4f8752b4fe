"""allocate over HyperNodes: where jobs go that are bound to them, whole or by sub-groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from pumice.core.api.core import Pod, PodSpec
from pumice.core.api.scheduling import NetworkTopology, PodGroup, SubGroupPolicy
from tests.builders import (
    SOFT,
    Thing,
    a_conf,
    a_group,
    a_node,
    a_plan,
    a_plugin,
    a_pod,
    hypernodes,
    nodes,
    placements,
    within,
)

GANG = ("enableJobOrder", "enableJobReady", "enableJobPipelined", "enableJobStarving")
AWARE = ("enableNodeOrder", "enabledHyperNodeOrder", "enabledHyperNodeGradient")
PREDICATES = a_plugin("predicates", "enablePredicate")
TOPOLOGY = a_plugin("network-topology-aware", *AWARE)
CONF = a_conf("allocate", [a_plugin("gang", *GANG), PREDICATES, TOPOLOGY])
FILLING = a_conf(
    "allocate",
    [a_plugin("gang", *GANG), PREDICATES, a_plugin("binpack", "enableNodeOrder"), TOPOLOGY],
)
BY_PARTS = a_conf(
    "allocate",
    [
        a_plugin("gang", *GANG, "enabledSubJobReady", "enabledSubJobOrder"),
        PREDICATES,
        TOPOLOGY,
    ],
)
World = Sequence[Thing | Sequence[Thing]]
SIZE = "2 4Gi pods=10"
PAIRS: list[Thing] = [
    *nodes(n1=SIZE, n2=SIZE, n3=SIZE, n4=SIZE),
    *hypernodes(s0="1 n1 n2", s1="1 n3 n4", s2="2 @s0 @s1"),
]


def a_gang(
    least: int, topology: NetworkTopology | None, *on: str, asks: str = "2 4G", n: int = 0
) -> list[PodGroup | Pod]:
    """Return a group and `n` pods `p1`..., of which the first run on the nodes `on`."""
    places = [*on, *[""] * ((n or least) - len(on))]
    pods = [a_pod(f"p{i}", asks, job="j", node=node) for i, node in enumerate(places, start=1)]
    return [a_group("j", least=least, topology=topology), *pods]


@dataclass(frozen=True)
class Case:
    world: World
    binds: Mapping[str, str]


WHOLE = {
    "three do not fit a leaf for two, and may not span more": Case(
        [*PAIRS, *a_gang(3, within(1))], {}
    ),
    "they may span the next tier": Case(
        [*PAIRS, *a_gang(3, within(2))], {"p1": "n1", "p2": "n2", "p3": "n3"}
    ),
    "what is more than the minimum goes to the same leaf": Case(
        [*PAIRS, *a_gang(1, within(1), n=2)], {"p1": "n1", "p2": "n2"}
    ),
    "a wish is given up where it cannot be": Case(
        [*PAIRS, *a_gang(3, NetworkTopology("soft", 0))], {"p1": "n1", "p2": "n2", "p3": "n3"}
    ),
    "a wish keeps nobody from starting, however many pods there are": Case(
        [*PAIRS, *a_gang(1, SOFT, n=5)], {"p1": "n1", "p2": "n2", "p3": "n3", "p4": "n4"}
    ),
    "the leaf is the one that has the node that is asked for": Case(
        [
            a_node("n1", SIZE),
            a_node("n2", SIZE, labels={"for": "master"}),
            *hypernodes(s0="1 n1", s1="1 n2"),
            a_group("j", topology=within(1)),
            a_pod("p1", "2 4G", job="j", spec=PodSpec(node_selector={"for": "master"})),
        ],
        {"p1": "n2"},
    ),
    "who comes later may go as far from the others as the bound allows": Case(
        [*PAIRS, *a_gang(2, within(2), "n1", "n2", n=3)], {"p3": "n3"}
    ),
    "and no farther": Case([*PAIRS, *a_gang(2, within(1), "n1", "n2", n=3)], {}),
    "by a wish it may": Case(
        [*PAIRS, *a_gang(2, NetworkTopology("soft", 0), "n1", "n2", n=3)], {"p3": "n3"}
    ),
}


@pytest.mark.parametrize("case", WHOLE.values(), ids=WHOLE.keys())
def test_jobs(case: Case) -> None:
    assert placements(a_plan(CONF, *case.world)) == case.binds


def test_first_the_fullest_leaf_then_the_fullest_node() -> None:
    plan = a_plan(
        FILLING,
        nodes(n1="4 8Gi pods=10", n2="8 16Gi pods=10", n3="4 8Gi pods=10", n4="8 16Gi pods=10"),
        hypernodes(s0="1 n1 n2", s1="1 n3 n4", s2="2 @s0 @s1"),
        [a_group("j", least=2, topology=within(1)), a_group("r", least=2, phase="Running")],
        [a_pod("p1", "2 4Gi", job="j"), a_pod("p2", "4 8Gi", job="j")],
        [a_pod("p3", "2 4Gi", job="r", node="n1"), a_pod("p4", "4 8Gi", job="r", node="n2")],
    )
    assert placements(plan) == {"p1": "n1", "p2": "n2"}


def test_over_several_leaves_a_pod_stays_with_those_before_it() -> None:
    names = ["n1", "n4", "n2", "n5", "n3", "n6"]  # so that the order of nodes mixes the leaves
    plan = a_plan(
        CONF,
        [a_node(name, "4 8Gi pods=10") for name in names],
        hypernodes(s0="1 n1 n2", s1="1 n3 n4", s2="1 n5 n6", s3="2 @s0 @s1 @s2"),
        a_gang(4, within(2), asks="4 8Gi"),
    )
    assert placements(plan) == {"p1": "n1", "p2": "n2", "p3": "n4", "p4": "n3"}


def a_part(
    key: str, topology: NetworkTopology | None = None, *, size: int = 1, least: int = 0
) -> SubGroupPolicy:
    """Return a policy that makes a sub-group of the pods of each value of a label."""
    return SubGroupPolicy(
        name=key,
        match_label_keys=[key],
        network_topology=topology,
        sub_group_size=size,
        min_sub_groups=least,
    )


def members(text: str) -> list[Pod]:
    """Return pods by `label=value`, with `@node` where one runs: `p1`, `p2` and so on."""
    pods = []
    for i, word in enumerate(text.split(), start=1):
        pair, _, node = word.partition("@")
        key, _, value = pair.partition("=")
        pods.append(a_pod(f"p{i}", "2 4Gi", job="j", node=node, labels={key: value}))
    return pods


LEAF_OF_ONE: list[Thing] = [
    *nodes(n1=SIZE, n2=SIZE, n3=SIZE),
    *hypernodes(s0="1 n1 n2", s1="1 n3", s2="2 @s0 @s1"),
]
THREE_LEAVES: list[Thing] = [
    *nodes(n1=SIZE, n2=SIZE, n3=SIZE, n4=SIZE, n5=SIZE),
    *hypernodes(s0="1 n1 n2", s1="1 n3 n4", s2="1 n5", s3="2 @s0 @s1 @s2"),
]
ONE_AND_PAIR = [a_part("m", within(1)), a_part("w", within(1), size=2)]


def least_of_each(one: int, pairs: int) -> list[SubGroupPolicy]:
    return [a_part("m", within(1), least=one), a_part("w", within(1), size=2, least=pairs)]


def a_split(
    least: int, topology: NetworkTopology | None, policies: Sequence[SubGroupPolicy], pods: str
) -> list[Thing]:
    return [a_group("j", least=least, topology=topology, policies=policies), *members(pods)]


PARTS = {
    "each sub-group has a leaf of its own size": Case(
        [*LEAF_OF_ONE, *a_split(3, within(2), ONE_AND_PAIR, "m=a w=a w=a")],
        {"p1": "n3", "p2": "n1", "p3": "n2"},
    ),
    "a sub-group of more pods than a leaf has room for never starts": Case(
        [*PAIRS, *a_split(3, SOFT, [a_part("m", within(1))], "m=a m=b m=b m=b")], {}
    ),
    "each policy has its minimum of sub-groups": Case(
        [*THREE_LEAVES, *a_split(5, within(2), least_of_each(1, 2), "m=a w=a w=a w=b w=b")],
        {"p1": "n5", "p2": "n1", "p3": "n2", "p4": "n3", "p5": "n4"},
    ),
    "beyond the minimum of sub-groups there need not be room": Case(
        [*LEAF_OF_ONE, *a_split(3, within(2), least_of_each(1, 1), "m=a w=a w=a w=b w=b")],
        {"p1": "n3", "p2": "n1", "p3": "n2"},
    ),
    "the job's own minimum holds as well": Case(
        [*PAIRS, *a_split(5, within(2), least_of_each(1, 1), "m=a w=a w=a w=b w=b")], {}
    ),
    "and so does that of sub-groups": Case(
        [*PAIRS, *a_split(3, within(2), least_of_each(1, 2), "m=a w=a w=a w=b w=b")], {}
    ),
    "the sub-groups that are required go first": Case(
        [
            *PAIRS,
            *a_split(3, within(2), least_of_each(2, 1), "m=a m=b m=c m=d w=a w=a w=b w=b"),
        ],
        {"p1": "n1", "p2": "n2", "p5": "n3", "p6": "n4"},
    ),
    "a member that comes later goes to the leaf of its sub-group": Case(
        [*PAIRS, *a_split(2, within(2), [a_part("m", within(1))], "m=a@n1 m=b@n3 m=b")],
        {"p3": "n4"},
    ),
    "where that is full it waits": Case(
        [
            *PAIRS,
            *a_split(
                2, within(2), [a_part("m", within(1), size=2, least=1)], "m=a@n1 m=b@n3 m=b@n4 m=b"
            ),
        ],
        {},
    ),
    "sub-groups without bounds go anywhere": Case(
        [*nodes(n1=SIZE, n2=SIZE), *a_split(2, None, [a_part("m", least=2)], "m=a m=b")],
        {"p1": "n1", "p2": "n2"},
    ),
}


@pytest.mark.parametrize("case", PARTS.values(), ids=PARTS.keys())
def test_sub_groups(case: Case) -> None:
    assert placements(a_plan(BY_PARTS, *case.world)) == case.binds
