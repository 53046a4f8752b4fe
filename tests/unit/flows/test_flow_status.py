"""The status of a JobFlow: lists, histories and the phase of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core.api.batch import Job, TaskState
from pumice.core.api.flow import (
    FlowCondition,
    FlowJobStatus,
    FlowPhase,
    FlowState,
    JobFlow,
    JobFlowStatus,
    RunningHistory,
)
from pumice.core.flows.reconcile import reconcile
from pumice.core.flows.status import written
from pumice.core.flows.types import CreateJob, DeleteJob, Observed, PatchStatus
from tests.effort import examples
from tests.unit.flows.builders import CREATED, a_flow, a_made_job, a_step, a_template

NOW, LATER = 1767225660.0, 1767225720.0
NOW_TEXT, LATER_TEXT = "2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"
WANTED = ("f-a", "f-b")


def status_of(
    *jobs: Job,
    old: JobFlowStatus | None = None,
    phase: FlowPhase = "",
    wanted: Sequence[str] = WANTED,
    now: float = NOW,
) -> JobFlowStatus:
    before = old or JobFlowStatus(state=FlowState(phase=phase))
    return written(before, {job.metadata.name: job for job in jobs}, wanted, now)


@dataclass(frozen=True)
class Turn:
    """The phase of a flow before, those of its two Jobs (none: not there), and its phase after."""

    before: FlowPhase
    a: str | None
    b: str | None
    after: FlowPhase


TURNS = {
    "without Jobs it is pending": Turn("", None, None, "Pending"),
    "with Jobs that wait it is pending": Turn("Pending", "Pending", None, "Pending"),
    "a Job that runs": Turn("Pending", "Running", None, "Running"),
    "a Job that is Completed, and others to come": Turn("Pending", "Completed", None, "Running"),
    "all are Completed before anybody looked": Turn("Pending", "Completed", "Completed", "Succeed"),
    "all are Completed": Turn("Running", "Completed", "Completed", "Succeed"),
    "one is Failed": Turn("Running", "Completed", "Failed", "Failed"),
    "one is Terminated": Turn("Running", "Terminated", "Running", "Failed"),
    "one is Failed before anything ran": Turn("Pending", "Failed", None, "Failed"),
    "one is Failed and another runs": Turn("Pending", "Failed", "Running", "Failed"),
    "one is Terminated before anything ran": Turn("", "Terminated", None, "Failed"),
    "an aborted one may be resumed": Turn("Running", "Aborted", "Completed", "Running"),
    "one that is restarted": Turn("Running", "Restarting", None, "Running"),
    "success is an end": Turn("Succeed", "Failed", None, "Succeed"),
    "failure is an end": Turn("Failed", "Completed", "Completed", "Failed"),
}


@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS.keys())
def test_phases(turn: Turn) -> None:
    phases = {"a": turn.a, "b": turn.b}
    jobs = [a_made_job(name, phase) for name, phase in phases.items() if phase is not None]
    assert status_of(*jobs, phase=turn.before).state.phase == turn.after


LISTS = {
    "Pending": "pending_jobs",
    "Running": "running_jobs",
    "Failed": "failed_jobs",
    "Completed": "completed_jobs",
    "Terminated": "terminated_jobs",
    "": "unknown_jobs",
    "Aborting": "unknown_jobs",
    "Aborted": "unknown_jobs",
    "Restarting": "unknown_jobs",
    "Completing": None,
    "Terminating": None,
}


@pytest.mark.parametrize(("phase", "list_name"), LISTS.items())
def test_lists(phase: str, list_name: str | None) -> None:
    status = status_of(a_made_job("b", phase), a_made_job("a", phase))
    found = {name: getattr(status, name) for name in LISTS.values() if name}
    assert {k: v for k, v in found.items() if v} == (
        {list_name: ["f-a", "f-b"]} if list_name else {}
    )


def test_what_is_told_of_a_job() -> None:
    job = a_made_job("a", "Running", pods={"Running": 2}, retry_count=1, running_duration="1m30s")
    status = status_of(job)
    assert status.conditions == {
        "f-a": FlowCondition(
            phase="Running",
            create_time=CREATED,
            running_duration="1m30s",
            task_status_count={"w": TaskState(phase={"Running": 2})},
        )
    }
    assert status.job_status_list == [
        FlowJobStatus(
            name="f-a",
            state="Running",
            start_timestamp=CREATED,
            end_timestamp="2026-01-01T00:01:30Z",
            restart_count=1,
            running_histories=[RunningHistory(start_timestamp=NOW_TEXT, state="Running")],
        )
    ]


def test_a_history_goes_on_with_each_phase() -> None:
    status = status_of(a_made_job("a", ""))
    assert (status.job_status_list or [])[0].running_histories is None
    status = status_of(a_made_job("a", "Running"), old=status)
    status = status_of(a_made_job("a", "Running"), old=status, now=LATER)
    status = status_of(a_made_job("a", "Completed"), old=status, now=LATER)
    assert (status.job_status_list or [])[0].running_histories == [
        RunningHistory(start_timestamp=NOW_TEXT, end_timestamp=LATER_TEXT, state="Running"),
        RunningHistory(start_timestamp=LATER_TEXT, state="Completed"),
    ]


def test_one_that_was_completed_counts_when_it_is_gone() -> None:
    status = status_of(a_made_job("a", "Completed"))
    status = status_of(a_made_job("b", "Running"), old=status)
    assert status.completed_jobs == ["f-a"]
    status = status_of(a_made_job("b", "Completed"), old=status)
    assert status.state.phase == "Succeed"
    assert [entry.name for entry in status.job_status_list or ()] == ["f-a", "f-b"]


def test_one_that_went_before_its_end_does_not() -> None:
    status = status_of(a_made_job("a", "Running"))
    status = status_of(old=status)
    assert (status.completed_jobs, status.running_jobs, status.state.phase) == (
        None,
        None,
        "Running",
    )


def test_nothing_changes_where_nothing_has() -> None:
    jobs = [a_made_job("a", "Completed", running_duration="5s"), a_made_job("b", "Running")]
    status = status_of(*jobs)
    assert status_of(*jobs, old=status, now=LATER) == status


# Any flow comes to its end.

NAMES = "abcde"
PHASES = ("Pending", "Running", "Completed", "Failed", "Aborted", "Completed", "Completed")


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_a_flow_goes_on_until_all_is_done_or_one_has_failed(data: st.DataObject) -> None:
    steps = [
        a_step(
            name, *data.draw(st.lists(st.sampled_from(NAMES[:index]), unique=True)) if index else ()
        )
        for index, name in enumerate(NAMES)
    ]
    flow = a_flow(*steps, retain=data.draw(st.sampled_from((None, "delete"))))
    jobs: dict[str, Job] = {}
    for _ in range(40):
        flow, settled = one_pass(flow, jobs)
        if settled:
            going = sorted(name for name, job in jobs.items() if job.status.state.phase not in ENDS)
            if not going:
                break
            name = data.draw(st.sampled_from(going))
            jobs[name] = in_phase(jobs[name], data.draw(st.sampled_from(PHASES)))
    else:
        for name in jobs:
            jobs[name] = in_phase(jobs[name], "Completed")
        for _ in range(20):
            flow, _ = one_pass(flow, jobs)
            jobs |= {name: in_phase(job, "Completed") for name, job in jobs.items()}

    has_failed = bool(flow.status.failed_jobs)
    assert flow.status.state.phase == ("Failed" if has_failed else "Succeed")
    if not has_failed:
        assert flow.status.completed_jobs == [f"f-{name}" for name in NAMES]
        assert bool(jobs) != (flow.spec.job_retain_policy == "delete")


ENDS = ("Completed", "Failed")


def one_pass(flow: JobFlow, jobs: dict[str, Job]) -> tuple[JobFlow, bool]:
    """Carry out one pass; tell whether there was nothing to do."""
    templates = {name: a_template(name) for name in NAMES}
    effects = reconcile(Observed(flow, list(jobs.values()), templates.get, jobs.get), NOW)
    for effect in effects:
        match effect:
            case PatchStatus(status=status):
                flow = msgspec.structs.replace(flow, status=status)
            case CreateJob(job=job):
                name = job.metadata.name
                assert name not in jobs
                targets = {
                    f"f-{target}"
                    for step in flow.spec.flows or ()
                    if f"f-{step.name}" == name and step.depends_on
                    for target in step.depends_on.targets or ()
                }
                assert all(jobs[target].status.state.phase == "Completed" for target in targets)
                jobs[name] = a_made_job(name.removeprefix("f-"), "")
            case DeleteJob(name=name):
                del jobs[name]
    return flow, not effects


def in_phase(job: Job, phase: str) -> Job:
    state = msgspec.structs.replace(job.status.state, phase=phase)
    return msgspec.structs.replace(job, status=msgspec.structs.replace(job.status, state=state))
