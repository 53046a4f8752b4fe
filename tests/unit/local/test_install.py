"""Where objects live in the API."""

from __future__ import annotations

import pytest

from pumice.local.install import CLUSTER_SCOPED, DIRECTORIES, documents, path_of, plural_of
from pumice.local.paths import manifests

PATHS = {
    "a pod goes to the namespace given": (
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
        "/api/v1/namespaces/here/pods/p",
    ),
    "an object's own namespace wins": (
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d", "namespace": "n"},
        },
        "/apis/apps/v1/namespaces/n/deployments/d",
    ),
    "a queue has no namespace": (
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "q"},
        },
        "/apis/scheduling.volcano.sh/v1beta1/queues/q",
    ),
    "a policy ends in ies": (
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingAdmissionPolicy",
            "metadata": {"name": "m"},
        },
        "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/m",
    ),
}


@pytest.mark.parametrize(("body", "want"), PATHS.values(), ids=PATHS.keys())
def test_path(body: dict[str, object], want: str) -> None:
    assert path_of(body, "here") == want


def test_cluster_scoped_kinds_follow_the_same_rules_for_plurals() -> None:
    assert {kind: plural_of(kind) for kind in CLUSTER_SCOPED} == CLUSTER_SCOPED


def test_every_manifest_can_be_placed() -> None:
    bodies = [
        body
        for part in DIRECTORIES
        for file in (manifests() / part).glob("*.yaml")
        for body in documents(file)
    ]
    unplaced = [
        body["kind"]
        for body in bodies
        if body["kind"] not in CLUSTER_SCOPED and "namespace" not in body["metadata"]
    ]
    assert bodies
    assert unplaced == []
