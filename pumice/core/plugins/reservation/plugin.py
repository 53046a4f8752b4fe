"""The plugin `reservation`: keeps one gang's room from session to session."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from pumice.core.conf import Arguments
from pumice.core.extension import Code, Event, EventHandler, Room, Vote
from pumice.core.fitness import Trouble
from pumice.core.ids import JobKey
from pumice.core.jobs.durations import seconds
from pumice.core.kernels import copies_that_fit
from pumice.core.model.inputs import Reservation
from pumice.core.model.jobs import JobInfo
from pumice.core.model.tasks import Status, Task, TaskClass
from pumice.core.plan import Reason
from pumice.core.plugins.reservation.horizon import Horizon, Needs, Wanted, holds
from pumice.core.readiness import job_ready, needs_only_number
from pumice.core.resources import Floats, Ints, over_limit, pad, plus
from pumice.core.run_times import end_of, run_time
from pumice.core.session import Session

NAME = "reservation"
KEPT: Final = "node(s) kept for a gang that starts before the pod would end"
TRIED: Final = 10
"""So many gangs are tried in a session until one is found that will fit some day."""


@dataclass(slots=True)
class Keeping:
    """The reservation in force, in the terms of this session."""

    job: JobKey
    group_uid: str
    queue: str
    #: what was promised; where that has passed, pods are late, and the gang starts any moment
    start: float
    needs: Needs
    #: what is free at the start on each node, the gang apart; follows the session (R, N)
    free: Floats
    #: jobs that were asked about -> whether they have to heed it
    heeds: dict[JobKey, bool] = field(default_factory=dict)


class Reservations:
    """The plugin."""

    name = NAME

    def __init__(self, args: Arguments) -> None:
        startup = seconds(args.text("startup", "2s"))
        self.startup_s = 2.0 if startup is None or startup < 0 else startup
        self.kept: Keeping | None = None
        #: how many reservations were in force in this session
        self.serial = 0
        self.tried = 0
        #: queue -> the first of its jobs that is not whole
        self.heads: dict[str, JobInfo] | None = None
        self.coming: Floats | None = None

    def on_session_open(self, ssn: Session) -> None:
        """Register; the reservation of the last session is taken over when it is first needed."""
        self.ssn = ssn
        self.carried = ssn.snapshot.inputs.reservation
        points = ssn.points
        points.distinction[NAME] = self.distinction
        points.room[NAME] = Room(Code.UNSCHEDULABLE, KEPT, self.copies)
        points.unplaced[NAME] = self.unplaced
        points.job_enqueueable[NAME] = self.enqueueable
        points.job_enqueued[NAME] = self.enqueued
        ssn.listen(EventHandler(lambda e: self._follow(e, -1), lambda e: self._follow(e, 1)))

    def on_session_close(self, ssn: Session) -> None:
        """Hand the reservation on to the next session, while its gang waits for room alone."""
        kept = self._in_force()
        trouble = ssn.findings.troubles.get(kept.job) if kept else None
        if kept is not None and not (trouble and _is_held(trouble)):
            rooms = {ssn.nodes.names[i]: room.tolist() for i, room in sorted(kept.needs.items())}
            ssn.findings.reservation = Reservation(kept.job, kept.group_uid, kept.start, rooms)

    # What the others may have.

    def distinction(self, task: Task) -> tuple[int, float] | None:
        """Tell tasks apart that have to heed the reservation: by how long they run."""
        kept = self._in_force()
        if kept is None or not self._heeds(kept, task.job):
            return None
        return self.serial, run_time(task.pod)

    def _heeds(self, kept: Keeping, key: JobKey | None) -> bool:
        """Return whether a job stands behind the gang, or in the line of another queue."""
        job = self.ssn.job(key)
        if job is None:
            return True
        known = kept.heeds.get(job.key)
        if known is None:
            known = job.key != kept.job and (job.queue != kept.queue or self._is_behind(job, kept))
            kept.heeds[job.key] = known
        return known

    def _is_behind(self, job: JobInfo, kept: Keeping) -> bool:
        return self.ssn.job_key(job) > self.ssn.job_key(self.ssn.space.jobs[kept.job])

    def copies(self, cls: TaskClass, at: Ints) -> Floats:
        """Return how many more tasks each node takes beside what is kept there."""
        room = np.full(at.size, np.inf)
        kept = self._in_force()
        if kept is None or cls.example is None or self._is_over_in_time(cls.example, kept):
            return room
        if not self._heeds(kept, cls.example.job):
            return room
        for k, i in enumerate(at.tolist()):
            need = kept.needs.get(i)
            if need is not None:
                left = (kept.free[:, i] - need)[:, None]
                room[k] = copies_that_fit(left, cls.req, cls.rows)[0]
        return room

    def _is_over_in_time(self, task: Task, kept: Keeping) -> bool:
        """Return whether a task that is placed now is gone when the gang is to start."""
        return self.ssn.now + self.startup_s + run_time(task.pod) <= kept.start

    def _follow(self, event: Event, sign: int) -> None:
        """Follow who will hold room at the start; who is sent off leaves what it would hold."""
        kept = self.kept
        if kept is None or event.job.key == kept.job:
            return
        start, req = max(kept.start, self.ssn.now), event.cls.req
        for task, i in zip(event.tasks, event.nodes, strict=True):
            if task.status & (Status.ALLOCATED | Status.PIPELINED):
                is_over = self._is_over_in_time(task, kept)
            else:
                is_over = end_of(task.at(Status.RUNNING, task.node), self.ssn.now) <= start
            if not is_over:
                kept.free[: req.size, i] += sign * req

    # Who is first in line.

    def enqueueable(self, job: JobInfo) -> tuple[Vote, Reason | None]:
        """
        Permit the first group of its queue to be let in, if the cluster could hold it when empty.

        Else a gang that needs most of the cluster would wait outside until nothing runs. And while
        room is kept, permit what is idle enough for: the gang, which is in, counts as if it had
        all that it needs, and nobody else would come in.
        """
        least = job.min_resources
        if least is None:
            return Vote.ABSTAIN, None
        wanted, room = least, self.ssn.total
        if self._head(job.queue) is not job:
            if self._in_force() is None:
                return Vote.ABSTAIN, None
            wanted, room = plus(least, self._coming()), self._idle()
        possible = not over_limit(wanted, pad(room, wanted.size), least)
        return (Vote.PERMIT if possible else Vote.ABSTAIN), None

    def enqueued(self, job: JobInfo) -> None:
        """Count a group that was let in, and whose pods will come."""
        if job.min_resources is not None:
            self.coming = plus(self._coming(), job.min_resources)

    def _coming(self) -> Floats:
        """Return what the groups need that are in and have no pods yet, but for the gang."""
        if self.coming is None:
            self.coming = np.zeros(0)
            for job in self.ssn.active:
                is_in = not job.is_pending and not job.tasks and job.min_resources is not None
                if is_in and (self.kept is None or job.key != self.kept.job):
                    self.enqueued(job)
        return self.coming

    def _idle(self) -> Floats:
        idle: Floats = self.ssn.nodes.idle.clip(min=0).sum(axis=1)
        return idle

    def _head(self, queue: str) -> JobInfo | None:
        if self.heads is None:
            self.heads = {}
            waiting = (job for job in self.ssn.active if not _is_whole(job))
            for job in sorted(waiting, key=self.ssn.job_key):
                self.heads.setdefault(job.queue, job)
        return self.heads.get(queue)

    # Making and keeping a reservation.

    def unplaced(self, job: JobInfo) -> None:
        """Make a reservation for a job that found no room, if it is the first in line."""
        kept = self._in_force()
        if job_ready(job) or self.tried >= TRIED or (kept and self._heeds(kept, job.key)):
            return
        self.tried += 1
        gang, now = self._gang(job), self.ssn.now
        horizon = Horizon.of(self.ssn.space, now, job.key)
        found = horizon.earliest(gang, now) if gang else None
        own = kept is not None and kept.job == job.key
        if found is not None and not (own and kept is not None and kept.start <= found[0]):
            self._keep(job, *found, horizon)

    def _gang(self, job: JobInfo) -> list[Wanted]:
        """Return the tasks that the job lacks to be ready, those alike together, in order."""
        tasks = sorted(filter(_is_eligible, job.tasks.values()), key=self.ssn.task_key)
        if needs_only_number(job):
            total = job.counts.total
            lacking = job.min_available - total.ready - total.pending_best_effort
            tasks = tasks[: max(lacking, 1)]
        numbers = Counter(map(self.ssn.views.of_task, tasks))
        return [Wanted(view.cls, n, view.suits()) for view, n in numbers.items()]

    def _keep(self, job: JobInfo, start: float, needs: Needs, horizon: Horizon) -> None:
        free = horizon.free_at(max(start, self.ssn.now))
        self.kept = Keeping(job.key, job.uid, job.queue, start, needs, free)
        self.serial += 1

    def _in_force(self) -> Keeping | None:
        """Return the reservation, until its gang is placed."""
        if self.carried is not None:
            carried, self.carried = self.carried, None
            self._take_over(carried)
        if self.kept is not None and _is_whole(self.ssn.space.jobs[self.kept.job]):
            self.kept = None
        return self.kept

    def _take_over(self, carried: Reservation) -> None:
        """Keep on with the reservation of the last session, if it can be kept."""
        ssn, job = self.ssn, self.ssn.job(carried.job)
        if job is None or job.uid != carried.group_uid or _is_whole(job):
            return
        index, rows = ssn.nodes.index, ssn.nodes.rows
        if not carried.rooms.keys() <= index.keys():
            return
        needs = {index[node]: pad(np.array(room), rows) for node, room in carried.rooms.items()}
        horizon = Horizon.of(ssn.space, ssn.now, job.key)
        if holds(horizon.free_at(max(carried.start, ssn.now)), needs):
            self._keep(job, carried.start, needs, horizon)


def _is_whole(job: JobInfo) -> bool:
    return job.counts.total.total > 0 and job_ready(job)


def _is_held(trouble: Trouble) -> bool:
    """Return whether something else than a lack of room is in the way, too."""
    limits = trouble.over_limit.values()
    return bool(trouble.invalid) or trouble.by_queue or any(not e.by_capacity for e in limits)


def _is_eligible(task: Task) -> bool:
    waits = task.status & (Status.PENDING | Status.PIPELINED)
    return bool(waits) and not task.gates and not task.cls.best_effort
