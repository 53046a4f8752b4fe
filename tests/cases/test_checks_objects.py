"""Checks of phases, conditions, objects, answers and identities."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases.builders import a_group, a_moment, a_pod, an_object, check
from tests.cases.checks import AnyCheck
from tests.cases.checks.objects import value_at
from tests.cases.record import Answer, Record

CONDITIONS = [{"type": "Unschedulable", "status": "True"},
              {"type": "Scheduled", "status": "True"},
              {"type": "Unschedulable", "status": "False"}]  # fmt: skip
ALLOCATED = {"allocated": {"cpu": "1500m", "nvidia.com/gpu": "2"}, "state": "Closing"}
MOMENT = a_moment(
    jobs=(
        an_object("j", uid="1", status={"state": {"phase": "Running"}}),
        an_object("k", status={"state": {"phase": "Completed"}}),
        an_object("new"),
    ),
    groups=(
        a_group("j-1", owner="1", phase="Running", conditions=CONDITIONS),
        a_group("new"),
    ),
    queues=(an_object("q", namespace="", status=ALLOCATED),),
    others={"service/a/s": an_object("s"), "service/a/gone": None},
)
RECORD = Record(
    answers={
        "good": Answer(200),
        "bad": Answer(422, "spec.minAvailable: too high"),
        "broken": Answer(500, "no answer"),
    }
)
BOTH = ["a/j", "a/k"]


def answered(step: str, allowed: object, *words: str) -> AnyCheck:
    return check("admission", step=step, allowed=allowed, messageHasAny=list(words))


def field(path: str, **keys: Any) -> AnyCheck:
    return check("field", ref="queue/q", path=path, **keys)


FAULTS: dict[str, tuple[AnyCheck, str]] = {
    "a group's phase": (check("podGroupPhase", podGroup="ownedBy:job/a/j", in_=["Running"]), ""),
    "another phase": (
        check("podGroupPhase", podGroup="a/j-1", in_=["Inqueue", "Completed"]),
        "Running, expected Inqueue or Completed",
    ),
    "an empty phase is Pending": (
        check("podGroupPhase", podGroup="podgroup/a/new", in_=["Pending"]),
        "",
    ),
    "a phase that must not be": (
        check("podGroupPhase", podGroup="a/j-1", notIn=["Running"]),
        "Running, which it must not be",
    ),
    "a group that is not there has no phase": (
        check("podGroupPhase", podGroup="a/gone", notIn=["Running"]),
        "there is none",
    ),
    "the last condition of a type": (
        check("podGroupCondition", podGroup="a/j-1", type="Unschedulable", status="False"),
        "",
    ),
    "a condition is expected to be true": (
        check("podGroupCondition", podGroup="a/j-1", type="Unschedulable"),
        "False, expected True",
    ),
    "a condition that is not there": (
        check("podGroupCondition", podGroup="a/new", type="Unschedulable"),
        "no such condition, expected True",
    ),
    "a Job's phase": (check("jobPhase", job="a/j", in_=["Running"]), ""),
    "a Job without a phase is Pending": (check("jobPhase", job="a/new", in_=["Pending"]), ""),
    "a Job that is gone": (check("jobPhase", job="a/gone", in_=["Pending"]), "there is none"),
    "Jobs in a phase": (check("jobsInPhase", jobs="a/*", phase="Completed", equals=1), ""),
    "more Jobs in a phase": (
        check("jobsInPhase", jobs=BOTH, phase="Running", equals=2),
        "1, expected 2",
    ),
    "the loser's phase": (
        check("jobPhaseOf", jobs=BOTH, which="loser", in_=["Running"]),
        "Completed, expected Running",
    ),
    "a queue's state": (check("queueState", queue="q", in_=["Closing"]), ""),
    "another state": (
        check("queueState", queue="q", in_=["Closed"]),
        "Closing, expected Closed",
    ),
    "an object that is there": (check("exists", ref="service/a/s"), ""),
    "an object that is not": (check("exists", ref="service/a/gone"), "it is not there"),
    "an object that is gone": (check("absent", ref="service/a/gone"), ""),
    "an object that is left": (check("absent", ref="podgroup:ownedBy:job/a/j"), "it is there"),
    "a field": (field("status.state", equals="Closing"), ""),
    "another value": (field("status.state", equals="Open"), "'Closing', expected 'Open'"),
    "a quantity": (field("status.allocated.cpu", equalsQuantity="1.5"), ""),
    "another quantity": (field("status.allocated.cpu", equalsQuantity=2), "'1500m', expected 2"),
    "no quantity at all": (
        field("status.state", equalsQuantity=2),
        "'Closing', expected 2",
    ),
    "a key with dots": (field("status.allocated.nvidia.com/gpu", equalsQuantity="2"), ""),
    "a field is there": (field("status.state"), ""),
    "a field is not": (field("status.stat"), "it is not there"),
    "a field may be absent": (field("status.stat", equals=1, orAbsent=True), ""),
    "but not have another value": (
        field("status.state", equals="Open", orAbsent=True),
        "'Closing', expected 'Open'",
    ),
    "nothing is expected": (field("status.stat", equals=None), ""),
    "a field of nothing": (
        check("field", ref="service/a/gone", path="x", orAbsent=True),
        "the object is not there",
    ),
    "let through": (answered("good", True), ""),
    "wrongly let through": (answered("good", False, "minAvailable"), "it was let through"),
    "refused": (answered("bad", False, "replicas", "minAvailable"), ""),
    "refused in other words": (
        answered("bad", False, "replicas", "tasks"),
        "refused with none of replicas, tasks in: spec.minAvailable: too high",
    ),
    "wrongly refused": (
        answered("bad", True),
        "refused: 422 spec.minAvailable: too high",
    ),
    "either, let through": (answered("good", "either"), ""),
    "either, refused": (answered("bad", "either"), ""),
    "neither": (answered("broken", "either"), "the API server failed: 500 no answer"),
    "a failure is no refusal": (answered("broken", False), "the API server failed: 500 no answer"),
}


@pytest.mark.parametrize("case", FAULTS.values(), ids=FAULTS.keys())
def test_a_check_says_what_is_wrong(case: tuple[AnyCheck, str]) -> None:
    wanted, fault = case
    assert wanted.fault(RECORD, MOMENT) == fault


def test_a_path_leads_through_lists() -> None:
    assert value_at({"a": [{"b": 1}, {"b": 2}]}, "a.1.b") == 2
    assert value_at({"a": [{"b": 1}]}, "a.1.b") is None


BEFORE = a_moment(
    a_pod("j-0", job="j", uid="1"),
    a_pod("j-1", job="j", uid="2"),
    jobs=(an_object("j", uid="job-1"),),
    groups=(a_group("g-1", owner="job-1"),),
)
AFTER = a_moment(
    a_pod("j-0", job="j", uid="1", owner="job-1"),
    a_pod("j-1", job="j", uid="3", owner="job-2"),
    jobs=(an_object("j", uid="job-2"),),
    groups=(a_group("g-2", owner="job-2"),),
)
FIRST = {"pods": "a/j-0"}
SECOND = {"pods": "a/j-1"}
JOB = {"object": "job/a/j"}
GROUP = {"podGroup": "ownedBy:job/a/j"}

IDENTITIES: dict[str, tuple[AnyCheck, str]] = {
    "a pod that stayed": (check("sameUID", select=FIRST, since="before"), ""),
    "a pod that is another one": (
        check("sameUID", select=SECOND, since="before"),
        "gone or another one: a/j-1",
    ),
    "a pod that was replaced": (check("newUID", select=SECOND, since="before"), ""),
    "a pod that was not": (
        check("newUID", select={"job": "a/j"}, since="before"),
        "still the same, or gone: a/j-0",
    ),
    "an object that is another one": (check("newUID", select=JOB, since="before"), ""),
    "an object that did not stay": (
        check("sameUID", select=JOB, since="before"),
        "gone or another one: job/a/j",
    ),
    "a group is compared itself": (check("newUID", select=GROUP, since="before"), ""),
    "no pod, no identity": (
        check("sameUID", select={"pods": "a/x"}, since="before"),
        "there was none at before",
    ),
    "a pod of the Job that there is": (
        check("ownedBy", select=SECOND, owner="job/a/j", sameUID=True),
        "",
    ),
    "a pod of a Job that there was": (
        check("ownedBy", select={"job": "a/j"}, owner="job/a/j"),
        "not owned by job/a/j: a/j-0",
    ),
    "a pod of a Job of that name": (
        check("ownedBy", select={"job": "a/j"}, owner="job/a/j", sameUID=False),
        "",
    ),
    "nobody's pod": (
        check("ownedBy", select=SECOND, owner="job/a/x"),
        "there is no job/a/x",
    ),
    "no pod": (
        check("ownedBy", select={"pods": "a/x"}, owner="job/a/j"),
        "there is no such pod",
    ),
}


@pytest.mark.parametrize("case", IDENTITIES.values(), ids=IDENTITIES.keys())
def test_who_is_who(case: tuple[AnyCheck, str]) -> None:
    wanted, fault = case
    assert wanted.fault(Record(moments={"before": BEFORE}), AFTER) == fault
