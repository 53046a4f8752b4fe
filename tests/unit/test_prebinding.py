"""Which claims kube-scheduler settles for a pod before it asks for the pod to be bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from pumice.core.api.core import Pod
from pumice.core.cluster import Cluster
from pumice.core.model.storage import Storage, Stored
from pumice.core.prebinding import Progress, has_claims, reaches, unsettled
from tests.volumes import HOST, SELECTED, a_claim, a_class, a_volume, store


def a_pod(uid: str = "u", **spec: Any) -> Pod:
    body = {"metadata": {"name": "p", "namespace": "ns", "uid": uid}, "spec": spec}
    return msgspec.convert(body, Pod)


def storage(*things: Stored) -> Storage:
    cluster = store(Cluster(), a_class("local"), a_class("fast", waits=False), *things)
    return cluster.inputs.storage


SHARED = {"name": "gpu", "resourceClaimName": "big"}
OWN = {"name": "gpu", "resourceClaimTemplateName": "small"}
DATA = {"name": "d", "persistentVolumeClaim": {"claimName": "data"}}
SCRATCH = {"name": "s", "ephemeral": {"volumeClaimTemplate": {}}}


def test_a_resource_claim_that_pods_name_is_one_and_of_a_template_each_has_its_own() -> None:
    def claims(uid: str, *claims: dict[str, str]) -> frozenset[str]:
        return unsettled(a_pod(uid, resourceClaims=[*claims]), Storage())

    assert claims("a", SHARED) == claims("b", SHARED)
    assert not claims("a", OWN) & claims("b", OWN)
    assert len(claims("a", SHARED, OWN)) == 2


COUNTS: dict[str, tuple[list[Stored], int]] = {
    "a claim that waits for its first consumer": ([a_claim("data")], 1),
    "not one that is bound": ([a_claim("data", volume="v")], 0),
    "nor one that is bound by others beforehand": ([a_claim("data", of="fast")], 0),
    "nor one that does not exist": ([], 0),
}


@pytest.mark.parametrize(("things", "want"), COUNTS.values(), ids=COUNTS.keys())
def test_which_volumes_are_to_be_settled(things: list[Stored], want: int) -> None:
    known = storage(*things)
    claims = unsettled(a_pod(volumes=[DATA]), known)
    assert len(claims) == want
    assert claims == unsettled(a_pod("other", volumes=[DATA]), known)


SPECS: dict[str, tuple[dict[str, Any], bool]] = {
    "a pod without volumes": ({}, False),
    "a volume that is no claim": ({"volumes": [{"name": "tmp"}]}, False),
    "a claim, bound or not": ({"volumes": [DATA]}, True),
    "a claim that is made for the pod": ({"volumes": [SCRATCH]}, True),
    "a resource claim": ({"resourceClaims": [OWN]}, True),
}


@pytest.mark.parametrize(("spec", "want"), SPECS.values(), ids=SPECS.keys())
def test_what_may_have_been_bound_for_a_pod(spec: dict[str, Any], want: bool) -> None:
    assert has_claims(a_pod(**spec)) is want


BEGUN: dict[str, tuple[list[Stored], bool]] = {
    "a node was chosen for a volume to be made": (
        [a_claim("data", annotations={SELECTED: "n1"})],
        True,
    ),
    "a volume that is there was kept for the claim": (
        [a_claim("data"), a_volume("v", claim="data")],
        True,
    ),
    "a volume is kept for another claim": ([a_claim("data"), a_volume("v", claim="log")], False),
    "nothing was chosen": ([a_claim("data"), a_volume("v")], False),
    "it is over": ([a_claim("data", volume="v"), a_volume("v", claim="data")], False),
}


@pytest.mark.parametrize(("things", "want"), BEGUN.values(), ids=BEGUN.keys())
def test_whether_a_volume_is_being_bound(things: list[Stored], want: bool) -> None:
    assert Progress(storage(*things)).is_begun(a_pod(volumes=[DATA])) is want


REACHED: dict[str, tuple[Sequence[Stored], bool]] = {
    "a volume on the node": ([a_claim("data", volume="v"), a_volume("v", on="n1")], True),
    "a volume on another node": ([a_claim("data", volume="v"), a_volume("v", on="n2")], False),
    "a volume for all nodes": ([a_claim("data", volume="v"), a_volume("v")], True),
    "a volume that is not known": ([a_claim("data", volume="v")], True),
    "no volume yet": ([a_claim("data"), a_volume("v", on="n2")], True),
}


@pytest.mark.parametrize(("things", "want"), REACHED.values(), ids=REACHED.keys())
def test_whether_a_node_reaches_the_volumes_of_a_pod(things: Sequence[Stored], want: bool) -> None:
    known = storage(*things)
    assert reaches("n1", {HOST: "n1"}, a_pod(volumes=[DATA]), known) is want
