"""drf with a hierarchy: queues as a tree, whose branches share by weight what they lack most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import pytest

from pumice.core.api.scheduling import Queue
from pumice.core.conf import PluginOption
from pumice.core.cycle import run_session
from pumice.core.names import HIERARCHY, HIERARCHY_WEIGHTS
from tests.builders import Thing, a_cluster, a_conf, a_plugin, a_queue, a_session, nodes, placements
from tests.unit.oracles.cases import World, a_job
from tests.unit.oracles.evictions import Case as Eviction
from tests.unit.oracles.evictions import check as check_evictions

DRF = a_plugin("drf", "enableHierarchy", "enableQueueOrder", "enableJobOrder")
CONF = a_conf("allocate", [DRF, "predicates"])
CPU, MEMORY, BOTH = "1 0", "0 1G", "1 1G"


def a_branch(name: str, way: str = "", weights: str = "") -> Queue:
    """Return a queue at the end of a way through the tree."""
    queue = a_queue(name)
    notes = {HIERARCHY: way, HIERARCHY_WEIGHTS: weights} if way else {}
    return msgspec.structs.replace(
        queue, metadata=msgspec.structs.replace(queue.metadata, annotations=notes)
    )


@dataclass(frozen=True)
class Case:
    """What is there; how many pods of each job are placed in one session."""

    world: World
    placed: Mapping[str, int]


SCI = a_branch("sci", "root/sci", "100/50")
ENG = [
    a_branch("dev", "root/eng/dev", "100/50/50"),
    a_branch("prod", "root/eng/prod", "100/50/50"),
]
LEFT, RIGHT = a_branch("left", "root/left", "1/1"), a_branch("right", "root/right", "1/1")


def wants(queue: str, asks: str = BOTH, n: int = 30, name: str = "") -> Sequence[Thing]:
    """Return a job of a queue that takes as much as it can get."""
    return a_job(name or queue, n, asks, queue=queue)


CASES = {
    "children that hold different things do not slow each other": Case(
        [
            nodes(n="10 10G pods=50"),
            SCI,
            ENG,
            wants("sci", BOTH, 10),
            wants("dev", CPU, 10),
            wants("prod", MEMORY, 10),
        ],
        {"sci": 5, "dev": 5, "prod": 5},
    ),
    "a child that lacks what is used up does not block the others of its branch": Case(
        [
            nodes(n="30 30G pods=500"),
            [a_branch(q, f"root/{q}", "100/25") for q in ("one", "two", "four")],
            a_branch("three", "root/three/a", "100/25/50"),
            a_branch("unused", "root/three/b", "100/25/50"),
            wants("one", CPU),
            wants("two", CPU),
            wants("three", CPU, name="cpu"),
            wants("three", MEMORY, name="memory"),
            wants("four", MEMORY),
        ],
        {"one": 10, "two": 10, "cpu": 10, "memory": 15, "four": 15},
    ),
    "branches share by weight": Case(
        [
            nodes(n="8 8G pods=50"),
            a_branch("heavy", "root/heavy", "1/3"),
            a_branch("light", "root/light", "1/1"),
            wants("heavy"),
            wants("light"),
        ],
        {"heavy": 6, "light": 2},
    ),
    "a weight that is none, or less than one, is one": Case(
        [
            nodes(n="4 4G pods=50"),
            a_branch("none", "root/none", "1/heavy"),
            a_branch("small", "root/small", "1/0.1"),
            wants("none"),
            wants("small"),
        ],
        {"none": 2, "small": 2},
    ),
    "two queues of one branch share what one beside it has alone": Case(
        [
            nodes(n="8 8G pods=50"),
            SCI,
            ENG,
            wants("sci"),
            wants("dev"),
            wants("prod"),
        ],
        {"sci": 4, "dev": 2, "prod": 2},
    ),
    "a branch whose jobs have all that they ask for leaves the rest to others": Case(
        [nodes(n="8 8G pods=50"), SCI, ENG, wants("sci", n=1), wants("dev"), wants("prod")],
        {"sci": 1, "dev": 4, "prod": 3},
    ),
    "what runs already counts": Case(
        [
            nodes(n="6 6G pods=50"),
            [LEFT, RIGHT],
            a_job("runs", 2, queue="left", on=["n", "n"], phase="Running"),
            wants("left"),
            wants("right"),
        ],
        {"left": 1, "right": 3},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_who_gets_how_much(case: Case) -> None:
    cluster = a_cluster(*case.world)
    assert not cluster.faults
    plan = run_session(cluster.snapshot(), CONF, 0.0, "session-1")
    assert Counter(uid.rsplit("-", 1)[0] for uid in placements(plan)) == case.placed


def test_queues_outside_of_the_tree_are_told_apart_by_others() -> None:
    plugins: list[PluginOption | str] = [
        DRF,
        a_plugin("proportion", "enableQueueOrder"),
        "predicates",
    ]
    cluster = a_cluster(
        nodes(n="4 4G pods=50"),
        [a_queue("light"), a_queue("heavy", weight=3)],
        wants("light"),
        wants("heavy"),
    )
    plan = run_session(cluster.snapshot(), a_conf("allocate", plugins), 0.0, "session-1")
    got = Counter(uid.rsplit("-", 1)[0] for uid in placements(plan))
    assert got == {"light": 1, "heavy": 3}


@pytest.mark.parametrize(("sibling", "first"), [("1400m", "sibling"), ("1600m", "first")])
def test_a_child_that_holds_more_counts_for_as_much_as_one_that_holds_less(
    sibling: str, first: str
) -> None:
    """2 cpu and 1G, 1 cpu and 4G by half: 2.5 cpu and 3G of 10, by weight 2 a share of 0.15."""
    cluster = a_cluster(
        nodes(n="10 10G pods=999"),
        a_branch("first", "root/both/first", "1/2/1"),
        a_branch("second", "root/both/second", "1/2/1"),
        a_branch("sibling", "root/sibling", "1/1"),
        a_job("a", 1, "2 1G", queue="first", on=["n"]),
        a_job("b", 1, "1 4G", queue="second", on=["n"]),
        a_job("c", 1, f"{sibling} 0", queue="sibling", on=["n"]),
        *(wants(name, "9 9G", n=1, name=f"{name}-9") for name in ("first", "second", "sibling")),
    )
    ssn = a_session(a_conf("allocate", [DRF]), cluster)
    assert min(ssn.queues.values(), key=ssn.queue_key).name == first


RECLAIM = a_conf(
    "reclaim",
    [
        a_plugin("drf", "enableHierarchy", "enableQueueOrder", "enableReclaimable"),
        a_plugin("priority", "enableJobStarving"),
        "predicates",
    ],
)


RECLAIMS = {
    "a branch takes from the one that holds more, also with the task": Eviction(
        [
            nodes(n="4 4G"),
            [LEFT, RIGHT],
            a_job("rich", 4, queue="left", on=["n"] * 4),
            wants("right", n=1),
        ],
        ["rich-3"],
    ),
    "not from one that would hold as much without the victim": Eviction(
        [
            nodes(n="2 2G"),
            [LEFT, RIGHT],
            a_job("rich", 2, queue="left", on=["n"] * 2),
            wants("right", n=1),
        ],
    ),
    "kin gives, not another branch that holds no more than both": Eviction(
        [
            nodes(n="6 6G"),
            SCI,
            ENG,
            a_job("kin", 4, queue="dev", on=["n"] * 4),
            a_job("other", 2, queue="sci", on=["n"] * 2),
            wants("prod", n=1),
        ],
        ["kin-3"],
    ),
}


@pytest.mark.parametrize("case", RECLAIMS.values(), ids=RECLAIMS.keys())
def test_who_gives_back(case: Eviction) -> None:
    check_evictions(case, RECLAIM)
