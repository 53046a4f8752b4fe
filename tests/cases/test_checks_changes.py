"""Checks of what happened over time."""

from __future__ import annotations

import pytest

from tests.cases.builders import a_group, a_moment, a_pod, an_object, check, seen
from tests.cases.checks import AnyCheck
from tests.cases.record import Record, Removal, Revival, Window

ON_NODE = {"job": "j", "group": "g", "node": "n", "phase": "Running"}


def on_node(name: str, *, going: bool = False, phase: str = "Running") -> dict[str, object]:
    return a_pod(name, job="j", group="g", node="n", phase=phase, terminating=going)


#: `j-0` is evicted at 30, `j-1` deleted by a step at 40, `j-2` has ended before it goes at 50,
#: `j-3` was never bound; `j-4` appears at 60
PODS = [
    *(seen(10, a_pod(f"j-{i}", job="j"), "ADDED") for i in range(4)),
    *(seen(20 + i, on_node(f"j-{i}")) for i in range(3)),
    seen(30.1, on_node("j-0", going=True)),
    seen(31, on_node("j-0", going=True), "DELETED"),
    seen(40.1, on_node("j-1", going=True)),
    seen(41, on_node("j-1", going=True, phase="Failed")),
    seen(41.1, on_node("j-1", going=True, phase="Failed"), "DELETED"),
    seen(45, on_node("j-2", phase="Succeeded")),
    seen(50.1, on_node("j-2", phase="Succeeded"), "DELETED"),
    seen(55.1, a_pod("j-3", job="j", group="g"), "DELETED"),
    seen(60, a_pod("j-4", job="j"), "ADDED"),
    seen(61, on_node("j-4")),
]
REMOVALS = [
    Removal(30, "uid-j-0", platform=True),
    Removal(40, "uid-j-1", platform=False),
    Removal(50, "uid-j-2", platform=True),
    Removal(55, "uid-j-3", platform=True),
    Removal(99, "uid-of-nobody", platform=True),
]
RECORD = Record(
    pods=PODS,
    jobs=[seen(5, an_object("j"), "ADDED")],
    groups=[
        seen(6, a_group("g", queue="q"), "ADDED"),
        seen(90, a_group("g", queue="q"), "DELETED"),
    ],
    removals={removal.uid: removal for removal in REMOVALS},
    windows={"early": Window(25, 35), "late": Window(35, 70), "quiet": Window(32, 39)},
    moments={"start": a_moment(at=0), "later": a_moment(at=30)},
    revivals=[Revival(20, "extender"), Revival(40, "extender"), Revival(40, "scheduler")],
)
END = a_moment(on_node("j-4"))
UNBOUND = a_moment(on_node("j-4"), a_pod("j-5", job="j"))
JOB = {"job": "a/j"}

FAULTS: dict[str, tuple[AnyCheck, str]] = {
    "bound, unfinished pods that the platform removed": (
        check("evictedCount", select=JOB, equals=1),
        "",
    ),
    "a removal by anybody else is no eviction": (
        check("evictedCount", select={"pods": "a/j-1"}, equals=0),
        "",
    ),
    "a queue's pods, although their group is gone": (
        check("evictedCount", select={"queue": "q"}, equals=1),
        "",
    ),
    "an eviction too many": (check("evictedCount", select=JOB, equals=0), "1, expected 0"),
    "evicted in the window": (check("evictedDuring", select=JOB, window="early", equals=1), ""),
    "not in the other": (check("evictedDuring", select=JOB, window="late", equals=0), ""),
    "a count may have a window": (
        check("evictedCount", select=JOB, window="late", equals=1),
        "0, expected 1",
    ),
    "appeared in the window": (check("createdDuring", select=JOB, window="late", equals=1), ""),
    "nothing appeared": (check("createdDuring", select=JOB, window="early", max=0), ""),
    "what stands at the window's begin counts": (
        check("neverAbove", select=JOB, resource="cpu", max=2, window="early"),
        "3, expected 2 at most",
    ),
    "a pod that goes counts until it is gone": (
        check("neverAbove", select=JOB, resource="cpu", max=2, window="quiet"),
        "",
    ),
    "never above": (check("neverAbove", select=JOB, resource="cpu", max="2", window="late"), ""),
    "above at some moment": (
        check("neverAbove", select=JOB, resource="cpu", max="1500m", window="late"),
        "2, expected 1500m at most",
    ),
    "from the Job's creation until the binding": (
        check("maxBindDelaySeconds", select=JOB, max=56),
        "",
    ),
    "too late": (
        check("maxBindDelaySeconds", select=JOB, max=55),
        "56.0 s, expected 55 s at most",
    ),
    "no pod, no delay": (
        check("maxBindDelaySeconds", select={"pods": "a/x"}, max=9),
        "there is no such pod",
    ),
    "came back since": (
        check("restartCount", component="extender", since="later", equals=1),
        "",
    ),
    "came back twice": (
        check("restartCount", component="extender", since="start", equals=0),
        "2, expected 0",
    ),
}


@pytest.mark.parametrize("case", FAULTS.values(), ids=FAULTS.keys())
def test_a_check_says_what_is_wrong(case: tuple[AnyCheck, str]) -> None:
    wanted, fault = case
    assert wanted.fault(RECORD, END) == fault


def test_evictions_count_up_to_the_moment() -> None:
    check_early = check("evictedCount", select=JOB, equals=0)
    assert check_early.fault(RECORD, a_moment(at=29)) == ""
    assert check_early.fault(RECORD, a_moment(at=31)) == "1, expected 0"


def test_an_unbound_pod_is_late_whatever_the_limit() -> None:
    late = check("maxBindDelaySeconds", select=JOB, max=1000)
    assert late.fault(RECORD, UNBOUND) == "not bound: a/j-5"


def test_a_check_is_due_once_its_window_is_over() -> None:
    early = check("evictedDuring", select=JOB, window="early", equals=1)
    assert early.is_due(RECORD)
    assert not early.is_due(Record())
    assert check("evictedCount", select=JOB, equals=1).is_due(Record())
