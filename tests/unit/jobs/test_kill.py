"""Kill: which pods go, what is kept, and what is written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from pumice.core.api.batch import JobCondition, JobState, JobStatus, TaskState
from pumice.core.api.core import Pod
from pumice.core.api.scheduling import PodGroupPhase
from pumice.core.jobs import types as t
from pumice.core.jobs.reconcile import reconcile, remaining
from tests.unit.jobs.builders import NOW, NOW_TEXT, a_job, a_pod, a_task, observed
from tests.unit.jobs.test_sync import brief, status_of

FOUR = [
    a_pod("j-a-0"),
    a_pod("j-a-1", "Failed", partition="1"),
    a_pod("j-b-0", "Succeeded"),
    a_pod("j-b-1", "Pending"),
]


def order(action: str, **fields: Any) -> t.Decision:
    return t.Decision(action, t.Request(**fields))


@dataclass(frozen=True)
class Case:
    decision: t.Decision
    deleted: list[str]
    phase: str
    version: int = 0
    retries: int = 0
    job_phase: str = "Running"
    retry_count: int = 0
    group_goes: bool = False
    pods: tuple[Pod, ...] = tuple(FOUR)


CASES = {
    "a restart removes every pod and the group": Case(
        order(t.RESTART), ["j-a-0", "j-a-1", "j-b-0", "j-b-1"], "Restarting",
        version=1, retries=1, group_goes=True,
    ),
    "the last retry spares what has ended": Case(
        order(t.RESTART), ["j-a-0", "j-b-1"], "Restarting",
        version=1, retries=3, retry_count=2, group_goes=True,
    ),
    "an abort spares what has ended": Case(
        order(t.ABORT), ["j-a-0", "j-b-1"], "Aborting", version=1, group_goes=True
    ),
    "a completion spares what has ended": Case(
        order(t.COMPLETE), ["j-a-0", "j-b-1"], "Completing", version=1, group_goes=True
    ),
    "a termination spares what has ended": Case(
        order(t.TERMINATE), ["j-a-0", "j-b-1"], "Terminating", version=1, group_goes=True
    ),
    "a resumed job spares what has ended": Case(
        order(t.RESUME), ["j-a-0", "j-b-1"], "Restarting",
        job_phase="Aborting", version=1, retries=1, group_goes=True,
    ),
    "a task is restarted": Case(
        order(t.RESTART_TASK, task="b"), ["j-b-0", "j-b-1"], "Restarting", retries=1
    ),
    "a pod is restarted": Case(
        order(t.RESTART_POD, task="a", pod="j-a-1"), ["j-a-1"], "Restarting", retries=1
    ),
    "a partition is restarted": Case(
        order(t.RESTART_PARTITION, task="a", partition="1"), ["j-a-1"], "Restarting", retries=1
    ),
    "a pod that is not there costs a retry": Case(
        order(t.RESTART_POD, task="a", pod="j-a-9"), [], "Restarting", retries=1
    ),
    "restarting once more spends no retry": Case(
        order(t.RESTART), ["j-a-0", "j-a-1", "j-b-0", "j-b-1"], "Restarting",
        job_phase="Restarting", version=1, retries=1, retry_count=1, group_goes=True,
    ),
    "an aborting job is aborted when nothing lives": Case(
        order(t.SYNC), [], "Aborted",
        job_phase="Aborting", pods=(FOUR[1], FOUR[2]),
        version=1, group_goes=True,
    ),
    "an aborting job waits for what is going": Case(
        order(t.SYNC), [], "Aborting",
        job_phase="Aborting", pods=(a_pod("j-a-0", deleting=True),),
        version=1, group_goes=True,
    ),
    "a completed job loses what still runs and its group": Case(
        order(t.SYNC), ["j-a-0", "j-b-1"], "Completed",
        job_phase="Completed", version=1, group_goes=True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_kill(case: Case) -> None:
    job = a_job(
        a_task("a", 2),
        a_task("b", 2),
        phase=case.job_phase,
        max_retry=3,
        status={"retry_count": case.retry_count},
    )
    effects = reconcile(observed(job, *case.pods, group="Running"), case.decision, NOW)

    status = status_of(effects)
    assert status is not None
    assert [e.name for e in effects if isinstance(e, t.DeletePod)] == case.deleted
    assert [e.name for e in effects if isinstance(e, t.MarkOutOfSync)] == case.deleted
    assert status.state.phase == case.phase
    assert (status.version, status.retry_count) == (case.version, case.retries)
    assert any(isinstance(e, t.DeletePodGroup) for e in effects) == case.group_goes
    assert status.terminating == len(case.deleted) + sum(
        pod.metadata.deletion_timestamp is not None for pod in case.pods
    )


def test_an_end_is_written_first_and_then_carried_out() -> None:
    job = a_job(a_task("w", 2))
    pods = a_pod("j-w-0"), a_pod("j-w-1", marked=True)

    assert brief(reconcile(observed(job, *pods), order(t.ABORT), NOW)) == [
        "RecordEvent",
        "PatchStatus",
        "MarkOutOfSync j-w-0",
        "DeletePod j-w-0",
        "DeletePod j-w-1",
        "DeletePodGroup j-u1",
    ]


@pytest.mark.parametrize(
    ("phase", "action"),
    [("Running", t.RESTART), ("Restarting", t.RESTART), ("Restarting", t.ABORT)],
)
def test_a_restart_is_written_when_all_that_goes_is_marked(phase: str, action: str) -> None:
    job = a_job(a_task("w", 2), phase=phase)
    pods = a_pod("j-w-0"), a_pod("j-w-1", "Failed")

    assert brief(reconcile(observed(job, *pods), order(action), NOW)) == [
        "RecordEvent",
        "MarkOutOfSync j-w-0",
        "MarkOutOfSync j-w-1",
        "PatchStatus",
        "DeletePod j-w-0",
        "DeletePod j-w-1",
        "DeletePodGroup j-u1",
    ]


MARKED: dict[str, tuple[t.Decision, str, t.Restart | None]] = {
    "a restart": (order(t.RESTART), "Running", t.Restart(t.RESTART, 2)),
    "a restart of a task": (
        order(t.RESTART_TASK, task="w"), "Pending", t.Restart(t.RESTART_TASK, 2)
    ),
    "a restart within another one": (order(t.RESTART), "Restarting", None),
    "an end": (order(t.ABORT), "Running", None),
    "a resume": (order(t.RESUME), "Aborting", None),
}  # fmt: skip


@pytest.mark.parametrize(("decision", "phase", "want"), MARKED.values(), ids=MARKED.keys())
def test_marks_tell_which_retry_a_restart_spends(
    decision: t.Decision, phase: str, want: t.Restart | None
) -> None:
    job = a_job(phase=phase, status={"retry_count": 1})
    effects = reconcile(observed(job, a_pod()), decision, NOW)

    assert [e.restart for e in effects if isinstance(e, t.MarkOutOfSync)] == [want]


def test_the_status_counts_what_is_spared_and_says_how_long_the_job_took() -> None:
    job = a_job(a_task("w", 2))
    pods = a_pod("j-w-0"), a_pod("j-w-1", "Succeeded")

    assert status_of(reconcile(observed(job, *pods), order(t.ABORT), NOW)) == JobStatus(
        state=JobState(phase="Aborting", last_transition_time=NOW_TEXT),
        min_available=2,
        succeeded=1,
        terminating=1,
        task_status_count={"w": TaskState(phase={"Succeeded": 1})},
        version=1,
        running_duration="1m0s",
        conditions=[JobCondition(status="Aborting", last_transition_time=NOW_TEXT)],
    )


GROUPS: dict[str, tuple[PodGroupPhase | None, list[str]]] = {
    "nothing is left to do": (None, []),
    "a group that came back is removed": ("Pending", ["PatchStatus", "DeletePodGroup j-u1"]),
}


@pytest.mark.parametrize(("group", "want"), GROUPS.values(), ids=GROUPS.keys())
def test_a_finished_job_is_left_alone(group: PodGroupPhase | None, want: list[str]) -> None:
    counts = {"w": TaskState(phase={"Succeeded": 1})}
    job = a_job(phase="Completed", status={"succeeded": 1, "task_status_count": counts})
    seen = observed(job, a_pod("j-w-0", "Succeeded"), group=group)

    assert brief(reconcile(seen, order(t.SYNC), NOW)) == want


def test_an_unknown_partition_changes_nothing() -> None:
    job = a_job(a_task("a", 2))
    decision = order(t.RESTART_PARTITION, task="a", partition="7")

    assert brief(reconcile(observed(job, *FOUR), decision, NOW)) == ["RecordEvent"]


def test_the_owner_is_told_of_an_action() -> None:
    seen = observed(a_job(), a_pod())
    want = t.RecordEvent("Normal", "ExecuteAction", "Start to execute action AbortJob ")

    assert reconcile(seen, order(t.ABORT), NOW)[0] == want
    assert want not in reconcile(replace(seen), order(t.SYNC), NOW)


REMAINING: dict[str, tuple[str, str, str]] = {
    "a restart is done again": (t.RESTART, "Restarting", t.RESTART),
    "a resume that is not written is done again": (t.RESUME, "Aborted", t.RESUME),
    "a resume that is written has a sync left": (t.RESUME, "Restarting", t.SYNC),
}


@pytest.mark.parametrize(("action", "phase", "want"), REMAINING.values(), ids=REMAINING.keys())
def test_what_is_left_of_an_action(action: str, phase: str, want: str) -> None:
    assert remaining(order(action), a_job(phase=phase)).action == want


def test_nothing_is_left_of_a_restart_that_somebody_else_carried_out() -> None:
    again = t.Decision(t.RESTART, t.Request(action=t.RESTART, retry=1, job_uid="u1"))

    assert remaining(again, a_job()) == again
    assert remaining(again, a_job(status={"retry_count": 1})).action == t.SYNC
