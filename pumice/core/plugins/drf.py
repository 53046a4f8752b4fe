"""
drf: among jobs, the one whose dominant share is smallest goes first.

A job's share is the largest part that it holds of any resource of the cluster, pod slots
included. A task may be evicted for another as long as that leaves its job no poorer than the
other's becomes.
"""

from __future__ import annotations

from collections.abc import Sequence

from pumice.core.conf import Arguments
from pumice.core.extension import Victims, Vote
from pumice.core.ids import JobKey
from pumice.core.model.jobs import JobInfo
from pumice.core.model.tasks import Task
from pumice.core.resources import EPSILON, Floats, minus, plus, share
from pumice.core.session import Session

NAME = "drf"
TOLERANCE = 1e-6


class Drf:
    """The plugin."""

    name = NAME

    def __init__(self, args: Arguments) -> None:
        self.total: list[tuple[int, float]] = []

    def on_session_open(self, ssn: Session) -> None:
        """Register the order of jobs, and who may be evicted."""
        self.total = [(row, t) for row, t in enumerate(ssn.total.tolist()) if t >= EPSILON]
        ssn.points.job_order[NAME] = lambda job: self.share(held(job))

        def preemptable(preemptor: Task, candidates: Sequence[Task]) -> Victims:
            return self.victims(ssn, preemptor, candidates), Vote.PERMIT

        ssn.points.preemptable[NAME] = preemptable

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


def held(job: JobInfo) -> Floats:
    """Return what a job holds, what it is promised in this session included."""
    return plus(job.allocated, job.promised) if job.promised.size else job.allocated
