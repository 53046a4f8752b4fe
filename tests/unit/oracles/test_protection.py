"""Who may be evicted: what priority, conformance and gang allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from pumice.core.api.core import Pod
from pumice.core.model.tasks import Task
from pumice.core.session import Session
from tests.builders import (
    Thing,
    a_cluster,
    a_conf,
    a_group,
    a_plugin,
    a_pod,
    a_priority_class,
    a_session,
    nodes,
)
from tests.unit.oracles.cases import World

WAYS = ("preempt", "reclaim", "gangpreempt", "gangreclaim")


def victims(way: str, ssn: Session, asking: Task, candidates: Sequence[Task]) -> list[Task]:
    """Ask the session in the way of an action."""
    job = ssn.job(asking.job)
    assert job is not None
    if way == "preempt":
        return ssn.preemptable(asking, candidates)
    if way == "reclaim":
        return ssn.reclaimable(asking, candidates)
    return ssn.unified_evictable(way, job, candidates)


def critical(name: str) -> Pod:
    pod = a_pod(f"p-{name}", job="j", node="n")
    pod.spec.priority_class_name = name
    return pod


@dataclass(frozen=True)
class Case:
    """A plugin; who runs on the node; who may go for the pod `asking` of the group `mine`."""

    plugin: str
    world: World
    #: way -> victims; a way that is not listed finds none, since the plugin has no say in it
    want: dict[str, list[str]]


def each_way(*names: str) -> dict[str, list[str]]:
    return {way: [*names] for way in WAYS}


RANKS = [a_priority_class("high", 1000), a_priority_class("low", 100)]
RUNNING: list[Thing] = [
    a_group("above", priority="high"),
    a_group("below", priority="low"),
    a_pod("p-above", job="above", node="n"),
    a_pod("p-below", job="below", node="n"),
]
GANG: list[Thing] = [
    a_group("g", least=2),
    *[a_pod(f"g-{i}", job="g", node="n") for i in range(4)],
    a_group("whole", least=3),
    *[a_pod(f"whole-{i}", job="whole", node="n") for i in range(3)],
    a_group("free", least=0),
    a_pod("free-0", job="free", node="n"),
]

CASES = {
    "lower jobs go by preemption, and all by reclaiming for a gang": Case(
        "priority",
        [*RANKS, *RUNNING],
        {
            "preempt": ["p-below"],
            "gangpreempt": ["p-below"],
            "gangreclaim": ["p-above", "p-below"],
        },
    ),
    "equal jobs stay": Case(
        "priority",
        [a_group("j"), a_pod("p", job="j", node="n", priority=-5)],
        {"gangreclaim": ["p"]},
    ),
    "in its own job lower tasks go": Case(
        "priority",
        [
            a_pod("lower", job="mine", node="n", priority=4),
            a_pod("equal", job="mine", node="n", priority=5),
        ],
        {"preempt": ["lower"], "gangreclaim": ["lower", "equal"]},
    ),
    "system pods stay": Case(
        "conformance",
        [
            a_group("j"),
            a_group("j", namespace="kube-system"),
            a_pod("plain", job="j", node="n"),
            a_pod("kube", job="j", node="n", namespace="kube-system"),
            critical("system-node-critical"),
            critical("system-cluster-critical"),
            critical("important"),
        ],
        each_way("plain", "p-important"),
    ),
    "a gang gives what it can spare, one that must be whole nothing": Case(
        "gang",
        GANG,
        {
            "preempt": ["g-0", "g-1", "free-0"],
            "reclaim": ["g-0", "g-1", "free-0"],
            "gangpreempt": [t.metadata.name for t in GANG if isinstance(t, Pod)],
            "gangreclaim": [t.metadata.name for t in GANG if isinstance(t, Pod)],
        },
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_who_may_go(case: Case, way: str) -> None:
    flags = ("enablePreemptable", "enableReclaimable")
    cluster = a_cluster(
        nodes(n="99 99Gi"),
        a_priority_class("middle", 500, default=True),
        a_group("mine"),
        a_pod("asking", job="mine", priority=5),
        *case.world,
    )
    ssn = a_session(a_conf("preempt", [a_plugin(case.plugin, *flags)]), cluster)
    asking = next(t for job in ssn.active for t in job.tasks.values() if t.name == "asking")
    candidates = list(ssn.nodes.tasks_on("n").values())
    got = [task.name for task in victims(way, ssn, asking, candidates)]
    assert got == case.want.get(way, [])
