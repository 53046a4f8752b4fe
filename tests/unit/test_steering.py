"""How a held pod is let go, and how a pod is read back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from pumice.core.api.core import Pod
from pumice.core.ledger import Arm
from pumice.core.steering import arm_of, pin_patch, pinned_node, ungate_patch, view_of

HELD = {"name": "pumice.dev/held"}
OTHER = {"name": "example.com/wait"}


def a_pod(**parts: Any) -> Pod:
    body = {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", **parts.get("metadata", {})},
        "spec": parts.get("spec", {}),
        "status": parts.get("status", {}),
    }
    return msgspec.convert(body, Pod)


def owned(kind: str, api: str) -> dict[str, Any]:
    return {"ownerReferences": [{"kind": kind, "apiVersion": api, "controller": True}]}


VOLCANO, KUBERNETES = "batch.volcano.sh/v1alpha1", "batch/v1"
ARMS = {
    "a member of a Volcano Job is pinned": (owned("Job", VOLCANO), 3, Arm.PIN),
    "so is the only pod of one": (owned("Job", VOLCANO), 1, Arm.PIN),
    "a member of somebody else's gang is nominated": (owned("Job", KUBERNETES), 2, Arm.NOMINATE),
    "where one pod is enough, the gate goes and that is all": (
        owned("ReplicaSet", "apps/v1"),
        1,
        Arm.UNGATE,
    ),
    "a plain pod that belongs to a gang is nominated": ({}, 2, Arm.NOMINATE),
}


def test_a_pod_with_claims_to_be_settled_is_not_pinned() -> None:
    assert arm_of(a_pod(metadata=owned("Job", VOLCANO)), 1, claims=True) is Arm.NOMINATE


@pytest.mark.parametrize(("metadata", "minimum", "want"), ARMS.values(), ids=ARMS.keys())
def test_the_arm_depends_on_the_owner(metadata: dict[str, Any], minimum: int, want: Arm) -> None:
    assert arm_of(a_pod(metadata=metadata), minimum) is want


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}
        }
    }


PIN = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
ZONE = {"key": "zone", "operator": "In", "values": ["a"]}
RACK = {"key": "rack", "operator": "In", "values": ["r"]}


@dataclass(frozen=True)
class PinCase:
    spec: dict[str, Any]
    gates: list[dict[str, str]] | None
    terms: list[dict[str, Any]]


PINS = {
    "without affinity one term is made": PinCase(
        {"schedulingGates": [HELD]}, None, [{"matchFields": [PIN]}]
    ),
    "every term that is there gets the pin, and keeps what it says": PinCase(
        {
            "schedulingGates": [HELD],
            "affinity": required({"matchExpressions": [ZONE]}, {"matchExpressions": [RACK]}),
        },
        None,
        [
            {"matchExpressions": [ZONE], "matchFields": [PIN]},
            {"matchExpressions": [RACK], "matchFields": [PIN]},
        ],
    ),
    "an empty term, which matches nothing, must not be filled": PinCase(
        {"schedulingGates": [HELD], "affinity": required({}, {"matchExpressions": [ZONE]})},
        None,
        [{}, {"matchExpressions": [ZONE], "matchFields": [PIN]}],
    ),
    "gates of others stay": PinCase(
        {"schedulingGates": [OTHER, HELD]}, [OTHER], [{"matchFields": [PIN]}]
    ),
}


@pytest.mark.parametrize("case", PINS.values(), ids=PINS.keys())
def test_pin_patch(case: PinCase) -> None:
    patch = pin_patch(a_pod(spec=case.spec), "n1")

    assert patch == {
        "metadata": {"annotations": {"pumice.dev/planned-node": "n1"}},
        "spec": {"schedulingGates": case.gates, "affinity": required(*case.terms)},
    }


@pytest.mark.parametrize("case", PINS.values(), ids=PINS.keys())
def test_a_pin_is_read_back(case: PinCase) -> None:
    pod = a_pod(spec=case.spec)
    assert pinned_node(pod) == ""

    pinned = a_pod(spec={"affinity": pin_patch(pod, "n1")["spec"]["affinity"]})

    assert pinned_node(pinned) == "n1"


LEAVING = {"annotations": {"volcano.sh/controller-out-of-sync": "true"}}
LEAVERS = {
    "a pod of a Volcano Job is to be replaced": (owned("Job", VOLCANO) | LEAVING, True),
    "nobody replaces the pod of another owner": (owned("ReplicaSet", "apps/v1") | LEAVING, False),
    "without the annotation a pod stays": (owned("Job", VOLCANO), False),
}


@pytest.mark.parametrize(("metadata", "want"), LEAVERS.values(), ids=LEAVERS.keys())
def test_who_is_to_be_replaced(metadata: dict[str, Any], want: bool) -> None:
    assert view_of(a_pod(metadata=metadata)).leaving is want


def test_terms_that_name_different_nodes_are_no_pin() -> None:
    other = {"key": "metadata.name", "operator": "In", "values": ["n2"]}
    affinity = required({"matchFields": [PIN]}, {"matchFields": [other]})
    assert pinned_node(a_pod(spec={"affinity": affinity})) == ""


def test_ungating_leaves_the_rest_of_the_pod_alone() -> None:
    pod = a_pod(spec={"schedulingGates": [HELD]})
    assert ungate_patch(pod) == {"spec": {"schedulingGates": None}}


GONE = {
    "a running pod": ({"nodeName": "n"}, {"phase": "Running"}, {}, False),
    "a finished pod": ({"nodeName": "n"}, {"phase": "Succeeded"}, {}, True),
    "a bound pod that terminates still holds its node": (
        {"nodeName": "n"},
        {},
        {"deletionTimestamp": "2026-01-01T00:00:00Z"},
        False,
    ),
    "a pod deleted before it was bound": (
        {},
        {},
        {"deletionTimestamp": "2026-01-01T00:00:00Z"},
        True,
    ),
}


@pytest.mark.parametrize(("spec", "status", "meta", "want"), GONE.values(), ids=GONE.keys())
def test_what_counts_as_gone(
    spec: dict[str, Any], status: dict[str, Any], meta: dict[str, Any], want: bool
) -> None:
    assert view_of(a_pod(spec=spec, status=status, metadata=meta)).gone is want


def test_the_verdict_is_podscheduled_where_it_is_false() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"conditions": [{"type": "Ready", "status": "False"}, {**condition, "message": "m"}]}

    view = view_of(
        a_pod(status=status, metadata={"annotations": {"scheduling.k8s.io/group-name": "g"}})
    )

    assert (view.verdict, view.job) == (("Unschedulable", "m"), "ns/g")
