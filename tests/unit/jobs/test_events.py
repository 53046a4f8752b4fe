"""What a change of a pod, a PodGroup or a Job means."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import msgspec
import pytest

from pumice.core.api.batch import LifecyclePolicy
from pumice.core.api.bus import Command
from pumice.core.api.core import Pod
from pumice.core.api.scheduling import PodGroupPhase
from pumice.core.jobs.events import (
    SYNCED,
    command_issued,
    group_changed,
    job_changed,
    pod_changed,
    pod_deleted,
)
from pumice.core.jobs.types import Request
from tests.unit.jobs.builders import a_group, a_job, a_pod, a_policy, a_task


@dataclass(frozen=True)
class Case:
    old: Pod | None
    new: Pod
    want: str
    exit_code: int = 0
    others: list[Pod] = field(default_factory=list)
    policies: list[LifecyclePolicy] = field(default_factory=list)


WHOLE_TASK = [a_policy("CompleteJob", "TaskCompleted"), a_policy("AbortJob", "TaskFailed")]
CASES = {
    "a pod appears and waits": Case(None, a_pod(phase="Pending"), "PodPending"),
    "a running pod seen for the first time runs": Case(None, a_pod(), "PodRunning"),
    "a pod that failed while nobody looked has failed": Case(
        None, a_pod(phase="Failed", exit_code=3), "PodFailed", exit_code=3
    ),
    "a pod starts": Case(a_pod(phase="Pending"), a_pod(), "PodRunning"),
    "a pod fails": Case(a_pod(), a_pod(phase="Failed", exit_code=2), "PodFailed", exit_code=2),
    "a pod that has failed says nothing new": Case(
        a_pod(phase="Failed"), a_pod(phase="Failed"), "OutOfSync"
    ),
    "the last pod of a task succeeds": Case(
        a_pod(),
        a_pod(phase="Succeeded"),
        "TaskCompleted",
        others=[a_pod("j-w-1", "Succeeded")],
        policies=WHOLE_TASK,
    ),
    "a pod succeeds while another of its task runs": Case(
        a_pod(),
        a_pod(phase="Succeeded"),
        "OutOfSync",
        others=[a_pod("j-w-1"), a_pod("j-x-0", "Succeeded")],
        policies=WHOLE_TASK,
    ),
    "nobody listens to completed tasks": Case(
        a_pod(), a_pod(phase="Succeeded"), "OutOfSync", others=[a_pod("j-w-1", "Succeeded")]
    ),
    "the containers of a task were restarted too often": Case(
        a_pod(), a_pod(restarts=2), "TaskFailed", others=[a_pod("j-w-1", restarts=1)],
        policies=WHOLE_TASK,
    ),
    "a task that failed while nobody looked has failed": Case(
        None, a_pod(restarts=3), "TaskFailed", policies=WHOLE_TASK
    ),
    "a new pod waits, whatever became of its task": Case(
        None, a_pod(phase="Pending"), "PodPending", others=[a_pod("j-w-1", restarts=3)],
        policies=WHOLE_TASK,
    ),
    "a restart of a container below the limit": Case(
        a_pod(), a_pod(restarts=2), "OutOfSync", policies=WHOLE_TASK
    ),
    "a pod out of sync raises nothing even when it fails": Case(
        a_pod(), a_pod(phase="Failed", marked=True), "OutOfSync"
    ),
    "a pod that a kubelet refused has not failed": Case(
        a_pod(phase="Pending"), a_pod(phase="Failed", reason="OutOfcpu"), "OutOfSync"
    ),
    "a refused pod may list containers that wait": Case(
        a_pod(phase="Pending"), a_pod(phase="Failed", reason="OutOfcpu", ready=False), "OutOfSync"
    ),
    "a pod whose container was restarted has failed whatever the reason says": Case(
        a_pod(), a_pod(phase="Failed", reason="OutOfcpu", restarts=1), "PodFailed"
    ),
    "a pod refused by affinity has not failed": Case(
        a_pod(phase="Pending"), a_pod(phase="Failed", reason="NodeAffinity"), "OutOfSync"
    ),
    "a pod refused by a device plugin has not failed": Case(
        a_pod(phase="Pending"), a_pod(phase="Failed", reason="UnexpectedAdmissionError"),
        "OutOfSync",
    ),
    "a pod whose container ran has failed whatever the reason says": Case(
        a_pod(), a_pod(phase="Failed", reason="OutOfcpu", exit_code=1), "PodFailed", exit_code=1
    ),
    "a pod killed by its node has failed": Case(
        a_pod(), a_pod(phase="Failed", reason="Evicted"), "PodFailed"
    ),
    "a label changes": Case(a_pod(), a_pod(), "OutOfSync"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_pod_changed(case: Case) -> None:
    job = a_job(a_task("w", 2), policies=case.policies or None)

    got = pod_changed(case.old, case.new, job, [case.new, *case.others])

    assert got == Request(
        event=case.want,  # type: ignore[arg-type]
        job_uid="u1",
        version=0,
        task="w",
        pod="j-w-0",
        pod_uid="uid-j-w-0",
        exit_code=case.exit_code,
    )


BROKEN_OFF: dict[str, tuple[Pod | None, str, tuple[str, int]]] = {
    "a mark from before tells of a restart": (None, "2 RestartTask", ("RestartTask", 2)),
    "a mark of our own comes back": (a_pod(), "2 RestartTask", ("", 0)),
    "a mark for nothing": (None, "", ("", 0)),
    "a mark for no restart": (None, "2 TerminateJob", ("", 0)),
    "a mark that makes no sense": (None, "RestartJob", ("", 0)),
}


@pytest.mark.parametrize(("old", "note", "want"), BROKEN_OFF.values(), ids=BROKEN_OFF.keys())
def test_a_restart_that_was_broken_off(old: Pod | None, note: str, want: tuple[str, int]) -> None:
    got = pod_changed(old, a_pod(marked=True, restart=note), a_job(), [])

    assert (got.action, got.retry) == want
    assert (got.event, got.task, got.pod) == ("OutOfSync", "w", "j-w-0")


DELETED = {
    "a pod that goes is evicted": (a_pod(), "PodEvicted"),
    "a pod of an old version goes": (a_pod(version=2), "PodEvicted"),
    "a marked pod goes without a word": (a_pod(marked=True), "OutOfSync"),
    "a refused pod goes without a word": (a_pod(phase="Failed", reason="OutOfpods"), "OutOfSync"),
}


@pytest.mark.parametrize(("pod", "want"), DELETED.values(), ids=DELETED.keys())
def test_pod_deleted(pod: Pod, want: str) -> None:
    assert pod_deleted(pod).event == want


def test_a_request_carries_version_and_partition_of_its_pod() -> None:
    got = pod_deleted(a_pod("j-w-3", version=4, partition="1"))

    assert got == Request(
        event="PodEvicted",
        job_uid="u1",
        version=4,
        task="w",
        pod="j-w-3",
        pod_uid="uid-j-w-3",
        partition="1",
    )


GROUPS: dict[str, tuple[PodGroupPhase | None, PodGroupPhase, Request | None]] = {
    "a new group is looked at": (None, "", Request(event="OutOfSync", job_uid="u1")),
    "an enqueued group lets pods be made": (
        "Pending", "Inqueue", Request(event="OutOfSync", job_uid="u1")),
    "an unknown group is an event": ("Running", "Unknown", Request(event="Unknown", job_uid="u1")),
    "counters of a group do not matter": ("Running", "Running", None),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "want"), GROUPS.values(), ids=GROUPS.keys())
def test_group_changed(old: PodGroupPhase | None, new: PodGroupPhase, want: Request | None) -> None:
    job = a_job()
    before = None if old is None else a_group(job, old)

    assert group_changed(before, a_group(job, new, running=3)) == want


def test_a_job_is_looked_at_when_spec_or_phase_moved() -> None:
    job = a_job(a_task("w", 2))
    counted = a_job(a_task("w", 2), status={"running": 2})

    assert job_changed(None, job) == SYNCED
    assert job_changed(job, counted) is None
    assert job_changed(job, a_job(a_task("w", 3))) == SYNCED
    assert job_changed(job, a_job(a_task("w", 2), phase="Completed")) == SYNCED
    assert job_changed(job, a_job(a_task("w", 2), uid="u2")) == SYNCED


def test_a_command_carries_its_action_unchecked() -> None:
    assert command_issued(Command(action="Whatever")) == replace(
        Request(), event="CommandIssued", action="Whatever"
    )


def test_a_pod_without_a_readable_version_is_nobodys() -> None:
    from pumice.core.jobs.membership import job_key

    assert job_key(a_pod()) == "ns/j"
    assert job_key(a_pod(version="x")) == ""
    foreign = a_pod()
    foreign = msgspec.structs.replace(
        foreign, metadata=msgspec.structs.replace(foreign.metadata, owner_references=None)
    )
    assert job_key(foreign) == ""
