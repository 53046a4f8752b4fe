"""
Bring the PodGroup of a workload up to date with the pods that it makes now.

Only what a group is made of is looked at. What others wrote stays: their annotations and labels,
a queue that the pods do not ask for, and whatever else is in the specification.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from pumice.core.api.scheduling import PodGroup, PodGroupSpec

Json = dict[str, Any]

_FIELDS: Final = {
    "min_member": "minMember",
    "priority_class_name": "priorityClassName",
    "network_topology": "networkTopology",
}


def patch(group: PodGroup, fresh: PodGroup, ours: Collection[str], *, moves: bool) -> Json:
    """
    Return the merge patch that makes a group what a fresh one would be; empty where it is.

    `ours` are the annotations and labels that go when the pods have them no more; with `moves`
    the queue of the fresh group counts, too.
    """
    meta = {
        "annotations": _texts(group.metadata.annotations, fresh.metadata.annotations, ours),
        "labels": _texts(group.metadata.labels, fresh.metadata.labels, ours),
    }
    change: Json = {
        "metadata": {key: value for key, value in meta.items() if value},
        "spec": _spec(group.spec, fresh.spec, moves=moves),
    }
    return {key: value for key, value in change.items() if value}


def _texts(
    old: Mapping[str, str] | None, new: Mapping[str, str] | None, ours: Collection[str]
) -> Json:
    had, wanted = old or {}, new or {}
    gone = {key: None for key in ours if key in had and key not in wanted}
    return gone | {key: value for key, value in wanted.items() if had.get(key) != value}


def _spec(old: PodGroupSpec, new: PodGroupSpec, *, moves: bool) -> Json:
    change: Json = {
        wire: msgspec.to_builtins(getattr(new, name)) or None
        for name, wire in _FIELDS.items()
        if getattr(old, name) != getattr(new, name)
    }
    if "minMember" in change:
        change["minMember"] = new.min_member
    if moves and old.queue != new.queue:
        change["queue"] = new.queue
    had, wanted = old.min_resources or {}, new.min_resources or {}
    if had != wanted:
        gone = dict.fromkeys(had.keys() - wanted.keys())
        change["minResources"] = {**gone, **wanted}
    return change
