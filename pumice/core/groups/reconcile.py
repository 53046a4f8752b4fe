"""
Give every pod of our schedulers that names no PodGroup one of its own, or its workload's.

The group is named after the uid of the pod's controller, so that all pods of a ReplicaSet,
StatefulSet, DaemonSet, Kubernetes Job or a kind of any other operator share one; a pod on its own
has its own. What the group asks for comes from a pod; annotations of the workload may say more.

    pod without group annotation ──► create the group, unless it is there ──► annotate the pod
    ... of a ReplicaSet, StatefulSet ──► besides, bring the group up to date with the pod
    ReplicaSet, StatefulSet at 0 ──► delete the group
    group gone, pods that name it not ──► create it again

While a StatefulSet is rolled over, pods of its old revision may still be made again: they have no
say. Groups are otherwise deleted by Kubernetes with their owners.
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
from pumice.core.groups import update

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

FOLLOWED_KINDS = {("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")}
"""Owners whose groups follow their pods, and go when they have no replicas."""
REVISION = "controller-revision-hash"
"""The label of a pod with the revision of its StatefulSet."""


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
class PatchPodGroup:
    """Change a group that is out of date."""

    namespace: str
    name: str
    uid: str
    patch: update.Json


@dataclass(frozen=True, slots=True)
class DeletePodGroup:
    """Delete a group; it may be gone already."""

    namespace: str
    name: str
    uid: str


Effect = CreatePodGroup | AnnotatePod | PatchPodGroup | DeletePodGroup


def wants_group(pod: Pod, scheduler_names: Collection[str]) -> bool:
    """Whether the pod is ours, names no group, and is not over."""
    return _named(pod) == "" and _is_alive(pod, scheduler_names)


def has_group(pod: Pod, scheduler_names: Collection[str]) -> bool:
    """Whether the pod is ours, names the group that we made for it, and is not over."""
    return _named(pod) == group_name(pod) and _is_alive(pod, scheduler_names)


def _named(pod: Pod) -> str:
    return (pod.metadata.annotations or {}).get(names.GROUP_NAME, "")


def _is_alive(pod: Pod, scheduler_names: Collection[str]) -> bool:
    return (
        pod.spec.scheduler_name in scheduler_names
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
    pods: Sequence[Pod],
    owners: Sequence[Mapping[str, str]],
    group: PodGroup | None,
    *,
    revision: str = "",
) -> list[Effect]:
    """
    Return what pods of one group need; the oldest come first.

    They are those that do not name it yet, or one that does and has lost it. `owners` are the
    annotations of what the pods inherit from, and `revision` is the one that a StatefulSet is
    being brought to. `group` is the one that is there.
    """
    if not pods:
        return []
    template = _template(pods, revision)
    effects: list[Effect] = []
    if group is None:
        effects.append(CreatePodGroup(new_group(template or pods[0], owners)))
    elif template and (change := _update(group, template, owners)):
        meta = group.metadata
        effects.append(PatchPodGroup(meta.namespace, meta.name, meta.uid, change))
    return effects + [
        AnnotatePod(p.metadata.namespace, p.metadata.name, p.metadata.uid, group_name(p))
        for p in pods
        if not _named(p)
    ]


def follows_pods(pod: Pod) -> bool:
    """Tell whether the group of a pod is to be brought up to date with it."""
    owner = pod.metadata.controller
    return owner is not None and (owner.api_version, owner.kind) in FOLLOWED_KINDS


def _template(pods: Sequence[Pod], revision: str) -> Pod | None:
    """Return the newest pod of those that say what their workload makes now."""
    current = (
        pod
        for pod in reversed(pods)
        if follows_pods(pod) and revision in ("", (pod.metadata.labels or {}).get(REVISION))
    )
    return next(current, None)


def _update(group: PodGroup, pod: Pod, owners: Sequence[Mapping[str, str]]) -> update.Json:
    asks_for_queue = bool((pod.metadata.annotations or {}).get(names.QUEUE_NAME))
    ours = {*_OVERRIDES, *_BUDGETS, *_LABELS}
    return update.patch(group, new_group(pod, owners), ours, moves=asks_for_queue)


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


def inheritable(annotations: Mapping[str, str] | None) -> dict[str, str]:
    """Return those annotations of a workload that say something about its group."""
    return {
        key: value
        for key, value in (annotations or {}).items()
        if key.startswith(names.VOLCANO_PREFIX) or key == names.GROUP_MIN_MEMBER
    }


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
