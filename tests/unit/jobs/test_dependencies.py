"""dependsOn: when the pods of a task may be made."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pumice.core.api.batch import DependsOn, TaskSpec
from pumice.core.api.core import Pod
from pumice.core.jobs import types as t
from pumice.core.jobs.dependencies import is_met
from pumice.core.jobs.reconcile import SYNCHRONISE, reconcile
from tests.unit.jobs.builders import NOW, a_job, a_pod, a_task, observed


@dataclass(frozen=True)
class Case:
    want: bool
    pods: list[Pod]
    wanted: DependsOn
    first: TaskSpec


A = a_task("a", 2, min_available=2)
ON_A = DependsOn(name=["a"])
CASES = {
    "no pod of the other task": Case(False, [], ON_A, A),
    "one of two runs": Case(False, [a_pod("j-a-0")], ON_A, A),
    "both run": Case(True, [a_pod("j-a-0"), a_pod("j-a-1")], ON_A, A),
    "one runs and one succeeded": Case(
        True, [a_pod("j-a-0"), a_pod("j-a-1", "Succeeded")], ON_A, A
    ),
    "one is not ready": Case(False, [a_pod("j-a-0"), a_pod("j-a-1", ready=False)], ON_A, A),
    "one failed": Case(False, [a_pod("j-a-0"), a_pod("j-a-1", "Failed")], ON_A, A),
    "one is enough": Case(True, [a_pod("j-a-1")], ON_A, a_task("a", 2, min_available=1)),
    "a minimum of zero asks for nothing": Case(True, [], ON_A, a_task("a", 2, min_available=0)),
    "any of two tasks": Case(
        True,
        [a_pod("j-a-0"), a_pod("j-a-1")],
        DependsOn(name=["a", "c"], iteration="any"),
        A,
    ),
    "all of two tasks": Case(
        False, [a_pod("j-a-0"), a_pod("j-a-1")], DependsOn(name=["a", "c"]), A
    ),
    "any of one task": Case(False, [], DependsOn(name=["a"], iteration="any"), A),
    "a task that is not there": Case(False, [], DependsOn(name=["nobody"]), A),
    "no names": Case(True, [], DependsOn(), A),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_is_met(case: Case) -> None:
    dependent = a_task("b", 1, depends_on=case.wanted)
    job = a_job(case.first, dependent, a_task("c", 1, min_available=1))

    assert is_met(job, dependent, {pod.metadata.name: pod for pod in case.pods}) == case.want


def test_a_pod_that_exists_is_not_asked_again() -> None:
    job = a_job(A, a_task("b", 2, depends_on=ON_A), min_available=1)
    effects = reconcile(observed(job, a_pod("j-b-0")), SYNCHRONISE, NOW)

    assert [e.name for e in effects if isinstance(e, t.CreatePod)] == ["j-a-0", "j-a-1"]
    assert not any(isinstance(e, t.DeletePod) for e in effects)
