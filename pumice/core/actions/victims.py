"""
Making room: what preempt and reclaim have in common.

Room that is free is taken before anybody has to go. A task that finds none is tried on one node
after the other. There the plugins agree on who may go; of those, one after the other is sent off
until the task fits, every predicate agrees, and its queue may have it. Then each of them, the most
important first, is let stay if the task fits all the same: nobody goes who frees nothing that was
asked for.

The evictions of a job are kept if the job can start with what it was promised, or else undone to
the last. So nobody goes in vain either, as long as the promises are kept: the tasks are nominated
to their nodes, and `allocate` serves nominated tasks first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from pumice.core.actions.reprieves import let_stay
from pumice.core.actions.rivals import Rivals, nobody, queue_of
from pumice.core.class_views import ClassView
from pumice.core.extension import Evictable, Point
from pumice.core.kernels import copies_that_fit, only
from pumice.core.model.jobs import JobInfo
from pumice.core.model.queues import QueueInfo
from pumice.core.model.tasks import Status, Task
from pumice.core.plan import Reason
from pumice.core.resources import PODS, Floats, Ints, pad
from pumice.core.session import Session
from pumice.core.statement import Statement
from pumice.core.voting import Agreement

Kind = tuple[object, ...]
Candidates = Callable[[Task, int], list[Task]]
"""(who wants the room, column) -> those on the node that the action may send off."""
Limit = Callable[[Task, Sequence[Task]], Sequence[Task]]
"""(who wants the room, candidates) -> those of them that may be asked for."""


def everybody(task: Task, candidates: Sequence[Task]) -> Sequence[Task]:
    """Return all candidates."""
    return candidates


def as_they_stand(view: ClassView, at: Ints) -> Ints:
    """Try nodes by column."""
    return at


def by_score(view: ClassView, at: Ints) -> Ints:
    """Try the best node first."""
    return at[np.argsort(-view.scores(at), kind="stable")] if at.size > 1 else at


@dataclass(slots=True)
class Evictor:
    """One action's way of making room: whom it asks, who may go, and in which order of nodes."""

    ssn: Session
    action: str
    point: Point[Evictable]
    candidates: Candidates
    limit: Limit = everybody
    order: Callable[[ClassView, Ints], Ints] = as_they_stand
    #: queues whose tasks stay
    passed: frozenset[str] = frozenset()
    #: kinds of tasks that found no room: how much had changed by then, and whose room was let be
    _hopeless: dict[Kind, tuple[int, frozenset[str]]] = field(default_factory=dict)

    def make_room(self, statement: Statement, task: Task, queue: QueueInfo, held: Floats) -> bool:
        """
        Promise a task room on some node; return whether there is any.

        `held` is what those may hold, by node (R, N), who might go for it: an upper bound.
        """
        view = self.ssn.views.of_task(task)
        if view.refused is not None or not is_eligible(self.ssn, task, view):
            return False
        if self.rivals_of(task) is not None:
            return False
        made = self._take_free(statement, task, queue, view) or self._evict(
            statement, task, queue, view, held
        )
        if not made:
            self.give_up(task, frozenset())
        return made

    def give_up(self, task: Task, rivals: frozenset[str]) -> None:
        """Look no more for room for tasks like this one, until something changes."""
        kind = self._kind(task, self.ssn.views.of_task(task))
        self._hopeless[kind] = len(self.ssn.space.changed), rivals

    def rivals_of(self, task: Task) -> frozenset[str] | None:
        """Return whose room a task does not get; None unless it is known that it gets none."""
        kind = self._kind(task, self.ssn.views.of_task(task))
        changed, rivals = self._hopeless.get(kind, (-1, frozenset()))
        return rivals if changed == len(self.ssn.space.changed) else None

    def _kind(self, task: Task, view: ClassView) -> Kind:
        """Return all of a task that decides where room can be made for it."""
        job = self.ssn.job(task.job)
        assert job is not None  # noqa: S101 - only tasks of jobs are served
        return (
            view,
            task.priority,
            task.preemptable,
            job.priority,
            job.preemptable,
            job.queue,
            job.allocated.tobytes(),
            job.promised.tobytes(),
            job.key if task.nominated or self.ssn.within(task) is not None else None,
            self.passed,
        )

    def _take_free(
        self, statement: Statement, task: Task, queue: QueueInfo, view: ClassView
    ) -> bool:
        picks = view.best_candidate(self.ssn.within(task))
        if not picks or not self.ssn.allocatable(queue, task.cls, 1):
            return False
        statement.pipeline([task], picks, evicted=False)
        return True

    def _evict(
        self, statement: Statement, task: Task, queue: QueueInfo, view: ClassView, held: Floats
    ) -> bool:
        nodes = self.ssn.nodes
        could = copies_that_fit(nodes.future_idle + held, task.cls.req, task.cls.rows) >= 1
        worth = could & (held[PODS] >= 1) & view.curable()
        at = np.flatnonzero(only(worth, self.ssn.within(task)))
        return self.search(statement, task, queue, view, at)

    def search(
        self, statement: Statement, task: Task, queue: QueueInfo, view: ClassView, at: Ints
    ) -> bool:
        """Make room on the first of the nodes `at` where enough may go."""

        def fits(i: int) -> bool:
            return view.takes(i) and self.ssn.allocatable(queue, task.cls, 1) > 0

        for i in self.order(view, at).tolist():
            part = self.ssn.statement()
            gone = self.clear(part, task, i, partial(fits, i))
            if gone is not None:
                part.pipeline([task], [i], evicted=bool(gone))
                statement.merge(part)
                return True
        return False

    def clear(
        self, part: Statement, task: Task, i: int, fits: Callable[[], bool]
    ) -> list[Task] | None:
        """
        Send off the fewest on a node that make a task fit, the least important first.

        Return them; where all that may go are not enough, undo everything and return None.
        """
        agreed = self._agreed(task, i)
        if not agreed.victims:
            return None
        reason = self._reason(task, i, agreed)
        gone: list[Task] = []
        for victim in agreed.victims:
            if fits():
                break
            part.evict(victim, reason(victim))
            gone.append(victim)
        if not fits():
            part.discard()
            return None
        # Without the last one it did not fit.
        for victim in reversed(gone[:-1]):
            part.spare(victim)
            if fits():
                gone.remove(victim)
            else:
                part.evict(victim, reason(victim))
        return gone

    def _agreed(self, task: Task, i: int) -> Agreement:
        """
        Return who may go for a task on a node, the least important first.

        They are asked for in that order, so that plugins that each let only so many of a job or
        a queue go mean the same ones. Nobody may where all of them are not enough.
        """
        candidates = self.candidates(task, i)
        if self.passed:
            candidates = [c for c in candidates if queue_of(self.ssn, c) not in self.passed]
        candidates.sort(key=lambda other: self.ssn.victim_key(other, task))
        place = {candidate.uid: n for n, candidate in enumerate(candidates)}
        asked = self.limit(task, candidates)
        if not asked:
            return Agreement([])
        agreed = self.ssn.agree(self.point, task, asked)
        agreed.victims.sort(key=lambda victim: place[victim.uid])
        room = self.ssn.nodes.future(i)
        for victim in agreed.victims:
            room[: victim.cls.req.size] += victim.cls.req
        enough = copies_that_fit(room[:, None], task.cls.req, task.cls.rows)[0] >= 1
        return agreed if enough else Agreement([])

    def _reason(self, task: Task, i: int, agreed: Agreement) -> Callable[[Task], Reason]:
        """Return what makes the record of why a victim goes."""
        tier, plugins = self.point.authors[agreed.tier]
        room = self.ssn.nodes.future(i)
        named = [(row, self.ssn.names[row]) for row in task.cls.rows if row != PODS]
        asked = {f"asked {name}": float(task.cls.req[row]) for row, name in named}
        asked |= {f"free {name}": float(room[row]) for row, name in named}
        message = f"{task.key} needs room on {self.ssn.nodes.names[i]}"

        def of(victim: Task) -> Reason:
            freed = pad(victim.cls.req, room.size)
            numbers = {**asked, **{f"freed {name}": float(freed[row]) for row, name in named}}
            who = ", ".join(plugins)
            return Reason(self.action, who, message, numbers, sake=task.key, tier=tier)

        return of


def is_eligible(ssn: Session, task: Task, view: ClassView) -> bool:
    """
    Return whether anybody may have to go for a task.

    Not if its pod says so; and not while pods are on their way off the node that it is nominated
    to, unless no eviction would open that node to it: what it is promised is to come.
    """
    if task.polite:
        return False
    i = ssn.nodes.index.get(task.nominated)
    if i is None or not view.curable()[i]:
        return True
    here = ssn.nodes.tasks_on(task.nominated).values()
    return not any(other.status is Status.RELEASING for other in here)


def starving(ssn: Session) -> list[JobInfo]:
    """Return the jobs that lack tasks and have some that wait."""
    return [
        job
        for job in ssn.active
        if not job.is_pending
        and job.counts.total.pending
        and ssn.is_starving(job)
        and ssn.is_valid(job)
    ]


def waiting(ssn: Session, job: JobInfo) -> deque[Task]:
    """Return the tasks of a job that wait for room, in order."""
    return deque(sorted(filter(_waits, job.tasks.values()), key=ssn.task_key))


def _waits(task: Task) -> bool:
    return task.status is Status.PENDING and not task.gates


@contextmanager
def claims_held(ssn: Session) -> Iterator[None]:
    """
    Hold the room that earlier sessions promised, for as long as an action makes more.

    Where `allocate` comes before, it has given that room to those whose it is. Where it is still
    to come, it does so when this is over.
    """
    statement = ssn.statement()
    for job in ssn.active:
        if job.is_pending or not job.counts.total.pending:
            continue
        for task in [t for t in job.tasks.values() if t.nominated and _waits(t)]:
            i, at = ssn.nodes.index.get(task.nominated), ssn.within(task)
            if i is None or (at is not None and i not in at):
                continue
            if ssn.views.of_task(task).takes(i) and (
                ssn.allocatable(ssn.queues[job.queue], task.cls, 1)
            ):
                statement.pipeline([task], [i], evicted=False)
    try:
        yield
    finally:
        statement.discard()


def conclude(
    ssn: Session, action: str, job: JobInfo, statement: Statement, rivals: Rivals = nobody
) -> frozenset[str]:
    """
    Keep what was done for a job, if the job can start with it; undo it otherwise.

    What took nothing but free room is given back where `allocate` is still to come: it places
    the job there at once. What has rivals is given back as well; their queues are returned.
    """
    free = not statement.evicted and "allocate" in _to_come(ssn.conf.actions, action)
    if not ssn.is_pipelined(job) or free:
        statement.discard()
        return frozenset()
    let_stay(ssn, statement)
    found = rivals(ssn, statement)
    if found:
        statement.discard()
    else:
        statement.commit(action)
    return found


def _to_come(actions: Sequence[str], action: str) -> Sequence[str]:
    return actions[actions.index(action) + 1 :] if action in actions else ()
