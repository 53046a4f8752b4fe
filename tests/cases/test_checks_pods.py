"""Checks of pods at one moment."""

from __future__ import annotations

import pytest

from tests.cases.builders import a_moment, a_pod, check
from tests.cases.checks import AnyCheck
from tests.cases.record import Record

MOMENT = a_moment(
    a_pod("j-0", job="j", node="n1", phase="Running"),
    a_pod("j-1", job="j", node="n1", phase="Succeeded", cpu="2"),
    a_pod("j-2", job="j", node="n2", phase="Running", terminating=True),
    a_pod("j-3", job="j", node="n2", phase="Failed"),
    a_pod("j-4", job="j"),
    a_pod("k-0", job="k", node="n2", phase="Running", cpu="500m"),
)
JOB = {"job": "a/j"}
BOTH = ["a/j", "a/k"]

FAULTS: dict[str, tuple[AnyCheck, str]] = {
    "bound is what has a node and has not failed": (check("boundCount", select=JOB, equals=3), ""),
    "one more is wrong": (check("boundCount", select=JOB, equals=4), "3, expected 4"),
    "bound and alive is without what succeeded": (
        check("boundAliveCount", select=JOB, equals=2),
        "",
    ),
    "alive is with the unbound, without those that go": (
        check("aliveCount", select=JOB, equals=2),
        "",
    ),
    "at least and at most": (check("boundCount", select=JOB, min=3, max=3), ""),
    "too few": (check("boundCount", select=JOB, min=4), "3, expected 4 at least"),
    "too many": (check("boundCount", select=JOB, max=2), "3, expected 2 at most"),
    "a total over selections": (
        check("boundTotal", selects=[JOB, {"job": "a/k"}], equals=5),
        "4, expected 5",
    ),
    "on the nodes named": (check("onNodes", select=JOB, nodes=["n1", "n2"]), ""),
    "on another node": (
        check("onNodes", select=JOB, nodes=["n1"]),
        "on n1, n2, expected n1 only",
    ),
    "on no node at all": (
        check("onNodes", select={"pods": "a/j-4"}, nodes=["n1"]),
        "no pod is bound",
    ),
    "no node twice": (check("distinctNodes", select={"jobs": "a/k"}), ""),
    "a node twice": (check("distinctNodes", select=JOB), "several pods on n1"),
    "requests of the unfinished pods": (
        check("nodeRequestedAtMost", node="n2", resource="cpu", max="1500m"),
        "",
    ),
    "requests above the limit": (
        check("nodeRequestedAtMost", node="n2", resource="cpu", max=1),
        "1.5, expected 1 at most",
    ),
    "a resource that nobody asks for": (
        check("nodeRequestedAtMost", node="n2", resource="gpu", max=0),
        "",
    ),
    "one ahead, the other behind": (
        check("exactlyOneFullyBound", jobs=BOTH, winnerBound=3, loserBound=1),
        "",
    ),
    "both in part": (
        check("exactlyOneFullyBound", jobs=BOTH, winnerBound=3, loserBound=0),
        "bound pods [3, 1], expected 3 once, else 0",
    ),
    "the winner's pods": (check("boundCountOf", jobs=BOTH, which="winner", equals=3), ""),
    "the loser's pods": (
        check("boundCountOf", jobs=BOTH, which="loser", equals=3),
        "1, expected 3",
    ),
}


@pytest.mark.parametrize("case", FAULTS.values(), ids=FAULTS.keys())
def test_a_check_says_what_is_wrong(case: tuple[AnyCheck, str]) -> None:
    wanted, fault = case
    assert wanted.fault(Record(), MOMENT) == fault


def test_the_winner_is_the_one_that_a_step_took() -> None:
    record = Record(winners={frozenset(BOTH): "a/k"})
    assert check("boundCountOf", jobs=BOTH, which="winner", equals=1).fault(record, MOMENT) == ""


def test_a_reason_names_check_subject_and_moment() -> None:
    wrong = check("boundCount", select=JOB, equals=4, at="full")
    assert wrong.reason(Record(), MOMENT) == "boundCount of job a/j at full: 3, expected 4"
    assert check("boundCount", select=JOB, equals=3).reason(Record(), MOMENT) == ""
