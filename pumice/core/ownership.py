"""Who controls an object, as its metadata tells."""

from __future__ import annotations

from pumice.core.api.meta import ObjectMeta, OwnerReference


def reference(api_version: str, kind: str, owner: ObjectMeta) -> OwnerReference:
    """Return what makes an object of this kind control another one, which then goes with it."""
    return OwnerReference(
        api_version=api_version,
        kind=kind,
        name=owner.name,
        uid=owner.uid,
        controller=True,
        block_owner_deletion=True,
    )


def owner_key(meta: ObjectMeta, api_version: str, kind: str) -> str:
    """Return `namespace/name` of the controller of this kind; empty where there is none."""
    owner = meta.controller
    if owner is None or (owner.api_version, owner.kind) != (api_version, kind):
        return ""
    return f"{meta.namespace}/{owner.name}"


def is_controlled_by(meta: ObjectMeta, owner: ObjectMeta) -> bool:
    """Tell whether the one controls the other; namesakes of before have another uid."""
    return meta.controller is not None and meta.controller.uid == owner.uid
