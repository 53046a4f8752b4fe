"""
What the verbs answer.

`bind` is the barrier's. The others serve a kube-scheduler that is shared with other pods: they
answer from a session that is opened on the present cache and decides nothing. Pods of other
schedulers pass untouched.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from extender import wire
from extender.barrier import NOT_PLANNED, Barrier
from extender.model import Model
from pumice.core.conf import Configuration
from pumice.core.ids import JobKey, PodUid
from pumice.core.model.tasks import Task
from pumice.core.session import Session
from pumice.kube.clock import Clock

NOT_ALLOWED = "not among the nodes that may be used"
MAX_PRIORITY = 10
LOOK_S = 0.1
"""How long an opened session serves further questions."""


@dataclass(slots=True)
class EngineVerbs:
    """The verbs of one service."""

    model: Model
    barrier: Barrier
    configuration: Callable[[], Configuration]
    clock: Clock
    synced: asyncio.Event
    _look: tuple[float, Session] | None = None

    async def bind(self, uid: PodUid, node: str) -> str:
        """Wait for the caches after a start, then for the gang."""
        await self.synced.wait()
        return await self.barrier.bind(uid, node)

    def filter(self, args: wire.Args) -> wire.FilterResult:
        """Leave a planned pod its node, and an unplanned one the nodes that the engine allows."""
        offered = args.node_names or []
        if not self._is_ours(args):
            return wire.FilterResult(node_names=offered)
        uid = PodUid(args.pod.metadata.uid)
        entry = self.model.ledger.get(uid)
        if entry is not None and entry.node:
            allowed = {entry.node}
        else:
            task = self.model.cluster.task(uid)
            if task is None:
                return wire.FilterResult(node_names=[], error=NOT_PLANNED)
            allowed = self._allowed(task)
        refused = {name: NOT_ALLOWED for name in offered if name not in allowed}
        left = [name for name in offered if name in allowed]
        return wire.FilterResult(node_names=left, failed_and_unresolvable_nodes=refused)

    def prioritize(self, args: wire.Args) -> list[wire.HostPriority]:
        """Return the engine's scores, stretched over 0 to 10; nothing for pods of others."""
        task = self.model.cluster.task(PodUid(args.pod.metadata.uid))
        session = self._session()
        names = [name for name in args.node_names or () if name in session.nodes.index]
        if not self._is_ours(args) or task is None or not names:
            return []
        at = np.array([session.nodes.index[name] for name in names], np.int64)
        scores = session.views.of(task.cls, task.job).scores(at)
        spread = float(scores.max() - scores.min()) or 1.0
        steps = np.rint((scores - scores.min()) / spread * MAX_PRIORITY).astype(int)
        return [
            wire.HostPriority(host=name, score=int(step))
            for name, step in zip(names, steps, strict=True)
        ]

    def preempt(self, args: wire.PreemptionArgs) -> wire.PreemptionResult:
        """Veto the nodes on which victims would bring a gang below its minimum."""
        offered = args.node_name_to_meta_victims or {}
        left = {
            node: victims
            for node, victims in offered.items()
            if not self._breaks_a_gang(PodUid(pod.uid) for pod in victims.pods or ())
        }
        return wire.PreemptionResult(node_name_to_meta_victims=left)

    # --- inside -----------------------------------------------------------------------------

    def _is_ours(self, args: wire.Args) -> bool:
        return args.pod.spec.scheduler_name in self.model.scheduler_names

    def _session(self) -> Session:
        now = self.clock.monotonic()
        if self._look is None or now - self._look[0] > LOOK_S:
            snapshot = self.model.cluster.snapshot(self.model.avoided_nodes())
            session = Session(snapshot, self.configuration(), self.clock.now(), "verbs")
            session.open()
            self._look = (now, session)
        return self._look[1]

    def _allowed(self, task: Task) -> set[str]:
        session = self._session()
        view = session.views.of(task.cls, task.job)
        if view.refused is not None:
            return set()
        return {session.nodes.names[i] for i in np.flatnonzero(view.candidates())}

    def _breaks_a_gang(self, victims: Iterable[PodUid]) -> bool:
        losses: Counter[JobKey] = Counter()
        for uid in victims:
            task = self.model.cluster.task(uid)
            if task is not None and task.job is not None:
                losses[task.job] += 1
        for key, lost in losses.items():
            job = self.model.cluster.jobs.get(key)
            if job is None:
                continue
            ready = job.counts.total.ready
            if ready >= job.min_available > ready - lost:
                return True
        return False
