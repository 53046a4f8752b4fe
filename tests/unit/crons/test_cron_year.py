"""A year of CronJobs in a moment: every run at its time, none missed, none twice."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import msgspec
import pytest

from pumice.core import names, timestamps
from pumice.core.api.batch import Job, JobPhase, JobState, JobStatus
from pumice.core.api.cron import CronJob
from pumice.core.crons.reconcile import reconcile
from pumice.core.crons.types import (
    CreateJob,
    DeleteJob,
    LookAgain,
    Observed,
    PatchStatus,
    RecordEvent,
)
from tests.effort import stride
from tests.unit.crons.builders import a_cron
from tests.unit.crons.clocks import at, clock, shown

HOUR: Final = 3600
DAY: Final = 24 * HOUR
START, END = "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"
QUARTER = "2026-04-01T00:00:00Z"
replace = msgspec.structs.replace


@dataclass
class Year:
    """One CronJob, its Jobs, and a clock that jumps to whatever happens next."""

    cron: CronJob
    #: how long the Job that was due at a moment runs, and how it ends
    runs_s: Callable[[int], int] = lambda due: 60
    ends: JobPhase = "Completed"
    now: float = field(default_factory=lambda: at(START))
    jobs: dict[str, Job] = field(default_factory=dict)
    #: when each Job was due, and when it was started
    started: list[tuple[int, float]] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    passes: int = 0
    most_active: int = 0

    def __post_init__(self) -> None:
        self._serial = count()
        #: what will happen: when, in what order, to which Job (none: the controller looks)
        self._agenda: list[tuple[float, int, str]] = []
        self._removed: set[str] = set()

    def run(self, until: str = END) -> None:
        """Let time pass with a controller at work."""
        end = at(until)
        self.look()
        while self._agenda and self._agenda[0][0] < end:
            self.now, _, name = heapq.heappop(self._agenda)
            if name in self.jobs:
                self._end(name)
            self.look()
        self.now = end

    def pause(self, until: str) -> None:
        """Let time pass without one; Jobs end meanwhile."""
        self.now = at(until)
        for when, _, name in self._agenda:
            if name in self.jobs and when < self.now:
                self._end(name)
        self._agenda = [entry for entry in self._agenda if entry[2] in self.jobs]
        heapq.heapify(self._agenda)

    def look(self) -> None:
        """Reconcile until nothing is left to do."""
        while self._pass():
            assert self.passes < 10_000

    def _pass(self) -> bool:
        self.passes += 1
        seen = Observed(self.cron, list(self.jobs.values()), self._removed, self.jobs.get)
        effects = reconcile(seen, clock, self.now)
        for effect in effects:
            match effect:
                case LookAgain(at=moment):
                    assert moment > self.now
                    self._look_at(moment + 0.1)
                case PatchStatus(status=status):
                    self.cron = replace(self.cron, status=status)
                    self.most_active = max(self.most_active, len(status.active or ()))
                case CreateJob(job=job):
                    self._create(job)
                case DeleteJob(name=name, uid=uid):
                    del self.jobs[name]
                    self._removed.add(uid)
                case RecordEvent(type="Warning", reason=reason):
                    self.warned.append(reason)
        return any(not isinstance(effect, LookAgain | RecordEvent) for effect in effects)

    def _look_at(self, when: float) -> None:
        if (when, "") not in {(then, name) for then, _, name in self._agenda}:
            heapq.heappush(self._agenda, (when, next(self._serial), ""))

    def _create(self, job: Job) -> None:
        meta = job.metadata
        assert meta.name not in self.jobs
        due = int(timestamps.moment((meta.annotations or {})[names.CRON_TIMESTAMP]))
        self.started.append((due, self.now))
        born = replace(meta, uid=f"u{len(self.started)}", creation_timestamp=self._stamp())
        self.jobs[meta.name] = replace(job, metadata=born)
        ends = self.now + self.runs_s(due)
        heapq.heappush(self._agenda, (ends, next(self._serial), meta.name))

    def _end(self, name: str) -> None:
        state = JobState(phase=self.ends, last_transition_time=self._stamp())
        self.jobs[name] = replace(self.jobs[name], status=JobStatus(state=state))

    def _stamp(self) -> str:
        return timestamps.stamp(self.now)


def a_year(schedule: str, *, zone: str | None = None, **spec: Any) -> CronJob:
    return a_cron(schedule, created=START, time_zone=zone, **spec)


COUNTS: dict[str, tuple[CronJob, int]] = {
    "twice a day": (a_year("0 */12 * * *"), 365 * 2 - 1),
    "each night, one left out and one twice": (a_year("30 2 * * *", zone="Europe/Berlin"), 365),
    "each night in New York": (a_year("0 0 * * *", zone="America/New_York"), 365),
    "every working day at nine": (a_year("0 9 * * mon-fri"), 261),
    "the first of the month": (a_year("0 0 1 * *"), 11),
    "weekly": (a_year("@weekly"), 52),
    "29 February": (a_year("0 0 29 2 *"), 0),
    "every day and a half": (a_year("@every 36h"), 365 * 24 // 36),
    "a Friday or the 13th": (a_year("0 12 13 * fri"), 52 + 12 - 3),
}


@pytest.mark.parametrize("name", list(COUNTS)[:: stride(3)])
def test_each_run_is_at_its_time_and_happens_once(name: str) -> None:
    cron, want = COUNTS[name]
    year = Year(cron)
    year.run()

    due = [moment for moment, _ in year.started]
    assert len(due) == want
    assert due == sorted(set(due))
    assert all(0 < when - moment < 1 for moment, when in year.started)
    assert len(year.jobs) <= 3
    assert year.warned == []


def test_the_two_nights_in_which_the_clock_changes() -> None:
    year = Year(a_year("30 2 * * sun", zone="Europe/Berlin"))
    year.run()
    nights = [shown(due, "Europe/Berlin") for due, _ in year.started]
    assert [night for night in nights if night[:10] in ("2026-03-29", "2026-10-25")] == [
        "2026-10-25 02:30 CEST",
        "2026-10-25 02:30 CET",
    ]


def test_a_controller_that_was_away_starts_what_was_missed_last() -> None:
    year = Year(a_year("0 12 * * *"))
    year.run("2026-03-01T00:00:00Z")
    year.pause("2026-03-11T18:00:00Z")
    year.run("2026-04-01T00:00:00Z")

    days = [shown(due, "UTC")[:10] for due, _ in year.started]
    assert days == [
        *(f"2026-01-{day:02}" for day in range(1, 32)),
        *(f"2026-02-{day:02}" for day in range(1, 29)),
        *(f"2026-03-{day:02}" for day in range(11, 32)),
    ]
    assert at("2026-03-11T18:00:00Z") in [int(when) for _, when in year.started]


def test_a_deadline_lets_go_of_what_was_missed_long_ago() -> None:
    year = Year(a_year("0 12 * * *", starting_deadline_seconds=HOUR))
    year.run("2026-03-01T00:00:00Z")
    year.pause("2026-03-11T18:00:00Z")
    year.run("2026-03-13T00:00:00Z")
    assert [shown(due, "UTC")[:10] for due, _ in year.started[-2:]] == ["2026-02-28", "2026-03-12"]


def test_a_minute_of_every_hour_that_was_missed_for_weeks_is_worth_a_word() -> None:
    year = Year(a_year("0 * * * *"))
    year.run("2026-01-02T00:00:30Z")
    year.pause("2026-02-01T00:00:30Z")
    year.run("2026-02-01T02:00:30Z")
    assert year.warned == ["TooManyMissedTimes"]
    assert [shown(due, "UTC")[5:16] for due, _ in year.started[-3:]] == [
        "02-01 00:00",
        "02-01 01:00",
        "02-01 02:00",
    ]


def test_a_suspended_month_is_left_out_but_for_its_last_run() -> None:
    year = Year(a_year("0 12 * * *"))
    year.run("2026-03-01T00:00:00Z")
    year.cron = replace(year.cron, spec=replace(year.cron.spec, suspend=True))
    year.run("2026-04-01T00:00:00Z")
    year.cron = replace(year.cron, spec=replace(year.cron.spec, suspend=False))
    year.run("2026-04-03T00:00:00Z")
    assert [shown(due, "UTC")[5:10] for due, _ in year.started[-4:]] == [
        "02-28",
        "03-31",
        "04-01",
        "04-02",
    ]


def test_forbid_runs_one_after_the_other_without_a_pause() -> None:
    year = Year(a_year("0 0 * * *", concurrency_policy="Forbid"), runs_s=lambda due: 30 * HOUR)
    year.run(QUARTER)
    assert year.most_active == 1
    starts = [when for _, when in year.started]
    assert len(starts) == 90 * 24 // 30
    # A day's run starts when it is due, or when the one before ends: never an hour is lost.
    assert all(
        later == pytest.approx(max(earlier + 30 * HOUR, due), abs=1)
        for earlier, (due, later) in zip(starts, year.started[1:], strict=False)
    )


def test_replace_leaves_one() -> None:
    year = Year(a_year("0 0 * * *", concurrency_policy="Replace"), runs_s=lambda due: 30 * HOUR)
    year.run(QUARTER)
    assert (len(year.started), year.most_active) == (89, 1)
    assert len(year.jobs) == 1
    assert set(year.warned) == {"ReplaceConcurrent"}


def test_allow_lets_them_overlap() -> None:
    year = Year(a_year("0 0 * * *"), runs_s=lambda due: 49 * HOUR)
    year.run(QUARTER)
    assert (len(year.started), year.most_active) == (89, 3)


def test_terminated_ones_do_not_pile_up() -> None:
    year = Year(a_year("0 0 * * *"), ends="Terminated")
    year.run(QUARTER)
    assert len(year.jobs) == 1
