"""PodGroups of ordinary pods: which pods get one, its name, and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
import pytest

from pumice.core import names
from pumice.core.api.core import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from pumice.core.api.meta import ObjectMeta, OwnerReference
from pumice.core.api.scheduling import NetworkTopology, PodGroup, PodGroupSpec, PodGroupStatus
from pumice.core.groups.reconcile import (
    AnnotatePod,
    CreatePodGroup,
    DeletePodGroup,
    PatchPodGroup,
    inherits_from,
    new_group,
    reconcile,
    reconcile_workload,
    wants_group,
)

REPLICA_SET = OwnerReference(
    api_version="apps/v1",
    kind="ReplicaSet",
    name="rs",
    uid="rs-1",
    controller=True,
    block_owner_deletion=True,
)
THE_POD = OwnerReference(
    api_version="v1",
    kind="Pod",
    name="p",
    uid="p-1",
    controller=True,
    block_owner_deletion=True,
)


def a_pod(
    annotations: Mapping[str, str] | None = None,
    *,
    owners: list[OwnerReference] | None = None,
    labels: dict[str, str] | None = None,
    scheduler: str = "volcano",
    phase: str = "Pending",
    priority_class: str = "",
    cpu: str = "2",
    deleted: str | None = None,
) -> Pod:
    requests = ResourceRequirements(requests={"cpu": cpu})
    return Pod(
        metadata=ObjectMeta(
            name="p",
            namespace="ns",
            uid="p-1",
            annotations=dict(annotations or {}),
            labels=labels,
            owner_references=owners,
            deletion_timestamp=deleted,
        ),
        spec=PodSpec(
            scheduler_name=scheduler,
            priority_class_name=priority_class,
            containers=[Container(name="c", resources=requests)],
        ),
        status=PodStatus(phase=phase),
    )


def a_group(
    name: str = "podgroup-p-1",
    owners: list[OwnerReference] | None = None,
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    **spec: object,
) -> PodGroup:
    given = PodGroupSpec(
        min_member=1,
        min_resources={"count/pods": "1", "cpu": "2", "pods": "1", "requests.cpu": "2"},
    )
    return PodGroup(
        metadata=ObjectMeta(
            name=name,
            namespace="ns",
            annotations=annotations,
            labels=labels,
            owner_references=owners or [THE_POD],
        ),
        spec=msgspec.structs.replace(given, **spec),
        status=PodGroupStatus(phase="Pending"),
    )


@dataclass(frozen=True)
class Case:
    pod: Pod
    want: PodGroup
    owners: list[dict[str, str]] = field(default_factory=list)


CONTENT = {
    "a pod on its own owns its group": Case(
        a_pod(),
        a_group(),
    ),
    "pods of a controller share its group, and its owners own it": Case(
        a_pod(owners=[REPLICA_SET]),
        a_group("podgroup-rs-1", [REPLICA_SET]),
    ),
    "an owner that does not control is not the group's": Case(
        a_pod(owners=[OwnerReference(api_version="v1", kind="X", name="x", uid="x-1")]),
        a_group(),
    ),
    "the pod says queue and priority": Case(
        a_pod({names.QUEUE_NAME: "research"}, priority_class="high"),
        a_group(queue="research", priority_class_name="high"),
    ),
    "the workload says how many must run together": Case(
        a_pod(owners=[REPLICA_SET]),
        a_group(
            "podgroup-rs-1",
            [REPLICA_SET],
            min_member=3,
            min_resources={"count/pods": "3", "cpu": "6", "pods": "3", "requests.cpu": "6"},
        ),
        owners=[{names.GROUP_MIN_MEMBER: "3"}],
    ),
    "a minimum of zero is a minimum": Case(
        a_pod(),
        a_group(
            min_member=0,
            min_resources={"count/pods": "0", "cpu": "0", "pods": "0", "requests.cpu": "0"},
        ),
        owners=[{names.GROUP_MIN_MEMBER: "0"}],
    ),
    "a minimum that is no number counts as one": Case(
        a_pod(),
        a_group(),
        owners=[{names.GROUP_MIN_MEMBER: "many"}],
    ),
    "a negative minimum counts as one": Case(
        a_pod(),
        a_group(),
        owners=[{names.GROUP_MIN_MEMBER: "-2"}],
    ),
    "a minimum beyond an int32 counts as one": Case(
        a_pod(),
        a_group(),
        owners=[{names.GROUP_MIN_MEMBER: "2147483648"}],
    ),
    "the first owner's word counts": Case(
        a_pod(),
        a_group(annotations={"volcano.sh/a": "1", "volcano.sh/b": "2"}),
        owners=[{"volcano.sh/a": "1"}, {"volcano.sh/a": "x", "volcano.sh/b": "2"}],
    ),
    "of the workload's annotations only Volcano's are inherited": Case(
        a_pod(),
        a_group(annotations={"volcano.sh/sla-waiting-time": "1h"}),
        owners=[
            {
                "volcano.sh/sla-waiting-time": "1h",
                "scheduling.volcano.sh/other": "x",
                "deployment.kubernetes.io/revision": "1",
            }
        ],
    ),
    "the pod's own word goes before the workload's": Case(
        a_pod({names.PREEMPTABLE: "false", names.COOLDOWN_TIME: "5m", names.REVOCABLE_ZONE: "*"}),
        a_group(
            annotations={
                names.PREEMPTABLE: "false",
                names.COOLDOWN_TIME: "5m",
                names.REVOCABLE_ZONE: "*",
            }
        ),
        owners=[{names.PREEMPTABLE: "true"}],
    ),
    "of two budgets on the pod the minimum counts": Case(
        a_pod({names.JDB_MAX_UNAVAILABLE: "20%", names.JDB_MIN_AVAILABLE: "2"}),
        a_group(annotations={names.JDB_MIN_AVAILABLE: "2"}),
    ),
    "two labels of the pod are the group's too": Case(
        a_pod(labels={names.PREEMPTABLE: "true", names.COOLDOWN_TIME: "1m", "app": "x"}),
        a_group(labels={names.PREEMPTABLE: "true", names.COOLDOWN_TIME: "1m"}),
    ),
    "a topology may be soft": Case(
        a_pod({names.NETWORK_TOPOLOGY_MODE: "Soft"}),
        a_group(network_topology=NetworkTopology(mode="soft")),
    ),
    "a tier alone is a hard limit": Case(
        a_pod({names.NETWORK_TOPOLOGY_HIGHEST_TIER: "2"}),
        a_group(network_topology=NetworkTopology(mode="hard", highest_tier_allowed=2)),
    ),
    "a mode that is none is hard, a tier that is no number is none": Case(
        a_pod({names.NETWORK_TOPOLOGY_MODE: "tight", names.NETWORK_TOPOLOGY_HIGHEST_TIER: "top"}),
        a_group(network_topology=NetworkTopology(mode="hard")),
    ),
}


@pytest.mark.parametrize("case", CONTENT.values(), ids=CONTENT.keys())
def test_content_of_a_new_group(case: Case) -> None:
    assert new_group(case.pod, case.owners) == case.want


WANTS = {
    "a pod of ours without a group": (a_pod(), True),
    "an empty name is no group": (a_pod({names.GROUP_NAME: ""}), True),
    "a pod that names its group": (a_pod({names.GROUP_NAME: "mine"}), False),
    "a pod of another scheduler": (a_pod(scheduler="default-scheduler"), False),
    "a pod that is over": (a_pod(phase="Succeeded"), False),
    "a pod that is being deleted": (a_pod(deleted="2026-01-01T00:00:00Z"), False),
}


@pytest.mark.parametrize(("pod", "want"), WANTS.values(), ids=WANTS.keys())
def test_which_pods_get_a_group(pod: Pod, want: bool) -> None:
    assert wants_group(pod, {"volcano"}) is want


def test_the_group_comes_before_the_annotations() -> None:
    pod = a_pod(owners=[REPLICA_SET])
    other = a_pod(owners=[REPLICA_SET])
    other.metadata.name, other.metadata.uid = "q", "q-1"
    annotations = [
        AnnotatePod("ns", "p", "p-1", "podgroup-rs-1"),
        AnnotatePod("ns", "q", "q-1", "podgroup-rs-1"),
    ]

    created = CreatePodGroup(a_group("podgroup-rs-1", [REPLICA_SET]))

    assert reconcile([pod, other], [], None) == [created, *annotations]
    assert reconcile([pod, other], [], created.group) == annotations
    assert reconcile([], [], None) == []


ANOTHER = {names.GROUP_MIN_MEMBER: "2"}
UPDATES: dict[str, tuple[Pod, list[dict[str, str]], PodGroup, dict[str, object]]] = {
    "a group that is as it should be": (
        a_pod(owners=[REPLICA_SET]),
        [],
        a_group("podgroup-rs-1", [REPLICA_SET]),
        {},
    ),
    "pods that ask for something else": (
        a_pod(owners=[REPLICA_SET], cpu="3", priority_class="high"),
        [],
        a_group(min_resources={"count/pods": "1", "cpu": "2", "memory": "1", "pods": "1"}),
        {
            "spec": {
                "priorityClassName": "high",
                "minResources": {
                    "memory": None,
                    "count/pods": "1",
                    "cpu": "3",
                    "pods": "1",
                    "requests.cpu": "3",
                },
            }
        },
    ),
    "a workload that wants more of them together": (
        a_pod(owners=[REPLICA_SET]),
        [ANOTHER],
        a_group(min_resources={"count/pods": "2", "cpu": "4", "pods": "2", "requests.cpu": "4"}),
        {"spec": {"minMember": 2}},
    ),
    "a minimum that falls to zero is written": (
        a_pod(owners=[REPLICA_SET]),
        [{names.GROUP_MIN_MEMBER: "0"}],
        a_group(min_resources={"count/pods": "0", "cpu": "0", "pods": "0", "requests.cpu": "0"}),
        {"spec": {"minMember": 0}},
    ),
    "a queue that the pods ask for": (
        a_pod({names.QUEUE_NAME: "b"}, owners=[REPLICA_SET]),
        [],
        a_group(queue="a"),
        {"spec": {"queue": "b"}},
    ),
    "a queue that somebody chose for pods that ask for none stays": (
        a_pod(owners=[REPLICA_SET]),
        [],
        a_group(queue="a"),
        {},
    ),
    "what the pods say no more goes, and what others wrote stays": (
        a_pod({names.COOLDOWN_TIME: "5m"}, owners=[REPLICA_SET]),
        [],
        a_group(
            annotations={names.PREEMPTABLE: "true", "example.com/note": "x"},
            labels={names.PREEMPTABLE: "true"},
        ),
        {
            "metadata": {
                "annotations": {names.PREEMPTABLE: None, names.COOLDOWN_TIME: "5m"},
                "labels": {names.PREEMPTABLE: None},
            }
        },
    ),
    "a topology that goes": (
        a_pod(owners=[REPLICA_SET]),
        [],
        a_group(network_topology=NetworkTopology(mode="soft")),
        {"spec": {"networkTopology": None}},
    ),
    "the group of another kind of owner is left as it is": (
        a_pod(owners=[msgspec.structs.replace(REPLICA_SET, kind="DaemonSet")], cpu="3"),
        [],
        a_group("podgroup-rs-1"),
        {},
    ),
}


@pytest.mark.parametrize(("pod", "owners", "group", "want"), UPDATES.values(), ids=UPDATES.keys())
def test_a_group_follows_the_pods_of_its_workload(
    pod: Pod, owners: list[dict[str, str]], group: PodGroup, want: dict[str, object]
) -> None:
    effects = reconcile([pod], owners, group)
    patches = [effect.patch for effect in effects if isinstance(effect, PatchPodGroup)]
    assert patches == ([want] if want else [])
    assert isinstance(effects[-1], AnnotatePod)


def test_pods_of_an_old_revision_have_no_say() -> None:
    kind = [msgspec.structs.replace(REPLICA_SET, kind="StatefulSet")]
    old = a_pod(owners=kind, cpu="1", labels={"controller-revision-hash": "r1"})
    new = a_pod(owners=kind, cpu="3", labels={"controller-revision-hash": "r2"})
    group = a_group("podgroup-rs-1", kind)

    assert [type(e) for e in reconcile([old], [], group, revision="r2")] == [AnnotatePod]
    first, *_ = reconcile([new, old], [], group, revision="r2")
    assert isinstance(first, PatchPodGroup)
    assert first.patch["spec"]["minResources"]["cpu"] == "3"
    created, *_ = reconcile([old, new, old], [], None, revision="r2")
    assert isinstance(created, CreatePodGroup)
    assert (created.group.spec.min_resources or {})["cpu"] == "3"


def test_owners_that_are_asked_for_annotations() -> None:
    other = OwnerReference(api_version="example.org/v1", kind="Job", name="x", uid="x-1")
    assert inherits_from(a_pod(owners=[other, REPLICA_SET])) == [REPLICA_SET]
    assert inherits_from(a_pod()) == []


def test_a_workload_without_replicas_has_no_group() -> None:
    group = a_group("podgroup-rs-1", [REPLICA_SET])
    group.metadata.uid = "g-1"
    assert reconcile_workload(0, group) == [DeletePodGroup("ns", "podgroup-rs-1", "g-1")]
    assert reconcile_workload(1, group) == []
    assert reconcile_workload(0, None) == []
