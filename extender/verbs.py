"""
What the verbs answer.

`bind` is the barrier's. The others serve a kube-scheduler that is shared with other pods, and
tell it what the engine knows and it does not: which room is promised to others, what a queue may
have, where a gang would break. They are called inside its loop, so what a pod was given is
answered from the ledger; for a pod without a plan a session is opened that decides nothing, in a
thread, and serves for a while. What has changed since is seen by `bind`, which checks all again.
Pods of other schedulers pass untouched, unless they ask for cards (see `strangers`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from extender import wire
from extender.answers import NOT_PLANNED, QUEUE_FULL
from extender.barrier import Barrier
from extender.model import Model
from extender.moves import yielding
from extender.strangers import Strangers
from pumice.core.api.core import Pod
from pumice.core.conf import Configuration
from pumice.core.ids import PodUid
from pumice.core.kernels import only
from pumice.core.ledger import Arm, Entry
from pumice.core.model.jobs import JobInfo
from pumice.core.model.snapshots import Snapshot
from pumice.core.model.tasks import READY_STATUSES, Status, Task
from pumice.core.outside import Ask, nobody
from pumice.core.prebinding import has_claims
from pumice.core.readiness import is_ready, job_ready, needs_only_number
from pumice.core.resources import Floats
from pumice.core.session import Session
from pumice.kube.clock import Clock

NOT_ALLOWED = "not among the nodes that may be used"
NOT_OURS = "the pod names another scheduler"
STARTING = "the extender has just been started"
MAX_PRIORITY = 10
NO_CARDS = "no cards with enough left"
LOOK_S = 1.0
"""How long an opened session serves further questions: as long as the engine waits at most."""

T = TypeVar("T")


@dataclass(slots=True)
class EngineVerbs:
    """The verbs of one service."""

    model: Model
    barrier: Barrier
    configuration: Callable[[], Configuration]
    clock: Clock
    synced: asyncio.Event
    strangers: Strangers
    #: the way to a policy server
    ask: Ask = nobody
    _look: tuple[float, Session] | None = None
    #: held by the one who opens the session or asks it: it is for one thread at a time
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def bind(self, uid: PodUid, node: str) -> str:
        """Wait for the caches after a start, then for the gang."""
        await self.synced.wait()
        pod = self.model.cluster.pods.get(uid)
        if pod is not None and pod.spec.scheduler_name not in self.model.scheduler_names:
            if self.strangers.asks_for_cards(uid):
                return await self.strangers.bind(uid, node)
            return NOT_OURS
        return await self.barrier.bind(uid, node)

    async def filter(self, args: wire.Args) -> wire.FilterResult:
        """
        Leave a planned pod its node, and an unplanned one the nodes that the engine allows.

        A pod of which the gate alone was taken off, or that has claims, may go elsewhere where
        kube-scheduler does not offer its node.
        """
        offered, uid = args.node_names, PodUid(args.pod.metadata.uid)
        if not self._is_ours(args):
            if not self.strangers.asks_for_cards(uid):
                return wire.FilterResult(node_names=offered)
            return _left(offered, self.strangers.scores(uid, offered), NO_CARDS)
        if not self.synced.is_set():
            return wire.FilterResult(node_names=[], error=STARTING)
        entry, task = self.model.ledger.get(uid), self.model.cluster.task(uid)
        roams = entry is not None and entry.node not in offered and _may_roam(entry, args.pod)
        if entry is not None and entry.node and not roams:
            return _left(offered, {entry.node})
        if task is None:
            return wire.FilterResult(node_names=[], error=NOT_PLANNED)
        if not self.barrier.within_queue(task):
            return _left(offered, (), QUEUE_FULL)
        allowed, why = await self._ask(lambda session: _allowed(session, task))
        if entry is not None:
            # Full or not, where those are it may go: they give way.
            allowed |= {member.node for member in yielding(self.model, entry)}
        return _left(offered, allowed, why)

    async def prioritize(self, args: wire.Args) -> list[wire.HostPriority]:
        """Return the engine's scores, stretched over 0 to 10; nothing for pods of others."""
        offered, uid = args.node_names, PodUid(args.pod.metadata.uid)
        task = self.model.cluster.task(uid)
        if task is None or not offered:
            return []
        if not self._is_ours(args):
            scores = self.strangers.scores(uid, offered)
            return _stretched(list(scores), np.array(list(scores.values()), float))
        return await self._ask(lambda session: _scores(session, task, offered))

    def preempt(self, args: wire.PreemptionArgs) -> wire.PreemptionResult:
        """Veto the nodes on which victims would bring a gang below its minimum."""
        offered = args.node_name_to_meta_victims
        left = {
            node: victims
            for node, victims in offered.items()
            if not self._breaks_a_gang({PodUid(pod.uid) for pod in victims.pods or ()})
        }
        return wire.PreemptionResult(node_name_to_meta_victims=left)

    # --- inside -----------------------------------------------------------------------------

    def _is_ours(self, args: wire.Args) -> bool:
        return args.pod.spec.scheduler_name in self.model.scheduler_names

    async def _ask(self, question: Callable[[Session], T]) -> T:
        """Answer from an open session, away from the loop on which bindings are posted."""
        async with self._asking:
            now = self.clock.monotonic()
            if self._look is not None and self._is_old(*self._look, now):
                self._look[1].end()
                self._look = None
            if self._look is None:
                snapshot = self.model.cluster.snapshot(self.model.avoided_nodes())
                conf, at = self.configuration(), self.clock.now()
                self._look = now, await asyncio.to_thread(_opened, snapshot, conf, at, self.ask)
            return await asyncio.to_thread(question, self._look[1])

    def _is_old(self, since: float, session: Session, now: float) -> bool:
        """Tell whether a session has served its time, or does not know all resources."""
        return now - since > LOOK_S or session.names is not self.model.cluster.space.names

    def _breaks_a_gang(self, victims: set[PodUid]) -> bool:
        tasks = (self.model.cluster.task(uid) for uid in victims)
        losses = Counter(task.job for task in tasks if task and task.status & READY_STATUSES)
        jobs = self.model.cluster.jobs
        return any(
            _falls_short(jobs[key], lost, victims)
            for key, lost in losses.items()
            if key is not None and key in jobs
        )


def _may_roam(entry: Entry, pod: Pod) -> bool:
    """Tell whether a planned pod may go to another node than its own."""
    return entry.arm is Arm.UNGATE or (entry.arm is Arm.NOMINATE and has_claims(pod))


def _left(offered: list[str], allowed: Iterable[str], why: str = NOT_ALLOWED) -> wire.FilterResult:
    """Return what remains; no eviction would make the other nodes any better."""
    names = set(allowed)
    return wire.FilterResult(
        node_names=[name for name in offered if name in names],
        failed_and_unresolvable_nodes={name: why for name in offered if name not in names},
    )


def _falls_short(job: JobInfo, lost: int, victims: set[PodUid]) -> bool:
    """Tell whether a job that has its minimum would lack it without so many of its tasks."""
    if not job_ready(job):
        return False
    if needs_only_number(job):
        return not is_ready(job, job.counts.total, -lost)

    def status(task: Task) -> Status:
        return Status.RELEASING if task.uid in victims else task.status

    return not job_ready(job, status)


def _opened(snapshot: Snapshot, conf: Configuration, now: float, ask: Ask) -> Session:
    session = Session(snapshot, conf, now, "verbs", ask=ask)
    session.open()
    return session


def _allowed(session: Session, task: Task) -> tuple[set[str], str]:
    """Return the nodes that the engine allows a pod, and why not the others."""
    view = session.views.of_task(task)
    if view.refused is not None:
        return set(), NOT_ALLOWED
    if not task.occupies and not _may_have_more(session, task):
        return set(), QUEUE_FULL
    # What is idle now: that others are on their way out makes no room for a pod that binds.
    at = np.flatnonzero(only(view.idle_candidates(), session.within(task)))
    return {session.nodes.names[i] for i in at}, NOT_ALLOWED


def _may_have_more(session: Session, task: Task) -> bool:
    """Tell whether the queue of a pod that is not charged yet may have it as well."""
    job = session.job(task.job)
    if job is None:
        return True
    queue = session.queues[job.queue]
    return not session.is_overused(queue) and session.allocatable(queue, task.cls, 1) > 0


def _scores(session: Session, task: Task, offered: list[str]) -> list[wire.HostPriority]:
    names = [name for name in offered if name in session.nodes.index]
    if not names:
        return []
    at = np.array([session.nodes.index[name] for name in names], np.int64)
    return _stretched(names, session.views.of_task(task).scores(at))


def _stretched(names: Sequence[str], scores: Floats) -> list[wire.HostPriority]:
    """Return scores of nodes, stretched over 0 to 10."""
    if not names:
        return []
    spread = float(scores.max() - scores.min()) or 1.0
    steps = np.rint((scores - scores.min()) / spread * MAX_PRIORITY).astype(int)
    return [
        wire.HostPriority(host=name, score=int(step))
        for name, step in zip(names, steps, strict=True)
    ]
