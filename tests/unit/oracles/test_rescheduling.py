"""rescheduling: who leaves crowded nodes for empty ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from pumice.core.api.core import Container, Node, Pod, PodSpec, ResourceRequirements
from pumice.core.cluster import Cluster
from pumice.core.model.inputs import Load
from pumice.core.model.tasks import Task
from pumice.core.session import Session
from tests.builders import a_cluster, a_conf, a_group, a_node, a_plugin, a_pod, a_session, amounts

NOW = 1_800_000_000.0
LIMITS = {
    "thresholds": {"cpu": 30, "memory": 30, "pods": 100},
    "targetThresholds": {"cpu": 60, "memory": 60, "pods": 100},
}


def arguments(**more: object) -> dict[str, object]:
    strategies = [{"name": "lowNodeUtilization", "params": LIMITS}]
    return {"strategies": strategies, "metricsPeriod": "10m", **more}


def a_world(loads: Mapping[str, tuple[float, float]], pods: list[Pod], *cordoned: str) -> Cluster:
    nodes: list[Node] = [a_node(name, "10 10Gi") for name in loads]
    for node in nodes:
        node.spec.unschedulable = node.metadata.name in cordoned
    cluster = a_cluster(nodes, a_group("g"), pods)
    for name, (cpu, memory) in loads.items():
        cluster.inputs.loads[name] = Load(cpu, memory, NOW)
    cluster.inputs.acted["rescheduling"] = NOW - 300
    return cluster


def running(cluster: Cluster, ssn: Session) -> list[Task]:
    return [t for name in ssn.nodes.names for t in ssn.nodes.tasks_on(name).values()]


def victims(cluster: Cluster, raw: Mapping[str, object], *, now: float = NOW) -> list[str]:
    conf = a_conf("shuffle", [a_plugin("rescheduling", **raw)])
    ssn = a_session(conf, cluster, now=now)
    chosen = [task.name for task in ssn.victim_tasks(running(cluster, ssn))]
    cluster.inputs.acted.update(ssn.close().acted)
    return chosen


def on(node: str, *names: str, asks: str = "1 1Gi") -> list[Pod]:
    return [a_pod(name, asks, job="g", node=node) for name in names]


@dataclass(frozen=True)
class Case:
    loads: Mapping[str, tuple[float, float]]
    want: list[str]
    cordoned: list[str] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=lambda: on("high", "a", "b", "c", "d", "e"))


CASES = {
    "pods leave until the node is below its targets": Case(
        {"high": (75, 75), "low": (10, 10)}, ["a", "b"]
    ),
    "as long as the low nodes can take them": Case(
        {"high": (95, 95), "low": (29, 29)}, ["a", "b", "c", "d"]
    ),
    "the busiest node is relieved first": Case(
        {"high": (65, 65), "higher": (70, 70), "low": (10, 10)},
        ["x", "y", "a"],
        pods=[*on("high", "a", "b"), *on("higher", "x", "y", "z")],
    ),
    "nobody leaves where no node is low": Case({"high": (95, 95), "other": (40, 10)}, []),
    "nor where none is high": Case({"high": (60, 60), "low": (10, 10)}, []),
    "nor where all are low": Case({"high": (10, 10), "low": (10, 10)}, []),
    "a cordoned node is not low": Case({"high": (95, 95), "low": (10, 10)}, [], ["low"]),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_who_leaves(case: Case) -> None:
    assert victims(a_world(case.loads, case.pods, *case.cordoned), arguments()) == case.want


def test_the_least_important_leave_first() -> None:
    def a_kind(name: str, priority: int | None, requests: str, limits: str) -> Pod:
        asked = ResourceRequirements(
            requests=amounts(f"{requests} {requests}") if requests else None,
            limits=amounts(f"{limits} {limits}") if limits else None,
        )
        spec = PodSpec(containers=[Container(name="c", resources=asked)])
        return a_pod(name, job="g", node="high", priority=priority, spec=spec)

    pods = [
        a_kind("important", 9, "1", "1"),
        a_kind("guaranteed", 5, "1", "1"),
        a_kind("burstable", 5, "1", "2"),
        a_kind("best-effort", 5, "", ""),
        a_kind("without", None, "1", "1"),
    ]
    cluster = a_world({"high": (99, 99), "low": (0, 0)}, pods)
    want = ["without", "best-effort", "burstable", "guaranteed", "important"]
    assert victims(cluster, arguments()) == want


def test_once_in_the_interval_and_first_after_one() -> None:
    cluster = a_world({"high": (75, 75), "low": (10, 10)}, on("high", "a", "b", "c"))
    del cluster.inputs.acted["rescheduling"]
    raw = arguments(interval="1m")
    got = [victims(cluster, raw, now=NOW + at) for at in (0, 59, 60, 61, 120)]
    assert got == [[], [], ["a", "b"], [], ["a", "b"]]


def test_other_figures_than_those_of_ten_minutes_there_are_none() -> None:
    cluster = a_world({"high": (75, 75), "low": (10, 10)}, on("high", "a", "b"))
    assert victims(cluster, arguments(metricsPeriod="5m")) == []


def test_a_strategy_that_is_not_known_is_told_of() -> None:
    cluster = a_world({"high": (75, 75)}, [])
    option = a_plugin("rescheduling", strategies=[{"name": "offlineOnly"}])
    (warning,) = a_session(a_conf("shuffle", [option]), cluster).findings.warnings
    assert "offlineOnly" in warning
