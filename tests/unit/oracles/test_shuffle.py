"""shuffle: the plugins say who should be somewhere else, and those go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from pumice.core import catalog
from pumice.core.api.core import Pod
from pumice.core.api.limits import PodDisruptionBudget, PodDisruptionBudgetSpec
from pumice.core.api.meta import LabelSelector, ObjectMeta
from pumice.core.api.scheduling import PodGroup
from pumice.core.conf import Arguments
from pumice.core.cycle import run_session
from pumice.core.model.tasks import Task
from pumice.core.session import Session
from tests.builders import a_cluster, a_conf, a_group, a_plan, a_plugin, a_pod, nodes

NODES = nodes(n1="4 8Gi", n2="4 8Gi")


class Lesser:
    """Says that tasks of priority 10 should be somewhere else."""

    name = "lesser"

    def __init__(self, args: Arguments) -> None:
        """Take no arguments."""

    def on_session_open(self, ssn: Session) -> None:
        def victims(tasks: Sequence[Task]) -> list[Task]:
            return [task for task in tasks if task.priority == 10]

        ssn.points.victim_tasks["lesser"] = victims

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""


@pytest.fixture(autouse=True)
def lesser() -> Iterator[None]:
    catalog.add_plugin("lesser", Lesser)
    yield
    catalog.remove_plugin("lesser")


CONF = a_conf("shuffle", [a_plugin("lesser", "enabledVictim")])
JOBS: list[list[PodGroup] | list[Pod]] = [
    [a_group(job, least=0, phase="Running") for job in ("j1", "j2", "j3")],
    [
        a_pod(f"{job}-{i}", job=f"j{job}", node=node, priority=priority)
        for job, i, node, priority in (
            (1, 1, "n1", 10),
            (1, 2, "n1", 100),
            (1, 3, "n1", 100),
            (2, 1, "n1", 10),
            (2, 2, "n2", 100),
            (3, 1, "n2", 10),
            (3, 2, "n2", 100),
        )
    ],
]


def test_each_goes_for_itself() -> None:
    plan = a_plan(CONF, NODES, *JOBS)
    assert [([v.uid for v in d.victims], d.claims, d.job, d.action) for d in plan.evictions] == [
        (["1-1"], (), "ns/j1", "shuffle"),
        (["2-1"], (), "ns/j2", "shuffle"),
        (["3-1"], (), "ns/j3", "shuffle"),
    ]
    [reason, *_] = [v.reason for d in plan.evictions for v in d.victims]
    assert (reason.action, reason.plugin, reason.tier) == ("shuffle", "lesser", 1)
    assert reason.message == "ns/1-1 should be somewhere else than on n1"


def test_only_tasks_that_run_and_could_be_evicted_a_moment_ago() -> None:
    cluster = a_cluster(
        NODES,
        a_group("g", least=0, phase="Running"),
        a_pod("starts", job="g", node="n1", phase="Pending", priority=10),
        a_pod("spared", job="g", node="n1", priority=10),
        a_pod("runs", job="g", node="n1", priority=10),
        a_pod("leaves", job="g", node="n1", priority=10, deleting=True),
        a_pod("alone", node="n1", priority=10),
    )
    snapshot = cluster.snapshot({}, frozenset(uid for uid in cluster.pods if uid == "spared"))
    plan = run_session(snapshot, CONF, 0.0, "s")
    assert [v.uid for d in plan.evictions for v in d.victims] == ["runs"]


def test_nobody_goes_where_no_plugin_has_a_say() -> None:
    assert a_plan(a_conf("shuffle", ["gang"]), NODES, *JOBS).evictions == ()
    assert a_plan(CONF, NODES, a_group("g", least=0)).evictions == ()


def test_nobody_goes_against_a_budget_and_nobody_for_having_none() -> None:
    cluster = a_cluster(
        NODES,
        a_group("g", least=0, phase="Running"),
        a_pod("covered", job="g", node="n1", priority=10, labels={"app": "x"}),
        a_pod("free", job="g", node="n1", priority=10, labels={"app": "y"}),
        a_pod("at-ease", job="g", node="n1", priority=100, labels={"app": "y"}),
    )
    cluster.inputs.set_budget(
        PodDisruptionBudget(
            metadata=ObjectMeta(name="x", namespace="ns"),
            spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": "x"})),
        )
    )
    conf = a_conf("shuffle", [a_plugin(name, "enabledVictim") for name in ("pdb", "lesser")])
    plan = run_session(cluster.snapshot(), conf, 0.0, "s")
    assert [v.uid for d in plan.evictions for v in d.victims] == ["free"]
    alone = a_conf("shuffle", [a_plugin("pdb", "enabledVictim")])
    assert run_session(cluster.snapshot(), alone, 0.0, "s").evictions == ()
