"""
Rivals: queues that would take the same room from each other in turn.

One queue takes room from another, and the job that lost it starves. If its queue is entitled to so
much, and the plugins would let it take just the room that it lost, the next session would put
everything back as it was. Neither has the better claim then, and the one that has the room keeps
it. Volcano lets both go on for ever, for example where `capacity` entitles a queue by its memory to
more cpu than it deserves, or where the plugins of a higher tier let anybody go for a gang.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pumice.core.model.jobs import JobInfo
from pumice.core.model.tasks import Task
from pumice.core.session import Session
from pumice.core.statement import Statement

Rivals = Callable[[Session, Statement], frozenset[str]]
Takes = Callable[[Task, Sequence[Task]], bool]
"""(who lost its room, who was promised it) -> whether the plugins would let it be taken back."""


def nobody(ssn: Session, statement: Statement) -> frozenset[str]:
    """Return that there are no rivals."""
    return frozenset()


def rivals(ssn: Session, statement: Statement, takes: Takes) -> frozenset[str]:
    """Return the queues that could take back what their tasks lose in a statement."""
    promised = [task for task in statement.promised if _may_go(ssn, task)]
    if not promised:
        return frozenset()
    found = set()
    for job, tasks in losers(ssn, statement):
        queue = ssn.queues[job.queue]
        if ssn.is_preemptive(queue, tasks[: _missing(job)]) and takes(tasks[0], promised):
            found.add(queue.name)
    return frozenset(found)


def losers(ssn: Session, statement: Statement) -> Iterator[tuple[JobInfo, list[Task]]]:
    """Yield the jobs that starve once a statement holds, with the tasks that they lose by it."""
    lost: dict[str, list[Task]] = {}
    for evicted in statement.evicted:
        lost.setdefault(str(evicted.before.job), []).append(evicted.before)
    for tasks in lost.values():
        job = ssn.job(tasks[0].job)
        if job is not None and ssn.is_starving(job):
            yield job, tasks


def _may_go(ssn: Session, task: Task) -> bool:
    return task.preemptable and ssn.queues[queue_of(ssn, task)].reclaimable


def queue_of(ssn: Session, task: Task) -> str:
    """Return the queue of a task; empty for one without a job."""
    job = ssn.job(task.job)
    return job.queue if job is not None else ""


def _missing(job: JobInfo) -> int:
    """Return how many tasks a job that starves lacks to start."""
    total = job.counts.total
    return max(job.min_available - total.ready - total.waiting, 1)
