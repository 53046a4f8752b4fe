"""
preempt: take room within a queue, from jobs that may go for others.

Queues take turns, and each has one. First between jobs: each job that starves is served in order,
at the cost of other jobs of the queue. Then within jobs: a task may go for another of its own
job, as long as that works out. What is done for a job is kept if it can start with it.

Volcano would evict where a node scores better than one that has room; here free room is taken
before anybody is sent off.

As a rule nodes are tried by score, and the first where enough may go is taken; with the argument
`enableTopologyAwarePreemption` several are tried out and compared (see `dryrun`).

Nobody goes for a job of lower priority, nor where the plugins would let the loser take the room
back at once: tiers below that of `priority` may see that otherwise, and both would go on for ever.

Jobs that ask for a network topology are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from pumice.core.actions.dryrun import Comparison, DryRun
from pumice.core.actions.occupants import Occupants
from pumice.core.actions.reprieves import reprieve
from pumice.core.actions.rivals import losers
from pumice.core.actions.turns import Turns
from pumice.core.actions.victims import Evictor, by_score, claims_held, conclude, starving, waiting
from pumice.core.model.jobs import JobInfo
from pumice.core.model.queues import QueueInfo
from pumice.core.model.tasks import PREEMPTABLE_STATUSES, Task
from pumice.core.session import Session
from pumice.core.statement import Statement

NAME = "preempt"


class Preempt:
    """The action."""

    name = NAME

    def execute(self, ssn: Session) -> None:
        """Make room for the jobs that starve, at the cost of others in their queues."""
        with claims_held(ssn):
            jobs = [job for job in starving(ssn) if not _wants_topology(job)]
            if jobs:
                _serve(ssn, jobs)


def _serve(ssn: Session, jobs: Sequence[JobInfo]) -> None:
    with Occupants.followed(ssn, PREEMPTABLE_STATUSES) as occupants:
        turns = Turns(ssn, jobs)
        preemptor = Preemptor(ssn, occupants)
        while (queue := turns.next_queue()) is not None:
            served = []
            while (job := turns.next_job(queue)) is not None:
                served.append(job)
                preemptor.serve(job, queue)
            for job in served:
                preemptor.rearrange(job, queue)
        reprieve(ssn)


def _wants_topology(job: JobInfo) -> bool:
    parts = (policy.network_topology for policy in job.policies)
    return any((job.group.spec.network_topology, *parts))


class Preemptor:
    """Serves one job after the other."""

    def __init__(self, ssn: Session, occupants: Occupants) -> None:
        self._ssn = ssn
        self._occupants = occupants
        arguments = ssn.arguments(NAME)
        build: Callable[..., Evictor] = partial(Evictor, order=by_score)
        if arguments.boolean("enableTopologyAwarePreemption", False):
            build = partial(DryRun, comparison=Comparison.parse(arguments))
        others, own = partial(_other_jobs, ssn, occupants), partial(_same_job, ssn, occupants)
        below = partial(_not_above, ssn)
        self._others = build(ssn, NAME, ssn.points.preemptable, others, limit=below)
        self._own = build(ssn, NAME, ssn.points.preemptable, own)
        ssn.findings.warnings += arguments.faults.values()

    def serve(self, job: JobInfo, queue: QueueInfo) -> None:
        """Make room for the tasks that a job lacks; keep it if the job can start then."""
        ssn, statement, tasks = self._ssn, self._ssn.statement(), waiting(self._ssn, job)
        while tasks and ssn.is_starving(job):
            held = self._occupants.of(queue.name)
            self._others.make_room(statement, tasks.popleft(), queue, held)
        conclude(ssn, NAME, job, statement, _rivals)

    def rearrange(self, job: JobInfo, queue: QueueInfo) -> None:
        """Let waiting tasks take the place of others of their job, until one finds none."""
        for task in waiting(self._ssn, job):
            statement, held = self._ssn.statement(), self._occupants.of(queue.name)
            if not self._own.make_room(statement, task, queue, held):
                return
            conclude(self._ssn, NAME, job, statement)


def _not_above(ssn: Session, task: Task, candidates: Sequence[Task]) -> Sequence[Task]:
    """Return those whose jobs are not more important than the job of the task."""
    own = ssn.job(task.job)
    return [
        other
        for other in candidates
        if own is not None
        and (job := ssn.job(other.job)) is not None
        and job.priority <= own.priority
    ]


def _rivals(ssn: Session, statement: Statement) -> frozenset[str]:
    """Return the queue of those that could take back at once what they lose in a statement."""
    promised = [task for task in statement.promised if task.preemptable]
    found = set()
    for job, tasks in losers(ssn, statement):
        asked = _not_above(ssn, tasks[-1], promised)
        if asked and ssn.preemptable(tasks[-1], asked):
            found.add(job.queue)
    return frozenset(found)


def _other_jobs(ssn: Session, occupants: Occupants, task: Task, i: int) -> list[Task]:
    return [t for t in _candidates(ssn, occupants, task, i) if t.job != task.job]


def _same_job(ssn: Session, occupants: Occupants, task: Task, i: int) -> list[Task]:
    return [t for t in _candidates(ssn, occupants, task, i) if t.job == task.job]


def _candidates(ssn: Session, occupants: Occupants, task: Task, i: int) -> list[Task]:
    """Return the tasks of the queue on a node; one that asks for nothing spares the others."""
    own = ssn.job(task.job)
    return [
        other
        for other in occupants.on(i)
        if not (task.cls.best_effort and not other.cls.best_effort)
        and own is not None
        and (job := ssn.job(other.job)) is not None
        and job.queue == own.queue
    ]
