"""
Making room for whole gangs: what gangpreempt and gangreclaim have in common.

All that waits of a gang is placed in one domain of the network, on whatever nodes of it. Domains
are tried in the order in which the plugins list them. Room that is free is taken before anybody
has to go. Then, in one domain after the other, bundles are taken (see `bundles`) until the gang
finds room; and what need not have gone for it is let stay: of safe bundles each task by itself,
whole ones as they are.

What is done for a gang is kept if it can start with it, or else undone to the last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from pumice.core.actions.bundles import Bundle, bundles_of, total
from pumice.core.actions.rivals import Rivals, nobody, queue_of
from pumice.core.actions.victims import conclude, is_eligible
from pumice.core.actions.worksheets import worksheet
from pumice.core.ids import JobKey
from pumice.core.model.hypernodes import TOP
from pumice.core.model.jobs import JobInfo, SubJob
from pumice.core.model.queues import QueueInfo
from pumice.core.model.tasks import Task, is_preemptable
from pumice.core.orders import OrderKey
from pumice.core.plan import Reason
from pumice.core.resources import PODS, Floats, Ints, fits, pad
from pumice.core.session import Session
from pumice.core.statement import Statement
from pumice.core.voting import Agreement

DOMAINS = 8
Part = tuple[SubJob | None, list[Task]]
"""What waits of a sub-job; None where the job is its own."""

Candidates = Callable[[JobInfo, int], list[Task]]
"""(job that wants the room, column) -> those on the node that the action may send off."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How many domains an action tries, and whether it may break jobs."""

    domains: int
    whole: bool

    @classmethod
    def of(cls, ssn: Session, action: str) -> Extent:
        """Read the arguments; a number of domains that is not positive counts as not given."""
        args = ssn.arguments(action)
        domains, whole = args.integer("maxDomains", DOMAINS), args.boolean("allowWholeBundle", True)
        ssn.findings.warnings += args.faults.values()
        return cls(domains if domains > 0 else DOMAINS, whole)


@dataclass(slots=True)
class GangEvictor:
    """One action's way of making room: who may go, and in which order."""

    ssn: Session
    action: str
    extent: Extent
    candidates: Candidates
    #: (bundle, job that wants the room): its place among those that are all safe, or all whole
    order: Callable[[Bundle, JobInfo], OrderKey]
    #: who could take back what was done for a job
    rivals: Rivals = nobody
    #: queues whose tasks stay
    passed: frozenset[str] = frozenset()
    #: kinds of jobs that found no room: how much had changed by then, and whose room was let be
    _hopeless: dict[tuple[object, ...], tuple[int, frozenset[str]]] = field(default_factory=dict)

    def serve(self, job: JobInfo, queue: QueueInfo, held: Floats) -> None:
        """
        Make room for all that waits of a job; keep it if the job can start then.

        `held` is what those may hold, by node (R, N), who might go for it: an upper bound.
        """
        parts = waiting_parts(self.ssn, job)
        tasks = [task for _, part in parts for task in part]
        if not tasks or not all(map(self._is_eligible, tasks)):
            return
        kind = self._kind(job, tasks)
        changed, rivals = self._hopeless.get(kind, (-1, frozenset()))
        if changed == len(self.ssn.space.changed):
            self._let_be(job, rivals)
            return
        search = Search(self, job, queue, parts, total(tasks, self.ssn.nodes.rows))
        self.passed = frozenset()
        while search.run(statement := self.ssn.statement(), held):
            found = conclude(self.ssn, self.action, job, statement, self.rivals)
            if not found:
                return
            self.passed |= found
        self._hopeless[kind] = len(self.ssn.space.changed), self.passed
        self._let_be(job, self.passed)

    def _let_be(self, job: JobInfo, rivals: frozenset[str]) -> None:
        """Write down whose room the job does not get."""
        if rivals:
            self.ssn.trouble(job).rivals = tuple(sorted(rivals))

    def _is_eligible(self, task: Task) -> bool:
        return is_eligible(self.ssn, task, self.ssn.views.of_task(task))

    def _kind(self, job: JobInfo, tasks: Sequence[Task]) -> tuple[object, ...]:
        """Return all of a job that decides where room can be made for it."""
        views = self.ssn.views
        return (
            job.queue,
            job.priority,
            job.preemptable,
            job.min_available,
            job.allocated.tobytes(),
            job.promised.tobytes(),
            tuple((views.of_task(t), t.priority, t.role) for t in tasks),
            job.key if is_bounded(job) or any(t.nominated for t in tasks) else None,
        )


@dataclass(slots=True)
class Search:
    """The search for room for one job."""

    evictor: GangEvictor
    job: JobInfo
    queue: QueueInfo
    parts: Sequence[Part]
    need: Floats

    @property
    def ssn(self) -> Session:
        """Return the session."""
        return self.evictor.ssn

    def run(self, statement: Statement, held: Floats) -> bool:
        """Make room in the first domain where that is possible; return whether there is one."""
        domains = self._domains()
        free = any(self._place(statement, domain, evicted=False) for domain in domains)
        return free or any(self._evict(statement, domain, held) for domain in domains)

    def _domains(self) -> list[str]:
        gradients = self.ssn.gradients(self.job, TOP, "evict")
        found = dict.fromkeys(domain for gradient in gradients for domain in gradient)
        return list(found)[: self.evictor.extent.domains]

    def _evict(self, statement: Statement, domain: str, held: Floats) -> bool:
        """Take bundles in a domain until the job finds room there; none where all do not do."""
        ssn, at = self.ssn, self._columns(domain)
        room = np.maximum(ssn.nodes.future_idle[:, at], 0.0).sum(axis=1)
        if not fits(self.need, room + held[:, at].sum(axis=1)):
            return False
        part = ssn.statement()
        bundles, agreed = self._bundles(at[held[PODS, at] >= 1])
        for bundle in bundles:
            unit = bundle.tasks[0].uid if bundle.whole else None
            for task in bundle.tasks:
                part.evict(task, self._reason(task, domain, bundle, agreed), unit)
            room += bundle.frees(room.size)
            if fits(self.need, room) and self._place(part, domain, evicted=True):
                statement.merge(part)
                return True
        part.discard()
        return False

    def _bundles(self, at: Ints) -> tuple[list[Bundle], Agreement]:
        """Return the bundles on the nodes `at`, those to be taken first in front."""
        ssn, action = self.ssn, self.evictor.action
        by_job: dict[JobKey | None, list[Task]] = {}
        for i in at.tolist():
            for task in self.evictor.candidates(self.job, i):
                if queue_of(ssn, task) not in self.evictor.passed:
                    by_job.setdefault(task.job, []).append(task)
        jobs = ((ssn.job(key), tasks) for key, tasks in by_job.items())
        found = [b for job, tasks in jobs if job is not None for b in bundles_of(job, tasks)]
        if not self.evictor.extent.whole:
            found = [bundle for bundle in found if not bundle.whole]
        found.sort(key=self._place_of)
        candidates = [task for bundle in found for task in bundle.tasks]
        agreed = ssn.agree_for_gang(action, self.job, candidates)
        allowed = {task.uid for task in agreed.victims}
        left = (bundle.among(allowed) for bundle in found)
        return [bundle for bundle in left if bundle is not None], agreed

    def _place_of(self, bundle: Bundle) -> OrderKey:
        first = self.evictor.order(bundle, self.job)
        return (bundle.whole, *first, -bundle.worth(self.need), bundle.job.uid)

    def _place(self, statement: Statement, domain: str, *, evicted: bool) -> bool:
        """
        Promise what waits room in a domain; return whether the job can start then.

        A sub-job that finds no room is passed over; where the job cannot start, nothing is kept.
        """
        whole = self.ssn.statement()
        for sub_job, tasks in self.parts:
            domains = self._sub_domains(sub_job, domain)
            if any(self._place_part(whole, sub_job, tasks, d, evicted) for d in domains) and (
                self.ssn.is_pipelined(self.job)
            ):
                statement.merge(whole)
                return True
        whole.discard()
        return False

    def _sub_domains(self, sub_job: SubJob | None, domain: str) -> list[str]:
        gradients = self.ssn.sub_job_gradients(self.job, sub_job, domain, "evict")
        return [name for gradient in gradients for name in gradient]

    def _place_part(
        self,
        statement: Statement,
        sub_job: SubJob | None,
        tasks: Sequence[Task],
        domain: str,
        evicted: bool,
    ) -> bool:
        """Promise room to all that waits of a sub-job; return whether it can start then."""
        ssn, part, within = self.ssn, self.ssn.statement(), self.ssn.domains.columns(domain)
        for task in tasks:
            picks = ssn.views.of_task(task).best_candidate(within)
            if not picks or not ssn.allocatable(self.queue, task.cls, 1):
                part.discard()
                return False
            part.pipeline([task], picks, evicted=evicted)
        if ssn.is_sub_job_pipelined(self.job, sub_job):
            statement.merge(part)
            return True
        part.discard()
        return False

    def _columns(self, domain: str) -> Ints:
        columns = self.ssn.domains.columns(domain)
        return np.arange(len(self.ssn.nodes)) if columns is None else columns

    def _reason(self, task: Task, domain: str, bundle: Bundle, agreed: Agreement) -> Reason:
        tier, plugins = self.ssn.points.unified_evictable.authors[agreed.tier]
        where = "" if domain == TOP else f" in {domain}"
        amounts = {"asked": self.need, "freed": pad(task.cls.req, self.need.size)}
        numbers = {
            f"{word} {self.ssn.names[row]}": float(amount[row])
            for row in np.flatnonzero(self.need)
            if row != PODS
            for word, amount in amounts.items()
        }
        kind = "its job breaks" if bundle.whole else "its job can spare it"
        message = f"{self.job.key} needs room{where}, {kind}"
        return Reason(
            self.evictor.action,
            ", ".join(plugins),
            message,
            numbers,
            sake=self.job.key,
            tier=tier,
        )


def waiting_parts(ssn: Session, job: JobInfo) -> list[Part]:
    """Return what waits of a job, by sub-job, in order; of one that is ready the first alone."""
    sheet = worksheet(ssn, job)
    parts: list[Part] = [(None, list(sheet.tasks))] if sheet.tasks else []
    while sheet.sub_jobs:
        sub_job, tasks = sheet.next_sub_job()
        parts.append((sub_job, list(tasks)))
    return parts[:1] if ssn.is_ready(job) else parts


def may_lose(job: JobInfo) -> bool:
    """Return whether a job may lose tasks to a gang: its group does not say that it may not."""
    meta = job.group.metadata
    return is_preemptable(meta.annotations or {}, meta.labels or {}, default=True)


def is_bounded(job: JobInfo) -> bool:
    """Return whether it matters where in the network the job's other tasks are."""
    return bool(job.policies) or job.group.spec.network_topology is not None
