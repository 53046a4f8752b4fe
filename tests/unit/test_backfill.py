"""backfill: tasks that ask for nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from pumice.core.conf import Configuration
from pumice.core.cycle import run_session
from tests.builders import (
    Thing,
    a_cluster,
    a_conf,
    a_group,
    a_job,
    a_node,
    a_plugin,
    a_pod,
    a_queue,
    nodes,
    placements,
)

ALL = a_conf("allocate backfill", ["priority", "gang"], ["predicates", "proportion", "binpack"])
ALONE = a_conf("backfill", ["priority", "gang"], ["predicates", "proportion", "binpack"])


def mixed(name: str, heavy: int, light: int, *, least: int, role: str = "") -> list[Thing]:
    """Return a gang of tasks that ask for a cpu and tasks that ask for nothing."""
    pods = [a_pod(f"{name}-heavy-{i}", job=name, role=role) for i in range(heavy)]
    pods += [a_pod(f"{name}-light-{i}", "", job=name, role=role) for i in range(light)]
    return [a_group(name, least=least), *pods]


@dataclass(frozen=True)
class Case:
    world: Sequence[Thing | Iterable[Thing]]
    plan: dict[str, str] = field(default_factory=dict)
    conf: Configuration = ALL
    assumed: Mapping[str, str] = field(default_factory=dict)


CASES = {
    "a task that asks for nothing goes anywhere": Case(
        [nodes(n="0 0"), a_job("j", asks="")], {"j-0": "n"}
    ),
    "it needs a pod slot": Case([nodes(n="4 8Gi pods=0"), a_job("j", asks="")]),
    "one that is only promised is taken": Case(
        [nodes(n="4 8Gi pods=1"), a_pod("o", "", node="n", deleting=True), a_job("j", asks="")]
    ),
    "allocate does not touch it": Case(
        [nodes(n="4 8Gi"), a_job("j", asks="")], {}, a_conf("allocate", ["gang"], ["predicates"])
    ),
    "a gang with members that ask for nothing starts whole": Case(
        [nodes(n="4 8Gi"), mixed("j", 2, 1, least=3)],
        {"j-heavy-0": "n", "j-heavy-1": "n", "j-light-0": "n"},
    ),
    "members that ask for nothing do not start alone": Case(
        [nodes(n="1 8Gi"), mixed("j", 2, 1, least=3)], {}
    ),
    "nor do those whose gang was not tried": Case(
        [nodes(n="4 8Gi"), mixed("j", 2, 1, least=3)], {}, ALONE
    ),
    "a node without slots takes none of them": Case(
        [nodes(n="4 8Gi pods=2"), mixed("j", 2, 2, least=4)],
        {"j-heavy-0": "n", "j-heavy-1": "n"},
    ),
    "the last members of a gang under way follow": Case(
        [nodes(n="4 8Gi"), mixed("j", 1, 2, least=3)],
        {"j-light-0": "n", "j-light-1": "n"},
        ALONE,
        {"j-heavy-0": "n"},
    ),
    "a gated one stays": Case(
        [
            nodes(n="4 8Gi"),
            a_group("j", least=0),
            a_pod("j-0", "", job="j", gates=["example.com/g"]),
        ]
    ),
    "a group that is not let in stays": Case(
        [nodes(n="4 8Gi"), a_job("j", asks="", phase="Pending")], {}, ALONE
    ),
    "a gang short of pods stays": Case(
        [nodes(n="4 8Gi"), a_group("j", least=2), a_pod("j-0", "", job="j")]
    ),
    "no limit of the queue concerns it": Case(
        [nodes(n="4 8Gi"), a_queue("default", state="Closed"), a_job("j", asks="")],
        {"j-0": "n"},
    ),
    "the best scored node is taken": Case(
        [nodes(a="4 8Gi", b="4 8Gi"), a_job("r", on=["b"]), a_job("j", asks="")],
        {"j-0": "a"},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_backfill(case: Case) -> None:
    cluster = a_cluster(*case.world, assumed=case.assumed)
    plan = run_session(cluster.snapshot(), case.conf, 0.0, "s")
    assert placements(plan) == case.plan


def test_members_that_ask_for_nothing_go_out_one_by_one() -> None:
    conf = a_conf("allocate backfill", [a_plugin("gang", "enableJobReady")], ["predicates"])
    cluster = a_cluster(nodes(n="4 8Gi"), mixed("j", 2, 2, least=4, role="w"))
    plan = run_session(cluster.snapshot(), conf, 0.0, "s")
    assert [len(a.placements) for a in plan.allocations] == [2, 1, 1]


def test_why_there_is_no_node() -> None:
    cluster = a_cluster(a_node("n", "4 8Gi pods=0"), a_job("j", asks=""))
    plan = run_session(cluster.snapshot(), ALL, 0.0, "s")
    (group,) = plan.groups
    assert [note.message for note in group.pods.values()] == [
        "0/1 nodes are unavailable: 1 node(s) pod number exceeded."
    ]
