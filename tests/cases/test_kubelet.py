"""The kubelet that is played: what it does with a bound pod, and when."""

from __future__ import annotations

import pytest

from pumice.local.api import Object
from tests.cases.builders import a_pod, select
from tests.cases.kubelet import Duty, Rule, duty
from tests.cases.podstatus import status
from tests.cases.schema import Mode

SINCE = {"bound": 10.0, "Pending": 10.0, "Running": 11.0, "terminating": 30.0}


def a_bound_pod(phase: str = "Pending", *, going: bool = False) -> Object:
    return a_pod("p", node="n", phase=phase, terminating=going)


DUTIES: dict[str, tuple[Object, Mode | None, Duty | None]] = {
    "a bound pod runs at once": (a_bound_pod(), None, Duty("start", 10)),
    "a running pod goes on": (a_bound_pod("Running"), None, None),
    "a pod that has ended stays": (a_bound_pod("Succeeded"), None, None),
    "a deleted pod goes at once": (a_bound_pod("Running", going=True), None, Duty("remove", 30)),
    "run: as without a rule": (a_bound_pod(), "run", Duty("start", 10)),
    "never started": (a_bound_pod(), "neverStart", None),
    "never started, but deleted": (
        a_bound_pod(going=True),
        "neverStart",
        Duty("remove", 30),
    ),
    "runs and is not ready": (a_bound_pod(), "runNotReady", Duty("start unready", 10)),
    "is to succeed, but runs first": (a_bound_pod(), "succeedAfter3s", Duty("start", 10)),
    "succeeds 3 s after its start, or after the rule": (
        a_bound_pod("Running"),
        "succeedAfter3s",
        Duty("end", 23),
    ),
    "takes 20 s to go": (
        a_bound_pod("Running", going=True),
        "terminateAfter20s",
        Duty("remove", 50),
    ),
    "runs until it is deleted": (a_bound_pod("Running"), "terminateAfter20s", None),
}


@pytest.mark.parametrize("case", DUTIES.values(), ids=DUTIES.keys())
def test_the_duty_towards_a_pod(case: tuple[Object, Mode | None, Duty | None]) -> None:
    pod, mode, want = case
    rule = Rule(select(pods="a/p"), mode, since=20.0) if mode else None
    assert duty(pod, rule, SINCE) == want


def test_a_status_is_for_this_very_pod_and_says_how_it_ended() -> None:
    patch = status(a_bound_pod("Running"), "Failed", exit_code=3)
    container = patch["status"]["containerStatuses"][0]
    assert patch["metadata"] == {"uid": "uid-p"}
    assert patch["status"]["phase"] == "Failed"
    assert container["state"]["terminated"]["exitCode"] == 3


def test_a_pod_that_fails_has_an_exit_code_of_its_own() -> None:
    for phase, code in (("Failed", 1), ("Succeeded", 0)):
        container = status(a_bound_pod(), phase)["status"]["containerStatuses"][0]
        assert container["state"]["terminated"]["exitCode"] == code


def test_a_running_pod_is_ready_or_not() -> None:
    for ready in (True, False):
        conditions = status(a_bound_pod(), "Running", ready=ready)["status"]["conditions"]
        assert {"Ready": str(ready)}.items() <= {c["type"]: c["status"] for c in conditions}.items()
