"""network-topology-aware: HyperNodes to try, how they and nodes score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from pumice.core.conf import Arguments, PluginOption
from pumice.core.model.hypernodes import TOP
from pumice.core.plugins.network_topology_aware.plugin import for_evictions
from pumice.core.plugins.network_topology_aware.scores import fading
from pumice.core.session import Session
from tests.builders import (
    DEFAULT_FLAGS,
    Thing,
    a_cluster,
    a_conf,
    a_group,
    a_node,
    a_pod,
    a_session,
    hypernodes,
    nodes,
    within,
)

TREE = hypernodes(
    s3="1 s3-n1 s3-n2",
    s4="1 s4-n1 s4-n2",
    s5="1 s5-n1 s5-n2",
    s6="1 s6-n1 s6-n2",
    s1="2 @s3 @s4",
    s2="2 @s5 @s6",
    s0="3 @s1 @s2",
)
SIZES = {"s3": "2 4G", "s4": "4 4G", "s5": "2 8G", "s6": "4 8G"}
FOO = {"s3": "8", "s4": "8", "s5": "16", "s6": "16"}
EMPTY: list[Thing] = [
    a_node(f"{leaf}-n{i}", f"{size} pods=10") for leaf, size in SIZES.items() for i in (1, 2)
]
RESOURCES = {
    "weight": 10,
    "hypernode.binpack.resources": "nvidia.com/gpu, example.com/foo",
    "hypernode.binpack.resources.nvidia.com/gpu": 2,
    "hypernode.binpack.resources.example.com/foo": 3,
    "hypernode.binpack.memory": 4,
    "hypernode.binpack.normal-pod.fading": 0,
}


def with_foo(second: Mapping[str, str]) -> list[Thing]:
    """Return the nodes with a further resource; `second` is what the second of a leaf has."""
    return [
        a_node(f"{leaf}-n{i}", f"{size} pods=10 example.com/foo={foo}")
        for leaf, size in SIZES.items()
        for i, foo in ((1, FOO[leaf]), (2, second[leaf]))
    ]


def a_world(world: Sequence[Thing], arguments: Mapping[str, object]) -> Session:
    """Return an open session with the plugin, and the HyperNodes."""
    plugin = PluginOption("network-topology-aware", DEFAULT_FLAGS, Arguments(arguments))
    ssn = a_session(a_conf("", [plugin]), a_cluster(TREE, world))
    assert not ssn.findings.warnings
    return ssn


HYPERNODES: dict[str, tuple[Sequence[Thing], Mapping[str, object], str, dict[str, float]]] = {
    "cpu and memory count alike": (
        EMPTY,
        {},
        "4 4G",
        {"s0": 25, "s1": 58.3, "s2": 45.8, "s3": 0, "s4": 100, "s5": 0, "s6": 75, TOP: 25},
    ),
    "as they are weighed, further resources too": (
        with_foo(dict.fromkeys(SIZES, "0")),
        {**RESOURCES, "hypernode.binpack.cpu": 3},
        "4 4G example.com/foo=8",
        {"s0": 266.7, "s1": 700, "s2": 450, "s3": 0, "s4": 0, "s5": 0, "s6": 800, TOP: 266.7},
    ),
}


@pytest.mark.parametrize(
    ("world", "arguments", "asks", "want"), HYPERNODES.values(), ids=HYPERNODES.keys()
)
def test_hypernodes_score_by_how_full_the_sub_job_makes_them(
    world: Sequence[Thing], arguments: Mapping[str, object], asks: str, want: dict[str, float]
) -> None:
    pair = [a_pod(f"p{i}", asks, job="j") for i in (1, 2)]
    ssn = a_world([*world, a_group("j", least=2), *pair], arguments)
    scores = ssn.hyper_node_scores(ssn.active[0], None, list(want))
    assert dict(zip(want, scores, strict=True)) == pytest.approx(want, abs=0.1)


@dataclass(frozen=True)
class Nodes:
    """A pod, and how the two nodes of each leaf score for it."""

    world: Sequence[Thing]
    asks: str
    want: Mapping[str, float]
    arguments: Mapping[str, object] = field(default_factory=dict)
    bound: int | None = None


NODES = {
    "a pod without bounds goes where little is left, near and far": Nodes(
        EMPTY, "2 4G", {"s3": 25.8, "s4": 21.6, "s5": 19.9, "s6": 15.7}
    ),
    "without fading the leaf alone counts, and a full one not at all": Nodes(
        [
            *with_foo(FOO),
            a_pod("r1", "2 4G example.com/foo=8", job="r", node="s3-n1"),
            a_pod("r2", "2 4G example.com/foo=8", job="r", node="s3-n2"),
        ],
        "2 4G example.com/foo=8",
        {"s3": 0, "s4": 468.8, "s5": 281.3, "s6": 250},
        {**RESOURCES, "hypernode.binpack.cpu": 1},
    ),
    "that can be switched off": Nodes(
        EMPTY,
        "2 4G",
        dict.fromkeys(SIZES, 0.0),
        {"hypernode.binpack.normal-pod.enable": False},
    ),
    "a pod that is bound goes near its kin": Nodes(
        [
            *EMPTY,
            a_pod("r1", "2 4G", job="j", node="s4-n1"),
            a_pod("r2", "2 4G", job="j", node="s3-n1"),
        ],
        "2 4G",
        {"s3": 66.7 + 33.3, "s4": 66.7 + 33.3, "s5": 33.3, "s6": 33.3},
        bound=2,
    ),
}


@pytest.mark.parametrize("case", NODES.values(), ids=NODES.keys())
def test_nodes(case: Nodes) -> None:
    topology = None if case.bound is None else within(case.bound)
    mine: list[Thing] = [a_group("j", topology=topology), a_pod("p", case.asks, job="j")]
    ssn = a_world([*case.world, *mine], case.arguments)
    task = next(t for job in ssn.active for t in job.tasks.values() if t.name == "p")
    view = ssn.views.of_task(task)
    scores = view.scores(np.arange(len(ssn.nodes)))
    want = {f"{leaf}-n{i}": score for leaf, score in case.want.items() for i in (1, 2)}
    assert dict(zip(ssn.nodes.names, scores, strict=True)) == pytest.approx(want, abs=0.1)


def test_the_leaf_that_holds_kin_is_nearest() -> None:
    kin = [a_pod("r", "2 4G", job="j", node="s4-n1"), a_pod("p", "2 4G", job="j")]
    ssn = a_world([*EMPTY, a_group("j", topology=within(2)), *kin], {})
    view = ssn.views.of_task(next(t for t in ssn.active[0].tasks.values() if t.name == "p"))
    scores = dict(zip(ssn.nodes.names, view.scores(np.arange(8)).tolist(), strict=True))
    # Both nodes of the leaf share the highest score, and half of the two pods are there.
    assert scores["s4-n2"] == pytest.approx(150)
    assert scores["s3-n1"] == pytest.approx(66.7, abs=0.1)
    assert scores["s5-n1"] == pytest.approx(33.3, abs=0.1)


def test_fading_over_tiers_that_are_half_full() -> None:
    used, asked, sizes = 0.5, 0.5, [10, 50, 400, 2000]
    filled = np.array([(used * n + asked) / n for n in sizes])
    levels = [np.array([tier]) for tier in range(4)]
    assert fading(levels, filled, 1.0).tolist() == pytest.approx([0.515375])


def test_a_node_without_a_hypernode_on_a_tier_counts_as_full_there() -> None:
    assert fading([np.array([-1]), np.array([0])], np.array([0.5]), 1.0).tolist() == [0.75]


EVICTIONS = {
    "the last of a tier are left": ([["a", "b"], ["c", "d"]], 3, [["c", "d"], ["b"]]),
    "the highest tier may use up all": ([["a"], ["c", "d"]], 2, [["c", "d"]]),
    "all are few enough": ([["a"], ["b"]], 8, [["b"], ["a"]]),
}


@pytest.mark.parametrize(("gradients", "at_most", "want"), EVICTIONS.values(), ids=EVICTIONS.keys())
def test_to_make_room_high_tiers_go_first(
    gradients: list[list[str]], at_most: int, want: list[list[str]]
) -> None:
    assert for_evictions(gradients, at_most) == want


LEAF = nodes(n1="20 40Gi", n2="20 40Gi")
ROOMS: dict[str, tuple[str, str, bool, bool]] = {
    # held by pods that stay, held by pods that leave -> room to allocate, room to evict
    "there is room now": ("10", "0", True, True),
    "there will be room": ("10", "15", True, True),
    "there will not be": ("25", "0", False, True),
}


@pytest.mark.parametrize(("stays", "leaves", "now", "ever"), ROOMS.values(), ids=ROOMS.keys())
def test_hypernodes_without_room_are_not_tried(
    stays: str, leaves: str, now: bool, ever: bool
) -> None:
    ssn = a_session(
        a_conf("", ["network-topology-aware"]),
        a_cluster(
            LEAF,
            hypernodes(leaf="1 n1 n2"),
            a_pod("stays", stays, node="n1"),
            a_pod("leaves", leaves, node="n2", deleting=True),
            a_group("j", topology=within(1), resources="20 40Gi"),
            a_pod("p", "20 40Gi", job="j"),
        ),
    )
    want = {"allocate": [["leaf"]] if now else [], "evict": [["leaf"]] if ever else []}
    job = ssn.active[0]
    assert {
        "allocate": ssn.gradients(job, TOP, "allocate"),
        "evict": ssn.gradients(job, TOP, "evict"),
    } == want
    assert {
        "allocate": ssn.sub_job_gradients(job, None, TOP, "allocate"),
        "evict": ssn.sub_job_gradients(job, None, TOP, "evict"),
    } == want


def test_where_no_leaf_is_large_enough_nothing_is_tried_instead() -> None:
    ssn = a_session(
        a_conf("", ["network-topology-aware"]),
        a_cluster(
            nodes(a1="8", a2="8", d1="8", d2="8"),
            hypernodes(a="1 a1 a2", d="1 d1 d2"),
            a_group("j", topology=within(1)),
            [a_pod(f"p{i}", "5", job="j") for i in range(4)],
        ),
    )
    assert ssn.sub_job_gradients(ssn.active[0], None, TOP, "evict") == []
