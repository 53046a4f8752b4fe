"""
Needs: what a pod's claims come to, as far as they decide about nodes.

Two pods with equal needs, and alike in all else, are treated alike: members of a gang whose claims
ask for the same, or are bound to volumes that the same nodes reach. So a volume is named only where
that matters, which is where several pods mount it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pumice.core import quantity
from pumice.core.api.storage import PersistentVolume, PersistentVolumeClaim
from pumice.core.ids import PodUid
from pumice.core.model.claims import CLASS, SELECTED, PodClaims, claims_of, class_of
from pumice.core.model.storage import Storage
from pumice.core.model.tasks import Task
from pumice.core.plugins.predicates.volumes.switches import VolumeSwitches
from pumice.core.quantity import Exact
from pumice.core.selectors import EVERYTHING, NodeTerm, Selector, label_selector, node_term

EXCLUSIVE: Final = "ReadWriteOncePod"
ZONE_LABELS: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""The labels of zones and regions, and how each is called today."""

Reach = tuple[NodeTerm, ...]
"""The nodes from which a volume can be reached: those that some of the terms means."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What an unbound claim asks of a volume."""

    #: its class
    of: str
    #: in bytes, None where it takes any
    size: Exact | None
    modes: frozenset[str]
    #: Filesystem or Block
    kind: str
    attributes: str
    selector: Selector
    #: the node for which a volume is being made already
    selected: str
    #: the volume that is kept for this claim
    kept: str
    #: the claim's key, where several pods mount it: they get one volume together
    shared: str

    @property
    def bytes(self) -> Exact:
        """Return the least size."""
        return self.size or 0


@dataclass(frozen=True, slots=True)
class Attachment:
    """A volume that is attached to the pod's node."""

    driver: str
    #: which one, where other pods mount it, too
    handle: str = ""


@dataclass(frozen=True, slots=True)
class Needs:
    """What the claims of a pod come to."""

    #: why the pod can start nowhere, "" where nothing is in its way
    fault: str = ""
    #: of each bound volume that cannot be reached from everywhere
    reaches: tuple[Reach, ...] = ()
    #: whether a bound volume does not exist
    lost: bool = False
    #: the zones or regions of bound volumes: label, values
    zones: tuple[tuple[str, frozenset[str]], ...] = ()
    #: of unbound claims, smallest first
    asks: tuple[Ask, ...] = ()
    #: of drivers that are limited somewhere
    attached: tuple[Attachment, ...] = ()
    #: the keys of claims that one pod alone may use and several mount
    exclusive: tuple[str, ...] = ()


def reach_of(volume: PersistentVolume) -> Reach | None:
    """Return the nodes from which a volume can be reached, None for all of them."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return None
    terms = (node_term(term) for term in affinity.required.node_selector_terms or ())
    return tuple(term for term in terms if term is not None)


def class_of_volume(volume: PersistentVolume) -> str:
    """Return the name of a volume's class, "" where it has none."""
    return (volume.metadata.annotations or {}).get(CLASS, volume.spec.storage_class_name)


def attachment(claim: PersistentVolumeClaim, storage: Storage) -> tuple[str, str] | None:
    """Return driver and handle of a claim's volume, or of the one that is to be made for it."""
    volume = storage.volumes.get(claim.spec.volume_name)
    if volume is not None:
        csi = volume.spec.csi
        return (csi.driver, csi.volume_handle) if csi and csi.driver and csi.volume_handle else None
    kind = storage.classes.get(class_of(claim))
    return (kind.provisioner, claim.metadata.key) if kind is not None else None


def kept_for(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Return whether a volume is kept for this claim."""
    reference = volume.spec.claim_ref
    if reference is None or (reference.namespace, reference.name) != (
        claim.metadata.namespace,
        claim.metadata.name,
    ):
        return False
    return reference.uid in ("", claim.metadata.uid)


def limited_drivers(storage: Storage) -> frozenset[str]:
    """Return the drivers of which some node takes only so many volumes."""
    return frozenset(
        driver.name
        for node in storage.csi_nodes.values()
        for driver in node.spec.drivers or ()
        if driver.allocatable is not None and driver.allocatable.count is not None
    )


class Reader:
    """Reads the needs of pods; those that are equal are one object, with one number."""

    def __init__(
        self, storage: Storage, mounting: Mapping[PodUid, Task], switches: VolumeSwitches
    ) -> None:
        self._storage = storage
        self._mounting = mounting
        self._binding, self._zones = switches.binding, switches.zones
        self._known: dict[PodUid, int] = {}
        self._numbers: dict[Needs, int] = {}
        self._all: list[Needs] = []
        self._shared: frozenset[str] | None = None
        self._kept: dict[str, list[PersistentVolume]] | None = None
        self.limited = limited_drivers(storage) if switches.limits else frozenset()

    def number(self, task: Task) -> int | None:
        """Return the number of a pod's needs, None where it mounts no claim."""
        if not task.claims:
            return None
        found = self._known.get(task.uid)
        if found is None:
            needs = self._read(task)
            found = self._known[task.uid] = self._numbers.setdefault(needs, len(self._all))
            if found == len(self._all):
                self._all.append(needs)
        return found

    def of(self, task: Task | None) -> Needs | None:
        """Return the needs of a pod, None where it mounts no claim."""
        number = self.number(task) if task is not None else None
        return None if number is None else self._all[number]

    def claims(self, task: Task) -> Iterator[PersistentVolumeClaim]:
        """Yield the claims of a pod that there are."""
        for mount in task.claims:
            claim = self._storage.claims.get(f"{task.namespace}/{mount.name}")
            if claim is not None:
                yield claim

    def _read(self, task: Task) -> Needs:
        try:
            return self._needs(task)
        except ValueError as fault:
            return Needs(fault=f"a claim of the pod makes no sense: {fault}")

    def _needs(self, task: Task) -> Needs:
        found = claims_of(task.pod, task.claims, self._storage)
        fault = found.fault if self._binding else ""
        volumes = [self._storage.volumes.get(c.spec.volume_name) for c in found.bound]
        zones = dict.fromkeys(self._zones_of(task)) if self._zones else {}
        if self._zones and not fault:
            fault = self._missing(task)
        asks = [self._ask(claim) for claim in found.delayed] if self._binding else []
        near = volumes if self._binding else []
        reaches = dict.fromkeys(reach_of(volume) for volume in near if volume is not None)
        return Needs(
            fault=fault,
            reaches=tuple(reach for reach in reaches if reach is not None),
            lost=self._binding and None in volumes,
            zones=tuple(zones),
            asks=tuple(sorted(asks, key=lambda ask: ask.bytes)),
            attached=tuple(self._attached(found)),
            exclusive=tuple(self._exclusive(task)),
        )

    def _exclusive(self, task: Task) -> Iterator[str]:
        for claim in self.claims(task):
            alone = EXCLUSIVE in (claim.spec.access_modes or ())
            if alone and claim.metadata.key in self._shared_claims():
                yield claim.metadata.key

    def _ask(self, claim: PersistentVolumeClaim) -> Ask:
        spec, asked = claim.spec, (claim.spec.resources.requests or {}).get("storage")
        kept = min((v.metadata.name for v in self._kept_for(claim)), default="")
        return Ask(
            class_of(claim),
            None if asked is None else quantity.parse(asked),
            frozenset(spec.access_modes or ()),
            spec.volume_mode or "Filesystem",
            spec.volume_attributes_class_name or "",
            EVERYTHING if spec.selector is None else label_selector(spec.selector),
            (claim.metadata.annotations or {}).get(SELECTED, ""),
            kept,
            claim.metadata.key if claim.metadata.key in self._shared_claims() else "",
        )

    def _kept_for(self, claim: PersistentVolumeClaim) -> Iterable[PersistentVolume]:
        """Yield the volumes that are kept for a claim and would do for it."""
        if self._kept is None:
            self._kept = {}
            for volume in self._storage.volumes.values():
                reference = volume.spec.claim_ref
                if reference is not None:
                    key = f"{reference.namespace}/{reference.name}"
                    self._kept.setdefault(key, []).append(volume)
        asked = (claim.spec.resources.requests or {}).get("storage", 0)
        for volume in self._kept.get(claim.metadata.key, ()):
            if kept_for(claim, volume) and _would_do(claim, volume, quantity.parse(asked)):
                yield volume

    def _shared_claims(self) -> frozenset[str]:
        if self._shared is None:
            mounted = Counter(
                f"{task.namespace}/{mount.name}"
                for task in self._mounting.values()
                for mount in task.claims
            )
            self._shared = frozenset(key for key, pods in mounted.items() if pods > 1)
        return self._shared

    def _attached(self, found: PodClaims) -> Iterator[Attachment]:
        if not self.limited:
            return
        for claim in (*found.bound, *found.delayed, *found.immediate):
            known = attachment(claim, self._storage)
            if known is not None and known[0] in self.limited:
                shared = claim.metadata.key in self._shared_claims()
                yield Attachment(known[0], known[1] if shared else "")

    def _missing(self, task: Task) -> str:
        """Return in kube-scheduler's words that a volume does not exist, if so."""
        ephemeral = {f"{task.namespace}/{m.name}" for m in task.claims if m.ephemeral}
        for claim in self.claims(task):
            name = claim.spec.volume_name
            if name and claim.metadata.key not in ephemeral and name not in self._storage.volumes:
                return f'persistentvolume "{name}" not found'
        return ""

    def _zones_of(self, task: Task) -> Iterator[tuple[str, frozenset[str]]]:
        """Yield the zones and regions of bound volumes, but for ephemeral ones."""
        for mount in task.claims:
            claim = self._storage.claims.get(f"{task.namespace}/{mount.name}")
            if claim is None or mount.ephemeral:
                continue
            volume = self._storage.volumes.get(claim.spec.volume_name)
            labels = (volume.metadata.labels or {}) if volume is not None else {}
            for key in ZONE_LABELS:
                zones = labels.get(key, "").split("__")
                if all(zone.strip() for zone in zones):
                    yield key, frozenset(zone.strip() for zone in zones)


def _would_do(claim: PersistentVolumeClaim, volume: PersistentVolume, size: Exact) -> bool:
    one, other = claim.spec, volume.spec
    return (
        quantity.parse((other.capacity or {}).get("storage", 0)) >= size
        and (one.volume_mode or "Filesystem") == (other.volume_mode or "Filesystem")
        and (one.volume_attributes_class_name or "") == (other.volume_attributes_class_name or "")
        and not volume.metadata.deletion_timestamp
    )
