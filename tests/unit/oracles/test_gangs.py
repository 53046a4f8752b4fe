"""gangpreempt, gangreclaim: who goes for a whole gang, and where it is promised room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pumice.core.api.core import PodSpec
from pumice.core.api.scheduling import NetworkTopology, PodGroup, SubGroupPolicy
from pumice.core.conf import Arguments, Configuration
from pumice.core.names import PARTITION_ID, PREEMPTABLE
from tests.builders import (
    Thing,
    a_conf,
    a_group,
    a_job,
    a_plan,
    a_pod,
    a_priority_class,
    a_queue,
    hypernodes,
    nodes,
    within,
)
from tests.unit.oracles.evictions import Case, check

TIERS = (
    ["priority", "gang", "conformance"],
    ["predicates", "proportion", "network-topology-aware"],
)
PREEMPT, RECLAIM = a_conf("gangpreempt", *TIERS), a_conf("gangreclaim", *TIERS)
RANKS = [a_priority_class("low", 10), a_priority_class("middle", 50), a_priority_class("high", 100)]
ONE = nodes(n="1 1Gi")
RACKS: list[Thing] = [
    *nodes(a1="2 4Gi", a2="2 4Gi", b1="2 4Gi", b2="2 4Gi"),
    *hypernodes(a="1 a1 a2", b="1 b1 b2"),
]


def with_arguments(conf: Configuration, **raw: object) -> Configuration:
    [action] = conf.actions
    return replace(conf, configurations={action: Arguments(raw)})


def low(name: str = "low", *on: str, gang: int = 0, asks: str = "1", **more: str) -> list[Thing]:
    """Return a running job of low priority with a pod on each of some nodes."""
    ranked = {"priority": "low", **more}
    return [*a_job(name, len(on), asks, gang=gang, on=on, phase="Running", **ranked)]  # type: ignore[arg-type]


def marked(job: list[Thing], preemptable: str) -> list[Thing]:
    """Return a job whose group says whether it may be preempted."""
    for thing in job:
        if isinstance(thing, PodGroup):
            thing.metadata.annotations = {PREEMPTABLE: preemptable}
    return job


PREEMPTS = {
    "a job that breaks goes as well": Case(
        [RANKS, ONE, low("low", "n", gang=1), a_job("high", priority="high")],
        ["low-0"],
        {"high": ["n"]},
    ),
    "a group that is not to be preempted stays": Case(
        [RANKS, ONE, marked(low("low", "n"), "false"), a_job("high", priority="high")],
    ),
    "one that says that it may be goes": Case(
        [RANKS, ONE, marked(low("low", "n"), "true"), a_job("high", priority="high")],
        ["low-0"],
    ),
    "one of the same priority stays": Case(
        [RANKS, ONE, low("low", "n"), a_job("equal", priority="low")],
    ),
    "one of another queue stays": Case(
        [
            RANKS,
            ONE,
            [a_queue("default"), a_queue("other")],
            low("low", "n", queue="other"),
            a_job("high", priority="high"),
        ],
    ),
    "for all of the gang there must be room": Case(
        [RANKS, nodes(n="2 2Gi"), low("low", "n", "n"), a_job("high", 3, priority="high")],
        promised={"high": []},
    ),
    "room that is free is taken first": Case(
        [
            RANKS,
            nodes(n="2 2Gi", m="1 1Gi"),
            low("low", "n", "n"),
            a_job("high", 2, priority="high"),
        ],
        ["low-0"],
        {"high": ["n", "m"]},
    ),
    "nobody goes where all of it fits": Case(
        [RANKS, nodes(n="3 3Gi"), low("low", "n"), a_job("high", 2, priority="high")],
        promised={"high": ["n"]},
    ),
    "what a job can spare goes before another job breaks": Case(
        [
            RANKS,
            nodes(n="4 4Gi"),
            low("bound", "n", "n", gang=2),
            low("loose", "n", "n", gang=1, priority="middle"),
            a_job("high", priority="high"),
        ],
        ["loose-0"],
    ),
    "a job that breaks loses all that it has here": Case(
        [RANKS, nodes(n="2 2Gi"), low("low", "n", "n", gang=2), a_job("high", priority="high")],
        ["low-0", "low-1"],
    ),
    "the last in job order breaks first": Case(
        [
            RANKS,
            nodes(n="2 2Gi"),
            low("low", "n", gang=1),
            low("middle", "n", gang=1, priority="middle"),
            a_job("high", priority="high"),
        ],
        ["low-0"],
    ),
    "of equals the one that loses least": Case(
        [
            RANKS,
            nodes(n="2 2Gi", m="3 3Gi"),
            low("a-wide", "n", "m", "m", gang=3),
            low("narrow", "n", "m", gang=2),
            a_job("high", priority="high"),
        ],
        ["narrow-0", "narrow-1"],
    ),
    "nobody goes for a pod that does not want it": Case(
        [
            RANKS,
            ONE,
            low("low", "n"),
            a_group("high", priority="high"),
            a_pod("p", job="high", spec=PodSpec(preemption_policy="Never")),
        ],
    ),
    "nobody goes for a gang that the queue may not have": Case(
        [
            RANKS,
            nodes(n="9 9Gi"),
            a_queue("default", capability="3"),
            low("low", "n", asks="2"),
            a_job("high", 2, "2", priority="high"),
        ],
        promised={"high": []},
    ),
    "a gang that is bound to a rack takes one rack": Case(
        [
            RANKS,
            RACKS,
            low("low", "a1", "a2", "b1", "b2", asks="2"),
            a_job("high", 2, "2", priority="high", topology=within(1)),
        ],
        ["low-0", "low-1"],
        {"high": ["a1", "a2"]},
    ),
    "one that no rack can hold takes none": Case(
        [
            RANKS,
            RACKS,
            low("low", "a1", "a2", "b1", "b2", asks="2"),
            a_job("high", 3, "2", priority="high", topology=within(1)),
        ],
        promised={"high": []},
    ),
    "one goes on where it runs": Case(
        [
            RANKS,
            RACKS,
            low("low", "a2", "b1", "b2", asks="2"),
            a_job("high", 2, "2", priority="high", topology=within(1), on=["a1"]),
        ],
        ["low-0"],
        {"high": ["a2"]},
    ),
}


@pytest.mark.parametrize("case", PREEMPTS.values(), ids=PREEMPTS.keys())
def test_gangpreempt(case: Case) -> None:
    check(case, PREEMPT)


def in_parts(least: int, topology: NetworkTopology | None = None) -> list[Thing]:
    """Return a waiting gang of four pods in two parts of two, each bound as given."""
    policy = SubGroupPolicy(
        name="w",
        match_label_keys=[PARTITION_ID],
        network_topology=topology,
        sub_group_size=2,
        min_sub_groups=least // 2,
    )
    pods = [
        a_pod(f"high-{i}", "2", job="high", labels={PARTITION_ID: f"{i // 2}"}) for i in range(4)
    ]
    return [a_group("high", least=least, priority="high", policies=[policy]), *pods]


PARTS = {
    "each part of a gang takes a rack": Case(
        [RANKS, RACKS, low("low", "a1", "a2", "b1", "b2", asks="2"), in_parts(4, within(1))],
        ["low-0", "low-1", "low-2", "low-3"],
        {"high": ["a1", "a2", "b1", "b2"]},
    ),
    "the parts that it needs to start, no more": Case(
        [RANKS, RACKS, low("low", "a1", "a2", "b1", "b2", asks="2"), in_parts(2, within(1))],
        ["low-0", "low-1"],
        {"high": ["a1", "a2"]},
    ),
    "nobody goes where one of the parts fits nowhere": Case(
        [
            RANKS,
            RACKS,
            low("low", "a1", "a2", "b1", asks="2"),
            a_job("stays", 1, "2", gang=1, priority="high", on=["b2"], phase="Running"),
            in_parts(4, within(1)),
        ],
        promised={"high": []},
    ),
}


@pytest.mark.parametrize("case", PARTS.values(), ids=PARTS.keys())
def test_gangs_of_several_parts(case: Case) -> None:
    check(case, PREEMPT)


TWO = [a_queue("default"), a_queue("poor")]
RECLAIMS = {
    "a queue gives what it holds beyond its due": Case(
        [TWO, nodes(n="4 4Gi"), low("rich", *"nnnn"), a_job("gang", 2, queue="poor")],
        ["rich-0", "rich-1"],
        {"gang": ["n"]},
    ),
    "and no more": Case(
        [TWO, nodes(n="4 4Gi"), low("rich", *"nnnn"), a_job("gang", 3, queue="poor")],
    ),
    "not one that does not lend": Case(
        [
            [a_queue("default", reclaimable=False), a_queue("poor")],
            nodes(n="4 4Gi"),
            low("rich", *"nnnn"),
            a_job("gang", 2, queue="poor"),
        ],
    ),
    "another one gives in its place": Case(
        [
            [a_queue("default", reclaimable=False), a_queue("poor"), a_queue("rich")],
            nodes(n="6 6Gi"),
            low("own", "n"),
            low("rich", *"nnnnn", queue="rich"),
            a_job("gang", 2, queue="poor"),
        ],
        ["rich-0", "rich-1"],
    ),
    "of queues that are alike the last gives": Case(
        [
            [a_queue("default"), a_queue("poor"), a_queue("rich")],
            nodes(n="6 6Gi"),
            low("one", *"nnn"),
            low("two", *"nnn", queue="rich"),
            a_job("gang", queue="poor"),
        ],
        ["two-0"],
    ),
    "the highest priority takes no more than its due": Case(
        [
            RANKS,
            TWO,
            nodes(n="2 2Gi"),
            low("rich", "n"),
            a_job("own", queue="poor", on=["n"], phase="Running"),
            a_job("gang", queue="poor", priority="high"),
        ],
    ),
    "a group that is not to be preempted stays": Case(
        [
            TWO,
            nodes(n="4 4Gi"),
            marked(low("rich", *"nnnn"), "false"),
            a_job("gang", 2, queue="poor"),
        ],
    ),
}


@pytest.mark.parametrize("case", RECLAIMS.values(), ids=RECLAIMS.keys())
def test_gangreclaim(case: Case) -> None:
    check(case, RECLAIM)


def test_a_queue_that_holds_its_due_takes_nothing_for_a_gang() -> None:
    rich, own = low("rich", *"nn"), low("own", *"nn", queue="poor")
    check(Case([TWO, nodes(n="4 4Gi"), rich, own, a_job("gang", 1, queue="poor")]), RECLAIM)


BREAKS: list[Sequence[Thing]] = [
    RANKS,
    ONE,
    low("low", "n", gang=1),
    a_job("high", priority="high"),
]
FAR: list[Sequence[Thing]] = [
    RANKS,
    RACKS,
    marked(low("stays", "a1", "a2", asks="2"), "false"),
    low("low", "b1", "b2", asks="2"),
    a_job("high", 2, "2", priority="high", topology=within(1)),
]
ARGUMENTS = {
    "no job is broken where that is not wanted": (BREAKS, {"allowWholeBundle": False}, []),
    "it is, as a rule": (BREAKS, {}, ["low-0"]),
    "so many domains are tried": (FAR, {"maxDomains": 2}, ["low-0", "low-1"]),
    "and no more": (FAR, {"maxDomains": 1}, []),
    "a number that makes no sense is eight": (FAR, {"maxDomains": -1}, ["low-0", "low-1"]),
}


@pytest.mark.parametrize(("world", "raw", "want"), ARGUMENTS.values(), ids=ARGUMENTS.keys())
def test_arguments(world: list[Sequence[Thing]], raw: dict[str, object], want: list[str]) -> None:
    check(Case(world, want), with_arguments(PREEMPT, **raw))


def test_a_malformed_argument_is_told_of() -> None:
    plan = a_plan(with_arguments(RECLAIM, maxDomains="many"), *BREAKS)
    assert any("maxDomains" in warning for warning in plan.warnings)


def test_the_record_says_who_goes_and_why() -> None:
    plan = a_plan(PREEMPT, *FAR)
    [decision] = plan.evictions
    [first, *_] = decision.victims
    assert first.reason.message == "ns/high needs room in b, its job can spare it"
    assert (first.reason.action, first.reason.sake) == ("gangpreempt", "ns/high")
    assert (first.reason.plugin, first.reason.tier) == ("priority, gang, conformance", 1)
    assert first.reason.numbers["asked cpu"] == 4000
