"""
Reconcile one CronJob: keep its books, start what is due, remove what is old.

    finished Jobs ──► out of `active`, newest success noted
    what is due   ──► the latest moment that was not acted on, if the deadline allows it
                         │ Allow                  ──► a Job
                         │ Forbid, one is active  ──► wait until it is finished
                         │ Replace, some active   ──► those are deleted, then a Job
    history       ──► the oldest beyond the limits are deleted

The Jobs are the truth, the status is the books: a Job that was created and not written down, since
the controller died in between, is found by its name. So nothing is missed or started twice. Of
several moments that went by unused (nobody was there, or the CronJob was suspended) the latest one
counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pumice.core import names, ownership, schedules, timestamps
from pumice.core.api.batch import Job
from pumice.core.api.cron import CronJob, CronJobStatus, ObjectReference
from pumice.core.crons import jobs as j
from pumice.core.crons.timetable import Timetable
from pumice.core.crons.types import (
    CreateJob,
    DeleteJob,
    Effect,
    LookAgain,
    Observed,
    Offsets,
    PatchStatus,
    RecordEvent,
)

TOO_MANY: Final = 100
RETRY_S: Final = 300
"""When a time zone that there is not is looked for again: its database may have been renewed."""


@dataclass(frozen=True, slots=True)
class _Due:
    """A moment to act on, and whether many were missed before it."""

    moment: int
    is_late: bool


def reconcile(seen: Observed, offsets: Offsets, now: float) -> list[Effect]:
    """
    Return what is to be done, in order; `now` is in seconds since 1970.

    When to look again comes first, so that a failure of the rest does not keep the next moment
    from being seen; what can best wait, the removal of old Jobs, comes last.
    """
    cron = seen.cron
    if cron.metadata.deletion_timestamp is not None:
        return []
    status, news = _books(seen)
    started = [] if cron.spec.suspend else list(_start(seen, status, offsets, now))
    looks = [effect for effect in started if isinstance(effect, LookAgain)]
    others = [effect for effect in started if not isinstance(effect, LookAgain)]
    written = [PatchStatus(status)] if status != cron.status else []
    return [*looks, *written, *news, *others, *_history(seen)]


# The books.


def _books(seen: Observed) -> tuple[CronJobStatus, list[RecordEvent]]:
    """Return the status as it should be, and what there is to tell about the changes."""
    jobs = {job.metadata.uid: job for job in seen.jobs}
    active: list[ObjectReference] = []
    news: list[RecordEvent] = []
    for reference in seen.cron.status.active or ():
        job = jobs.get(reference.uid)
        if job is None:
            news += _stale(reference, seen)
        elif j.is_finished(job):
            text = f"Saw completed job: {reference.name} in active, remove"
            news.append(RecordEvent("Normal", "SawCompletedJob", text))
        else:
            active.append(reference)
    for job in sorted(seen.jobs, key=j.age):
        if j.is_finished(job) or any(ref.uid == job.metadata.uid for ref in active):
            continue
        if j.due_at(job, seen.cron.metadata.name) is None:
            news.append(_orphaned(job))
        else:
            active.append(_reference(job))
    return CronJobStatus(
        active=active or None,
        last_schedule_time=_last_schedule(seen),
        last_successful_time=_last_success(seen),
    ), news


def _stale(reference: ObjectReference, seen: Observed) -> Iterator[RecordEvent]:
    """Tell of a reference to a Job that is gone, unless it went for the CronJob's own sake."""
    name, uid = reference.name, reference.uid
    if uid in seen.removed:
        return
    namesake = seen.named(name)
    if namesake is None or namesake.metadata.uid == uid:
        text = f"Active job {_quoted(name)} no longer exists (UID: {uid})"
    else:
        other = namesake.metadata.uid
        text = (
            f"Active job reference {_quoted(name)} points to a different UID"
            f" (expected: {uid}, actual: {other})"
        )
    yield RecordEvent("Warning", "StaleReference", text)


def _orphaned(job: Job) -> RecordEvent:
    meta = job.metadata
    text = "Detected orphaned job forgotten or not managed by controller"
    return RecordEvent("Warning", "OrphanedJob", f"{text}: {meta.name} (UID: {meta.uid})")


def _reference(job: Job) -> ObjectReference:
    meta = job.metadata
    return ObjectReference(
        api_version=names.BATCH_API,
        kind="Job",
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )


def _last_schedule(seen: Observed) -> str | None:
    """Return the latest moment acted on, by the status or by a Job that it does not know yet."""
    told = seen.cron.status.last_schedule_time
    made = (j.due_at(job, seen.cron.metadata.name) or 0 for job in seen.jobs)
    latest = max(made, default=0)
    return timestamps.stamp(latest) if latest > timestamps.moment(told) else told


def _last_success(seen: Observed) -> str | None:
    """Return when the latest Job that completed did so, those included that are gone by now."""
    ended = (
        job.status.state.last_transition_time
        for job in seen.jobs
        if job.status.state.phase == "Completed"
    )
    return max((seen.cron.status.last_successful_time, *ended), key=timestamps.moment)


# What is due.


def _start(seen: Observed, status: CronJobStatus, offsets: Offsets, now: float) -> Iterator[Effect]:
    """Start the Job that is due, if one is, and say when the next will be."""
    cron = seen.cron
    text, zone, is_inline = _zoned(cron)
    if is_inline:
        yield RecordEvent("Warning", "UnsupportedSchedule", _INLINE.format(cron.spec.schedule))
    schedule = schedules.parse(text)
    if schedule is None:
        unparsable = f"unparseable schedule for cronjob: {cron.spec.schedule}"
        yield RecordEvent("Warning", "UnParseableCronJobSchedule", unparsable)
        return
    offset = offsets(zone)
    if offset is None:
        unknown = f"Invalid time zone {_quoted(zone)}: unknown time zone {zone}"
        yield RecordEvent("Warning", "InvalidTimeZone", unknown)
        yield LookAgain(int(now) + RETRY_S)
        return
    since = _since(seen, status)
    times = Timetable(schedule, offset, since)
    following = times.after(int(now))
    if following is None:
        never = "Error getting schedule time: no day of the coming years is one of its days"
        yield RecordEvent("Warning", "InvalidSchedule", never)
    else:
        yield LookAgain(following)
    due = _due(cron, times, since, now)
    if due is not None:
        ahead_s = offset(due.moment) if zone else 0
        job = j.new(cron, schedule, due.moment, ahead_s)
        yield from _due_effects(seen, status, due, job)


_INLINE: Final = (
    "schedule {} names a time zone itself: it is obeyed, and timeZone is not looked at; please use"
    " timeZone instead"
)


def _zoned(cron: CronJob) -> tuple[str, str, bool]:
    """Return schedule and time zone, and whether the schedule names the zone itself."""
    text = cron.spec.schedule
    head, _, rest = text.partition(" ")
    key, _, zone = head.partition("=")
    if key in ("TZ", "CRON_TZ"):
        return rest.strip(), zone, True
    return text, cron.spec.time_zone or "", False


def _since(seen: Observed, status: CronJobStatus) -> int:
    """Return the moment after which the CronJob was not acted on yet."""
    last = status.last_schedule_time or seen.cron.metadata.creation_timestamp
    return int(max(timestamps.moment(last), seen.since))


def _due(cron: CronJob, times: Timetable, since: int, now: float) -> _Due | None:
    """Return the latest moment that was not acted on and is not too old."""
    moment = times.upto(int(now))
    if moment is None or moment <= since:
        return None
    deadline = cron.spec.starting_deadline_seconds
    if deadline is not None:
        if now - moment >= deadline:
            return None
        since = max(since, int(now) - deadline)
    return _Due(moment, times.exceeds(TOO_MANY, since, int(now)))


def _due_effects(seen: Observed, status: CronJobStatus, due: _Due, job: Job) -> Iterator[Effect]:
    """Create the Job that is due, as far as its name and the policy allow it."""
    if due.is_late:
        yield RecordEvent("Warning", "TooManyMissedTimes", _MANY, due.moment)
    if namesake := seen.named(job.metadata.name):
        yield from _foreign(seen.cron, namesake, due.moment)
        return
    match seen.cron.spec.concurrency_policy if status.active else "Allow":
        case "Forbid":
            text = "Skipping job creation because another job is already running"
            yield RecordEvent("Warning", "ForbidConcurrent", text, due.moment)
            return
        case "Replace":
            text = "Replacing active job for CronJob"
            yield RecordEvent("Warning", "ReplaceConcurrent", text, due.moment)
            yield from _deletions(seen.jobs, {ref.uid for ref in status.active or ()})
    yield CreateJob(job)


_MANY: Final = (
    "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
)


def _foreign(cron: CronJob, namesake: Job, due: int) -> Iterator[RecordEvent]:
    """Tell of a Job of somebody else that has the name of the one that is due."""
    meta, owner = namesake.metadata, namesake.metadata.controller
    if ownership.is_controlled_by(meta, cron.metadata):
        return
    who = f"{owner.kind}/{owner.name}" if owner else "none"
    text = f"Job {meta.name} exists but is not owned by this CronJob (current owner: {who})"
    yield RecordEvent("Warning", "ForeignJob", text, due)


# What is old.


def _history(seen: Observed) -> Iterator[DeleteJob]:
    """Delete the oldest finished Jobs beyond the limits; Terminated ones count as failed."""
    spec = seen.cron.spec
    limits = (
        (("Completed",), spec.successful_jobs_history_limit),
        (("Failed", "Terminated"), spec.failed_jobs_history_limit),
    )
    for phases, limit in limits:
        if limit is None:
            continue
        ended = sorted((x for x in seen.jobs if x.status.state.phase in phases), key=j.age)
        too_many = ended[: max(len(ended) - limit, 0)]
        yield from _deletions(too_many, {job.metadata.uid for job in too_many})


def _deletions(jobs: Sequence[Job], uids: set[str]) -> Iterator[DeleteJob]:
    """Delete those Jobs that are not about to go anyway."""
    for job in jobs:
        if job.metadata.uid in uids and job.metadata.deletion_timestamp is None:
            yield DeleteJob(job.metadata.name, job.metadata.uid)


def _quoted(text: str) -> str:
    return f'"{text}"'
