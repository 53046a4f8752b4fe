"""From a request to an action: whose policy decides, and when none does."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from pumice.core.api.batch import LifecyclePolicy
from pumice.core.jobs.policies import decide, faults, listens
from pumice.core.jobs.types import Decision, Request
from tests.unit.jobs.builders import a_job, a_policy, a_task


@dataclass(frozen=True)
class Case:
    request: Request
    want: str
    after_s: float = 0.0
    job: list[LifecyclePolicy] = field(default_factory=list)
    task: list[LifecyclePolicy] = field(default_factory=list)
    version: int = 0
    retries: int = 0


RESTART = a_policy("RestartJob", "PodFailed")
CASES = {
    "an order is obeyed whatever the policies say": Case(
        Request(event="CommandIssued", action="AbortJob", version=0), "AbortJob", version=3
    ),
    "a restart that was broken off is begun again": Case(
        Request(event="OutOfSync", action="RestartJob", job_uid="u1", retry=1), "RestartJob"
    ),
    "a restart of which the retry is spent was carried out": Case(
        Request(event="OutOfSync", action="RestartJob", job_uid="u1", retry=1),
        "SyncJob",
        retries=1,
    ),
    "a restart is the next or none": Case(
        Request(event="OutOfSync", action="RestartJob", job_uid="u1", retry=9), "SyncJob"
    ),
    "a restart of a namesake means sync": Case(
        Request(event="OutOfSync", action="RestartJob", job_uid="u0", retry=1), "SyncJob"
    ),
    "no policy means sync": Case(Request(event="PodFailed"), "SyncJob"),
    "a policy of the job decides": Case(Request(event="PodFailed"), "RestartJob", job=[RESTART]),
    "an event in the single field counts as well": Case(
        Request(event="PodEvicted"),
        "AbortJob",
        job=[LifecyclePolicy(action="AbortJob", event="PodEvicted")],
    ),
    "the task's policy wins over the job's": Case(
        Request(event="PodFailed", task="w"),
        "AbortJob",
        job=[RESTART],
        task=[a_policy("AbortJob", "PodFailed")],
    ),
    "the job's policies are asked when none of the task's matches": Case(
        Request(event="PodFailed", task="w"),
        "RestartJob",
        job=[RESTART],
        task=[a_policy("AbortJob", "PodEvicted")],
    ),
    "the first that matches wins": Case(
        Request(event="PodFailed", exit_code=3),
        "AbortJob",
        job=[a_policy("AbortJob", exit_code=3), RESTART],
    ),
    "an exit code must be equal": Case(
        Request(event="PodFailed", exit_code=4), "SyncJob", job=[a_policy("AbortJob", exit_code=3)]
    ),
    "an exit code of zero matches nothing": Case(
        Request(event="PodFailed"), "SyncJob", job=[a_policy("AbortJob", exit_code=0)]
    ),
    "an old version means sync": Case(
        Request(event="PodFailed", version=1), "SyncJob", job=[RESTART], version=2
    ),
    "the present version is judged": Case(
        Request(event="PodFailed", version=2), "RestartJob", job=[RESTART], version=2
    ),
    "a pod of a namesake means sync": Case(
        Request(event="PodFailed", job_uid="u0"), "SyncJob", job=[RESTART]
    ),
    "a star matches an end": Case(
        Request(event="PodEvicted"), "TerminateJob", job=[a_policy("TerminateJob", "*")]
    ),
    "a star matches a completed task": Case(
        Request(event="TaskCompleted"), "TerminateJob", job=[a_policy("TerminateJob", "*")]
    ),
    "a star matches no start": Case(
        Request(event="PodRunning"), "SyncJob", job=[a_policy("TerminateJob", "*")]
    ),
    "a star matches no pod that is out of sync": Case(
        Request(event="OutOfSync"), "SyncJob", job=[a_policy("TerminateJob", "*")]
    ),
    "a pending pod needs a policy with a timeout": Case(
        Request(event="PodPending"),
        "RestartJob",
        after_s=600.0,
        job=[
            a_policy("AbortJob", "PodPending"),
            a_policy("AbortJob", "*"),
            a_policy("RestartJob", "PodPending", timeout="10m"),
        ],
    ),
    "a timeout delays": Case(
        Request(event="PodEvicted"),
        "AbortJob",
        after_s=90.0,
        job=[a_policy("AbortJob", "PodEvicted", timeout="1m30s")],
    ),
    "a policy with an unreadable timeout is passed over": Case(
        Request(event="PodEvicted"),
        "RestartJob",
        job=[
            a_policy("AbortJob", "PodEvicted", timeout="soon"),
            a_policy("RestartJob", "PodEvicted"),
        ],
    ),
    "an unknown group asks the job alone": Case(
        Request(event="Unknown"),
        "RestartJob",
        job=[a_policy("RestartJob", "Unknown")],
        task=[a_policy("AbortJob", "Unknown")],
        version=4,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_decide(case: Case) -> None:
    task = a_task("w", policies=case.task or None)
    status = {"version": case.version, "retry_count": case.retries}
    job = a_job(task, policies=case.job or None, status=status)

    assert decide(case.request, job) == Decision(case.want, case.request, case.after_s)


def test_a_job_listens_to_what_a_policy_names() -> None:
    job = a_job(
        a_task("a", policies=[a_policy("CompleteJob", "TaskCompleted")]),
        a_task("b"),
        policies=[RESTART],
    )

    assert listens(job, "a", "TaskCompleted")
    assert not listens(job, "b", "TaskCompleted")
    assert listens(job, "b", "PodFailed")


def test_an_unreadable_timeout_is_a_fault() -> None:
    job = a_job(
        a_task("w", policies=[a_policy("AbortJob", "PodFailed", timeout="soon")]),
        policies=[a_policy("RestartJob", "PodEvicted", timeout="5m")],
    )

    assert faults(job) == [
        'policy AbortJob of the task w is ignored: timeout "soon" is not a duration'
    ]
