"""Signatures: which pods are told apart, and what a signature knows of them."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from pumice.core.api.core import Pod
from pumice.core.model.padding import Padding
from pumice.core.model.signatures import HostPort, PodTerm, Signature, WeightedTerm, selector_keys
from pumice.core.selectors import EVERYTHING, NOTHING, Requirement, Selector, SelectorError

MIB = 1024 * 1024
SIZED = {"requests": {"cpu": "1", "memory": "1Gi"}}


def a_pod(labels: dict[str, str] | None = None, namespace: str = "ns", **spec: Any) -> Pod:
    """Return a pod with one container that asks for cpu and memory."""
    spec.setdefault("containers", [{"name": "c", "resources": SIZED}])
    metadata = {"name": "p", "namespace": namespace, "labels": labels or {}}
    return msgspec.convert({"metadata": metadata, "spec": spec}, Pod)


def a_term(selector: dict[str, Any] | None, key: str = "zone", **more: Any) -> dict[str, Any]:
    return {"labelSelector": selector, "topologyKey": key, **more}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def apart(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def pinned(node: str) -> dict[str, Any]:
    name = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [name]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def a_spread(selector: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
        **more,
    }


APP = {"matchLabels": {"app": "web"}}


@dataclass(frozen=True)
class Case:
    one: Pod
    other: Pod
    same: bool
    label_keys: frozenset[str] = field(default_factory=frozenset)


SAMENESS = {
    "labels that no selector mentions tell nobody apart": Case(
        a_pod({"index": "0"}), a_pod({"index": "1"}), same=True
    ),
    "labels that some selector mentions do": Case(
        a_pod({"app": "a"}), a_pod({"app": "b"}), same=False, label_keys=frozenset({"app"})
    ),
    "the order of labels is nothing": Case(
        a_pod({"a": "1", "b": "2"}),
        a_pod({"b": "2", "a": "1"}),
        same=True,
        label_keys=frozenset({"a", "b"}),
    ),
    "names and requests are nothing": Case(
        a_pod(containers=[{"name": "x", "resources": SIZED}]),
        a_pod(
            containers=[{"name": "y", "resources": {"requests": {"cpu": "3", "memory": "1"}}}],
            schedulerName="volcano",
        ),
        same=True,
    ),
    "namespaces tell apart": Case(a_pod(namespace="a"), a_pod(namespace="b"), same=False),
    "node selectors tell apart": Case(a_pod(nodeSelector={"a": "b"}), a_pod(), same=False),
    "pins tell apart": Case(a_pod(affinity=pinned("n1")), a_pod(affinity=pinned("n2")), same=False),
    "pins of bound pods don't": Case(
        a_pod(affinity=pinned("n1"), nodeName="n1"), a_pod(nodeName="n2"), same=True
    ),
    "how long a taint is tolerated is nothing": Case(
        a_pod(tolerations=[{"key": "a", "operator": "Exists", "tolerationSeconds": 3}]),
        a_pod(tolerations=[{"key": "a", "operator": "Exists"}]),
        same=True,
    ),
    "tolerations tell apart": Case(
        a_pod(tolerations=[{"key": "a", "operator": "Exists"}]), a_pod(), same=False
    ),
    "labels that the pod's own terms mention tell apart": Case(
        a_pod({"app": "web"}, affinity=apart(a_term(APP))),
        a_pod({"app": "db"}, affinity=apart(a_term(APP))),
        same=False,
    ),
    "what scores add to the requests tells apart": Case(
        a_pod(), a_pod(containers=[{"name": "c"}]), same=False
    ),
    "a container port that is no host port is nothing": Case(
        a_pod(containers=[{"name": "c", "resources": SIZED, "ports": [{"containerPort": 80}]}]),
        a_pod(),
        same=True,
    ),
}


@pytest.mark.parametrize("case", SAMENESS.values(), ids=SAMENESS.keys())
def test_pods_share_a_signature(case: Case) -> None:
    one = Signature.of(case.one, case.label_keys)
    other = Signature.of(case.other, case.label_keys)

    assert (one is other) is case.same


def test_a_signature_nobody_holds_is_forgotten() -> None:
    pod = a_pod(nodeSelector={"only": "here"})
    kept = Signature.of(pod, ())
    watched = weakref.ref(kept)
    assert Signature.of(pod, ()) is kept

    del kept

    assert watched() is None


@dataclass(frozen=True)
class Alone:
    pod: Pod
    node_only: bool


PORT = [{"name": "c", "resources": SIZED, "ports": [{"containerPort": 80, "hostPort": 80}]}]
SIDECAR = [{**PORT[0], "restartPolicy": "Always"}]
WISH = {"weight": 5, "podAffinityTerm": a_term(APP)}

NODE_ONLY = {
    "an ordinary pod": Alone(a_pod(), True),
    "node affinity and tolerations": Alone(
        a_pod(affinity=pinned("n"), tolerations=[{"operator": "Exists"}]), True
    ),
    "a host port": Alone(a_pod(containers=PORT), False),
    "a host port of a sidecar": Alone(a_pod(initContainers=SIDECAR), False),
    "a host port of an init container, which is given back": Alone(
        a_pod(initContainers=PORT), True
    ),
    "pod affinity": Alone(a_pod(affinity=near(a_term(APP))), False),
    "pod anti-affinity": Alone(a_pod(affinity=apart(a_term(APP))), False),
    "preferred pod affinity": Alone(
        a_pod(
            affinity={"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [WISH]}}
        ),
        False,
    ),
    "a spread constraint": Alone(a_pod(topologySpreadConstraints=[a_spread(APP)]), False),
    "a soft spread constraint": Alone(
        a_pod(topologySpreadConstraints=[a_spread(APP, whenUnsatisfiable="ScheduleAnyway")]),
        False,
    ),
}


@pytest.mark.parametrize("case", NODE_ONLY.values(), ids=NODE_ONLY.keys())
def test_which_signatures_depend_on_the_node_alone(case: Alone) -> None:
    assert Signature.of(case.pod, ()).node_only is case.node_only


WEB = Selector((Requirement("app", "In", ("web",)),))
OWN = frozenset({"ns"})

TERMS = {
    "without namespaces a term means the pod's own": (
        a_term(APP),
        PodTerm("zone", WEB, OWN, NOTHING),
    ),
    "namespaces that are named": (
        a_term(APP, namespaces=["a", "b"]),
        PodTerm("zone", WEB, frozenset({"a", "b"}), NOTHING),
    ),
    "an empty namespace selector means all": (
        a_term(APP, namespaceSelector={}),
        PodTerm("zone", WEB, frozenset(), EVERYTHING),
    ),
    "a nil label selector means no pod": (
        a_term(None),
        PodTerm("zone", NOTHING, OWN, NOTHING),
    ),
    "matchLabelKeys add the pod's own value": (
        a_term(APP, matchLabelKeys=["rev", "absent"]),
        PodTerm("zone", WEB.also([Requirement("rev", "In", ("2",))]), OWN, NOTHING),
    ),
    "mismatchLabelKeys exclude the pod's own value": (
        a_term(APP, mismatchLabelKeys=["rev"]),
        PodTerm("zone", WEB.also([Requirement("rev", "NotIn", ("2",))]), OWN, NOTHING),
    ),
    "what the API server has merged is not merged again": (
        a_term(
            {"matchExpressions": [{"key": "rev", "operator": "In", "values": ["1"]}]},
            matchLabelKeys=["rev"],
        ),
        PodTerm("zone", Selector((Requirement("rev", "In", ("1",)),)), OWN, NOTHING),
    ),
}


@pytest.mark.parametrize(("raw", "want"), TERMS.values(), ids=TERMS.keys())
def test_terms(raw: dict[str, Any], want: PodTerm) -> None:
    pod = a_pod({"app": "web", "rev": "2"}, affinity=near(raw))

    assert Signature.of(pod, ()).affinity == (want,)


def test_a_term_selects_namespaces_by_their_name() -> None:
    names = {
        "matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["x"]}
        ]
    }
    (term,) = Signature.of(a_pod(affinity=near(a_term(APP, namespaceSelector=names))), ()).affinity

    assert term.matches("x", {"app": "web"})
    assert not term.matches("ns", {"app": "web"})
    assert not term.matches("x", {"app": "db"})


def test_anti_affinity_wishes_weigh_negative() -> None:
    wishes = {"preferredDuringSchedulingIgnoredDuringExecution": [WISH]}
    pod = a_pod(affinity={"podAffinity": wishes, "podAntiAffinity": wishes})

    got = Signature.of(pod, ()).presence.preferred

    term = PodTerm("zone", WEB, OWN, NOTHING)
    assert got == (WeightedTerm(5, term), WeightedTerm(-5, term))


def test_a_bound_pod_keeps_what_concerns_others() -> None:
    affinity = {**pinned("n1"), **near(a_term(APP)), **apart(a_term(APP))}
    pod = a_pod({"app": "web"}, affinity=affinity, containers=PORT, nodeName="n1")

    got = Signature.of(pod, ())

    assert got.presence.ports == (HostPort("0.0.0.0", "TCP", 80),)
    assert got.anti_affinity == (PodTerm("zone", WEB, OWN, NOTHING),)
    assert got.labels == {"app": "web"}
    assert (got.affinity, got.selection.choice.anywhere) == ((), True)


def test_the_keys_that_a_pods_selectors_mention() -> None:
    pod = a_pod(
        {"own": "1"},
        affinity={**near(a_term(APP, matchLabelKeys=["rev"])), **apart(a_term(APP))},
        topologySpreadConstraints=[
            a_spread({"matchLabels": {"tier": "1"}}, matchLabelKeys=["pod"])
        ],
    )

    assert selector_keys(pod) == {"app", "rev", "tier", "pod"}


def test_a_pod_with_a_malformed_selector_is_refused() -> None:
    broken = {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]}

    with pytest.raises(SelectorError, match="Like"):
        Signature.of(a_pod(affinity=near(a_term(broken))), ())


PORTS = {
    "the same port": (HostPort("0.0.0.0", "TCP", 80), HostPort("0.0.0.0", "TCP", 80), True),
    "another port": (HostPort("0.0.0.0", "TCP", 80), HostPort("0.0.0.0", "TCP", 81), False),
    "another protocol": (HostPort("0.0.0.0", "TCP", 80), HostPort("0.0.0.0", "UDP", 80), False),
    "the wildcard meets every address": (
        HostPort("0.0.0.0", "TCP", 80),
        HostPort("10.0.0.1", "TCP", 80),
        True,
    ),
    "two addresses": (HostPort("10.0.0.1", "TCP", 80), HostPort("10.0.0.2", "TCP", 80), False),
}


@pytest.mark.parametrize(("one", "other", "want"), PORTS.values(), ids=PORTS.keys())
def test_host_ports_conflict(one: HostPort, other: HostPort, want: bool) -> None:
    assert one.conflicts(other) is want
    assert other.conflicts(one) is want


DEFAULTED = {
    "a pod that asks for both": (a_pod(), Padding(0, 0)),
    "a pod that asks for nothing": (a_pod(containers=[{"name": "c"}]), Padding(100, 200 * MIB)),
    "each container that asks for nothing": (
        a_pod(containers=[{"name": "a"}, {"name": "b"}]),
        Padding(200, 400 * MIB),
    ),
    "a container that asks for cpu alone": (
        a_pod(containers=[{"name": "c", "resources": {"requests": {"cpu": "1"}}}]),
        Padding(0, 200 * MIB),
    ),
    "a request of zero is a request": (
        a_pod(containers=[{"name": "c", "resources": {"requests": {"cpu": "0", "memory": "0"}}}]),
        Padding(0, 0),
    ),
    "a small init container beside large ones adds nothing": (
        a_pod(initContainers=[{"name": "i"}]),
        Padding(0, 0),
    ),
    "requests of the pod as a whole need no padding": (
        a_pod(containers=[{"name": "c"}], resources={"requests": {"cpu": "1", "memory": "1Gi"}}),
        Padding(0, 0),
    ),
}


@pytest.mark.parametrize(("pod", "want"), DEFAULTED.values(), ids=DEFAULTED.keys())
def test_padding(pod: Pod, want: Padding) -> None:
    assert Signature.of(pod, ()).presence.padding == want
