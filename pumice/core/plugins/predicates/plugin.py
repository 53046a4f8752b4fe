"""
The plugin: kube-scheduler's filters, put together in the order that Volcano has.

What a node says by itself is a predicate, answered once per signature. What depends on other pods
is a live predicate; it follows what is placed and taken away in the session. A node is refused
for all that speaks against it, up to the first reason that evictions cannot cure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pumice.core.conf import Arguments
from pumice.core.extension import (
    BatchNodeOrder,
    Code,
    EventHandler,
    LivePredicate,
    PredicateResult,
    Refusal,
    Room,
)
from pumice.core.model.peers import Peers
from pumice.core.model.signatures import PodTerm, Presence, Signature
from pumice.core.model.tasks import TaskClass
from pumice.core.plugins.predicates.affinity import refuse_by_affinity
from pumice.core.plugins.predicates.nodes import NodeFilter
from pumice.core.plugins.predicates.ports import refuse_ports
from pumice.core.plugins.predicates.slots import SLOTS_TAKEN, Slots
from pumice.core.plugins.predicates.spread import refuse_uneven
from pumice.core.plugins.predicates.volumes import VolumeFilter, VolumeSwitches
from pumice.core.session import Session

NAME = "predicates"

Filter = Callable[[TaskClass], list[Refusal]]
PeerRule = Callable[[Signature, Peers], list[Refusal]]


@dataclass(frozen=True, slots=True)
class Switches:
    """Which filters are on."""

    affinity: bool
    ports: bool
    taints: bool
    pod_affinity: bool
    spread: bool

    @classmethod
    def parse(cls, args: Arguments) -> Switches:
        """Read the arguments; every filter is on unless it is switched off."""
        return cls(
            affinity=args.boolean("predicate.NodeAffinityEnable", True),
            ports=args.boolean("predicate.NodePortsEnable", True),
            taints=args.boolean("predicate.TaintTolerationEnable", True),
            pod_affinity=args.boolean("predicate.PodAffinityEnable", True),
            spread=args.boolean("predicate.PodTopologySpreadEnable", True),
        )


class Predicates:
    """Registers the filters; what they know of a session lives as long as it."""

    name = NAME
    steady = True

    def __init__(self, args: Arguments) -> None:
        self.switches = Switches.parse(args)
        self.volume_switches = VolumeSwitches.parse(args)

    def on_session_open(self, ssn: Session) -> None:
        """Register predicates, pod slots, and what keeps both up to date."""
        nodes = NodeFilter(
            ssn.nodes.columns, affinity=self.switches.affinity, taints=self.switches.taints
        )
        volumes = self._volumes(ssn)
        alone = StaticFilter(nodes, volumes)
        together = PeerFilter(ssn, nodes, self.switches, volumes)
        slots = Slots(ssn.nodes)
        ssn.points.predicate[NAME] = lambda cls: verdict(len(ssn.nodes), alone(cls))
        ssn.points.live_predicate[NAME] = LivePredicate(together.applies, together.check)
        ssn.points.room[NAME] = Room(Code.UNSCHEDULABLE, SLOTS_TAKEN, slots.free)
        ssn.listen(EventHandler(slots.placed, slots.removed))

    def _volumes(self, ssn: Session) -> VolumeFilter | None:
        """Register what concerns volumes, where any pod mounts a claim and claims are known."""
        if not ssn.snapshot.mounting or ssn.snapshot.inputs.storage.unread:
            return None
        points, volumes = ssn.points, VolumeFilter(ssn.snapshot, self.volume_switches)
        points.distinction[NAME] = volumes.mark
        points.pre_predicate[NAME] = volumes.fault
        points.batch_node_order[NAME] = BatchNodeOrder(volumes.gives, volumes.score)
        ssn.listen(EventHandler(volumes.placed, volumes.removed))
        return volumes

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to tell: refusals are part of the tasks' fit errors."""


def verdict(n: int, refusals: list[Refusal]) -> PredicateResult:
    """Return the nodes that nothing refuses, and the refusals."""
    mask = np.ones(n, bool)
    for refusal in refusals:
        mask &= ~refusal.nodes
    return PredicateResult(mask, tuple(refusals))


class StaticFilter:
    """The filters that depend on nothing that is placed."""

    def __init__(self, nodes: NodeFilter, volumes: VolumeFilter | None) -> None:
        self._nodes = nodes
        self._volumes = volumes

    def __call__(self, cls: TaskClass) -> list[Refusal]:
        """Return the refusals; a node that is refused for itself is refused for no volume."""
        refusals = self._nodes(cls.signature)
        others = self._volumes.refuse(cls) if self._volumes is not None else []
        if not others:
            return refusals
        left = np.ones(others[0].nodes.size, bool)
        for refusal in refusals:
            left &= ~refusal.nodes
        return refusals + [Refusal(r.code, r.message, r.nodes & left) for r in others]


class PeerFilter:
    """The filters that depend on other pods."""

    def __init__(
        self, ssn: Session, nodes: NodeFilter, switches: Switches, volumes: VolumeFilter | None
    ) -> None:
        self._ssn = ssn
        self._nodes = nodes
        self._switches = switches
        self._volumes = volumes
        self._peers = ssn.peers
        self._repelling: tuple[PodTerm, ...] | None = None

    def applies(self, cls: TaskClass) -> bool:
        """Return whether other pods, there or to come, have a say about the class."""
        signature, switches = cls.signature, self._switches
        if switches.ports and signature.presence.ports:
            return True
        if switches.spread and signature.spread:
            return True
        if self._volumes is not None and self._volumes.is_live(cls):
            return True
        if not switches.pod_affinity:
            return False
        own = signature.affinity or signature.anti_affinity
        return bool(own) or any(map(signature.presence.matched_by, self._repelling_terms()))

    def check(self, cls: TaskClass) -> PredicateResult:
        """Return which nodes take the next task of the class."""
        mask, left = self._peers.columns.all(), self._peers.columns.all()
        for refusal in self._nodes(cls.signature):
            left &= ~refusal.nodes
        reasons: list[Refusal] = []
        for refuse in self._filters():
            refusals = refuse(cls)
            reasons += [Refusal(r.code, r.message, r.nodes & left) for r in refusals]
            for refusal in refusals:
                mask &= ~refusal.nodes
                if refusal.code is not Code.UNSCHEDULABLE:
                    left &= ~refusal.nodes
        return PredicateResult(mask, tuple(reasons))

    def _filters(self) -> list[Filter]:
        switches, volumes = self._switches, self._volumes
        filters: list[tuple[bool, Filter]] = [
            (switches.ports, self._among_peers(refuse_ports)),
            (switches.pod_affinity, self._among_peers(refuse_by_affinity)),
            (switches.spread, self._among_peers(refuse_uneven)),
        ]
        if volumes is not None:
            filters.insert(2, (True, volumes.refuse_for_usage))
            filters.append((True, volumes.refuse_for_stock))
        return [refuse for on, refuse in filters if on]

    def _among_peers(self, rule: PeerRule) -> Filter:
        return lambda cls: rule(cls.signature, self._peers)

    def _repelling_terms(self) -> tuple[PodTerm, ...]:
        """Return the anti-affinity terms of pods on nodes and of those that may get there."""
        if self._repelling is None:
            presences: set[Presence] = {
                task.cls.signature.presence
                for job in self._ssn.unsettled
                for task in job.tasks.values()
            }
            terms = {t: None for p in presences for t in p.anti_affinity}
            self._repelling = tuple({**terms, **dict.fromkeys(self._peers.repelling)})
        return self._repelling
