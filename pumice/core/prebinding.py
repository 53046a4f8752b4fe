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

from collections.abc import Iterable

from pumice.core.api.core import Pod

BINDING_S = 660.0
"""How long kube-scheduler may be at it without a sign, its own limit and some more."""


def unsettled(pod: Pod, delayed: Iterable[str] = ()) -> frozenset[str]:
    """
    Return the claims that kube-scheduler has to settle for a pod; pods may share some of them.

    `delayed` are the names of the pod's unbound claims that wait for their first consumer. What
    has become of a ResourceClaim is not known here, so those always count.
    """
    return frozenset({*(f"volume {name}" for name in delayed), *_resource_claims(pod)})


def _resource_claims(pod: Pod) -> Iterable[str]:
    for claim in pod.spec.resource_claims or ():
        # One that is made from a template is for this pod alone.
        shared, own = claim.get("resourceClaimName"), f"{claim.get('name')} of {pod.metadata.uid}"
        yield f"resource {shared or own}"


def has_claims(pod: Pod) -> bool:
    """Return whether something may have been bound for a pod already, wherever it goes now."""
    volumes = pod.spec.volumes or ()
    mounted = any(v.persistent_volume_claim or v.ephemeral is not None for v in volumes)
    return mounted or bool(pod.spec.resource_claims)
