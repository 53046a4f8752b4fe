"""API objects and audit lines as the API server writes them, turned into facts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import msgspec
import pytest

from tests.auditor import audit, wire
from tests.auditor.facts import Gang, Pod, Request, Requirement, SubGroups
from tests.auditor.ledger import victims
from tests.auditor.requests import PodResources, pod_requests, quantity


def cpu(text: str, **fields: Any) -> dict[str, Any]:
    """A container that asks for some CPU."""
    return {"resources": {"requests": {"cpu": text}}, **fields}


@dataclass(frozen=True)
class Shape:
    """The spec of a pod and the CPU that it takes."""

    spec: dict[str, Any]
    want: str


SIDECAR = {"restartPolicy": "Always"}
PERCENTAGE = "volcano.sh/vgpu-memory-percentage"
SHAPES = {
    "containers add up": Shape({"containers": [cpu("1"), cpu("500m")]}, "1500m"),
    "a large init container rules alone": Shape(
        {"containers": [cpu("1")], "initContainers": [cpu("3"), cpu("2")]}, "3"
    ),
    "a small one doesn't matter": Shape(
        {"containers": [cpu("2")], "initContainers": [cpu("1")]}, "2"
    ),
    "sidecars add to the containers": Shape(
        {"containers": [cpu("1")], "initContainers": [cpu("1", **SIDECAR)]}, "2"
    ),
    "an init container runs beside the sidecars before it": Shape(
        {"containers": [cpu("1")], "initContainers": [cpu("1", **SIDECAR), cpu("3")]}, "4"
    ),
    "and not beside those after it": Shape(
        {"containers": [cpu("1")], "initContainers": [cpu("3"), cpu("1", **SIDECAR)]}, "3"
    ),
    "requests of the pod as a whole replace the sum": Shape(
        {"containers": [cpu("1")], "resources": {"requests": {"cpu": "4"}}}, "4"
    ),
    "a marker takes nothing": Shape(
        {"containers": [{"resources": {"requests": {"cpu": "1", "pumice.dev/batch-pod": "1"}}}]},
        "1",
    ),
    "nor does a percentage of a card": Shape(
        {"containers": [{"resources": {"requests": {"cpu": "1", PERCENTAGE: "50"}}}]}, "1"
    ),
    "overhead comes on top": Shape({"containers": [cpu("1")], "overhead": {"cpu": "250m"}}, "1.25"),
}

QUANTITIES = {
    "1500m": Fraction(3, 2),
    "1e3": Fraction(1000),
    "2Ki": Fraction(2048),
    "1E": Fraction(10**18),
    ".5": Fraction(1, 2),
    "3n": Fraction(3, 10**9),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_what_a_pod_takes(shape: Shape) -> None:
    got = pod_requests(msgspec.convert(shape.spec, PodResources))

    assert got == {"cpu": quantity(shape.want)}


@pytest.mark.parametrize(("text", "want"), QUANTITIES.items(), ids=QUANTITIES.keys())
def test_a_quantity_is_exact(text: str, want: Fraction) -> None:
    assert quantity(text) == want


def test_nonsense_is_no_quantity() -> None:
    with pytest.raises(ValueError, match="not a quantity: '4 apples'"):
        quantity("4 apples")


def test_a_pod_as_the_api_server_writes_it() -> None:
    pin = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    required = {"nodeSelectorTerms": [pin]}
    raw = {
        "metadata": {
            "name": "p",
            "namespace": "ns",
            "uid": "u",
            "resourceVersion": "77",
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"volcano.sh/task-spec": "ps"},
            "annotations": {"scheduling.k8s.io/group-name": "g"},
        },
        "spec": {
            "schedulerName": "volcano",
            "schedulingGates": [{"name": "pumice.dev/held"}],
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
            },
            "containers": [{"name": "c", "image": "i", **cpu("1")}],
        },
        "status": {"phase": "Pending"},
    }
    want = Pod(
        uid="u",
        namespace="ns",
        name="p",
        scheduler="volcano",
        group="g",
        role="ps",
        labels={"volcano.sh/task-spec": "ps"},
        deleting=True,
        requests={"cpu": Fraction(1)},
        gates=("pumice.dev/held",),
        pin="n1",
    )

    assert wire.pod(msgspec.json.encode(raw)) == (want, 77)


def test_a_pod_group_as_the_api_server_writes_it() -> None:
    selector = {
        "matchLabels": {"a": "b"},
        "matchExpressions": [{"key": "c", "operator": "Exists"}],
    }
    policy = {
        "name": "parts",
        "subGroupSize": 4,
        "minSubGroups": 2,
        "labelSelector": selector,
        "matchLabelKeys": ["volcano.sh/partition-id"],
    }
    raw = {
        "metadata": {"name": "g", "namespace": "ns", "uid": "u", "resourceVersion": "5"},
        "spec": {"minMember": 3, "minTaskMember": {"ps": 1}, "subGroupPolicy": [policy]},
    }
    parts = SubGroups(
        "parts",
        size=4,
        least=2,
        selector=(Requirement("a", "In", frozenset({"b"})), Requirement("c", "Exists")),
        split_by=("volcano.sh/partition-id",),
    )

    want = Gang("u", "ns", "g", minimum=3, roles={"ps": 1}, sub_groups=(parts,))
    assert wire.gang(msgspec.json.encode(raw)) == (want, 5)


def line(verb: str, reference: dict[str, str], **fields: Any) -> bytes:
    """A line of the audit log."""
    event = {
        "kind": "Event",
        "stage": "ResponseComplete",
        "requestURI": "/api/v1/...",
        "verb": verb,
        "user": {"username": "u"},
        "objectRef": {"namespace": "ns", "name": "p", **reference},
        "responseStatus": {"code": 200},
        "requestReceivedTimestamp": "1970-01-01T00:00:10.000000Z",
        "stageTimestamp": "1970-01-01T00:00:10.250000Z",
    }
    return msgspec.json.encode(event | fields)


def written(verb: str, **fields: Any) -> Request:
    """The fact that such a line states."""
    base: dict[str, Any] = {"at": 10.0, "done": 10.25, "user": "u", "namespace": "ns", "name": "p"}
    return Request(verb=verb, **(base | {"resource": "pods"} | fields))


STATUS = {"kind": "Status", "metadata": {}, "details": {"uid": "u-1"}}
LINES: dict[str, tuple[bytes, Request | None]] = {
    "a binding names uid and node": (
        line(
            "create",
            {"resource": "pods", "subresource": "binding"},
            requestObject={"metadata": {"uid": "u-1"}, "target": {"name": "n"}},
            responseObject={"kind": "Status", "metadata": {}, "code": 201},
        ),
        written("create", subresource="binding", uid="u-1", node="n"),
    ),
    "a patch names the version it made": (
        line(
            "patch",
            {"resource": "pods", "subresource": "status"},
            responseObject={"kind": "Pod", "metadata": {"uid": "u-1", "resourceVersion": "9"}},
        ),
        written("patch", subresource="status", uid="u-1", rv=9),
    ),
    "a delete's answer names the pod that went": (
        line("delete", {"resource": "pods"}, responseObject=STATUS),
        written("delete", uid="u-1"),
    ),
    "a refused delete may name it in its precondition": (
        line(
            "delete",
            {"resource": "pods"},
            responseStatus={"code": 403},
            requestObject={"kind": "DeleteOptions", "preconditions": {"uid": "u-1"}},
        ),
        written("delete", uid="u-1", code=403),
    ),
    "a create is named by its answer": (
        line(
            "create",
            {"resource": "pods", "name": ""},
            responseObject={"kind": "Pod", "metadata": {"name": "made", "resourceVersion": "8"}},
        ),
        written("create", name="made", rv=8),
    ),
    "a dry run is marked": (
        line("patch", {"resource": "pods"}, requestURI="/api/v1/x?dryRun=All&force=true"),
        written("patch", dry_run=True),
    ),
    "the end of a deleted object by its last finalizer is marked": (
        line(
            "patch",
            {"resource": "pods"},
            responseObject={
                "metadata": {"resourceVersion": "9", "deletionTimestamp": "2026-01-01T00:00:00Z"}
            },
        ),
        written("patch", rv=9, last_finalizer=True),
    ),
    "a read is no write": (line("get", {"resource": "pods"}), None),
    "the start of a request is none either": (
        line("patch", {"resource": "pods"}, stage="RequestReceived"),
        None,
    ),
}


@pytest.mark.parametrize(("raw", "want"), LINES.values(), ids=LINES.keys())
def test_a_line_of_the_audit_log(raw: bytes, want: Request | None) -> None:
    assert audit.parse(raw) == want


def test_victims_are_found_wherever_a_session_lists_them() -> None:
    sessions: list[Any] = [
        {"id": "1", "plan": {"victims": ["a", {"uid": "b", "node": "n"}]}},
        {"id": "2"},
    ]

    assert set(victims(sessions)) == {"a", "b"}
