"""
Signatures: all that decides where a pod may go and is not its request vector.

Two pods with the same signature are treated alike by every predicate and, asked for the same
resources, by every score, so masks and scores are computed once per signature and not once
per pod. Signatures are interned: pods that say the same share one object. Of a pod's own
labels a signature holds only those whose keys some selector in the cluster mentions
(`selector_keys` says which keys a pod's selectors add): labels that nobody asks for, such as a
pod's index in its job, would make every pod a class of its own.

A signature has two parts that are interned by themselves: the `Selection`, what the pod asks of
a node alone, and the `Presence`, what other pods notice of it once it is somewhere. A pod that
is bound keeps only its presence: where else it might have gone matters to nobody any more.

Claims are no part of it: what they mean for a pod changes while the pod stays as it is. Who reads
them tells pods of one signature apart by what their claims come to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

import msgspec

from pumice.core import names
from pumice.core.api.core import (
    Affinity,
    Container,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PreferredSchedulingTerm,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from pumice.core.devices.asks import Ask, asks_of
from pumice.core.model.padding import Padding, padding
from pumice.core.qos import whole_cpus
from pumice.core.selectors import (
    NodeChoice,
    NodeTerm,
    Requirement,
    Selector,
    label_selector,
    node_choice,
    node_term,
)

ANY_IP: Final = "0.0.0.0"  # noqa: S104 - the wildcard address of host ports, nothing is bound
NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
"""The one label that every namespace is known to have."""

AT_GATE: Final = "at the gate"
THROUGH_GATE: Final = "through the gate"

_ENCODER = msgspec.json.Encoder(order="sorted")


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the host that a pod takes."""

    ip: str
    protocol: str
    port: int

    def conflicts(self, other: HostPort) -> bool:
        """Return whether both cannot be on one node: same port and protocol, meeting addresses."""
        if self.port != other.port or self.protocol != other.protocol:
            return False
        return self.ip == other.ip or ANY_IP in (self.ip, other.ip)


@dataclass(frozen=True, slots=True)
class PodTerm:
    """A pod affinity or anti-affinity term: which pods, and near in what sense."""

    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    #: over the namespaces' labels, of which only the name is known here
    namespace_selector: Selector

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether a pod of this namespace with these labels is meant."""
        meant = namespace in self.namespaces or self.namespace_selector.matches(
            {NAMESPACE_LABEL: namespace}
        )
        return meant and self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class WeightedTerm:
    """A preferred term; the weight of an anti-affinity term is negative."""

    weight: int
    term: PodTerm


@dataclass(frozen=True, slots=True)
class Spread:
    """A topology spread constraint over pods of the pod's own namespace."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int
    #: whether nodes that the pod's selector and affinity exclude are left out of the domains
    honor_affinity: bool
    #: whether nodes with taints that the pod does not tolerate are left out
    honor_taints: bool


@dataclass(frozen=True, slots=True)
class NodePreference:
    """A preferred node affinity term."""

    weight: int
    term: NodeTerm


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, repr=False)
class Selection:
    """What a pod asks of a node by itself: its labels, its name, its taints."""

    key: bytes
    choice: NodeChoice
    preferred: tuple[NodePreference, ...]
    tolerations: tuple[Toleration, ...]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, repr=False)
class Presence:
    """What others notice of a pod that is on a node."""

    key: bytes
    namespace: str
    labels: Mapping[str, str]
    ports: tuple[HostPort, ...]
    anti_affinity: tuple[PodTerm, ...]
    preferred: tuple[WeightedTerm, ...]
    #: what scores add to the pod's requests
    padding: Padding

    def matched_by(self, term: PodTerm) -> bool:
        """Return whether the term means this pod."""
        return term.matches(self.namespace, self.labels)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, repr=False)
class Signature:
    """All constraints of a pod, parsed; build it with `Signature.of`."""

    key: bytes
    selection: Selection
    presence: Presence
    affinity: tuple[PodTerm, ...]
    #: spread constraints with DoNotSchedule, then those with ScheduleAnyway
    spread: tuple[Spread, ...]
    soft_spread: tuple[Spread, ...]
    #: of init and app containers, with tags, one entry for each container
    images: tuple[str, ...]
    #: the verdict on a node and its score depend on that node alone, not on pods of the same
    #: signature elsewhere; then placing many at once equals placing one after the other
    node_only: bool
    #: annotations that decide where the pod may go, or better goes; of the one about the gate of
    #: the queue, where the pod stands with it: `AT_GATE` or `THROUGH_GATE`
    traits: Mapping[str, str]
    #: what each container asks of whole cpus, where the pod is to have some of its own
    cpus: tuple[tuple[str, int], ...]
    #: what the pod asks of shared cards, also when it is somewhere: one ask of each kind
    devices: tuple[Ask, ...]

    def __repr__(self) -> str:
        return f"Signature({self.key.decode()})"

    @property
    def namespace(self) -> str:
        """Return the pod's namespace."""
        return self.presence.namespace

    @property
    def labels(self) -> Mapping[str, str]:
        """Return those of the pod's labels that some selector mentions."""
        return self.presence.labels

    @property
    def anti_affinity(self) -> tuple[PodTerm, ...]:
        """Return the required anti-affinity terms."""
        return self.presence.anti_affinity

    @classmethod
    def of(cls, pod: Pod, label_keys: Collection[str]) -> Signature:
        """
        Return the signature of a pod, where selectors in the cluster mention `label_keys`.

        Keys that the pod's own selectors mention count as well. SelectorError is raised for
        a pod whose selectors Kubernetes would refuse.
        """
        source = _Source(pod, label_keys)
        key = source.key
        found = _signatures.get(key)
        if found is None:
            found = _signatures[key] = source.build()
        return found


_selections: WeakValueDictionary[bytes, Selection] = WeakValueDictionary()
_presences: WeakValueDictionary[bytes, Presence] = WeakValueDictionary()
_signatures: WeakValueDictionary[bytes, Signature] = WeakValueDictionary()


def selector_keys(pod: Pod) -> frozenset[str]:
    """Return the label keys of pods that the pod's affinity and spread selectors mention."""
    spec = pod.spec
    if spec.affinity is None and not spec.topology_spread_constraints:
        return frozenset()
    keys: set[str] = set()
    for term in _all_terms(spec.affinity):
        keys |= set(term.match_label_keys or ()) | set(term.mismatch_label_keys or ())
        keys |= label_selector(term.label_selector).keys
    for constraint in spec.topology_spread_constraints or ():
        keys |= set(constraint.match_label_keys or ())
        keys |= label_selector(constraint.label_selector).keys
    return frozenset(keys)


def traits(pod: Pod) -> dict[str, str]:
    """Return the annotations that matter to where the pod goes; none once it is somewhere."""
    found = pod.metadata.annotations
    if not found or pod.spec.node_name:
        return {}
    kept: dict[str, str] = {key: found[key] for key in names.TRAITS if key in found}
    if found.get(names.QUEUE_ALLOCATION_GATE) == "true":
        gates = pod.spec.scheduling_gates or ()
        held = any(gate.name == names.QUEUE_ALLOCATION_GATE for gate in gates)
        kept[names.QUEUE_ALLOCATION_GATE] = AT_GATE if held else THROUGH_GATE
    return kept


class _Source:
    """The parts of a pod that a signature is made of, and their canonical texts."""

    __slots__ = (
        "devices",
        "labels",
        "namespace",
        "padding",
        "presence_key",
        "rest_key",
        "selection_key",
        "spec",
        "traits",
        "whole_cpus",
    )

    def __init__(self, pod: Pod, label_keys: Collection[str]) -> None:
        spec = pod.spec
        own = pod.metadata.labels or {}
        mentioned = selector_keys(pod)
        self.spec = spec if not spec.node_name else _presence_only(spec)
        self.namespace = pod.metadata.namespace
        self.labels = {k: own[k] for k in sorted(own) if k in label_keys or k in mentioned}
        affinity = self.spec.affinity or Affinity()
        near, far = affinity.pod_affinity, affinity.pod_anti_affinity
        ports = sorted((p.port, p.protocol, p.ip) for p in _ports(spec))
        self.padding = padding(pod)
        wishes = near and near.preferred
        presence = (self.namespace, self.labels, ports, far, wishes, self.padding)
        selection = (self.spec.node_selector, affinity.node_affinity, _tolerations(self.spec))
        spread = self.spec.topology_spread_constraints
        self.traits = traits(pod)
        self.whole_cpus = () if spec.node_name else whole_cpus(pod)
        self.devices = asks_of(pod)
        own_wishes = (self.traits, self.whole_cpus, self.devices)
        rest = (near and near.required, spread, _images(self.spec), *own_wishes)
        self.presence_key = _ENCODER.encode(presence)
        self.selection_key = _ENCODER.encode(selection)
        self.rest_key = _ENCODER.encode(rest)

    @property
    def key(self) -> bytes:
        """JSON holds no line feeds, so joined texts are as unique as their parts."""
        return b"\n".join((self.presence_key, self.selection_key, self.rest_key))

    def build(self) -> Signature:
        affinity = self.spec.affinity or Affinity()
        presence = _presences.get(self.presence_key)
        if presence is None:
            presence = _presences[self.presence_key] = self._presence(affinity)
        selection = _selections.get(self.selection_key)
        if selection is None:
            selection = _selections[self.selection_key] = self._selection(affinity)
        required = affinity.pod_affinity.required if affinity.pod_affinity else None
        near = tuple(self._term(t) for t in required or ())
        hard, soft = self._spread("DoNotSchedule"), self._spread("ScheduleAnyway")
        others = (near, hard, soft, presence.ports, presence.anti_affinity, presence.preferred)
        images, alone = _images(self.spec), not any(others)
        own = (self.traits, self.whole_cpus, self.devices)
        return Signature(self.key, selection, presence, near, hard, soft, images, alone, *own)

    def _presence(self, affinity: Affinity) -> Presence:
        near, far = affinity.pod_affinity or PodAffinity(), affinity.pod_anti_affinity
        far = far or PodAffinity()
        anti = tuple(self._term(t) for t in far.required or ())
        preferred = [self._weighted(t, 1) for t in near.preferred or ()]
        preferred += [self._weighted(t, -1) for t in far.preferred or ()]
        ports = tuple(_ports(self.spec))
        wishes = tuple(preferred)
        return Presence(
            self.presence_key, self.namespace, self.labels, ports, anti, wishes, self.padding
        )

    def _selection(self, affinity: Affinity) -> Selection:
        wanted = affinity.node_affinity
        choice = node_choice(self.spec.node_selector, wanted.required if wanted else None)
        preferred = _preferences(wanted.preferred if wanted else None)
        return Selection(self.selection_key, choice, preferred, _tolerations(self.spec))

    def _weighted(self, term: WeightedPodAffinityTerm, sign: int) -> WeightedTerm:
        return WeightedTerm(sign * term.weight, self._term(term.pod_affinity_term))

    def _term(self, term: PodAffinityTerm) -> PodTerm:
        selector = label_selector(term.label_selector)
        selector = self._same(selector, term.match_label_keys, "In")
        selector = self._same(selector, term.mismatch_label_keys, "NotIn")
        spaces = term.namespaces or []
        if not spaces and term.namespace_selector is None:
            spaces = [self.namespace]
        namespaces = label_selector(term.namespace_selector)
        return PodTerm(term.topology_key, selector, frozenset(spaces), namespaces)

    def _same(self, selector: Selector, keys: Iterable[str] | None, operator: str) -> Selector:
        """
        Add the pod's own values of `keys` to the selector.

        The API server does so when the pod is created; what it has added is not added again.
        """
        held = {(r.key, r.operator) for r in selector.requirements}
        return selector.also(
            Requirement(key, operator, (self.labels[key],))
            for key in keys or ()
            if key in self.labels and (key, operator) not in held
        )

    def _spread(self, action: str) -> tuple[Spread, ...]:
        constraints = self.spec.topology_spread_constraints or ()
        return tuple(self._one_spread(c) for c in constraints if c.when_unsatisfiable == action)

    def _one_spread(self, constraint: TopologySpreadConstraint) -> Spread:
        selector = self._same(
            label_selector(constraint.label_selector), constraint.match_label_keys, "In"
        )
        return Spread(
            constraint.max_skew,
            constraint.topology_key,
            selector,
            1 if constraint.min_domains is None else constraint.min_domains,
            (constraint.node_affinity_policy or "Honor") == "Honor",
            (constraint.node_taints_policy or "Ignore") == "Honor",
        )


def _presence_only(spec: PodSpec) -> PodSpec:
    """Return what a bound pod still says: its ports and the terms that concern pods to come."""
    affinity = spec.affinity
    if affinity is not None:
        near = affinity.pod_affinity
        affinity = Affinity(
            pod_affinity=PodAffinity(preferred=near.preferred) if near else None,
            pod_anti_affinity=affinity.pod_anti_affinity,
        )
    return PodSpec(
        containers=[Container(ports=c.ports) for c in spec.containers or ()],
        init_containers=[
            Container(ports=c.ports, restart_policy=c.restart_policy)
            for c in spec.init_containers or ()
        ],
        affinity=affinity,
    )


def _all_terms(affinity: Affinity | None) -> list[PodAffinityTerm]:
    terms: list[PodAffinityTerm] = []
    for part in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        if part is not None:
            terms += part.required or ()
            terms += [t.pod_affinity_term for t in part.preferred or ()]
    return terms


def _ports(spec: PodSpec) -> list[HostPort]:
    """Return the host ports of app containers and sidecars, each once."""
    sidecars = [c for c in spec.init_containers or () if c.restart_policy == "Always"]
    ports = {
        HostPort(port.host_ip or ANY_IP, port.protocol or "TCP", port.host_port): None
        for container in [*sidecars, *(spec.containers or ())]
        for port in container.ports or ()
        if port.host_port > 0
    }
    return list(ports)


def _tolerations(spec: PodSpec) -> tuple[Toleration, ...]:
    """Return the tolerations without their seconds, which matter after placement only."""
    return tuple(
        Toleration(key=t.key, operator=t.operator or "Equal", value=t.value, effect=t.effect)
        for t in spec.tolerations or ()
    )


def _images(spec: PodSpec) -> tuple[str, ...]:
    """Return the image of each container, `latest` where no tag is given, in sorted order."""
    containers = [*(spec.init_containers or ()), *(spec.containers or ())]
    return tuple(sorted(image_name(c.image) for c in containers if c.image))


def image_name(name: str) -> str:
    """Return the image's name with its tag, as nodes report it."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def _preferences(terms: Iterable[PreferredSchedulingTerm] | None) -> tuple[NodePreference, ...]:
    """Return the preferences that can count; malformed ones and those of weight zero cannot."""
    found = ((t.weight, node_term(t.preference)) for t in terms or () if t.weight)
    return tuple(NodePreference(weight, term) for weight, term in found if term is not None)
