"""
Claims: what a pod's PersistentVolumeClaims are at the moment, as kube-scheduler reads them.

A claim that is bound has its volume, and the pod goes where that can be reached. An unbound one
is bound by somebody else beforehand, or, where its class says `WaitForFirstConsumer`, once the
pod has a node. A generic ephemeral volume is a claim as well: it is named after pod and volume,
and somebody else makes it when the pod is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from pumice.core.api.core import Pod
from pumice.core.api.meta import ObjectMeta
from pumice.core.api.storage import PersistentVolumeClaim
from pumice.core.model.storage import Storage, Stored

BOUND_BY: Final = "pv.kubernetes.io/bind-completed"
"""The annotation by which both sides of a binding are in place."""
CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""The annotation that names the class of old; it goes before the field."""
SELECTED: Final = "volume.kubernetes.io/selected-node"
"""The annotation of a claim for which a volume is to be made on a node."""
FIRST_CONSUMER: Final = "WaitForFirstConsumer"
_READ: Final = frozenset({BOUND_BY, CLASS, SELECTED})
NOT_BOUND: Final = "pod has unbound immediate PersistentVolumeClaims"


T = TypeVar("T", bound=Stored)


def lean(stored: T) -> T:
    """Return an object of storage with that part of its metadata which is read; many are kept."""
    meta = stored.metadata
    notes = {key: text for key, text in (meta.annotations or {}).items() if key in _READ}
    kept = ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        deletion_timestamp=meta.deletion_timestamp,
        labels=meta.labels,
        annotations=notes or None,
        owner_references=meta.owner_references,
    )
    return msgspec.structs.replace(stored, metadata=kept)


@dataclass(frozen=True, slots=True)
class Mount:
    """A claim that a pod mounts, of its own namespace."""

    name: str
    #: made for this pod alone
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class PodClaims:
    """The claims of a pod, in the order of its volumes."""

    #: why the pod can start nowhere for the time being; "" where nothing is in its way
    fault: str = ""
    bound: tuple[PersistentVolumeClaim, ...] = ()
    #: unbound, to be bound when the pod has a node
    delayed: tuple[PersistentVolumeClaim, ...] = ()
    #: unbound, to be bound whether or not there is a pod
    immediate: tuple[PersistentVolumeClaim, ...] = ()


NO_CLAIMS: Final = PodClaims()


def mounts(pod: Pod) -> tuple[Mount, ...]:
    """Return the claims that a pod mounts, each once."""
    if not pod.spec.volumes:
        return ()
    found: dict[Mount, None] = {}
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            found[Mount(volume.persistent_volume_claim.claim_name)] = None
        elif volume.ephemeral is not None:
            found[Mount(f"{pod.metadata.name}-{volume.name}", ephemeral=True)] = None
    return tuple(found)


def waits_for_node(pod: Pod, storage: Storage) -> bool:
    """Return whether some claim of the pod is to be bound once the pod has a node."""
    return bool(claims_of(pod, mounts(pod), storage).delayed)


def claims_of(pod: Pod, mounted: tuple[Mount, ...], storage: Storage) -> PodClaims:
    """Return what the claims that a pod mounts are at the moment."""
    if not mounted:
        return NO_CLAIMS
    bound, delayed, immediate, fault = [], [], [], ""
    for mount in mounted:
        claim = storage.claims.get(f"{pod.metadata.namespace}/{mount.name}")
        fault = fault or _fault(pod, mount, claim)
        if claim is None:
            continue
        if is_bound(claim):
            bound.append(claim)
        elif is_delayed(claim, storage):
            delayed.append(claim)
        else:
            immediate.append(claim)
    if immediate:
        fault = fault or NOT_BOUND
    return PodClaims(fault, tuple(bound), tuple(delayed), tuple(immediate))


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Return whether claim and volume are bound to each other."""
    return bool(claim.spec.volume_name) and BOUND_BY in (claim.metadata.annotations or {})


def is_delayed(claim: PersistentVolumeClaim, storage: Storage) -> bool:
    """Return whether an unbound claim is to be bound once a pod of it has a node."""
    found = storage.classes.get(class_of(claim))
    waits = found is not None and found.volume_binding_mode == FIRST_CONSUMER
    return waits and not claim.spec.volume_name


def class_of(claim: PersistentVolumeClaim) -> str:
    """Return the name of a claim's class, "" where it has none."""
    return (claim.metadata.annotations or {}).get(CLASS, claim.spec.storage_class_name or "")


def _fault(pod: Pod, mount: Mount, claim: PersistentVolumeClaim | None) -> str:
    """Return what is wrong with a claim, in kube-scheduler's words."""
    if claim is None:
        if mount.ephemeral:
            waits = "waiting for ephemeral volume controller to create the"
            return f'{waits} persistentvolumeclaim "{mount.name}"'
        return f'persistentvolumeclaim "{mount.name}" not found'
    if claim.status.phase == "Lost":
        lost = f'bound to non-existent persistentvolume "{claim.spec.volume_name}"'
        return f'persistentvolumeclaim "{mount.name}" {lost}'
    if claim.metadata.deletion_timestamp:
        return f'persistentvolumeclaim "{mount.name}" is being deleted'
    owner = claim.metadata.controller
    if mount.ephemeral and (owner is None or owner.uid != pod.metadata.uid):
        meant = f"was not created for pod {pod.metadata.key} (pod is not owner)"
        return f"PVC {claim.metadata.key} {meant}"
    return ""
