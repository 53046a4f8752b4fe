"""
Reconcile one JobFlow: write down what its Jobs are, and create those whose turn has come.

A step is a Job made of the JobTemplate of its name, changed by its patch. Its turn has come when
what it depends on is ready. Once the flow has succeeded or failed, no Job is created any more; with
`jobRetainPolicy: delete` the Jobs of a flow that succeeded are removed, after that is written down.
Where two steps have the same name the later one counts, as in admission.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from pumice.core.admission import jobflows
from pumice.core.api.batch import Job
from pumice.core.api.flow import Flow, JobFlowStatus, JobTemplateStatus
from pumice.core.flows import jobs as j
from pumice.core.flows import status as s
from pumice.core.flows.readiness import Waiting, waiting
from pumice.core.flows.types import (
    SYNC,
    Ask,
    Check,
    CreateJob,
    DeleteJob,
    Effect,
    LookAgain,
    Observed,
    PatchStatus,
    RecordEvent,
)

ACTIVE: Final = ("", "Pending", "Running")
BLOCKED_S: Final = 30.0
"""When a name is looked at again that somebody else has."""


def reconcile(seen: Observed, now: float) -> list[Effect]:
    """Return what is to be done, in order; `now` is in seconds since 1970."""
    flow = seen.flow
    if flow.metadata.deletion_timestamp is not None:
        return []
    if flow.status.state.phase == "Succeed" and flow.spec.job_retain_policy == "delete":
        return list(_deletions(seen.jobs))
    steps = {step.name: step for step in flow.spec.flows or ()}
    jobs = {job.metadata.name: job for job in seen.jobs}
    status = s.written(flow.status, jobs, [j.name_of(flow, name) for name in steps], now)
    effects: list[Effect] = [PatchStatus(status)] if status != flow.status else []
    if status.state.phase not in ACTIVE:
        return effects
    if wrong := jobflows.check(flow):
        return [*effects, *(_failed(error.message) for error in wrong)]
    return [*effects, *_starts(seen, steps, status)]


def template_status(jobs: Sequence[Job]) -> JobTemplateStatus:
    """Return the status of a JobTemplate that these Jobs were made of."""
    return JobTemplateStatus(job_depends_on_list=sorted(x.metadata.name for x in jobs) or None)


def _deletions(jobs: Sequence[Job]) -> Iterator[DeleteJob]:
    """Delete all Jobs that are not about to go anyway."""
    for job in jobs:
        if job.metadata.deletion_timestamp is None:
            yield DeleteJob(job.metadata.name, job.metadata.uid)


def _starts(seen: Observed, steps: Mapping[str, Flow], status: JobFlowStatus) -> Iterator[Effect]:
    """Create the Jobs whose turn has come; ask what has to be asked before that of others."""
    flow = seen.flow
    by_name = {job.metadata.name: job for job in seen.jobs}
    jobs = {step: by_name[name] for step in steps if (name := j.name_of(flow, step)) in by_name}
    completed = s.completed(status, by_name)
    done = {step for step in steps if j.name_of(flow, step) in completed}
    asked: dict[Check, None] = {}
    for name, step in steps.items():
        if name in jobs or name in done:
            continue
        wait = waiting(step, jobs, done, seen.answers)
        if wait.is_over:
            yield from _start(seen, step)
        else:
            yield from _unknown(name, wait)
            asked |= dict.fromkeys(wait.checks)
    if asked:
        yield Ask(tuple(asked))


def _start(seen: Observed, step: Flow) -> Iterator[Effect]:
    """Create the Job of a step, or say why that cannot be."""
    name = j.name_of(seen.flow, step.name)
    template = seen.template(step.name)
    if seen.named(name) is not None:
        yield _failed(f"job {name} exists already and is not this JobFlow's")
        yield LookAgain(BLOCKED_S)
    elif template is None:
        yield _failed(f"there is no JobTemplate {step.name}")
    else:
        try:
            yield CreateJob(j.new(seen.flow, step, template))
        except msgspec.ValidationError as error:
            yield _failed(f"the patch of flow {step.name} does not fit: {error}")


def _unknown(name: str, wait: Waiting) -> Iterator[RecordEvent]:
    for task in wait.unknown:
        yield _failed(f"flow {name} asks for task {task}, which none of its targets has")


def _failed(why: str) -> RecordEvent:
    return RecordEvent("Warning", SYNC, f"{SYNC} JobFlow failed for {why}")
