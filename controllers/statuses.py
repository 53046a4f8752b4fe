"""Write the status of an object: what differs, on the version that was seen."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import msgspec

from controllers.caches import Cache
from pumice.core.jobs.difference import difference
from pumice.kube.client import Client, Preconditions
from pumice.kube.errors import NotFound
from pumice.kube.patches import MergePatch
from pumice.kube.resources import Object


class HasStatus(Object, Protocol):
    """An object whose status a controller writes."""

    status: Any


T = TypeVar("T", bound=HasStatus)


async def patch_status(client: Client, cache: Cache[T, T], obj: T, status: Any) -> None:
    """
    Make an object's status this one; an object that is gone needs nothing.

    Raises Conflict where the object is not what it was when it was looked at.
    """
    meta = obj.metadata
    patch = MergePatch({"status": difference(_plain(obj.status), _plain(status))})
    given = Preconditions(meta.uid, meta.resource_version)
    try:
        changed = await client.patch_status(
            cache.resource, meta.namespace, meta.name, patch, given=given
        )
    except NotFound:
        return
    cache.observe(changed)


def _plain(status: Any) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(status)
    return found
