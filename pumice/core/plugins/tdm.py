"""
tdm: nodes that are lent by the hour.

A node with the label `volcano.sh/revocable-zone` belongs to a zone, and takes pods only within
the zone's window, `tdm.revocable-zone.<zone>: "22:00-06:00"`, in local time; one that does not
end after it starts ends on the next day. It is looked at from today's start alone, so a window
that began yesterday is over at midnight, as in Volcano. Only pods that may be sent away again go
there, and rather there than elsewhere. When the window is over they are, from time to time
(`tdm.evict.period`) and not more of a job at once than its disruption budget allows:

    max unavailable U (a number, or percent of all tasks):  U - (unfinished tasks - running)
    min available M:                                        running - M, where so many run
    neither, or fewer than M run:                           1
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np

from pumice.core import names
from pumice.core.conf import Arguments
from pumice.core.extension import Code, NodeOrder, PredicateResult, Refusal, Victims, Vote
from pumice.core.ids import JobKey
from pumice.core.jobs.durations import seconds
from pumice.core.model.jobs import JobInfo
from pumice.core.model.tasks import COMPLETED_STATUSES, Status, Task, TaskClass
from pumice.core.readiness import is_ready
from pumice.core.resources import Bools, Floats, Ints
from pumice.core.selectors import parse_int64
from pumice.core.session import Session

NAME = "tdm"
BEST: Final = 100.0
NOT_REVOCABLE: Final = "not allow to dispatch to revocable node"
_PREFIX: Final = "tdm.revocable-zone."
_WINDOW: Final = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})")


@dataclass(frozen=True, slots=True)
class Window:
    """A time of the day, in minutes since midnight, and its text."""

    start: int
    end: int
    text: str

    @classmethod
    def parse(cls, text: object) -> Window | None:
        """Read `HH:MM-HH:MM`; return None for anything else."""
        found = _WINDOW.fullmatch(text.replace(" ", "")) if isinstance(text, str) else None
        if found is None or not isinstance(text, str):
            return None
        hours = (int(found[1]), int(found[3]))
        minutes = (int(found[2]), int(found[4]))
        if max(hours) > 23 or max(minutes) > 59:
            return None
        start, end = (60 * h + m for h, m in zip(hours, minutes, strict=True))
        return cls(start, end if end > start else end + 24 * 60, text)

    def is_open(self, now: float) -> bool:
        """Return whether the window that starts today is open at `now`, in seconds since 1970."""
        moment = datetime.fromtimestamp(now, UTC).astimezone()
        midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
        start, end = (midnight + timedelta(minutes=m) for m in (self.start, self.end))
        return start <= moment < end


class Tdm:
    """The plugin."""

    name = NAME

    def __init__(self, args: Arguments) -> None:
        self.zones: dict[str, Window] = {}
        for key, text in args.raw.items():
            if key.startswith(_PREFIX):
                window = Window.parse(text)
                if window is None:
                    args.faults[key] = f"argument {key}: {text!r} is not HH:MM-HH:MM, ignored"
                else:
                    self.zones[key.removeprefix(_PREFIX)] = window
        self.period_s = seconds(args.text("tdm.evict.period", "1m")) or 60.0
        self._results: dict[bool, PredicateResult] = {}

    def on_session_open(self, ssn: Session) -> None:
        """Look which zones are open, and register what follows from it."""
        column = ssn.nodes.columns.label(names.REVOCABLE_ZONE)
        revocable = column.present
        is_open = self._codes(lambda zone: self._is_open(zone, ssn.now), column.values)
        lent = is_open[column.codes] & revocable
        self._results = {
            True: self._result(ssn.now, column.values, column.codes),
            False: _refuse([(NOT_REVOCABLE, revocable)]),
        }

        def score(cls: TaskClass, at: Ints, alloc: Floats, used: Floats) -> Floats:
            scores: Floats = np.where(lent[at, None] & is_revocable(cls), BEST, 0.0)
            return scores

        points = ssn.points
        points.predicate[NAME] = lambda cls: self._results[is_revocable(cls)]
        points.node_order[NAME] = NodeOrder(score, fills=True)
        points.job_order[NAME] = lambda job: job.preemptable
        points.job_pipelined[NAME] = _pipelined
        points.job_starving[NAME] = lambda job: not job.preemptable and job.counts.total.pending > 0

        def preemptable(preemptor: Task, candidates: Sequence[Task]) -> Victims:
            if preemptor.preemptable or is_revocable(preemptor.cls):
                return (), Vote.REJECT
            index = ssn.nodes.index
            return _within_budget(
                ssn, [t for t in candidates if not revocable[index[t.node]]]
            ), Vote.PERMIT

        def victims(tasks: Sequence[Task]) -> Sequence[Task]:
            if not ssn.is_due(NAME, self.period_s):
                return ()
            known = self._codes(lambda zone: zone in self.zones, column.values)[column.codes]
            over, index = known & revocable & ~lent, ssn.nodes.index
            return _within_budget(ssn, [t for t in tasks if over[index[t.node]]])

        points.preemptable[NAME] = preemptable
        points.victim_tasks[NAME] = victims

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""

    def _is_open(self, zone: str, now: float) -> bool:
        return zone in self.zones and self.zones[zone].is_open(now)

    def _codes(self, holds: Callable[[str], bool], zones: Sequence[str]) -> Bools:
        """Return by code of the label whether something holds; the last is its absence."""
        return np.array([*map(holds, zones), False], bool)

    def _result(self, now: float, zones: Sequence[str], codes: Ints) -> PredicateResult:
        """Return the verdict on pods that may be sent away again."""
        closed = []
        for code, zone in enumerate(zones):
            if zone not in self.zones:
                closed.append((f"revocable zone {zone} not support", codes == code))
            elif not self._is_open(zone, now):
                text = f"current time beyond revocable zone {zone}:{self.zones[zone].text}"
                closed.append((text, codes == code))
        return _refuse(closed, codes.size)


def _refuse(reasons: Sequence[tuple[str, Bools]], size: int = 0) -> PredicateResult:
    mask = np.ones(reasons[0][1].size if reasons else size, bool)
    for _, nodes in reasons:
        mask &= ~nodes
    return PredicateResult(
        mask, tuple(Refusal(Code.UNRESOLVABLE, t, nodes) for t, nodes in reasons)
    )


def is_revocable(cls: TaskClass) -> bool:
    """Return whether the tasks may be sent away again: `*`, or preemptable in so many words."""
    traits = cls.signature.traits
    if names.REVOCABLE_ZONE in traits:
        return traits[names.REVOCABLE_ZONE] == "*"
    return traits.get(names.PREEMPTABLE, "") in ("1", "t", "T", "TRUE", "true", "True")


def _within_budget(ssn: Session, candidates: Sequence[Task]) -> list[Task]:
    """Return the running tasks that may go, of each job as many as its budget allows."""
    left: dict[JobKey, int] = {}
    chosen = []
    for task in candidates:
        job = ssn.job(task.job)
        if job is None or task.status is not Status.RUNNING or not task.preemptable:
            continue
        left.setdefault(job.key, budget(job))
        if left[job.key] > 0:
            left[job.key] -= 1
            chosen.append(task)
    return chosen


def budget(job: JobInfo) -> int:
    """Return how many running tasks of a job may go at once."""
    notes, total = job.group.metadata.annotations or {}, job.counts.total
    running = total.count(Status.RUNNING)
    least = _amount(notes.get(names.JDB_MIN_AVAILABLE, ""), total.total)
    if least is not None:
        return running - least if running >= least else 1
    most = _amount(notes.get(names.JDB_MAX_UNAVAILABLE, ""), total.total)
    if most is not None:
        return max(most - (total.total - total.count(COMPLETED_STATUSES) - running), 0)
    return 1


def _amount(text: str, total: int) -> int | None:
    """Return a number, or percent of the tasks rounded up; None where it is neither."""
    if text.endswith("%"):
        percent = parse_int64(text[:-1])
        return None if percent is None else math.ceil(total * percent / 100)
    return parse_int64(text)


def _pipelined(job: JobInfo) -> Vote:
    enough = is_ready(job, job.counts.total, job.counts.total.waiting)
    return Vote.PERMIT if enough else Vote.REJECT
