"""
What kube-scheduler settles for a pod before it calls `bind`: claims that nobody has bound yet.

That are the pod's ResourceClaims, and those of its PersistentVolumeClaims that wait for their
first consumer. Which nodes can have them is known to kube-scheduler alone, so such a pod is not
pinned: it is told which node was planned, and may take another. It may stay there for minutes
(`bindTimeoutSeconds`, 600 s unless configured otherwise) before anything more is heard of it.

A claim is settled by the first pod that comes for it. Others that share it come after that one,
where the claim is by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final

from pumice.core.api.core import Pod
from pumice.core.api.storage import PersistentVolumeClaim
from pumice.core.model.claims import SELECTED, PodClaims, claims_of, mounts
from pumice.core.model.storage import Storage
from pumice.core.selectors import node_choice

BINDING_S: Final = 660.0
"""How long kube-scheduler may be at it without a sign: its own limit and some more."""


def unsettled(pod: Pod, storage: Storage) -> frozenset[str]:
    """
    Return the claims that kube-scheduler has to settle for a pod; pods may share some of them.

    What has become of a ResourceClaim is not known here, so those always count.
    """
    delayed = _claims(pod, storage).delayed
    return frozenset({*(f"volume {c.metadata.name}" for c in delayed), *_resource_claims(pod)})


def has_claims(pod: Pod) -> bool:
    """Return whether something may have been bound for a pod already, wherever it goes now."""
    return bool(mounts(pod) or pod.spec.resource_claims)


class Progress:
    """What kube-scheduler has begun to settle, by one look at all volumes for however many pods."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def is_begun(self, pod: Pod) -> bool:
        """
        Return whether it has begun with some of the pod's volumes.

        It says so on the claim where the volume is to be made, or on the volume there is for it.
        """
        delayed = _claims(pod, self._storage).delayed
        if any(SELECTED in (claim.metadata.annotations or {}) for claim in delayed):
            return True
        return any(claim.metadata.key in self._kept for claim in delayed)

    @cached_property
    def _kept(self) -> frozenset[str]:
        """The claims, as `namespace/name`, for which volumes are kept."""
        kept = (volume.spec.claim_ref for volume in self._storage.volumes.values())
        return frozenset(f"{claim.namespace}/{claim.name}" for claim in kept if claim)


def reaches(node: str, labels: Mapping[str, str], pod: Pod, storage: Storage) -> bool:
    """Return whether all volumes that a pod has by now can be reached from a node."""
    return all(_reaches(node, labels, claim, storage) for claim in _claims(pod, storage).bound)


def _reaches(
    node: str, labels: Mapping[str, str], claim: PersistentVolumeClaim, storage: Storage
) -> bool:
    volume = storage.volumes.get(claim.spec.volume_name)
    affinity = volume.spec.node_affinity if volume is not None else None
    if affinity is None or affinity.required is None:
        return True
    return node_choice(None, affinity.required).matches(node, labels)


def _claims(pod: Pod, storage: Storage) -> PodClaims:
    return claims_of(pod, mounts(pod), storage)


def _resource_claims(pod: Pod) -> Iterable[str]:
    for claim in pod.spec.resource_claims or ():
        # One that is made from a template is for this pod alone.
        shared, own = claim.get("resourceClaimName"), f"{claim.get('name')} of {pod.metadata.uid}"
        yield f"resource {shared or own}"
