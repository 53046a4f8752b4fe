"""
The PodGroup of a Job: the minimum that must run together, made before any pod.

Its name holds the Job's uid, so that a namesake never inherits it. It is made anew after every
kill of the whole Job; while it lives, it follows what may change in the Job's specification.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pumice.core import names
from pumice.core.api.batch import Job, TaskSpec
from pumice.core.api.meta import LabelSelector, ObjectMeta, OwnerReference
from pumice.core.api.scheduling import NetworkTopology, PodGroup, PodGroupSpec, SubGroupPolicy
from pumice.core.jobs import membership
from pumice.core.jobs.minresources import min_resources, same


def render(job: Job, priorities: Mapping[str, int]) -> PodGroup:
    """Return the PodGroup that the Job should have; its status is the extender's alone."""
    spec, meta = job.spec, job.metadata
    return PodGroup(
        metadata=ObjectMeta(
            name=membership.group_name(job),
            namespace=meta.namespace,
            labels=dict(meta.labels) if meta.labels else None,
            annotations=dict(meta.annotations) if meta.annotations else None,
            owner_references=[
                OwnerReference(
                    api_version=names.BATCH_API,
                    kind="Job",
                    name=meta.name,
                    uid=meta.uid,
                    controller=True,
                    block_owner_deletion=True,
                )
            ],
        ),
        spec=PodGroupSpec(
            min_member=spec.min_available,
            min_task_member={task.name or "": _minimum(task) for task in spec.tasks or ()},
            queue=spec.queue,
            priority_class_name=spec.priority_class_name,
            min_resources=min_resources(spec, priorities),
            network_topology=_topology(spec.network_topology),
            sub_group_policy=_sub_groups(spec.tasks or []),
        ),
    )


def drift(want: PodGroupSpec, have: PodGroupSpec) -> dict[str, Any]:
    """
    Return the fields that a PodGroup must be patched with, empty where it follows its Job.

    Queue and topology of the group as a whole stay as they were made, and minima of tasks that
    the Job does not name are left alone, as in Volcano.
    """
    patch: dict[str, Any] = {}
    if want.priority_class_name != have.priority_class_name:
        patch["priorityClassName"] = want.priority_class_name
    if want.min_member != have.min_member:
        patch["minMember"] = want.min_member
    if not same(want.min_resources or {}, have.min_resources or {}):
        gone = dict.fromkeys((have.min_resources or {}).keys() - (want.min_resources or {}).keys())
        patch["minResources"] = {**gone, **(want.min_resources or {})}
    minima = have.min_task_member or {}
    moved = {k: v for k, v in (want.min_task_member or {}).items() if minima.get(k) != v}
    if moved:
        patch["minTaskMember"] = moved
    if (want.sub_group_policy or []) != (have.sub_group_policy or []):
        patch["subGroupPolicy"] = msgspec.to_builtins(want.sub_group_policy or [])
    return patch


def _minimum(task: TaskSpec) -> int:
    if task.min_available is not None:
        return task.min_available
    parts = task.partition_policy
    if parts is not None and parts.min_partitions and parts.partition_size:
        return parts.min_partitions * parts.partition_size
    return task.replicas


def _sub_groups(tasks: list[TaskSpec]) -> list[SubGroupPolicy] | None:
    """Return a policy for each partitioned task: its partitions are the sub-groups."""
    policies = [
        SubGroupPolicy(
            name=task.name or "",
            network_topology=_topology(task.partition_policy.network_topology),
            sub_group_size=task.partition_policy.partition_size,
            min_sub_groups=task.partition_policy.min_partitions,
            label_selector=LabelSelector(match_labels={names.TASK_SPEC: task.name or ""}),
            match_label_keys=[names.PARTITION_ID],
        )
        for task in tasks
        if task.partition_policy is not None
    ]
    return policies or None


def _topology(wanted: NetworkTopology | None) -> NetworkTopology | None:
    """Copy a topology; of its two ways to name a tier the number wins."""
    if wanted is None or wanted.highest_tier_allowed is None:
        return wanted
    return msgspec.structs.replace(wanted, highest_tier_name="")
