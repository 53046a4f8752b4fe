"""
Nacks: members that kube-scheduler cannot place, and gangs that wait for one in vain.

A Released pod is refused when its PodScheduled condition differs from what it was at release
and this has lasted for `REFUSED_S`: a level, not an edge, since an identical second refusal
writes nothing and an accepted pod still shows its old condition. An error (a call that was lost)
says nothing of the node, and the pod rests before it is tried again; so may a pod that
kube-scheduler had before it was planned: they have `RESTS_S`. A pod that stays silent while
kube-scheduler goes on with others released after it was missed by that rule, and is refused
after `SILENT_S`; one with claims after `BINDING_S`, since kube-scheduler may be binding them. Until
then nothing starts over for a slow volume: what kube-scheduler gives up itself shows as a refusal.
After a pause of kube-scheduler that time begins anew. A pod that was found pinned and refused when
this process started is refused after `SILENT_S` in any case: nothing more may be written on it.

A refused member is replaced, or planned again as it is (see `releases`), and its node avoided where
nothing known here keeps the pod off. Where the gang finds no other node for it within `GIVE_UP_S`,
all its Released and Arrived members are replaced and their room returns. The same holds where
kube-scheduler finds none: a pod that is not pinned it tries everywhere, and goes on trying.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field

from extender.answers import REPLACED
from extender.barrier import Barrier
from extender.model import Model
from extender.releases import Releases
from pumice.core.ids import JobKey, PodUid
from pumice.core.ledger import Entry, State
from pumice.core.model.jobs import JobInfo
from pumice.core.model.tasks import Status
from pumice.core.prebinding import BINDING_S, Progress
from pumice.core.readiness import job_ready

REFUSED_S = 3.0
ERROR = "SchedulerError"
RESTS_S = 15.0
"""After an error kube-scheduler lets a pod rest for up to 10 s."""
SILENT_S = 60.0
PAUSE_S = 10.0
"""Where nothing has arrived for so long kube-scheduler may have been away: it has time anew."""
AT_LEAST_S = 300.0
"""But a pod that was silent for so long is refused, however seldom others arrive."""
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
    #: when a pod arrived last, and when one did after a pause
    _heard: float = 0.0
    _resumed: float = 0.0
    #: job -> name of a pod -> its last nack, those of the newest last; for explanations
    last: dict[JobKey, dict[str, Refusal]] = field(default_factory=dict)

    def check(self) -> None:
        """Replace the members that were refused; give up the gangs that wait in vain."""
        now = self.model.now()
        entries = self.model.ledger.in_flight_entries()
        released = [e for e in entries if e.state is State.RELEASED and not e.leaving]
        self._listen()
        unwanted = [e for e in released if e.doubtful or e.refused_since is not None]
        begun = self._begun(unwanted, now)
        # kube-scheduler has no node for these, whatever stands on them of old.
        doubtful = {entry.uid for entry in unwanted if entry.doubtful} - begun
        for entry in released:
            if entry.uid in begun and entry.refused_since is not None:
                continue
            if self._is_refused(entry, now, doubtful):
                self._nack(entry, now)
        waiting = {gang.job for gang in (*self.releases.waiting, *self.releases.underway)}
        self._give_up(waiting | {e.job for e in entries if e.job is not None}, doubtful, now)
        for job in self.last.keys() - self.model.cluster.jobs.keys():
            del self.last[job]

    def _listen(self) -> None:
        """Note when kube-scheduler began to work again after a pause."""
        newest = self.model.ledger.last_arrival
        if newest - self._heard >= PAUSE_S:
            self._resumed = newest
        self._heard = newest

    def _is_refused(self, entry: Entry, now: float, doubtful: Set[PodUid]) -> bool:
        if entry.refused_since is not None:
            rests = entry.loose or entry.verdict[0] == ERROR
            return now - entry.refused_since >= (RESTS_S if rests else REFUSED_S)
        if entry.gated or entry.expected:
            return False
        if entry.uid in doubtful or entry.stale:
            return now - entry.since >= SILENT_S
        pod = self.model.pending.get(entry.uid)
        patience = BINDING_S if pod is not None and self.model.claims(pod) else SILENT_S
        if self._heard <= entry.since:
            return False
        return now - max(entry.since, self._resumed) >= patience or (
            now - entry.since >= max(patience, AT_LEAST_S)
        )

    def _begun(self, entries: Iterable[Entry], now: float) -> set[PodUid]:
        """Return the pods at whose volumes kube-scheduler is, and not for longer than it may."""
        progress = Progress(self.model.cluster.inputs.storage)
        return {
            entry.uid
            for entry in entries
            if (pod := self.model.pending.get(entry.uid)) is not None
            and now - entry.since < BINDING_S
            and progress.is_begun(pod)
        }

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
        self.releases.replan(entry.uid, entry.node)

    def _give_up(self, jobs: set[JobKey], doubtful: Set[PodUid], now: float) -> None:
        for job in self.starved.keys() - jobs:
            del self.starved[job]
        for job in jobs:
            info = self.model.cluster.jobs.get(job)
            unwanted = doubtful & info.tasks.keys() if info is not None and doubtful else set()
            if info is not None and _is_ready_without(info, unwanted):
                self.starved.pop(job, None)
            elif now - self.starved.setdefault(job, now) >= GIVE_UP_S:
                del self.starved[job]
                if unwanted:
                    # kube-scheduler wants it nowhere, whatever is known of the nodes here.
                    self.model.avoid(job, *self.model.cluster.nodes.index)
                self._return_room(job)

    def _return_room(self, job: JobKey) -> None:
        self.releases.forget(job)
        for entry in list(self.model.ledger.of_job(job)):
            if entry.state is State.ARRIVED:
                self.barrier.refuse(entry.uid, REPLACED)
            elif entry.state is State.RELEASED:
                self.releases.replace(entry.uid)
            elif entry.planned:
                self.model.unplan(entry.uid)
        info = self.model.cluster.jobs.get(job)
        for uid in list(info.tasks) if info is not None else ():
            if uid not in self.model.ledger:
                # It lost its plan before, and kube-scheduler still looks for a node for it.
                self.releases.replace(uid)


def _is_ready_without(job: JobInfo, missing: Set[PodUid]) -> bool:
    """Tell whether a job is ready even if some of its tasks are not coming."""
    if not missing:
        return job_ready(job)
    return job_ready(job, lambda task: Status.PENDING if task.uid in missing else task.status)
