"""Which claims kube-scheduler settles for a pod before it asks for the pod to be bound."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pumice.core.api.core import Pod
from pumice.core.prebinding import has_claims, unsettled


def a_pod(uid: str = "u", **spec: Any) -> Pod:
    body = {"metadata": {"name": "p", "namespace": "ns", "uid": uid}, "spec": spec}
    return msgspec.convert(body, Pod)


SHARED = {"name": "gpu", "resourceClaimName": "big"}
OWN = {"name": "gpu", "resourceClaimTemplateName": "small"}
DATA = {"name": "d", "persistentVolumeClaim": {"claimName": "data"}}
SCRATCH = {"name": "s", "ephemeral": {"volumeClaimTemplate": {}}}


def test_a_resource_claim_that_pods_name_is_one_and_those_of_a_template_are_each_their_own() -> (
    None
):
    def claims(uid: str, *claims: dict[str, str]) -> frozenset[str]:
        return unsettled(a_pod(uid, resourceClaims=[*claims]))

    assert claims("a", SHARED) == claims("b", SHARED)
    assert not claims("a", OWN) & claims("b", OWN)
    assert len(claims("a", SHARED, OWN)) == 2


def test_of_the_volumes_those_count_that_wait_for_their_consumer() -> None:
    pod = a_pod(volumes=[DATA, SCRATCH])
    assert unsettled(pod) == frozenset()
    assert unsettled(pod, ["data"]) == unsettled(a_pod("other", volumes=[DATA]), ["data"])
    assert len(unsettled(pod, ["data"])) == 1


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
