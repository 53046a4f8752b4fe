"""The auditor's figures on a history small enough to count by hand."""

from __future__ import annotations

from dataclasses import replace

from tests.auditor.builders import (
    CONTROLLERS,
    EXTENDER,
    KUBELET,
    SETTINGS,
    Case,
    binding,
    gang,
    history,
    node,
    pod,
    request,
    seen,
)
from tests.auditor.statistics import Binding, GangTimes, Statistics, Writes, statistics

SCHEDULER = "kube-scheduler"
RUN = Case(
    [
        request(0.5, CONTROLLERS, "create", "podgroups", "g"),
        seen(1, gang(2), node("n", 1)),
        request(1.9, CONTROLLERS, "create", "pods", "a"),
        seen(2, pod("a")),
        request(2.1, CONTROLLERS, "create", "pods", "b"),
        request(2.2, CONTROLLERS, "create", "events", "e"),
        seen(2.5, pod("b")),
        request(3, EXTENDER, "patch", "pods", "a", rv=3000),
        request(3.1, SCHEDULER, "patch", "pods/status", "b", rv=3100),
        replace(binding(3.5, "a"), code=409),
        binding(4, "a"),
        seen(4.1, pod("a", "n")),
        request(4.2, KUBELET, "patch", "pods/status", "a", rv=4200),
        binding(5, "b"),
        seen(5.1, pod("b", "n")),
        request(6, EXTENDER, "patch", "podgroups", "g", rv=6000),
    ],
    settings=replace(SETTINGS, scheduler_users=frozenset({SCHEDULER})),
)
UNTIL_BOUND = {
    "controllers create pods": 2,
    "extender create pods/binding": 3,
    "extender patch pods": 1,
    "kube-scheduler patch pods/status": 1,
}
OUTSIDE = {"controllers create podgroups": 1, "extender patch podgroups": 1}


def test_everything_is_counted_once() -> None:
    assert statistics(history(RUN), RUN.settings) == Statistics(
        pods_created=2,
        pods_bound=2,
        refused_bindings=1,
        over_commitments=1,
        error_answers=None,
        writes_per_pod=3.5,
        writes=Writes(
            until_bound=UNTIL_BOUND,
            all=dict(sorted({**UNTIL_BOUND, **OUTSIDE}.items())),
            apart={"controllers create events": 1},
            on_pods_until_bound=7,
        ),
        bindings=[
            Binding("ns/a", "a", "ns/g", "n", EXTENDER, 4.01),
            Binding("ns/b", "b", "ns/g", "n", EXTENDER, 5.01),
        ],
        gangs={"ns/g": GangTimes(2, 4.01, 5.01, bound=2, minimum=2)},
    )
