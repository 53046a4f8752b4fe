"""Sync: what a Job gets, in which order, and what is written about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from pumice.core import names
from pumice.core.api.batch import JobCondition, JobState, JobStatus, TaskState
from pumice.core.api.meta import ObjectMeta
from pumice.core.api.scheduling import ExtendCluster, PodGroupCondition, Queue, QueueSpec
from pumice.core.ids import PodUid
from pumice.core.jobs import podgroups
from pumice.core.jobs import types as t
from pumice.core.jobs.reconcile import SYNCHRONISE, reconcile
from tests.unit.jobs.builders import (
    CREATED,
    NOW,
    NOW_TEXT,
    a_group,
    a_job,
    a_pod,
    a_policy,
    a_task,
    observed,
    template,
)


def brief(effects: list[t.Effect]) -> list[str]:
    """Return effects as `CreatePod j-w-0`."""
    return [f"{type(effect).__name__} {getattr(effect, 'name', '')}".rstrip() for effect in effects]


def status_of(effects: list[t.Effect]) -> JobStatus | None:
    return next((e.status for e in effects if isinstance(e, t.PatchStatus)), None)


@dataclass(frozen=True)
class Case:
    seen: t.Observed
    want: list[str]


TWO = a_job(a_task("w", 2))
FRESH = a_job(a_task("w", 2), phase="")
PENDING = a_job(a_task("w", 2), phase="Pending")
CASES = {
    "a new job gets its group, then its phase": Case(
        observed(FRESH, group=None), ["CreatePodGroup", "PatchStatus"]
    ),
    "a new job whose group is there already gets its phase": Case(
        observed(FRESH, group=""), ["PatchStatus"]
    ),
    "no pods before the group is known": Case(observed(PENDING, group=""), []),
    "no pods before the group is enqueued": Case(observed(PENDING, group="Pending"), []),
    "an enqueued group lets pods be made": Case(
        observed(PENDING), ["CreatePod j-w-0", "CreatePod j-w-1", "PatchStatus"]
    ),
    "a missing pod of a running job is made again": Case(
        observed(TWO, a_pod("j-w-0"), group="Running"), ["CreatePod j-w-1", "PatchStatus"]
    ),
    "an unknown group lets pods be made": Case(
        observed(TWO, a_pod("j-w-0"), group="Unknown"), ["CreatePod j-w-1", "PatchStatus"]
    ),
    "a lost group is made again, and pods wait for it": Case(
        observed(TWO, a_pod("j-w-0"), group=None), ["CreatePodGroup", "PatchStatus"]
    ),
    "a failed pod keeps its place": Case(
        observed(TWO, a_pod("j-w-0"), a_pod("j-w-1", "Failed")), ["PatchStatus"]
    ),
    "a terminating pod keeps its place": Case(
        observed(TWO, a_pod("j-w-0"), a_pod("j-w-1", deleting=True)), ["PatchStatus"]
    ),
    "a pod of a namesake keeps its place": Case(
        observed(TWO, a_pod("j-w-0"), taken=frozenset({"j-w-1"})), ["PatchStatus"]
    ),
    "a pod out of sync is deleted": Case(
        observed(TWO, a_pod("j-w-0"), a_pod("j-w-1", marked=True)),
        ["DeletePod j-w-1", "PatchStatus"],
    ),
    "a pod that a kubelet refused is deleted": Case(
        observed(TWO, a_pod("j-w-0"), a_pod("j-w-1", "Failed", reason="OutOfmemory")),
        ["DeletePod j-w-1", "PatchStatus"],
    ),
    "surplus pods are marked, then deleted": Case(
        observed(TWO, *(a_pod(f"j-w-{i}") for i in range(4))),
        ["MarkOutOfSync j-w-2", "MarkOutOfSync j-w-3", "DeletePod j-w-2", "DeletePod j-w-3",
         "PatchStatus"],
    ),
    "what goes goes before what comes": Case(
        observed(TWO, a_pod("j-w-0", marked=True), a_pod("j-w-7", deleting=True)),
        ["DeletePod j-w-0", "CreatePod j-w-1", "PatchStatus"],
    ),
    "pods of a task that the job does not name are left alone": Case(
        observed(TWO, a_pod("j-w-0"), a_pod("j-w-1"), a_pod("j-old-0")), ["PatchStatus"]
    ),
    "a job that is being deleted is left alone": Case(
        observed(a_job(a_task("w", 2), meta={"deletion_timestamp": CREATED})), []
    ),
    "an unknown queue fails the sync": Case(
        observed(a_job(queue="q"), queue=None), ["RecordEvent", "Fail"]
    ),
    "the default queue is about to be made": Case(observed(TWO, queue=None), ["Fail"]),
    "a job of too many pods is refused": Case(
        observed(a_job(a_task("w", 60_000), a_task("x", 40_001))), ["RecordEvent", "Fail"]
    ),
    "a template that cannot be read fails the sync": Case(
        observed(a_job(a_task("w", template=template("much"))), group=None),
        ["RecordEvent", "Fail"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_effects(case: Case) -> None:
    assert brief(reconcile(case.seen, SYNCHRONISE, NOW)) == case.want


def test_deletions_name_the_uid() -> None:
    seen = observed(TWO, a_pod("j-w-0"), a_pod("j-w-1", marked=True))

    assert t.DeletePod("j-w-1", PodUid("uid-j-w-1")) in reconcile(seen, SYNCHRONISE, NOW)


def test_the_first_status() -> None:
    (write,) = reconcile(observed(FRESH, group=""), SYNCHRONISE, NOW)

    assert write == t.PatchStatus(
        uid="u1",
        resource_version="7",
        status=JobStatus(
            state=JobState(phase="Pending", last_transition_time=NOW_TEXT),
            min_available=2,
            conditions=[JobCondition(status="Pending", last_transition_time=NOW_TEXT)],
        ),
        urgent=True,
    )


def test_counters_alone_are_not_urgent() -> None:
    seen = observed(TWO, a_pod("j-w-0"), a_pod("j-w-1", "Succeeded"), a_pod("j-x-0", "Strange"))
    (write,) = reconcile(seen, SYNCHRONISE, NOW)

    assert isinstance(write, t.PatchStatus)
    assert not write.urgent
    assert write.status == JobStatus(
        state=JobState(phase="Running", last_transition_time=NOW_TEXT),
        min_available=2,
        running=1,
        succeeded=1,
        unknown=1,
        task_status_count={
            "w": TaskState(phase={"Running": 1, "Succeeded": 1}),
            "x": TaskState(phase={"Unknown": 1}),
        },
        conditions=[JobCondition(status="Running", last_transition_time=NOW_TEXT)],
    )


def test_a_phase_that_moves_is_urgent_and_its_condition_comes_last() -> None:
    conditions = [
        JobCondition(status="Running", last_transition_time=CREATED),
        JobCondition(status="Pending", last_transition_time=CREATED),
    ]
    job = a_job(a_task("w", 2), phase="Pending", status={"conditions": conditions})
    (write,) = reconcile(observed(job, a_pod("j-w-0"), a_pod("j-w-1")), SYNCHRONISE, NOW)

    assert isinstance(write, t.PatchStatus)
    assert write.urgent
    assert write.status.state.phase == "Running"
    assert write.status.conditions == [
        JobCondition(status="Pending", last_transition_time=CREATED),
        JobCondition(status="Running", last_transition_time=NOW_TEXT),
    ]


def test_a_status_that_holds_is_not_written_again() -> None:
    pods = a_pod("j-w-0"), a_pod("j-w-1")
    status = status_of(reconcile(observed(TWO, *pods), SYNCHRONISE, NOW))
    assert status is not None

    job = msgspec.structs.replace(TWO, status=status)
    assert reconcile(observed(job, *pods), SYNCHRONISE, NOW + 60) == []


def test_a_job_that_goes_on_has_no_duration_yet() -> None:
    job = a_job(phase="Restarting", status={"running_duration": "5s"})
    status = status_of(reconcile(observed(job, a_pod()), SYNCHRONISE, NOW))

    assert status is not None
    assert status.running_duration is None


def test_a_restarting_job_fails_when_its_last_retry_is_spent() -> None:
    job = a_job(a_task("w", 2), phase="Restarting", max_retry=2, status={"retry_count": 2})
    status = status_of(reconcile(observed(job, group=None), SYNCHRONISE, NOW))

    assert status is not None
    assert status.state.phase == "Failed"


def test_what_is_not_followed_is_told_once() -> None:
    job = a_job(
        phase="",
        plugins={"env": ["-x"]},
        policies=[a_policy("AbortJob", "PodFailed", timeout="soon")],
    )
    events = [
        e for e in reconcile(observed(job, group=""), SYNCHRONISE, NOW)
        if isinstance(e, t.RecordEvent)
    ]  # fmt: skip

    assert [(e.type, e.reason) for e in events] == [
        ("Warning", "PluginError"),
        ("Warning", "InvalidPolicy"),
    ]
    later = a_job(
        phase="Pending",
        plugins={"env": ["-x"]},
        status={"controlled_resources": {"plugin-env": "env"}},
    )
    assert brief(reconcile(observed(later, group=""), SYNCHRONISE, NOW)) == []


def test_a_group_that_waits_is_told_on_the_job() -> None:
    conditions = [
        PodGroupCondition(
            type="Scheduled", status="True", last_transition_time="2026-01-01T00:00:00Z"
        ),
        PodGroupCondition(
            type="Unschedulable",
            status="True",
            last_transition_time="2026-01-01T00:00:09Z",
            message="2/2 tasks in gang unschedulable",
        ),
    ]
    seen = t.Observed(
        job=PENDING,
        group=a_group(PENDING, "Pending", conditions=conditions),
        queue=Queue(metadata=ObjectMeta(name="default")),
    )
    text = "PodGroup ns:j unschedulable, reason: 2/2 tasks in gang unschedulable"

    effects = reconcile(seen, SYNCHRONISE, NOW)
    assert effects == [t.RecordEvent("Warning", "PodGroupPending", text)]


def test_a_group_follows_its_job() -> None:
    job = a_job(a_task("w", 3), min_available=2)
    group = a_group(job, "Running")
    group.spec.min_member = 1
    group.spec.queue = "elsewhere"
    seen = observed(job, *(a_pod(f"j-w-{i}") for i in range(3)))
    seen = t.Observed(job=job, pods=seen.pods, group=group, queue=seen.queue)

    first = reconcile(seen, SYNCHRONISE, NOW)[0]

    assert first == t.PatchPodGroup(podgroups.render(job, {}).metadata.name, "group-uid",
                                    {"minMember": 2})  # fmt: skip


def test_a_queue_of_other_clusters_marks_job_and_pods() -> None:
    lent = Queue(
        metadata=ObjectMeta(name="default"),
        spec=QueueSpec(extend_clusters=[ExtendCluster(name="b")]),
    )
    patch = {"metadata": {"annotations": {names.JOB_FORWARDING: "true"}}}
    assert reconcile(observed(PENDING, queue=lent), SYNCHRONISE, NOW) == [
        t.PatchJob("u1", "7", patch)
    ]

    marked: dict[str, Any] = {"annotations": {names.JOB_FORWARDING: "true"}}
    job = a_job(phase="Pending", meta=marked)
    (create, *_) = reconcile(observed(job, queue=lent), SYNCHRONISE, NOW)
    assert isinstance(create, t.CreatePod)
    assert create.body["metadata"]["annotations"][names.JOB_FORWARDING] == "true"
    assert create.body["metadata"]["labels"][names.JOB_FORWARDING] == "true"
