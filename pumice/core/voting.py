"""
Voting: what plugins are asked, and how their answers become one answer.

The rules are Volcano's, its quirks included. Plugins are asked by tier: tiers top to bottom,
plugins in the order in which they are listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pumice.core.extension import Enqueueable, Evictable, Point, Points, Victims, Vote
from pumice.core.findings import Findings
from pumice.core.model.jobs import JobInfo, SubJob
from pumice.core.model.queues import QueueInfo
from pumice.core.model.tasks import Task, TaskClass

F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Agreement:
    """Tasks that may go, in order, and the place of the tier that says so."""

    victims: list[Task]
    tier: int = 0


def accepted(tiers: Iterable[Iterable[F]], ask: Callable[[F], Vote]) -> bool:
    """
    Return whether the plugins accept.

    The first rejection rejects. A tier with a permission closes the vote, so a rejection below
    it is not heard. If nobody has an opinion, it is accepted.
    """
    for tier in tiers:
        permitted = False
        for function in tier:
            vote = ask(function)
            if vote < 0:
                return False
            permitted |= vote > 0
        if permitted:
            return True
    return True


def first_tier(tiers: Iterable[Sequence[F]], ask: Callable[[F], bool]) -> bool:
    """Return whether all of the first tier that has any say yes; False where there is none."""
    for tier in tiers:
        if tier:
            return all(ask(function) for function in tier)
    return False


def victims(tiers: Iterable[Iterable[F]], ask: Callable[[F], Victims]) -> Agreement:
    """
    Return the victims that the plugins agree on.

    Within a tier the lists are intersected, in the order of the first; plugins that abstain are
    passed over. A plugin that offers nobody ends its tier, and the next one is asked afresh. Where
    an intersection becomes empty, the next plugin of the same tier starts anew with its own list.
    """
    for place, tier in enumerate(tiers):
        agreed: list[Task] | None = None
        for function in tier:
            offered, vote = ask(function)
            if vote is Vote.ABSTAIN:
                continue
            if not offered:
                agreed = None
                break
            if agreed is None:
                agreed = list(offered)
            else:
                uids = {task.uid for task in offered}
                agreed = [task for task in agreed if task.uid in uids] or None
        if agreed is not None:
            return Agreement(agreed, place)
    return Agreement([])


def union_of_first(tiers: Iterable[Iterable[F]], ask: Callable[[F], Sequence[Task]]) -> Agreement:
    """Return the victims of the first tier that has any, each once."""
    for place, tier in enumerate(tiers):
        found = {task.uid: task for function in tier for task in ask(function)}
        if found:
            return Agreement(list(found.values()), place)
    return Agreement([])


class Voting:
    """Puts the questions of a session to its plugins."""

    def __init__(self, points: Points, findings: Findings) -> None:
        self.points = points
        #: what is to be told when the session closes
        self.findings = findings

    def is_valid(self, job: JobInfo) -> bool:
        """Return whether the job is fit to be scheduled; write down why, where it is not."""
        for check in self.points.job_valid.all:
            fault = check(job)
            if fault is not None:
                trouble = self.findings.trouble(job)
                trouble.message, trouble.invalid = fault.message, fault.reason
                return False
        return True

    def is_ready(self, job: JobInfo) -> bool:
        """Return whether the job may start."""
        return all(ready(job) for ready in self.points.job_ready.all)

    def is_pipelined(self, job: JobInfo) -> bool:
        """Return whether the job may start once what it waits for is free."""
        return accepted(self.points.job_pipelined.tiers, lambda fn: fn(job))

    def is_sub_job_ready(self, job: JobInfo, sub_job: SubJob | None) -> bool:
        """Return whether the sub-job may start; a job without policies is its own sub-job."""
        if sub_job is None:
            return self.is_ready(job)
        return all(ready(job, sub_job) for ready in self.points.sub_job_ready)

    def is_sub_job_pipelined(self, job: JobInfo, sub_job: SubJob | None) -> bool:
        """Return whether the sub-job may start once what it waits for is free."""
        if sub_job is None:
            return self.is_pipelined(job)
        return accepted(self.points.sub_job_pipelined.tiers, lambda fn: fn(job, sub_job))

    def is_starving(self, job: JobInfo) -> bool:
        """Return whether the job may evict others."""
        return first_tier(self.points.job_starving.tiers, lambda fn: fn(job))

    def is_overused(self, queue: QueueInfo) -> bool:
        """Return whether the queue has had all that it may have."""
        return any(overused(queue) for overused in self.points.overused.all)

    def allocatable(self, queue: QueueInfo, cls: TaskClass, n: int) -> int:
        """Return how many of `n` tasks of a class the queue may have, one after the other."""
        for allocatable in self.points.allocatable.all:
            n = min(n, allocatable(queue, cls, n))
        return n

    def simulate_allocatable(self, queue: QueueInfo, cls: TaskClass, n: int) -> int:
        """Return the same while evictions are tried out."""
        for allocatable in self.points.simulate_allocatable:
            n = min(n, allocatable(queue, cls, n))
        return n

    def is_preemptive(self, queue: QueueInfo, tasks: Sequence[Task]) -> bool:
        """Return whether the queue may take room from others for these tasks."""
        return all(preemptive(queue, tasks) for preemptive in self.points.preemptive)

    def is_enqueueable(self, job: JobInfo) -> bool:
        """Return whether the group may be let into its queue; who refuses says why."""

        def ask(enqueueable: Enqueueable) -> Vote:
            vote, reason = enqueueable(job)
            if vote is Vote.REJECT and reason is not None:
                trouble = self.findings.trouble(job)
                trouble.message, trouble.by_queue = reason.message, True
                trouble.detail, trouble.plugin = reason.detail, reason.plugin
                trouble.numbers.update(reason.numbers)
            return vote

        return accepted(self.points.job_enqueueable.tiers, ask)

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> list[Task]:
        """Return the tasks of the own queue that may go for `preemptor`."""
        return self.agree(self.points.preemptable, preemptor, candidates).victims

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> list[Task]:
        """Return the tasks of other queues that may go for `reclaimer`."""
        spare = self.beyond_due(reclaimer, candidates)
        return self.agree(self.points.reclaimable, reclaimer, spare).victims

    def beyond_due(self, reclaimer: Task, candidates: Sequence[Task]) -> Sequence[Task]:
        """Return the tasks that their queues need not have, in the order given or a better one."""
        for choose in self.points.beyond_due:
            candidates, _ = choose(reclaimer, candidates)
        return candidates

    def agree(self, point: Point[Evictable], asker: Task, candidates: Sequence[Task]) -> Agreement:
        """Return what may go for `asker` by the plugins of an extension point, and who says so."""
        return victims(point.tiers, lambda fn: fn(asker, candidates))

    def unified_evictable(
        self, action: str, job: JobInfo, candidates: Sequence[Task]
    ) -> list[Task]:
        """Return the tasks that may go for a whole gang."""
        return self.agree_for_gang(action, job, candidates).victims

    def agree_for_gang(self, action: str, job: JobInfo, candidates: Sequence[Task]) -> Agreement:
        """Return the tasks that may go for a whole gang, and who says so."""
        tiers = self.points.unified_evictable.tiers
        return victims(tiers, lambda fn: fn(action, job, candidates))

    def victim_tasks(self, tasks: Sequence[Task]) -> list[Task]:
        """Return the running tasks that should be somewhere else."""
        return self.misplaced(tasks).victims

    def misplaced(self, tasks: Sequence[Task]) -> Agreement:
        """Return the running tasks that should be somewhere else and may go, and who says so."""
        named = union_of_first(self.points.victim_tasks.tiers, lambda fn: fn(tasks))
        for allowed in self.points.victim_limits:
            named = replace(named, victims=list(allowed(named.victims)))
        return named

    def target_job(self, jobs: Sequence[JobInfo]) -> JobInfo | None:
        """Return the job to reserve for, by the first plugin that has a say."""
        return next((choose(jobs) for choose in self.points.target_job), None)
