"""
Give every pod of our schedulers that names no PodGroup one of its own, or its workload's.

The group is named after the uid of the pod's controller, so that all pods of a ReplicaSet,
StatefulSet, DaemonSet or Kubernetes Job share one; a pod on its own has its own. What the group
asks for comes from the first pod; annotations of the workload may say more.

    pod without group annotation ──► create the group, unless it is there ──► annotate the pod
    ReplicaSet, StatefulSet at 0 ──► delete the group

Groups are otherwise deleted by Kubernetes with their owners.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from pumice.core import names, quota
from pumice.core.api.core import Pod
from pumice.core.api.meta import ObjectMeta, OwnerReference
from pumice.core.api.scheduling import NetworkTopology, PodGroup, PodGroupSpec, PodGroupStatus

_NUMBER = re.compile(r"[+-]?[0-9]{1,10}")
_INT32_MAX = 2**31 - 1
_OVERRIDES = (names.PREEMPTABLE, names.COOLDOWN_TIME, names.REVOCABLE_ZONE)
_BUDGETS = (names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE)
_LABELS = (names.PREEMPTABLE, names.COOLDOWN_TIME)

INHERITED_KINDS = {
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "Job"),
}
"""Owners whose annotations count. Those of a Deployment are on its ReplicaSet."""


@dataclass(frozen=True, slots=True)
class CreatePodGroup:
    """Create a group; it may be there already."""

    group: PodGroup


@dataclass(frozen=True, slots=True)
class AnnotatePod:
    """Write the group's name on a pod."""

    namespace: str
    name: str
    uid: str
    group: str


@dataclass(frozen=True, slots=True)
class DeletePodGroup:
    """Delete a group; it may be gone already."""

    namespace: str
    name: str
    uid: str


Effect = CreatePodGroup | AnnotatePod | DeletePodGroup


def wants_group(pod: Pod, scheduler_names: Collection[str]) -> bool:
    """Whether the pod is ours, names no group, and is not over."""
    annotations = pod.metadata.annotations or {}
    return (
        pod.spec.scheduler_name in scheduler_names
        and not annotations.get(names.GROUP_NAME)
        and pod.metadata.deletion_timestamp is None
        and pod.status.phase not in ("Succeeded", "Failed")
    )


def group_name(pod: Pod) -> str:
    """Return the name of the group that the pod belongs to."""
    owner = pod.metadata.controller
    return name_for(owner.uid if owner else pod.metadata.uid)


def name_for(uid: str) -> str:
    """Return the name of the group of a workload, or of a pod on its own."""
    return f"podgroup-{uid}"


def inherits_from(pod: Pod) -> list[OwnerReference]:
    """Return the owners whose annotations must be known before the group is made."""
    owners = pod.metadata.owner_references or ()
    return [owner for owner in owners if (owner.api_version, owner.kind) in INHERITED_KINDS]


def reconcile(
    pods: Sequence[Pod], owners: Sequence[Mapping[str, str]], *, exists: bool
) -> list[Effect]:
    """
    Return what pods of one group need that do not name it yet.

    `owners` are the annotations of `inherits_from` of the first pod; they matter only where the
    group does not exist.
    """
    if not pods:
        return []
    effects: list[Effect] = [] if exists else [CreatePodGroup(new_group(pods[0], owners))]
    return effects + [
        AnnotatePod(p.metadata.namespace, p.metadata.name, p.metadata.uid, group_name(p))
        for p in pods
    ]


def reconcile_workload(replicas: int, group: PodGroup | None) -> list[Effect]:
    """Return what a ReplicaSet or StatefulSet needs: at 0 replicas its group goes."""
    if replicas or group is None:
        return []
    meta = group.metadata
    return [DeletePodGroup(meta.namespace, meta.name, meta.uid)]


def new_group(pod: Pod, owners: Sequence[Mapping[str, str]]) -> PodGroup:
    """Return the group of a pod; raise QuantityError where its requests are no quantities."""
    inherited: dict[str, str] = {}
    for theirs in owners:
        inherited = {**theirs, **inherited}
    own = pod.metadata.annotations or {}
    wanted = _natural(inherited.get(names.GROUP_MIN_MEMBER))
    min_member = 1 if wanted is None else wanted
    needed: quota.Usage = {}
    quota.add(needed, quota.pod_usage(pod), min_member)
    spec = PodGroupSpec(
        min_member=min_member,
        queue=own.get(names.QUEUE_NAME) or names.DEFAULT_QUEUE,
        priority_class_name=pod.spec.priority_class_name,
        min_resources=quota.resource_list(needed),
        network_topology=_topology(own),
    )
    return PodGroup(
        metadata=ObjectMeta(
            name=group_name(pod),
            namespace=pod.metadata.namespace,
            annotations=_annotations(inherited, own) or None,
            labels=_some(pod.metadata.labels or {}, _LABELS) or None,
            owner_references=_owners(pod),
        ),
        spec=spec,
        status=PodGroupStatus(phase="Pending"),
    )


def _owners(pod: Pod) -> list[OwnerReference]:
    """Return the pod's owners where one of them controls it, else the pod itself."""
    meta = pod.metadata
    if meta.controller:
        return [msgspec.structs.replace(owner) for owner in meta.owner_references or ()]
    return [
        OwnerReference(
            api_version="v1",
            kind="Pod",
            name=meta.name,
            uid=meta.uid,
            controller=True,
            block_owner_deletion=True,
        )
    ]


def _natural(text: str | None) -> int | None:
    """Return the number, unless the text is none that an int32 from 0 on can hold."""
    number = int(text) if text and _NUMBER.fullmatch(text) else -1
    return number if 0 <= number <= _INT32_MAX else None


def _annotations(inherited: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return those of the workload that begin with `volcano.sh/`, and on top some of the pod's."""
    result = {k: v for k, v in inherited.items() if k.startswith(names.VOLCANO_PREFIX)}
    result |= _some(own, _OVERRIDES)
    budget = next((key for key in _BUDGETS if key in own), None)
    return result | ({budget: own[budget]} if budget else {})


def _some(values: Mapping[str, str], keys: Sequence[str]) -> dict[str, str]:
    return {key: values[key] for key in keys if key in values}


def _topology(own: Mapping[str, str]) -> NetworkTopology | None:
    """Return what the annotations say; a mode that is none of the two is hard."""
    mode = own.get(names.NETWORK_TOPOLOGY_MODE)
    tier = own.get(names.NETWORK_TOPOLOGY_HIGHEST_TIER)
    if mode is None and tier is None:
        return None
    return NetworkTopology(
        mode="soft" if (mode or "").lower() == "soft" else "hard",
        highest_tier_allowed=_natural(tier),
    )
