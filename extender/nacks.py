"""
Nacks: members that kube-scheduler cannot place, and gangs that wait for one in vain.

A Released pod is refused when its PodScheduled condition differs from what it was at release
and this has lasted for `REFUSED_S`: a level, not an edge, since an identical second refusal
writes nothing and an accepted pod still shows its old condition. A pod that stays silent while
kube-scheduler goes on with others released after it was missed by that rule, and is refused
after `SILENT_S`.

A refused member is replaced, and its node avoided where nothing known here keeps the pod off. Where
the gang finds no other node for it within `GIVE_UP_S`, all its Released and Arrived members are
replaced and their room returns.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from extender.barrier import REPLACED, Barrier
from extender.model import Model
from extender.releases import Releases
from pumice.core.ids import JobKey
from pumice.core.ledger import Entry, State
from pumice.core.readiness import job_ready

REFUSED_S = 3.0
SILENT_S = 60.0
GIVE_UP_S = 60.0
REMEMBERED = 100
"""Refused pods of a job whose last refusal is remembered."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """When (monotonic) kube-scheduler would not have a pod on its node, and its words for it."""

    at: float
    pod: str
    node: str
    reason: str
    message: str


@dataclass(slots=True)
class Nacks:
    """Looks at the pods that are on their way, a few times a second."""

    model: Model
    releases: Releases
    barrier: Barrier
    #: job -> since when it has members on their way and is not whole even with them
    starved: dict[JobKey, float] = field(default_factory=dict)
    #: job -> name of a pod -> its last nack, those of the newest last; for explanations
    last: dict[JobKey, dict[str, Refusal]] = field(default_factory=dict)

    def check(self) -> None:
        """Replace the members that were refused; give up the gangs that wait in vain."""
        now = self.model.now()
        entries = self.model.ledger.in_flight_entries()
        released = [e for e in entries if e.state is State.RELEASED and not e.leaving]
        newest_arrival = max((e.since for e in entries if e.state is State.ARRIVED), default=0.0)
        for entry in released:
            if self._is_refused(entry, now, newest_arrival):
                self._nack(entry, now)
        self._give_up({e.job for e in entries if e.job is not None}, now)
        for job in self.last.keys() - self.model.cluster.jobs.keys():
            del self.last[job]

    def _is_refused(self, entry: Entry, now: float, newest_arrival: float) -> bool:
        if entry.refused_since is not None:
            return now - entry.refused_since >= REFUSED_S
        if entry.gated or entry.in_prebind:
            return False
        return now - entry.since >= SILENT_S and newest_arrival > entry.since

    def _nack(self, entry: Entry, now: float) -> None:
        reason, message = entry.verdict
        if entry.job is not None:
            refusals = self.last.setdefault(entry.job, {})
            refusals.pop(entry.name, None)
            refusals[entry.name] = Refusal(now, entry.name, entry.node, reason, message)
            if len(refusals) > REMEMBERED:
                del refusals[next(iter(refusals))]
        # Were nobody to be asked for another pod, this one is refused again after a while.
        entry.refused_since = entry.since = now
        self.releases.replace(entry.uid, entry.node)

    def _give_up(self, jobs: set[JobKey], now: float) -> None:
        for job in self.starved.keys() - jobs:
            del self.starved[job]
        for job in jobs:
            info = self.model.cluster.jobs.get(job)
            if info is not None and job_ready(info):
                self.starved.pop(job, None)
            elif now - self.starved.setdefault(job, now) >= GIVE_UP_S:
                del self.starved[job]
                self._return_room(job)

    def _return_room(self, job: JobKey) -> None:
        self.releases.forget(job)
        for entry in list(self.model.ledger.of_job(job)):
            if entry.state is State.ARRIVED:
                self.barrier.refuse(entry.uid, REPLACED)
            elif entry.state is State.RELEASED:
                self.releases.replace(entry.uid, "")
            elif entry.planned:
                self.model.unplan(entry.uid)
