"""When a finished Job is to be deleted."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pumice.core.api.batch import JobPhase, JobState
from pumice.core.jobs.ttl import expiry
from tests.unit.jobs.builders import CREATED, NOW, NOW_TEXT, a_job


@dataclass(frozen=True)
class Case:
    phase: JobPhase
    want: float | None
    ttl: int | None = 90
    since: str | None = NOW_TEXT
    deleting: bool = False


CASES = {
    "a completed job": Case("Completed", NOW + 90),
    "a failed job": Case("Failed", NOW + 90),
    "a terminated job": Case("Terminated", NOW + 90),
    "zero is at once": Case("Completed", NOW, ttl=0),
    "without a time to live it stays": Case("Completed", None, ttl=None),
    "a job that runs stays": Case("Running", None),
    "a job that is about to complete stays": Case("Completing", None),
    "an aborted job may be resumed": Case("Aborted", None),
    "one that does not say when it finished stays": Case("Completed", None, since=None),
    "one that says nonsense stays": Case("Completed", None, since="yesterday"),
    "one that is going already is left alone": Case("Completed", None, deleting=True),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_expiry(case: Case) -> None:
    meta = {"deletion_timestamp": CREATED} if case.deleting else {}
    job = a_job(phase=case.phase, ttl_seconds_after_finished=case.ttl, meta=meta)
    job.status.state = JobState(phase=case.phase, last_transition_time=case.since)

    assert expiry(job) == case.want
