"""
drf: among jobs, the one whose dominant share is smallest goes first.

A job's share is the largest part that it holds of any resource of the cluster, pod slots
included. A task may be evicted for another as long as that leaves its job no poorer than the
other's becomes.

With `enableHierarchy` the queues form a tree (see `hierarchy`) and go in its order; what a queue
holds is taken back for another that comes before it in that order, also with the task, and without
the victim.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key

from pumice.core.conf import Arguments
from pumice.core.extension import EventHandler, Victims, Vote
from pumice.core.ids import JobKey
from pumice.core.model.jobs import JobInfo
from pumice.core.model.tasks import Task
from pumice.core.plugins.drf.hierarchy import Hierarchy
from pumice.core.resources import EPSILON, Floats, minus, plus, share
from pumice.core.session import Session

NAME = "drf"
TOLERANCE = 1e-6


class Drf:
    """The plugin."""

    name = NAME
    steady = True

    def __init__(self, args: Arguments) -> None:
        self.total: list[tuple[int, float]] = []
        self.hierarchy = False

    def on_session_open(self, ssn: Session) -> None:
        """Register the order of jobs, and who may be evicted."""
        self.total = [(row, t) for row, t in enumerate(ssn.total.tolist()) if t >= EPSILON]
        ssn.points.job_order[NAME] = lambda job: self.share(held(job))

        def preemptable(preemptor: Task, candidates: Sequence[Task]) -> Victims:
            return self.victims(ssn, preemptor, candidates), Vote.PERMIT

        ssn.points.preemptable[NAME] = preemptable
        if self.hierarchy:
            self._register_tree(ssn)

    def _register_tree(self, ssn: Session) -> None:
        tree = Hierarchy(ssn.queues, ssn.space.jobs.values(), ssn.total)
        place = cmp_to_key(tree.compare)
        ssn.points.queue_order[NAME] = lambda queue: (place(queue.name),)
        ssn.queues_move = True

        def reclaimable(reclaimer: Task, candidates: Sequence[Task]) -> Victims:
            return reclaimed(ssn, tree, reclaimer, candidates), Vote.PERMIT

        ssn.points.reclaimable[NAME] = reclaimable
        ssn.listen(
            EventHandler(
                lambda e: tree.add(e.job.key, e.cls, len(e.tasks)),
                lambda e: tree.add(e.job.key, e.cls, -len(e.tasks)),
            )
        )

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""

    def share(self, held: Floats) -> float:
        """Return the dominant share of what a job holds."""
        amounts = held.tolist()
        size = len(amounts)
        return max((share(amounts[row], t) for row, t in self.total if row < size), default=0.0)

    def victims(self, ssn: Session, preemptor: Task, candidates: Sequence[Task]) -> list[Task]:
        """Return the candidates whose jobs are no poorer without them than the preemptor's."""
        own = ssn.job(preemptor.job)
        if own is None:
            return []
        wanted = self.share(plus(held(own), preemptor.cls.req))
        left: dict[JobKey, Floats] = {}
        victims = []
        for task in candidates:
            job = ssn.job(task.job)
            if job is None:
                continue
            # What is taken off stays off, whether or not the task is chosen.
            left[job.key] = minus(left.get(job.key, held(job)), task.cls.req)
            theirs = self.share(left[job.key])
            if wanted < theirs or abs(wanted - theirs) <= TOLERANCE:
                victims.append(task)
        return victims


def reclaimed(
    ssn: Session, tree: Hierarchy, reclaimer: Task, candidates: Sequence[Task]
) -> list[Task]:
    """Return the candidates whose queues come after the reclaimer's, each without its task."""
    own = ssn.job(reclaimer.job)
    if own is None:
        return []
    victims = []
    tree.add(own.key, reclaimer.cls, 1)
    for task in candidates:
        job = ssn.job(task.job)
        if job is None:
            continue
        tree.add(job.key, task.cls, -1)
        if tree.compare(own.queue, job.queue) < 0:
            victims.append(task)
        tree.add(job.key, task.cls, 1)
    tree.add(own.key, reclaimer.cls, -1)
    return victims


def held(job: JobInfo) -> Floats:
    """Return what a job holds, what it is promised in this session included."""
    return plus(job.allocated, job.promised) if job.promised.size else job.allocated
