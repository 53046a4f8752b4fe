"""The predicates plugin in a session: what it registers, and how it follows placements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from pumice.core.api.core import Node, Pod
from pumice.core.extension import Code
from pumice.core.model.tasks import TaskClass
from pumice.core.plan import Reason
from pumice.core.plugins.predicates import NAME
from pumice.core.resources import Bools
from pumice.core.session import Session
from tests.unit.sessions import a_node, a_pod, a_session, classes, pending
from tests.unit.worlds import a_term, apart, near, ports, spread

PORT = "node(s) didn't have free ports for the requested pod ports"
NEAR = "node(s) didn't match pod affinity rules"
APART = "node(s) didn't match pod anti-affinity rules"
REPELLED = "node(s) didn't satisfy existing pods anti-affinity rules"
SKEW = "node(s) didn't match pod topology spread constraints"
KEYLESS = "node(s) didn't match pod topology spread constraints (missing required label)"
CHOICE = "node(s) didn't match Pod's node affinity/selector"
CORDON = "node(s) had untolerated taint(s)"

THREE = [
    a_node("n1", {"zone": "a"}),
    a_node("n2", {"zone": "a"}),
    a_node("n3", {"zone": "b"}),
]
WEB = {"app": "web"}


def verdict(ssn: Session, cls: TaskClass) -> tuple[Bools, dict[str, str]]:
    """Return the nodes that take the next task, and who is refused for what."""
    (predicate,), (live,) = ssn.points.predicate, ssn.points.live_predicate
    results = [predicate(cls)] + ([live.check(cls)] if live.applies(cls) else [])
    mask = np.logical_and.reduce([result.mask for result in results])
    reasons: dict[str, str] = {}
    for refusal in (r for result in results for r in result.reasons if r.nodes.any()):
        names = [name for name, held in zip(ssn.nodes.names, refusal.nodes, strict=True) if held]
        reasons[refusal.message] = " ".join(names)
    return mask, reasons


def taken_by(ssn: Session, name: str) -> str:
    mask, _ = verdict(ssn, classes(ssn)[name])
    return " ".join(n for n, ok in zip(ssn.nodes.names, mask, strict=True) if ok)


@dataclass(frozen=True)
class Case:
    pods: Sequence[Pod]
    """The last one is asked about; those before it are running."""
    taken: str
    reasons: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, object] = field(default_factory=dict)
    nodes: Sequence[Node] = field(default_factory=lambda: THREE)


def off(switch: str) -> dict[str, object]:
    return {f"predicate.{switch}Enable": False}


PICKY = a_pod("p", spec={"nodeSelector": {"zone": "b"}})
TAINTED = [a_node("n1", taints=[{"key": "k", "effect": "NoSchedule"}]), a_node("n2")]
HOLDERS = [
    a_pod("r", node="n1", spec={"containers": ports(80)}),
    a_pod("p", spec={"containers": ports(80)}),
]
CLINGY = [a_pod("r", WEB, node="n1"), a_pod("p", spec={"affinity": near(a_term("web"))})]
EVEN = [
    a_pod("r", WEB, node="n1"),
    a_pod("p", WEB, spec={"topologySpreadConstraints": [spread("web")]}),
]

CASES = {
    "an ordinary pod goes anywhere": Case([a_pod("p")], "n1 n2 n3"),
    "a node selector": Case([PICKY], "n3", {CHOICE: "n1 n2"}),
    "a node selector, switched off": Case([PICKY], "n1 n2 n3", arguments=off("NodeAffinity")),
    "a taint": Case([a_pod("p")], "n2", {CORDON: "n1"}, nodes=TAINTED),
    "a taint, switched off": Case(
        [a_pod("p")], "n1 n2", arguments=off("TaintToleration"), nodes=TAINTED
    ),
    "a host port": Case(HOLDERS, "n2 n3", {PORT: "n1"}),
    "a host port, switched off": Case(HOLDERS, "n1 n2 n3", arguments=off("NodePorts")),
    "pod affinity": Case(CLINGY, "n1 n2", {NEAR: "n3"}),
    "pod affinity, switched off": Case(CLINGY, "n1 n2 n3", arguments=off("PodAffinity")),
    "an even spread": Case(EVEN, "n3", {SKEW: "n1 n2"}),
    "an even spread, switched off": Case(EVEN, "n1 n2 n3", arguments=off("PodTopologySpread")),
    "pods that are there have a say about others": Case(
        [a_pod("r", node="n1", spec={"affinity": apart(a_term("web"))}), a_pod("p", WEB)],
        "n3",
        {REPELLED: "n1 n2"},
    ),
    "what evictions cannot cure ends the questions": Case(
        [
            a_pod("r", WEB, node="n1"),
            a_pod(
                "p",
                WEB,
                spec={
                    "nodeSelector": {"zone": "a"},
                    "affinity": apart(a_term("web", "host")),
                    "topologySpreadConstraints": [spread("web", "host")],
                },
            ),
        ],
        "",
        {CHOICE: "n3", KEYLESS: "n1 n2"},
    ),
    "what they can cure does not": Case(
        [
            *HOLDERS[:1],
            a_pod("s", WEB, node="n1"),
            a_pod(
                "p",
                WEB,
                spec={"containers": ports(80), "affinity": apart(a_term("web"))},
            ),
        ],
        "n3",
        {PORT: "n1", APART: "n1 n2"},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_who_takes_a_pod(case: Case) -> None:
    ssn = a_session(case.nodes, case.pods, {NAME: case.arguments})

    mask, reasons = verdict(ssn, classes(ssn)["p"])

    assert (taken_by(ssn, "p"), reasons) == (case.taken, case.reasons)
    assert mask.sum() == len(case.taken.split())


LIVE = {
    "an ordinary pod is placed in groups": ([a_pod("p")], False),
    "a pod with a host port is not": ([HOLDERS[1]], True),
    "nor one with affinity": (CLINGY, True),
    "nor one with an even spread": (EVEN, True),
    "nor one that a waiting pod keeps away": (
        [a_pod("q", spec={"affinity": apart(a_term("web"))}), a_pod("p", WEB)],
        True,
    ),
    "a pod that nobody keeps away is": (
        [a_pod("q", spec={"affinity": apart(a_term("db"))}), a_pod("p", WEB)],
        False,
    ),
}


@pytest.mark.parametrize(("pods", "applies"), LIVE.values(), ids=LIVE.keys())
def test_which_classes_depend_on_other_pods(pods: Sequence[Pod], applies: bool) -> None:
    ssn = a_session(THREE, pods, {NAME: {}})
    (live,) = ssn.points.live_predicate

    assert live.applies(classes(ssn)["p"]) is applies


FOLLOWED: dict[str, tuple[Mapping[str, Any], Mapping[str, Any], str]] = {
    "host ports": ({"containers": ports(80)}, {"containers": ports(80)}, "n2 n3"),
    "anti-affinity": (
        {"affinity": apart(a_term("web"))},
        {"affinity": apart(a_term("web"))},
        "n3",
    ),
    "affinity to oneself": (
        {"affinity": near(a_term("web"))},
        {"affinity": near(a_term("web"))},
        "n1 n2",
    ),
    "the anti-affinity of others": ({"affinity": apart(a_term("web"))}, {}, "n3"),
    "an even spread": (
        {"topologySpreadConstraints": [spread("web")]},
        {"topologySpreadConstraints": [spread("web")]},
        "n3",
    ),
}


@pytest.mark.parametrize(("first", "second", "then"), FOLLOWED.values(), ids=FOLLOWED.keys())
@pytest.mark.parametrize("promised", [False, True], ids=["allocated", "pipelined"])
def test_placements_are_followed_and_undone(
    first: Mapping[str, Any], second: Mapping[str, Any], then: str, promised: bool
) -> None:
    pods = [a_pod("a", WEB, spec=first), a_pod("b", WEB, spec=second)]
    ssn = a_session(THREE, pods, {NAME: {}})
    assert taken_by(ssn, "b") == "n1 n2 n3"

    stmt = ssn.statement()
    if promised:
        stmt.pipeline([pending(ssn)["a"]], [0], evicted=False)
    else:
        stmt.allocate([pending(ssn)["a"]], [0])
    assert taken_by(ssn, "b") == then

    stmt.discard()
    assert taken_by(ssn, "b") == "n1 n2 n3"


def test_evicted_pods_are_gone_until_that_is_undone() -> None:
    ssn = a_session(THREE, HOLDERS, {NAME: {}})
    (running,) = (t for job in ssn.active for t in job.tasks.values() if t.name == "r")
    stmt = ssn.statement()

    stmt.evict(running, Reason("preempt", "", ""))
    assert taken_by(ssn, "p") == "n1 n2 n3"

    stmt.discard()
    assert taken_by(ssn, "p") == "n2 n3"


def test_pod_slots_follow_placements() -> None:
    nodes = [a_node("n1", pods="2"), a_node("n2", pods="1")]
    pods = [a_pod("r", node="n1"), a_pod("a"), a_pod("b")]
    ssn = a_session(nodes, pods, {NAME: {}})
    (room,) = ssn.points.room
    at, cls = np.arange(2), classes(ssn)["b"]
    assert room.copies(cls, at).tolist() == [1, 1]

    stmt = ssn.statement()
    stmt.pipeline([pending(ssn)["a"]], [0], evicted=False)
    assert room.copies(cls, at).tolist() == [0, 1]

    stmt.discard()
    stmt.allocate([pending(ssn)[name] for name in "ab"], [0, 1])
    assert room.copies(cls, at).tolist() == [0, 0]

    stmt.discard()
    (running,) = (t for job in ssn.active for t in job.tasks.values() if t.name == "r")
    stmt.evict(running, Reason("preempt", "", ""))
    assert room.copies(cls, at).tolist() == [2, 1]
    assert (room.code, room.message) == (Code.UNSCHEDULABLE, "node(s) pod number exceeded")
