"""The filters over nodes alone: cordons, selectors and affinity, taints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from pumice.core.model.columns import Columns
from pumice.core.model.nodes import NodeInfo
from pumice.core.plugins.predicates.nodes import CORDONED, NOT_CHOSEN, TAINTED, NodeFilter
from tests.unit.worlds import a_node, a_pod, named, nodes


def node_affinity(*rules: tuple[str, str, list[str]], **fields: str) -> dict[str, Any]:
    expressions = [{"key": k, "operator": op, "values": values} for k, op, values in rules]
    names = [{"key": "metadata.name", "operator": op, "values": [v]} for op, v in fields.items()]
    term = {"matchExpressions": expressions, "matchFields": names}
    required = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


@dataclass(frozen=True)
class Case:
    nodes: list[NodeInfo]
    spec: dict[str, Any] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


CORDON = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
ZONES = nodes(n1="zone=a gen=1", n2="zone=b gen=2", n3="gen=3")

CASES = {
    "free nodes take any pod": Case(nodes(n1="", n2="zone=a")),
    "a cordoned node takes none": Case(
        [a_node("n1", unschedulable=True), a_node("n2")], refused={CORDONED: "n1"}
    ),
    "who tolerates the taint of cordons is not kept out": Case(
        [a_node("n1", unschedulable=True)], {"tolerations": [CORDON]}
    ),
    "a node selector wants the label with its value": Case(
        ZONES, {"nodeSelector": {"zone": "a"}}, {NOT_CHOSEN: "n2 n3"}
    ),
    "affinity: In": Case(
        ZONES, {"affinity": node_affinity(("zone", "In", ["a", "b"]))}, {NOT_CHOSEN: "n3"}
    ),
    "affinity: NotIn takes nodes without the label": Case(
        ZONES, {"affinity": node_affinity(("zone", "NotIn", ["a"]))}, {NOT_CHOSEN: "n1"}
    ),
    "affinity: Exists": Case(
        ZONES, {"affinity": node_affinity(("zone", "Exists", []))}, {NOT_CHOSEN: "n3"}
    ),
    "affinity: DoesNotExist": Case(
        ZONES, {"affinity": node_affinity(("zone", "DoesNotExist", []))}, {NOT_CHOSEN: "n1 n2"}
    ),
    "affinity: Gt": Case(
        ZONES, {"affinity": node_affinity(("gen", "Gt", ["1"]))}, {NOT_CHOSEN: "n1"}
    ),
    "affinity: Lt": Case(
        ZONES, {"affinity": node_affinity(("gen", "Lt", ["3"]))}, {NOT_CHOSEN: "n3"}
    ),
    "affinity: by name": Case(ZONES, {"affinity": node_affinity(In="n2")}, {NOT_CHOSEN: "n1 n3"}),
    "affinity: by a name that no node has": Case(
        ZONES, {"affinity": node_affinity(In="n9")}, {NOT_CHOSEN: "n1 n2 n3"}
    ),
    "affinity: not by this name": Case(
        ZONES, {"affinity": node_affinity(NotIn="n2")}, {NOT_CHOSEN: "n2"}
    ),
    "a taint that is not tolerated": Case(
        nodes(n1="!gpu=yes:NoSchedule", n2="!bad:NoExecute", n3="!meh:PreferNoSchedule"),
        refused={TAINTED: "n1 n2"},
    ),
    "a taint that is tolerated": Case(
        nodes(n1="!gpu=yes:NoSchedule", n2="!bad:NoExecute"),
        {"tolerations": [{"key": "gpu", "operator": "Equal", "value": "yes"}]},
        {TAINTED: "n2"},
    ),
    "a node is refused for its first reason only": Case(
        [a_node("n1", "!gpu=yes:NoSchedule", unschedulable=True), a_node("n2", "!gpu:NoSchedule")],
        {"nodeSelector": {"zone": "a"}},
        {CORDONED: "n1", NOT_CHOSEN: "n2"},
    ),
    "no nodes": Case([], {"nodeSelector": {"zone": "a"}}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_node_filter(case: Case) -> None:
    node_filter = NodeFilter(Columns(case.nodes))
    signature = a_pod(**case.spec)

    refusals = node_filter(signature)

    assert {r.message: named(case.nodes, r.nodes) for r in refusals} == case.refused
    assert {r.code for r in refusals} <= {3}
    assert node_filter(signature) is refusals


def test_filters_can_be_switched_off() -> None:
    infos = nodes(n1="!gpu:NoSchedule", n2="zone=b")
    signature = a_pod(nodeSelector={"zone": "a"})

    without_affinity = NodeFilter(Columns(infos), affinity=False)(signature)
    without_taints = NodeFilter(Columns(infos), taints=False)(signature)

    assert {r.message: named(infos, r.nodes) for r in without_affinity} == {TAINTED: "n1"}
    assert {r.message: named(infos, r.nodes) for r in without_taints} == {NOT_CHOSEN: "n1 n2"}


def test_the_texts_are_those_of_kube_scheduler() -> None:
    assert [CORDONED, NOT_CHOSEN, TAINTED] == [
        "node(s) were unschedulable",
        "node(s) didn't match Pod's node affinity/selector",
        "node(s) had untolerated taint(s)",
    ]
