"""The filters between pods: host ports, affinity, anti-affinity, spreading."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from pumice.core.extension import Refusal
from pumice.core.model.nodes import NodeInfo
from pumice.core.model.peers import Peers
from pumice.core.model.signatures import Signature
from pumice.core.plugins.predicates.affinity import refuse_by_affinity
from pumice.core.plugins.predicates.ports import refuse_ports
from pumice.core.plugins.predicates.spread import refuse_uneven
from tests.unit.worlds import a_pod, a_term, apart, named, near, nodes, peers, ports, spread

PORT = "node(s) didn't have free ports for the requested pod ports"
NEAR = "node(s) didn't match pod affinity rules"
APART = "node(s) didn't match pod anti-affinity rules"
REPELLED = "node(s) didn't satisfy existing pods anti-affinity rules"
SKEW = "node(s) didn't match pod topology spread constraints"
KEYLESS = "node(s) didn't match pod topology spread constraints (missing required label)"
UNRESOLVABLE = {NEAR, KEYLESS}

FOUR = nodes(n1="zone=a host=n1", n2="zone=a host=n2", n3="zone=b host=n3", n4="host=n4")
On = tuple[str, Signature]


@dataclass(frozen=True)
class Case:
    pod: Signature
    placed: Sequence[On] = ()
    refused: dict[str, str] = field(default_factory=dict)
    leaving: Sequence[On] = ()
    nodes: list[NodeInfo] = field(default_factory=lambda: FOUR)


def check(case: Case, refuse: Callable[[Signature, Peers], list[Refusal]]) -> None:
    world = peers(case.nodes, *case.placed, leaving=case.leaving)

    refusals = refuse(case.pod, world)

    got = {r.message: named(case.nodes, r.nodes) for r in refusals if r.nodes.any()}
    assert got == case.refused
    assert all(r.code == (3 if r.message in UNRESOLVABLE else 2) for r in refusals)


def holder(*numbers: int, **more: Any) -> Signature:
    return a_pod(containers=ports(*numbers, **more))


PORTS = {
    "no ports, no refusal": Case(a_pod(), [("n1", holder(80))]),
    "a port is given out once": Case(holder(80), [("n1", holder(80))], {PORT: "n1"}),
    "another port is free": Case(holder(81), [("n1", holder(80))]),
    "another protocol is free": Case(holder(80), [("n1", holder(80, protocol="UDP"))]),
    "one of several is enough to be refused": Case(
        holder(80, 81), [("n1", holder(81)), ("n3", holder(80))], {PORT: "n1 n3"}
    ),
    "two addresses don't meet": Case(
        holder(80, ip="10.0.0.1"), [("n1", holder(80, ip="10.0.0.2"))]
    ),
    "every address meets the wildcard": Case(
        holder(80, ip="10.0.0.1"), [("n1", holder(80))], {PORT: "n1"}
    ),
    "the wildcard meets every address": Case(
        holder(80), [("n1", holder(80, ip="10.0.0.1"))], {PORT: "n1"}
    ),
    "a pod on its way out still holds its port": Case(
        holder(80), refused={PORT: "n2"}, leaving=[("n2", holder(80))]
    ),
}


@pytest.mark.parametrize("case", PORTS.values(), ids=PORTS.keys())
def test_host_ports(case: Case) -> None:
    check(case, refuse_ports)


WEB, DB = a_pod("web"), a_pod("db")

AFFINITY = {
    "no terms, no refusal": Case(WEB, [("n1", DB)]),
    "near a pod that is there": Case(
        a_pod(affinity=near(a_term("web"))), [("n1", WEB)], {NEAR: "n3 n4"}
    ),
    "near nobody": Case(a_pod("db", affinity=near(a_term("web"))), [], {NEAR: "n1 n2 n3 n4"}),
    "the first of a series may go where the topology is": Case(
        a_pod("web", affinity=near(a_term("web"))), [], {NEAR: "n4"}
    ),
    "the second of a series must join the first": Case(
        a_pod("web", affinity=near(a_term("web"))), [("n3", WEB)], {NEAR: "n1 n2 n4"}
    ),
    "a pod on a node outside the topology does not make a series": Case(
        a_pod("web", affinity=near(a_term("web"))), [("n4", WEB)], {NEAR: "n4"}
    ),
    "pods must be meant by all terms": Case(
        a_pod(affinity=near(a_term("web"), a_term("db"))),
        [("n1", WEB), ("n1", DB)],
        {NEAR: "n1 n2 n3 n4"},
    ),
    "each term has its own topology": Case(
        a_pod(affinity=near(a_term("web"), a_term("web", "host"))),
        [("n1", WEB)],
        {NEAR: "n2 n3 n4"},
    ),
    "pods of other namespaces are not meant": Case(
        a_pod(affinity=near(a_term("web"))),
        [("n1", a_pod("web", namespace="other"))],
        {NEAR: "n1 n2 n3 n4"},
    ),
    "unless they are named": Case(
        a_pod(affinity=near(a_term("web", namespaces=["other"]))),
        [("n1", a_pod("web", namespace="other"))],
        {NEAR: "n3 n4"},
    ),
    "or all of them": Case(
        a_pod(affinity=near(a_term("web", namespaceSelector={}))),
        [("n1", a_pod("web", namespace="other"))],
        {NEAR: "n3 n4"},
    ),
    "a pod on its way out attracts": Case(
        a_pod(affinity=near(a_term("web"))), refused={NEAR: "n3 n4"}, leaving=[("n1", WEB)]
    ),
    "away from a pod that is there": Case(
        a_pod(affinity=apart(a_term("web"))), [("n1", WEB)], {APART: "n1 n2"}
    ),
    "a node outside the topology is away from all": Case(
        a_pod(affinity=apart(a_term("web"))), [("n4", WEB)]
    ),
    "one of several terms is enough to be refused": Case(
        a_pod(affinity=apart(a_term("web", "host"), a_term("db"))),
        [("n1", WEB), ("n3", DB)],
        {APART: "n1 n3"},
    ),
    "pods that are there keep away whom they will": Case(
        WEB, [("n1", a_pod("db", affinity=apart(a_term("web"))))], {REPELLED: "n1 n2"}
    ),
    "but not others": Case(DB, [("n1", a_pod("db", affinity=apart(a_term("web"))))]),
    "nor those of other namespaces": Case(
        a_pod("web", namespace="other"), [("n1", a_pod("db", affinity=apart(a_term("web"))))]
    ),
    "a node is refused for its first reason only": Case(
        a_pod("web", affinity={**near(a_term("db")), **apart(a_term("web", "host"))}),
        [("n1", a_pod("web", affinity=apart(a_term("web", "host")))), ("n1", DB)],
        {NEAR: "n3 n4", APART: "n1"},
    ),
}


@pytest.mark.parametrize("case", AFFINITY.values(), ids=AFFINITY.keys())
def test_affinity_between_pods(case: Case) -> None:
    check(case, refuse_by_affinity)


def spreading(*constraints: dict[str, Any], app: str = "web", **spec: Any) -> Signature:
    return a_pod(app, topologySpreadConstraints=list(constraints), **spec)


SPREAD = {
    "no constraint, no refusal": Case(WEB, [("n1", WEB)]),
    "the first may go to any domain": Case(spreading(spread("web")), [], {KEYLESS: "n4"}),
    "the second goes to the emptier domain": Case(
        spreading(spread("web")), [("n1", WEB)], {SKEW: "n1 n2", KEYLESS: "n4"}
    ),
    "a larger skew allows more": Case(
        spreading(spread("web", maxSkew=2)), [("n1", WEB)], {KEYLESS: "n4"}
    ),
    "a pod that its own selector does not mean adds nothing": Case(
        spreading(spread("web"), app="db"), [("n1", WEB)], {KEYLESS: "n4"}
    ),
    "but must not go where there are too many already": Case(
        spreading(spread("web"), app="db"),
        [("n1", WEB), ("n2", WEB)],
        {SKEW: "n1 n2", KEYLESS: "n4"},
    ),
    "pods of other namespaces don't count": Case(
        spreading(spread("web")), [("n1", a_pod("web", namespace="other"))], {KEYLESS: "n4"}
    ),
    "pods on their way out don't count": Case(
        spreading(spread("web")), refused={KEYLESS: "n4"}, leaving=[("n1", WEB)]
    ),
    "an empty selector counts nobody": Case(
        spreading(spread("web", labelSelector={})), [("n1", WEB)], {KEYLESS: "n4"}
    ),
    "a nil selector counts nobody, itself included": Case(
        spreading(spread("web", labelSelector=None)), [("n1", WEB)], {KEYLESS: "n4"}
    ),
    "too few domains make the emptiest count as none": Case(
        spreading(spread("web", minDomains=3)),
        [("n1", WEB), ("n3", WEB)],
        {SKEW: "n1 n2 n3", KEYLESS: "n4"},
    ),
    "enough domains don't": Case(
        spreading(spread("web", minDomains=2)), [("n1", WEB), ("n3", WEB)], {KEYLESS: "n4"}
    ),
    "nodes that the pod does not choose are no domains": Case(
        spreading(spread("web"), nodeSelector={"zone": "a"}), [("n1", WEB)], {KEYLESS: "n4"}
    ),
    "unless that is ignored": Case(
        spreading(spread("web", nodeAffinityPolicy="Ignore"), nodeSelector={"zone": "a"}),
        [("n1", WEB)],
        {SKEW: "n1 n2", KEYLESS: "n4"},
    ),
    "tainted nodes are domains": Case(
        spreading(spread("web")),
        [("n1", WEB)],
        {SKEW: "n1"},
        nodes=nodes(n1="zone=a", n2="zone=b !k:NoSchedule"),
    ),
    "unless taints are honoured": Case(
        spreading(spread("web", nodeTaintsPolicy="Honor")),
        [("n1", WEB)],
        nodes=nodes(n1="zone=a", n2="zone=b !k:NoSchedule"),
    ),
    "matchLabelKeys count pods of the same revision": Case(
        spreading(spread("web", matchLabelKeys=["app"])),
        [("n1", WEB), ("n1", DB)],
        {SKEW: "n1 n2", KEYLESS: "n4"},
    ),
    "every constraint must hold": Case(
        spreading(spread("web"), spread("web", "host")),
        [("n1", WEB), ("n3", WEB)],
        {SKEW: "n1 n3", KEYLESS: "n4"},
    ),
    "nodes without one of the keys lend their pods to no constraint": Case(
        spreading(spread("web", "host"), spread("web")),
        [("n4", WEB)],
        {KEYLESS: "n4"},
    ),
}


@pytest.mark.parametrize("case", SPREAD.values(), ids=SPREAD.keys())
def test_spreading(case: Case) -> None:
    check(case, refuse_uneven)
