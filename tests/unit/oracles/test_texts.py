"""The words in which groups and pods are told why they wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from pumice.core.fitness import FitErrors
from pumice.core.ids import PodUid
from pumice.core.model.tasks import Status
from pumice.core.workspace import Trial
from tests.builders import a_cluster, a_conf, a_group, a_plugin, a_pod, a_session

FULL, SHORT = "node(s) pod number exceeded", "node(s) resource fit failed"

FIT_ERRORS = {
    "no nodes": (FitErrors(), "0/0 nodes are unavailable"),
    "nodes, and no reason": (FitErrors(3), "0/3 nodes are unavailable"),
    "an error in the place of the count": (
        FitErrors(1, {FULL: 1}, error="fit failed"),
        f"fit failed: 1 {FULL}.",
    ),
    "an error and no reason": (FitErrors(error="fit failed"), "fit failed"),
    "a hypernode was tried": (
        FitErrors(1, {FULL: 1}, hypernode="h"),
        f"In hyperNode h: 0/1 nodes are unavailable: 1 {FULL}.",
    ),
    "reasons are sorted as texts": (
        FitErrors(12, {SHORT: 2, FULL: 10}),
        f"0/12 nodes are unavailable: 10 {FULL}, 2 {SHORT}.",
    ),
}


@pytest.mark.parametrize(("errors", "want"), FIT_ERRORS.values(), ids=FIT_ERRORS.keys())
def test_fit_errors(errors: FitErrors, want: str) -> None:
    assert str(errors) == want


@dataclass(frozen=True)
class Case:
    """Six waiting tasks `t-1`... of a gang of six, as they stand when the session closes."""

    group: str
    #: messages of the pods that the row is about
    pods: Mapping[str, str] = field(default_factory=dict)
    #: where tasks went in a try that was given up
    tried: Mapping[str, Trial] = field(default_factory=dict)
    errors: Mapping[str, FitErrors] = field(default_factory=dict)
    #: why the job as a whole was not tried
    message: str = ""


ONE_FULL = FitErrors(3, {FULL: 1, SHORT: 2})
NOWHERE = f"0/3 nodes are unavailable: 1 {FULL}, 2 {SHORT}."
HEAD = "pod group is not ready, 6 Pending, 6 minAvailable; Pending:"
ONCE = "can possibly be assigned to"

CASES = {
    "nothing is known": Case(f"{HEAD} 6 Unschedulable", {"t-1": f"{HEAD} 6 Unschedulable"}),
    "three found a node and one did not": Case(
        f"{HEAD} 3 Schedulable, 3 Unschedulable. Origin reason is t-6: {NOWHERE}",
        {
            "t-1": f"{HEAD} 3 Schedulable, 3 Unschedulable. Origin reason is t-6: {NOWHERE}",
            "t-3": f"Pod ns/t-3 {ONCE} n1, once minAvailable is satisfied",
            "t-5": f"Pod ns/t-5 {ONCE} n3, once minAvailable is satisfied",
            "t-6": NOWHERE,
        },
        {f"t-{i}": Trial(Status.ALLOCATED, f"n{i - 2}") for i in (3, 4, 5)},
        {"t-6": ONE_FULL},
    ),
    "one would have to wait for room": Case(
        f"{HEAD} 1 Schedulable, 5 Unschedulable",
        {
            "t-1": f"Pod ns/t-1 {ONCE} n1, once minAvailable is satisfied",
            "t-2": f"Pod ns/t-2 {ONCE} n2, once resource is released and minAvailable is satisfied",
        },
        {"t-1": Trial(Status.ALLOCATED, "n1"), "t-2": Trial(Status.PIPELINED, "n2")},
    ),
    "the job was not tried": Case(
        f"{HEAD} 6 Unschedulable. Origin reason is: too early",
        {"t-1": f"{HEAD} 6 Unschedulable. Origin reason is: too early"},
        message="too early",
    ),
    "what keeps the job comes before what a task lacks": Case(
        f"{HEAD} 6 Unschedulable. Origin reason is: too early",
        {"t-6": NOWHERE},
        errors={"t-6": ONE_FULL},
        message="too early",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_why_a_gang_waits(case: Case) -> None:
    pods = [a_pod(f"t-{i}", job="j") for i in range(1, 7)]
    ssn = a_session(
        a_conf("allocate", [a_plugin("gang", "enableJobReady")]),
        a_cluster(a_group("j", least=6), pods),
    )
    (job,) = ssn.active
    ssn.space.last |= {PodUid(name): trial for name, trial in case.tried.items()}
    trouble = ssn.trouble(job)
    trouble.message = case.message
    trouble.tasks |= case.errors

    (group,) = ssn.close().groups

    (condition,) = group.conditions
    found = sum(trial.status is Status.ALLOCATED for trial in case.tried.values())
    assert condition.message == f"{6 - found}/6 tasks in gang unschedulable: {case.group}"
    assert {name: group.pods[PodUid(name)].message for name in case.pods} == case.pods
    for name, note in group.pods.items():
        went = case.tried.get(name)
        fits = went is not None and went.status is Status.ALLOCATED
        assert note.reason == ("Schedulable" if fits else "Unschedulable")
