"""pdb, cdp: who may not be evicted now."""

from __future__ import annotations

import pytest

from pumice.core import names
from pumice.core.api.core import Pod, PodCondition
from pumice.core.api.limits import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from pumice.core.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from pumice.core.cluster import Cluster
from pumice.core.plan import Reason
from pumice.core.timestamps import moment, stamp
from tests.builders import a_cluster, a_conf, a_group, a_plugin, a_pod, a_session, nodes
from tests.unit.oracles.views import task

NOW = moment("2026-01-01T01:00:00Z")


def a_budget(name: str, allowed: int, *, disrupted: str = "", **labels: str) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace="ns"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels=dict(labels))),
        status=PodDisruptionBudgetStatus(
            disruptions_allowed=allowed,
            disrupted_pods={disrupted: "2026-01-01T00:00:00Z"} if disrupted else None,
        ),
    )


def victims(plugin: str, cluster: Cluster) -> list[list[str]]:
    """Return who may go by each of the plugin's extension points."""
    flags = ("enablePreemptable", "enableReclaimable", "enabledVictim")
    ssn = a_session(a_conf("preempt", [a_plugin(plugin, *flags)]), cluster, now=NOW)
    asking, running = task(ssn, "asking"), list(ssn.nodes.tasks_on("n").values())
    ways = [ssn.preemptable(asking, running), ssn.reclaimable(asking, running)]
    if ssn.points.unified_evictable:
        ways.append(ssn.unified_evictable("gangpreempt", ssn.active[0], running))
    ways += [list(allowed(running)) for allowed in ssn.points.victim_limits]
    return [[victim.name for victim in way] for way in ways]


def a_world(*pods: Pod) -> Cluster:
    return a_cluster(nodes(n="9"), a_group("g"), a_pod("asking", job="g"), pods)


def labelled(*names_: str, **labels: str) -> list[Pod]:
    return [a_pod(name, job="g", node="n", labels=labels) for name in names_]


PDB = {
    "no budget, no limit": ([], ["a", "b"]),
    "a budget of nothing lets nobody go": ([a_budget("x", 0, app="web")], []),
    "a budget of one lets the first go": ([a_budget("x", 1, app="web")], ["a"]),
    "each budget that covers a pod counts": (
        [a_budget("x", 2, app="web"), a_budget("y", 1, app="web")],
        ["a"],
    ),
    "one of other pods does not": ([a_budget("x", 0, app="db")], ["a", "b"]),
    "one that selects everything counts as none": ([a_budget("x", 0)], ["a", "b"]),
    "pods that are on their way out are not counted again": (
        [a_budget("x", 0, disrupted="b", app="web")],
        ["b"],
    ),
}


@pytest.mark.parametrize(("budgets", "want"), PDB.values(), ids=PDB.keys())
def test_budgets(budgets: list[PodDisruptionBudget], want: list[str]) -> None:
    cluster = a_world(*labelled("a", "b", app="web"), *labelled("bare"))
    for budget in budgets:
        cluster.inputs.set_budget(budget)
    assert victims("pdb", cluster) == [want] * 4


def test_who_was_evicted_before_is_taken_from_the_budget() -> None:
    cluster = a_world(*labelled("a", "b", app="web"))
    cluster.inputs.set_budget(a_budget("x", 1, app="web"))
    ssn = a_session(a_conf("preempt", [a_plugin("pdb", "enablePreemptable")]), cluster, now=NOW)
    first, second = ssn.nodes.tasks_on("n").values()
    statement = ssn.statement()
    statement.evict(first, Reason("preempt", "pdb", ""))
    assert ssn.preemptable(task(ssn, "asking"), [second]) == []
    statement.discard()
    assert ssn.preemptable(task(ssn, "asking"), [second]) == [second]


def test_a_malformed_budget_is_told_of_and_left_out() -> None:
    broken, cluster = a_budget("x", 0, app="web"), a_world(*labelled("a", app="web"))
    odd = LabelSelectorRequirement(key="app", operator="Gt", values=["1"])
    broken.spec.selector = LabelSelector(match_expressions=[odd])
    cluster.inputs.set_budget(broken)
    ssn = a_session(a_conf("preempt", ["pdb"]), cluster)
    (warning,) = ssn.findings.warnings
    assert warning.startswith("poddisruptionbudget ns/x: ")


def cooling(name: str, cooldown: str, ago: float, *, by: str = "labels") -> Pod:
    notes = {names.COOLDOWN_TIME: cooldown}
    pod = a_pod(name, job="g", node="n", **{by: notes})  # type: ignore[arg-type]
    pod.status.conditions = [
        PodCondition(type="PodScheduled", status="True", last_transition_time=stamp(NOW - ago))
    ]
    return pod


def test_pods_that_cool_down_stay() -> None:
    cluster = a_world(
        cooling("young", "600s", 100),
        cooling("garbled", "600abcde", 100),
        cooling("old", "600s", 800),
        cooling("noted", "10m", 100, by="annotations"),
        cooling("just-over", "600s", 600),
    )
    assert victims("cdp", cluster) == [["garbled", "old", "just-over"]] * 2
