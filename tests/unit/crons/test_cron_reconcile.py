"""One pass over a CronJob: what is done, in order, and what its owner is told."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pytest

from pumice.core import names
from pumice.core.api.batch import Job
from pumice.core.api.cron import CronJob, CronJobStatus
from pumice.core.crons.reconcile import reconcile
from pumice.core.crons.types import (
    CreateJob,
    DeleteJob,
    Effect,
    LookAgain,
    Observed,
    PatchStatus,
    RecordEvent,
)
from tests.unit.crons.builders import SPEC, a_cron, a_reference, a_run
from tests.unit.crons.clocks import at, clock

NOW = "2026-01-01T10:00:30Z"
DUE, EARLIER, NEXT = "2026-01-01T10:00:00Z", "2026-01-01T09:00:00Z", "2026-01-01T11:00:00Z"


@dataclass(frozen=True)
class Case:
    """A CronJob at a moment, and what is done; creations are told by the Job's name."""

    cron: CronJob
    jobs: Sequence[Job] = ()
    want: Sequence[object] = ()
    removed: Collection[str] = ()
    others: Sequence[Job] = ()
    since: str | None = None
    now: str = NOW
    looks: str | None = NEXT


def effects(case: Case) -> list[Effect]:
    jobs = {job.metadata.name: job for job in (*case.jobs, *case.others)}
    since = float(at(case.since)) if case.since else 0.0
    seen = Observed(case.cron, case.jobs, case.removed, jobs.get, since)
    return reconcile(seen, clock, at(case.now))


def told(effect: Effect) -> object:
    return effect.job.metadata.name if isinstance(effect, CreateJob) else effect


def check(case: Case) -> None:
    found = effects(case)
    looks = [LookAgain(at(case.looks))] if case.looks else []
    assert [told(effect) for effect in found] == [*looks, *case.want]


def status(*active: Job, last: str | None = None, success: str | None = None) -> PatchStatus:
    references = [a_reference(job) for job in active] or None
    return PatchStatus(CronJobStatus(references, last, success))


def warning(reason: str, text: str, due: str | None = None) -> RecordEvent:
    return RecordEvent("Warning", reason, text, at(due) if due else 0)


def normal(reason: str, text: str) -> RecordEvent:
    return RecordEvent("Normal", reason, text)


def job_name(due: str) -> str:
    return f"c-{at(due) // 60}"


def deleted(job: Job) -> DeleteJob:
    return DeleteJob(job.metadata.name, job.metadata.uid)


EARLY, LATE = a_run(EARLIER), a_run(DUE)
LOST = a_run(EARLIER, uid="other")
FORBIDDEN = "Skipping job creation because another job is already running"
REPLACED = "Replacing active job for CronJob"
MANY = (
    "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
)

DUE_CASES = {
    "what is due is started": Case(
        a_cron(last=EARLIER),
        want=[job_name(DUE)],
    ),
    "a first Job is due after the creation": Case(
        a_cron(created="2026-01-01T09:30:00Z"),
        want=[job_name(DUE)],
    ),
    "nothing is due before": Case(
        a_cron(created="2026-01-01T10:00:10Z"),
    ),
    "what was acted on is not started again": Case(
        a_cron(last=DUE),
    ),
    "of many moments missed the latest counts": Case(
        a_cron(last="2025-12-30T09:00:00Z"),
        want=[job_name(DUE)],
    ),
    "more than a hundred are worth a word": Case(
        a_cron(last="2025-12-28T05:00:00Z"),
        want=[warning("TooManyMissedTimes", MANY, DUE), job_name(DUE)],
    ),
    "a deadline leaves out what is too old, in counting as well": Case(
        a_cron(last="2025-12-20T05:00:00Z", starting_deadline_seconds=3600),
        want=[job_name(DUE)],
    ),
    "what is past its deadline is not started": Case(
        a_cron(last=EARLIER, starting_deadline_seconds=30),
    ),
    "a suspended CronJob starts nothing and does not look again": Case(
        a_cron(last=EARLIER, suspend=True),
        looks=None,
    ),
    "one that is deleted does nothing": Case(
        a_cron(last=EARLIER, deleting=True),
        [a_run(EARLIER, "Completed")],
        looks=None,
    ),
    "a new schedule misses nothing of before": Case(
        a_cron(last="2025-12-31T00:00:00Z"),
        since="2026-01-01T10:00:10Z",
    ),
    "the zone decides": Case(
        a_cron("0 11 * * *", time_zone="Europe/Berlin", last="2025-12-31T10:00:00Z"),
        want=[job_name(DUE)],
        looks="2026-01-02T10:00:00Z",
    ),
    "a zone that there is not is told, and looked for again": Case(
        a_cron(time_zone="Nowhere"),
        want=[warning("InvalidTimeZone", 'Invalid time zone "Nowhere": unknown time zone Nowhere')],
        looks="2026-01-01T10:05:30Z",
    ),
    "a schedule that is none is told": Case(
        a_cron("sometimes"),
        want=[warning("UnParseableCronJobSchedule", "unparseable schedule for cronjob: sometimes")],
        looks=None,
    ),
    "a schedule that never comes is told": Case(
        a_cron("0 0 31 2 *"),
        want=[
            warning(
                "InvalidSchedule",
                "Error getting schedule time: no day of the coming years is one of its days",
            )
        ],
        looks=None,
    ),
    "a zone in the schedule is obeyed, and told": Case(
        a_cron("TZ=Asia/Tokyo 0 19 * * *", time_zone="Nowhere", last="2025-12-31T10:00:00Z"),
        want=[
            warning(
                "UnsupportedSchedule",
                "schedule TZ=Asia/Tokyo 0 19 * * * names a time zone itself: it is obeyed, and"
                " timeZone is not looked at; please use timeZone instead",
            ),
            job_name(DUE),
        ],
        looks="2026-01-02T10:00:00Z",
    ),
    "every so often counts from the last time": Case(
        a_cron("@every 40m", last="2026-01-01T09:10:00Z"),
        want=[job_name("2026-01-01T09:50:00Z")],
        looks="2026-01-01T10:30:00Z",
    ),
    "every few seconds has a name for each second": Case(
        a_cron("@every 10s", last="2026-01-01T10:00:05Z"),
        want=[f"c-{at('2026-01-01T10:00:25Z')}"],
        looks="2026-01-01T10:00:35Z",
    ),
}

POLICY_CASES = {
    "Allow starts another one": Case(
        a_cron(active=[EARLY], last=EARLIER),
        [EARLY],
        [job_name(DUE)],
    ),
    "Forbid waits, and says for what moment": Case(
        a_cron(active=[EARLY], last=EARLIER, concurrency_policy="Forbid"),
        [EARLY],
        [warning("ForbidConcurrent", FORBIDDEN, DUE)],
    ),
    "Forbid starts what was missed as soon as the other is finished": Case(
        a_cron(active=[EARLY], last=EARLIER, concurrency_policy="Forbid"),
        [a_run(EARLIER, "Failed")],
        [
            status(last=EARLIER),
            normal("SawCompletedJob", f"Saw completed job: {job_name(EARLIER)} in active, remove"),
            job_name(DUE),
        ],
    ),
    "an aborted Job may be resumed: it counts": Case(
        a_cron(active=[EARLY], last=EARLIER, concurrency_policy="Forbid"),
        [a_run(EARLIER, "Aborted")],
        [warning("ForbidConcurrent", FORBIDDEN, DUE)],
    ),
    "Replace deletes first": Case(
        a_cron(active=[EARLY], last=EARLIER, concurrency_policy="Replace"),
        [EARLY],
        [warning("ReplaceConcurrent", REPLACED, DUE), deleted(EARLY), job_name(DUE)],
    ),
    "Replace leaves alone what is going anyway": Case(
        a_cron(active=[EARLY], last=EARLIER, concurrency_policy="Replace"),
        [a_run(EARLIER, deleting=True)],
        [warning("ReplaceConcurrent", REPLACED, DUE), job_name(DUE)],
    ),
    "what was replaced is no news": Case(
        a_cron(active=[EARLY], last=EARLIER, concurrency_policy="Replace"),
        [LATE],
        [status(LATE, last=DUE)],
        removed={EARLY.metadata.uid},
    ),
    "a name that somebody else has is left alone": Case(
        a_cron(last=EARLIER),
        want=[
            warning(
                "ForeignJob",
                f"Job {job_name(DUE)} exists but is not owned by this CronJob"
                " (current owner: CronJob/c)",
                DUE,
            )
        ],
        others=[a_run(DUE, owner="one of before")],
    ),
}

BOOK_CASES = {
    "a Job that was made and not written down is": Case(
        a_cron(last=EARLIER),
        [LATE],
        [status(LATE, last=DUE)],
    ),
    "one that has ended meanwhile, too": Case(
        a_cron(last=EARLIER),
        [a_run(DUE, "Completed", ended="2026-01-01T10:00:20Z")],
        [status(last=DUE, success="2026-01-01T10:00:20Z")],
    ),
    "the books in order need nothing": Case(
        a_cron(active=[LATE], last=DUE),
        [LATE],
    ),
    "the newest success counts": Case(
        a_cron(last=DUE, success="2026-01-01T08:00:10Z"),
        [
            a_run("2026-01-01T07:00:00Z", "Completed", ended="2026-01-01T09:30:00Z"),
            a_run("2026-01-01T08:00:00Z", "Completed", ended="2026-01-01T09:10:00Z"),
        ],
        [status(last=DUE, success="2026-01-01T09:30:00Z")],
    ),
    "a success stays known when its Job is gone": Case(
        a_cron(last=DUE, success="2026-01-01T08:00:10Z"),
    ),
    "a reference to nothing is dropped": Case(
        a_cron(active=[LATE], last=DUE),
        [],
        [
            status(last=DUE),
            warning(
                "StaleReference",
                f'Active job "{job_name(DUE)}" no longer exists (UID: {LATE.metadata.uid})',
            ),
        ],
    ),
    "a reference to another Job of the name is dropped": Case(
        a_cron(active=[EARLY], last=DUE),
        [],
        [
            status(last=DUE),
            warning(
                "StaleReference",
                f'Active job reference "{job_name(EARLIER)}" points to a different UID'
                f" (expected: {EARLY.metadata.uid}, actual: other)",
            ),
        ],
        others=[LOST],
    ),
    "a Job that it controls and did not make is told, and not taken": Case(
        a_cron(last=DUE),
        [a_run(DUE, name="stray", uid="stray")],
        [
            warning(
                "OrphanedJob",
                "Detected orphaned job forgotten or not managed by controller: stray (UID: stray)",
            )
        ],
    ),
    "a suspended CronJob keeps its books": Case(
        a_cron(active=[LATE], last=DUE, suspend=True),
        [a_run(DUE, "Terminated")],
        [
            status(last=DUE),
            normal("SawCompletedJob", f"Saw completed job: {job_name(DUE)} in active, remove"),
        ],
        looks=None,
    ),
}

H6, H7, H8, H9 = (f"2026-01-01T0{hour}:00:00Z" for hour in (6, 7, 8, 9))
HISTORY_CASES = {
    "the oldest successes beyond the limit go": Case(
        a_cron(last=DUE, success=H9, successful_jobs_history_limit=2),
        [a_run(due, "Completed") for due in (H8, H6, H9, H7)],
        [deleted(a_run(H6)), deleted(a_run(H7))],
    ),
    "three successes and one failure stay where nothing is said": Case(
        a_cron(last=DUE, success=H9),
        [a_run(due, "Completed") for due in (H6, H7, H8)] + [a_run(H9, "Failed")],
    ),
    "failed and terminated ones count together": Case(
        a_cron(last=DUE),
        [a_run(H6, "Terminated"), a_run(H7, "Failed"), a_run(H8, "Terminated")],
        [deleted(a_run(H6)), deleted(a_run(H7))],
    ),
    "a limit of zero keeps none": Case(
        a_cron(last=DUE, failed_jobs_history_limit=0),
        [a_run(H6, "Failed")],
        [deleted(a_run(H6))],
    ),
    "no limit keeps all": Case(
        a_cron(last=DUE, failed_jobs_history_limit=None, successful_jobs_history_limit=None),
        [a_run(due, "Failed") for due in (H6, H7, H8, H9)],
    ),
    "what is going is not deleted again": Case(
        a_cron(last=DUE, failed_jobs_history_limit=0),
        [a_run(H6, "Failed", deleting=True)],
    ),
    "running and aborted Jobs are no history": Case(
        a_cron(
            active=[a_run(H6), a_run(H7)],
            last=DUE,
            failed_jobs_history_limit=0,
            successful_jobs_history_limit=0,
        ),
        [a_run(H6), a_run(H7, "Aborted")],
    ),
}


@pytest.mark.parametrize("case", DUE_CASES.values(), ids=DUE_CASES.keys())
def test_what_is_due(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", POLICY_CASES.values(), ids=POLICY_CASES.keys())
def test_policies(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", BOOK_CASES.values(), ids=BOOK_CASES.keys())
def test_books(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", HISTORY_CASES.values(), ids=HISTORY_CASES.keys())
def test_history(case: Case) -> None:
    check(case)


STAMPS = {
    "in UTC where no zone is named": (None, DUE),
    "in the zone": ("Europe/Berlin", "2026-01-01T11:00:00+01:00"),
}


@pytest.mark.parametrize(("zone", "want"), STAMPS.values(), ids=STAMPS.keys())
def test_the_job_is_that_of_the_template(zone: str | None, want: str) -> None:
    found = effects(Case(a_cron(last=EARLIER, time_zone=zone)))
    (job,) = [effect.job for effect in found if isinstance(effect, CreateJob)]

    assert job.spec == SPEC
    assert job.metadata.labels == {"team": "a"}
    assert job.metadata.annotations == {"note": "b", names.CRON_TIMESTAMP: want}
    owner = job.metadata.controller
    assert owner
    assert (owner.api_version, owner.kind, owner.name, owner.uid) == (
        "batch.volcano.sh/v1alpha1",
        "CronJob",
        "c",
        "cron",
    )
    assert owner.block_owner_deletion
