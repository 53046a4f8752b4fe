"""
The status of a JobFlow: its Jobs by phase, their histories, and the phase of the whole.

                  a Job runs or is Completed          all are Completed
      ┌─────────┐ ─────────────────────────► ┌─────────┐ ────────────► ┌─────────┐
      │ Pending │                            │ Running │               │ Succeed │
      └─────────┘ ──────────┐                └─────────┘               └─────────┘
                            │ one is Failed or Terminated  │
                            └──────────► ┌────────┐ ◄──────┘
                                         │ Failed │
                                         └────────┘

A Job that was Completed stays so, although it may be gone: its time to live does not depend on
the rest of the flow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from pumice.core import timestamps
from pumice.core.api.batch import Job
from pumice.core.api.flow import (
    FlowCondition,
    FlowJobStatus,
    FlowPhase,
    FlowState,
    JobFlowStatus,
    RunningHistory,
)
from pumice.core.api.meta import Time
from pumice.core.jobs import durations

COMPLETED: Final = "Completed"
#: phases of Jobs that no list has a place for
_UNLISTED: Final = ("Completing", "Terminating")


def completed(status: JobFlowStatus, jobs: Mapping[str, Job]) -> set[str]:
    """Return the names of Jobs that are Completed, or were when they went."""
    gone = (entry for entry in status.job_status_list or () if entry.name not in jobs)
    now = {name for name, job in jobs.items() if job.status.state.phase == COMPLETED}
    return now | {entry.name for entry in gone if entry.state == COMPLETED}


def written(
    old: JobFlowStatus, jobs: Mapping[str, Job], wanted: Collection[str], now: float
) -> JobFlowStatus:
    """
    Return the status with the Jobs as they are.

    `jobs` are there, by name; `wanted` are the names of those that make up the flow; `now` is in
    seconds since 1970.
    """
    done = completed(old, jobs)
    by_phase: dict[str, list[str]] = {COMPLETED: sorted(done)}
    for name, job in sorted(jobs.items()):
        phase = job.status.state.phase
        if name not in done and phase not in _UNLISTED:
            known = phase in ("Pending", "Running", "Failed", "Terminated")
            by_phase.setdefault(phase if known else "", []).append(name)
    return JobFlowStatus(
        pending_jobs=by_phase.get("Pending"),
        running_jobs=by_phase.get("Running"),
        failed_jobs=by_phase.get("Failed"),
        completed_jobs=by_phase[COMPLETED] or None,
        terminated_jobs=by_phase.get("Terminated"),
        unknown_jobs=by_phase.get(""),
        job_status_list=list(_entries(old, jobs, timestamps.stamp(now))) or None,
        conditions={name: _condition(job) for name, job in sorted(jobs.items())} or None,
        state=FlowState(phase=_phase(old.state.phase, by_phase, done.issuperset(wanted))),
    )


def _phase(
    old: FlowPhase, by_phase: Mapping[str, Collection[str]], are_all_done: bool
) -> FlowPhase:
    begun = by_phase.get("Running") or by_phase[COMPLETED]
    failed, terminated = by_phase.get("Failed"), by_phase.get("Terminated")
    phase = old or "Pending"
    if phase == "Pending" and begun and not failed:
        phase = "Running"
    if phase == "Running" and are_all_done:
        return "Succeed"
    if phase in ("Pending", "Running") and (failed or terminated):
        return "Failed"
    return phase


def _condition(job: Job) -> FlowCondition:
    status = job.status
    return FlowCondition(
        phase=status.state.phase,
        create_time=job.metadata.creation_timestamp,
        running_duration=status.running_duration,
        task_status_count=status.task_status_count,
    )


def _entries(old: JobFlowStatus, jobs: Mapping[str, Job], now: Time) -> Iterable[FlowJobStatus]:
    """Yield what became of each Job so far; of one that is gone, what was known last."""
    known = {entry.name: entry for entry in old.job_status_list or ()}
    for name in [*known, *sorted(jobs.keys() - known.keys())]:
        job, entry = jobs.get(name), known.get(name, FlowJobStatus(name=name))
        yield entry if job is None else _entry(entry, job, now)


def _entry(old: FlowJobStatus, job: Job, now: Time) -> FlowJobStatus:
    created, phase = job.metadata.creation_timestamp, job.status.state.phase
    lasted_s = durations.seconds(job.status.running_duration or "")
    ended = None if lasted_s is None else timestamps.stamp(timestamps.moment(created) + lasted_s)
    histories = list(old.running_histories or ())
    if phase and (not histories or histories[-1].state != phase):
        if histories:
            histories[-1] = msgspec.structs.replace(histories[-1], end_timestamp=now)
        histories.append(RunningHistory(start_timestamp=now, state=phase))
    return FlowJobStatus(
        name=old.name,
        state=phase,
        start_timestamp=created,
        end_timestamp=ended,
        restart_count=job.status.retry_count,
        running_histories=histories or None,
    )
