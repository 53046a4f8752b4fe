"""
Searching HyperNodes for one that holds a job.

The plugins name the HyperNodes to try, the lowest tiers first. In each of a tier the job is tried
as if it were the only one: sub-job after sub-job, each in the best HyperNode inside it that takes
the sub-job, until the job is ready. Of those in which the job can start, now or once promises come
true, the one is taken in which its sub-jobs score most; the next tier is tried where there is none.

A HyperNode's score for a sub-job does not depend on where in it the tasks go. So a sub-job tries
them by score and stays in the first that takes it, which is what comparing all would come to; so
does a job that is its own sub-job.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from pumice.core.actions.placing import Attempt
from pumice.core.actions.worksheets import Worksheet
from pumice.core.bounds import Bound, Standing
from pumice.core.extension import Gradients
from pumice.core.fitness import Confinement, Cramped
from pumice.core.model.hypernodes import TOP, HyperTree
from pumice.core.model.jobs import JobInfo, SubJob
from pumice.core.model.queues import QueueInfo
from pumice.core.model.tasks import Task
from pumice.core.resources import Floats, pad, shortages
from pumice.core.session import Session
from pumice.core.statement import Operation, Statement


@dataclass(frozen=True, slots=True)
class Trial:
    """What was done in one HyperNode, and undone again; the worksheet that it left."""

    operations: Sequence[Operation]
    score: float
    sheet: Worksheet


@dataclass(slots=True)
class Search:
    """One job's turn. What is placed is taken off its worksheet."""

    ssn: Session
    job: JobInfo
    queue: QueueInfo
    sheet: Worksheet
    #: HyperNodes that do not take the job as it stands, of a job that is its own sub-job
    _useless: set[str] = field(default_factory=set)

    def run(self) -> Statement | None:
        """Return a statement with which the job can start, now or later; None if there is none."""
        known = self.ssn.findings.troubles.get(self.job.key)
        if known is not None:
            known.confined = None
        search = self._by_parts if self.job.policies else self._as_one
        gradients = self.ssn.gradients(self.job, TOP, "allocate")
        for gradient in self._promised_first(gradients, self.sheet.nominated):
            statement = search(gradient)
            if statement is not None:
                return statement
        self._explain()
        return None

    def _as_one(self, gradient: Sequence[str]) -> Statement | None:
        """Place a job that is its own sub-job."""
        for hypernode, _ in self._ranked(None, gradient):
            found = self._place(None, self.sheet.tasks, hypernode, self.sheet.failed_roles)
            if found is not None:
                self.sheet.tasks = found[2]
                return found[0]
        return None

    def _by_parts(self, gradient: Sequence[str]) -> Statement | None:
        """Place a job of several sub-jobs in the best HyperNode that takes it."""
        trials = []
        for hypernode in gradient:
            sheet = self.sheet.copy()
            statement, score = self._try(hypernode, sheet)
            if not statement:
                continue
            if len(gradient) == 1:
                self.sheet.adopt(sheet)
                return statement
            trials.append(Trial(statement.save(), score, sheet))
            statement.discard()
        if not trials:
            return None
        best = max(trials, key=lambda trial: trial.score)
        statement = self.ssn.statement()
        statement.replay(best.operations)
        self.sheet.adopt(best.sheet)
        return statement

    def _try(self, hypernode: str, sheet: Worksheet) -> tuple[Statement, float]:
        """
        Place sub-job after sub-job until the job is ready; return that and the sum of scores.

        A sub-job that cannot be made ready gives back what it took and is out of this try; one that
        can has another turn while it has tasks. The statement is empty where the job cannot start.
        """
        ssn, job, whole, total = self.ssn, self.job, self.ssn.statement(), 0.0
        failed: dict[str, set[str]] = defaultdict(set)
        while sheet.sub_jobs:
            sub_job, tasks = sheet.next_sub_job()
            found = self._place(sub_job, tasks, hypernode, failed[sub_job.id])
            if found is None:
                continue
            part, score, left = found
            whole.merge(part)
            total += score
            if left:
                sheet.put_sub_job(ssn, job, sub_job, left)
            if ssn.is_ready(job):
                break
        if not (ssn.is_ready(job) or ssn.is_pipelined(job)):
            whole.discard()
        return whole, total

    def _place(
        self, sub_job: SubJob | None, tasks: deque[Task], within: str, failed: set[str]
    ) -> tuple[Statement, float, deque[Task]] | None:
        """Place a sub-job inside a HyperNode; return that, the score, and the tasks left to do."""
        gradients = self.ssn.sub_job_gradients(self.job, sub_job, within, "allocate")
        for gradient in self._promised_first(gradients, tasks):
            for hypernode, score in self._ranked(sub_job, gradient):
                if hypernode in self._useless:
                    continue
                attempt = self._attempt(sub_job, deque(tasks), hypernode, failed)
                statement = attempt.run()
                if statement:
                    return statement, score, attempt.tasks
                self._note(sub_job, hypernode, attempt.placed)
        return None

    def _promised_first(self, gradients: Gradients, tasks: Iterable[Task]) -> Gradients:
        """Put the HyperNodes in front that hold all nodes to which tasks are nominated."""
        index, domains = self.ssn.nodes.index, self.ssn.domains
        at = [index[task.nominated] for task in tasks if task.nominated in index]
        if not at:
            return gradients
        names = [name for gradient in gradients for name in gradient]
        columns = ((name, domains.columns(name)) for name in names)
        return [[name] for name, c in columns if c is None or np.isin(at, c).all()] + gradients

    def _attempt(
        self, sub_job: SubJob | None, tasks: deque[Task], hypernode: str, failed: set[str]
    ) -> Attempt:
        if hypernode == TOP:
            return Attempt(
                self.ssn, self.job, sub_job, self.queue, tasks, self.ssn.statement(), failed
            )
        trouble = self.ssn.findings.troubles.get(self.job.key)
        if trouble is not None and trouble.tasks:
            for task in tasks:
                trouble.tasks.pop(task.uid, None)
        return Attempt(
            self.ssn,
            self.job,
            sub_job,
            self.queue,
            tasks,
            self.ssn.statement(),
            set(),
            hypernode,
            self.ssn.domains.columns(hypernode),
        )

    def _ranked(
        self, sub_job: SubJob | None, gradient: Sequence[str]
    ) -> Iterator[tuple[str, float]]:
        """Yield HyperNodes, each time the best of those that are left, the first among equals."""
        left = list(gradient)
        if len(left) == 1 and not self.job.policies:
            yield left.pop(), 0.0  # nobody will compare it
        while left:
            scores = self.ssn.hyper_node_scores(self.job, sub_job, left)
            best = max(range(len(left)), key=scores.__getitem__)
            yield left.pop(best), scores[best]

    # Why there is no HyperNode.

    def _note(self, sub_job: SubJob | None, hypernode: str, placed: int) -> None:
        """Write down how many tasks found a node in a HyperNode."""
        if sub_job is None:
            self._useless.add(hypernode)
        confined = self._confined(sub_job)
        if confined is not None:
            confined.tried[hypernode] = Cramped(found=placed)

    def _confined(self, sub_job: SubJob | None) -> Confinement | None:
        """Return what is known of the first sub-job that found no HyperNode; None for others."""
        trouble, name = self.ssn.trouble(self.job), _name(sub_job)
        if trouble.confined is None:
            bound = self.ssn.domains.standings(self.job).innermost(name)
            if bound is None:
                return None
            least = sub_job.min_available if sub_job is not None else self.job.min_available
            counts = self.job.counts
            ready = counts.sub_jobs[name].ready if name else counts.total.ready
            trouble.confined = Confinement(bound[0].text, name, max(least - ready, 1))
        return trouble.confined if trouble.confined.part == name else None

    def _explain(self) -> None:
        """Write down why there was no HyperNode to try, or why others were of no use."""
        trouble, domains = self.ssn.trouble(self.job), self.ssn.domains
        sub_job = self.sheet.sub_jobs[0][1] if self.sheet.sub_jobs else None
        if trouble.confined is not None:
            sub_job = self.job.sub_jobs.get(trouble.confined.part)
        name, standings = _name(sub_job), domains.standings(self.job)
        for bound, standing in standings.hard(name):
            if not domains.reach(standing, bound, domains.tree.top).size:
                trouble.message = _missing(domains.tree, bound, standing)
                return
        innermost, confined = standings.innermost(name), self._confined(sub_job)
        if innermost is None or confined is None:
            return
        bound, standing = innermost
        needs = [domains.asked(self.job, name).pending]
        if self.job.min_resources is not None:
            needs.append(self.job.min_resources)
        idle = domains.idle
        for h in domains.reach(standing, bound, domains.tree.top).tolist():
            lacks = [lack for need in needs if (lack := _lack(self.ssn.names, need, idle[:, h]))]
            if lacks:
                confined.tried.setdefault(domains.tree.names[h], lacks[0])


def _name(sub_job: SubJob | None) -> str:
    return sub_job.id if sub_job is not None else ""


def _lack(names: Sequence[str], need: Floats, room: Floats) -> Cramped | None:
    """Return the first resource of which a HyperNode has not enough, if any."""
    need = pad(need, room.size)
    row = next(iter(shortages(need, room)), None)
    if row is None:
        return None
    return Cramped(short=names[row], asked=float(need[row]), free=max(float(room[row]), 0.0))


def _missing(tree: HyperTree, bound: Bound, standing: Standing) -> str:
    """Return why there is not a single HyperNode to try."""
    if tree.is_bare:
        return f"the pods must be within one HyperNode of {bound.text}, and there are no HyperNodes"
    if standing.total and bound.tier >= int(tree.tiers[0]):
        return f"pods that have a node already are not within one HyperNode of {bound.text}"
    return f"the pods must be within one HyperNode of {bound.text}, and there is none"
