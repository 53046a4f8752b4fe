"""
extender: let a policy server have its say.

For each verb that is configured, `extender.<point>Verb`, the session posts JSON to
`extender.urlPrefix` and the verb:

    onSessionOpen, onSessionClose   {"session", "jobs", "nodes", "queues"}    nothing
    predicate                       {"task", "node"}                {"status": "", "code": 0}
    prioritize                      {"task", "nodes"}               {"nodeScore": {node: score}}
    preemptable, reclaimable        {"evictor", "evictees"}         {"status", "victims": [uid]}
    queueOverused                   {"queue"}                       {"overused": false}
    jobEnqueueable                  {"job"}                         {"status": -1, 0 or 1}
    jobEnqueued                     {"job"}                         nothing
    jobReady                        {"job"}                         {"status": true}
    allocateFunc, deallocateFunc    {"task"}                        nothing

At the points about tasks it is asked of those that ask for one of `extender.managedResources`, of
all where none are named; tasks of a job that are alike are asked about as one. Where no answer is
had, everything passes if `extender.ignorable` is set; else nothing does: nodes are refused, votes
reject, queues are overused. A server that does not answer at onSessionOpen has no say in that
session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from pumice.core.conf import Arguments
from pumice.core.extension import (
    BatchNodeOrder,
    Code,
    Event,
    EventHandler,
    LivePredicate,
    PredicateResult,
    Refusal,
    Victims,
    Vote,
)
from pumice.core.jobs.durations import seconds
from pumice.core.model.jobs import JobInfo
from pumice.core.model.queues import QueueInfo
from pumice.core.model.tasks import Task, TaskClass
from pumice.core.outside import Json, Question
from pumice.core.plan import Reason
from pumice.core.resources import Floats, Ints, as_text
from pumice.core.session import Session

NAME = "extender"
POINTS: Final = (
    "onSessionOpen",
    "onSessionClose",
    "predicate",
    "prioritize",
    "preemptable",
    "reclaimable",
    "queueOverused",
    "jobEnqueueable",
    "jobEnqueued",
    "jobReady",
    "allocateFunc",
    "deallocateFunc",
)
NO_ANSWER: Final = "the policy server gave no answer"


class Extender:
    """The plugin."""

    name = NAME

    def __init__(self, args: Arguments) -> None:
        self.prefix = args.text("extender.urlPrefix").rstrip("/")
        self.timeout_s = seconds(args.text("extender.httpTimeout", "1s")) or 1.0
        self.ignorable = args.boolean("extender.ignorable", False)
        managed = args.raw.get("extender.managedResources")
        self.managed = frozenset(map(str, managed)) if isinstance(managed, list) else frozenset()
        verbs = {point: args.text(f"extender.{point}Verb").strip("/") for point in POINTS}
        self.verbs = {point: verb for point, verb in verbs.items() if verb}

    def on_session_open(self, ssn: Session) -> None:
        """Tell the server of the session, and register the points that have a verb."""
        if not self._is_there(ssn):
            ssn.findings.warnings.append(f"plugin {NAME}: {NO_ANSWER} at onSessionOpen")
            self.verbs = {}
            return
        self._register_tasks(ssn)
        self._register_jobs(ssn)

    def _is_there(self, ssn: Session) -> bool:
        """Return whether the server takes part in this session."""
        if "onSessionOpen" not in self.verbs:
            return True
        (answer,) = self._post(ssn, "onSessionOpen", [_world(ssn)])
        return answer is not None or self.ignorable

    def _register_tasks(self, ssn: Session) -> None:
        points, verbs = ssn.points, self.verbs

        def applies(cls: TaskClass) -> bool:
            return cls.example is not None and self._is_managed(ssn, cls)

        if "predicate" in verbs or "prioritize" in verbs:
            points.distinction[NAME] = lambda task: (task.job, task.role)
        if "predicate" in verbs:
            points.live_predicate[NAME] = LivePredicate(applies, lambda c: self.predicate(ssn, c))
        if "prioritize" in verbs:
            points.batch_node_order[NAME] = BatchNodeOrder(
                applies, lambda cls, at: self.prioritize(ssn, cls, at)
            )
        if "preemptable" in verbs:
            points.preemptable[NAME] = lambda t, others: self.victims(ssn, "preemptable", t, others)
        if "reclaimable" in verbs:
            points.reclaimable[NAME] = lambda t, others: self.victims(ssn, "reclaimable", t, others)
        if {"allocateFunc", "deallocateFunc"} & verbs.keys():
            ssn.listen(
                EventHandler(
                    lambda event: self._tell(ssn, "allocateFunc", event),
                    lambda event: self._tell(ssn, "deallocateFunc", event),
                )
            )

    def _register_jobs(self, ssn: Session) -> None:
        points, verbs = ssn.points, self.verbs
        if "queueOverused" in verbs:
            points.overused[NAME] = lambda queue: self.overused(ssn, queue)
        if "jobEnqueueable" in verbs:
            points.job_enqueueable[NAME] = lambda job: self.enqueueable(ssn, job)
        if "jobEnqueued" in verbs:

            def enqueued(job: JobInfo) -> None:
                self._post(ssn, "jobEnqueued", [{"job": _job(job)}])

            points.job_enqueued[NAME] = enqueued
        if "jobReady" in verbs:
            points.job_ready[NAME] = lambda job: self.ready(ssn, job)

    def on_session_close(self, ssn: Session) -> None:
        """Tell the server that the session is over."""
        if "onSessionClose" in self.verbs:
            self._post(ssn, "onSessionClose", [{"session": ssn.id}])

    def _post(self, ssn: Session, point: str, bodies: Sequence[Json]) -> Sequence[Json | None]:
        url = f"{self.prefix}/{self.verbs[point]}"
        return ssn.ask(Question(url, bodies, self.timeout_s))

    def _is_managed(self, ssn: Session, cls: TaskClass) -> bool:
        return not self.managed or any(ssn.names[row] in self.managed for row in cls.rows)

    def _tell(self, ssn: Session, point: str, event: Event) -> None:
        if point in self.verbs and self._is_managed(ssn, event.cls):
            self._post(ssn, point, [{"task": _task(ssn, task)} for task in event.tasks])

    # Tasks.

    def predicate(self, ssn: Session, cls: TaskClass) -> PredicateResult:
        """Ask of each node whether it may take the task."""
        bodies = [
            {"task": _example(ssn, cls), "node": _node(ssn, i)} for i in range(len(ssn.nodes))
        ]
        mask = np.ones(len(bodies), bool)
        refused: dict[tuple[Code, str], list[int]] = {}
        for i, answer in enumerate(self._post(ssn, "predicate", bodies)):
            why = self._refusal(answer)
            if why is not None:
                mask[i] = False
                refused.setdefault(why, []).append(i)
        reasons = []
        for (code, message), columns in refused.items():
            nodes = np.zeros(len(bodies), bool)
            nodes[columns] = True
            reasons.append(Refusal(code, message, nodes))
        return PredicateResult(mask, tuple(reasons))

    def _refusal(self, answer: Json | None) -> tuple[Code, str] | None:
        if answer is None:
            return None if self.ignorable else (Code.ERROR, NO_ANSWER)
        text, code = answer.get("status"), answer.get("code")
        if not text and not code:
            return None
        known = next((c for c in Code if c == code), Code.ERROR)
        return (known, str(text or "refused by the policy server"))

    def prioritize(self, ssn: Session, cls: TaskClass, at: Ints) -> Floats:
        """Ask what the candidates score; nothing where no answer is had."""
        nodes = [_node(ssn, int(i)) for i in at]
        (answer,) = self._post(ssn, "prioritize", [{"task": _example(ssn, cls), "nodes": nodes}])
        scores = (answer or {}).get("nodeScore")
        found = scores if isinstance(scores, Mapping) else {}
        return np.array([_number(found.get(ssn.nodes.names[int(i)])) for i in at])

    def victims(
        self, ssn: Session, point: str, asking: Task, candidates: Sequence[Task]
    ) -> Victims:
        """Ask who of the candidates may go."""
        if not self._is_managed(ssn, asking.cls):
            return (), Vote.ABSTAIN
        evictees = [_task(ssn, task) for task in candidates]
        body = {"evictor": _task(ssn, asking), "evictees": evictees}
        (answer,) = self._post(ssn, point, [body])
        if answer is None:
            return (candidates, Vote.PERMIT) if self.ignorable else ((), Vote.REJECT)
        chosen = answer.get("victims")
        uids = frozenset(chosen) if isinstance(chosen, list) else frozenset()
        return [task for task in candidates if task.uid in uids], _vote(answer.get("status"))

    # Jobs and queues.

    def overused(self, ssn: Session, queue: QueueInfo) -> bool:
        """Ask whether a queue has had all that it may have."""
        body = {"queue": {"name": queue.name, "weight": queue.weight}}
        (answer,) = self._post(ssn, "queueOverused", [body])
        return not self.ignorable if answer is None else bool(answer.get("overused"))

    def enqueueable(self, ssn: Session, job: JobInfo) -> tuple[Vote, Reason | None]:
        """Ask whether a group may be let in."""
        (answer,) = self._post(ssn, "jobEnqueueable", [{"job": _job(job)}])
        if answer is None:
            vote, why = Vote.PERMIT if self.ignorable else Vote.REJECT, NO_ANSWER
        else:
            vote, why = _vote(answer.get("status")), "rejected by the policy server"
        return vote, Reason("enqueue", NAME, why) if vote is Vote.REJECT else None

    def ready(self, ssn: Session, job: JobInfo) -> bool:
        """Ask whether a job may start."""
        (answer,) = self._post(ssn, "jobReady", [{"job": _job(job)}])
        return self.ignorable if answer is None else bool(answer.get("status"))


def _vote(status: object) -> Vote:
    """Return a vote by its number, or its sign where it has another one."""
    number = _number(status)
    return Vote((number > 0) - (number < 0))


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _world(ssn: Session) -> Json:
    return {
        "session": ssn.id,
        "jobs": [_job(job) for job in ssn.active],
        "nodes": [_node(ssn, i) for i in range(len(ssn.nodes))],
        "queues": [{"name": q.name, "weight": q.weight} for q in ssn.queues.values()],
    }


def _job(job: JobInfo) -> Json:
    return {
        "namespace": job.group.metadata.namespace,
        "name": job.name,
        "uid": job.uid,
        "queue": job.queue,
        "priority": job.priority,
        "minAvailable": job.min_available,
        "phase": job.phase,
        "tasks": {status.title: n for status, n in job.counts.total.by_status.items()},
    }


def _example(ssn: Session, cls: TaskClass) -> Json:
    return _task(ssn, cls.example) if cls.example else {}


def _task(ssn: Session, task: Task) -> Json:
    return {
        "namespace": task.namespace,
        "name": task.name,
        "uid": task.uid,
        "job": task.job,
        "role": task.role,
        "priority": task.priority,
        "status": task.status.title,
        "node": task.node,
        "requests": _amounts(ssn, enumerate(task.cls.req)),
    }


def _node(ssn: Session, i: int) -> Json:
    info = ssn.nodes.infos[i]
    return {
        "name": info.name,
        "labels": dict(info.labels),
        "allocatable": _amounts(ssn, enumerate(ssn.nodes.alloc[:, i])),
        "used": _amounts(ssn, enumerate(ssn.nodes.used[:, i])),
    }


def _amounts(ssn: Session, amounts: Iterable[tuple[int, float]]) -> dict[str, str]:
    return {ssn.names[row]: as_text(ssn.names[row], float(a)) for row, a in amounts if a}
