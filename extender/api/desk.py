"""
What the pages need of the running extender.

Facts are picked up on the event loop, as they change there. What is made of them is made in one
thread of its own: questions wait for each other, and never for a session, nor a session for them.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Annotated, TypeVar

from fastapi import Depends, HTTPException, Request
from prometheus_client.core import GaugeMetricFamily

from extender.barrier import Barrier
from extender.card_figures import of_cards, of_pods
from extender.engine import Engine
from extender.logbook import Entry as Recorded
from extender.metrics import Metrics
from extender.model import Model
from extender.nacks import Nacks, Refusal
from pumice.core.conf import Configuration
from pumice.core.explain.answers import Barrier as BarrierView
from pumice.core.explain.answers import Gang, Member, Nack
from pumice.core.explain.picture import Picture, Progress
from pumice.core.explain.pods import Standing
from pumice.core.ids import JobKey, PodUid
from pumice.core.ledger import Entry, State
from pumice.core.model.jobs import JobInfo
from pumice.kube.clock import Clock, rfc3339

MAX_WAITING = 64
"""Questions that may wait for their turn."""
STATES = tuple(state.value for state in State)

T = TypeVar("T")


@dataclass(slots=True)
class Desk:
    """The parts of the extender that pages read, and the thread that works for them."""

    model: Model
    engine: Engine
    barrier: Barrier
    nacks: Nacks
    metrics: Metrics
    clock: Clock
    configuration: Callable[[], Configuration]
    #: what is not synced yet, "" when everything is
    missing: Callable[[], str]
    _waiting: int = 0
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="explain")
    )

    async def think(self, work: Callable[..., T], *arguments: object, **named: object) -> T:
        """Work something out in the thread; refuse where too many wait for that already."""
        if self._waiting >= MAX_WAITING:
            raise HTTPException(429, "too many questions at once", {"Retry-After": "1"})
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, partial(work, *arguments, **named))
        finally:
            self._waiting -= 1

    def picture(self) -> Picture:
        """Return what the last session saw and decided."""
        if self.engine.latest is None:
            raise HTTPException(503, f"no session yet: {self.missing() or 'it is to begin'}")
        return self.engine.latest

    def card_figures(self, *, named: bool) -> Callable[[], Iterator[GaugeMetricFamily]]:
        """Return what makes the figures of shared cards, those of single pods where `named`."""
        pods, devices = self.model.cluster.pods, self.model.cluster.devices.share()
        if not named:
            return partial(of_cards, devices)
        holders = (uid for entry in devices.values() for uid in entry.holders)
        names = {uid: pods[uid].metadata.key for uid in holders}
        return lambda: chain(of_cards(devices), of_pods(devices, names))

    def session(self) -> Recorded:
        """Return the last session, to be recorded."""
        if self.engine.entry is None:
            raise HTTPException(503, f"no session yet: {self.missing() or 'it is to begin'}")
        return self.engine.entry

    def moment(self, monotonic: float) -> float:
        """Return when something was, in seconds since 1970."""
        return self.clock.now() - (self.clock.monotonic() - monotonic)

    def progress(self, key: JobKey) -> Progress:
        """Return how far the pods of a job have got."""
        states: Counter[str] = Counter()
        planned = 0
        for entry in self.model.ledger.of_job(key):
            states[entry.state.value] += 1
            planned += entry.planned
        refusals = self.nacks.last.get(key)
        newest = max(refusals.values(), key=lambda r: r.at) if refusals else None
        return Progress(_in_order(states), planned, self._nack(newest))

    def standing(self, uid: PodUid) -> Standing:
        """Return how far one pod has got."""
        entry = self.model.ledger.get(uid)
        if entry is None:
            return Standing()
        since = rfc3339(self.moment(entry.since))
        pod = self.model.pending.get(uid)
        claims = pod is not None and bool(self.model.claims(pod))
        return Standing(entry.state.value, entry.node, entry.arm, since, claims)

    def gang(self, picture: Picture, job: JobInfo, limit: int) -> Gang:
        """Return a gang, with its members that have come least far."""
        entries = list(self.model.ledger.of_job(job.key))
        states = Counter(entry.state.value for entry in entries)
        first = heapq.nsmallest(limit, entries, key=lambda e: (STATES.index(e.state.value), e.name))
        namespace, _, name = job.key.partition("/")
        return Gang(
            namespace=namespace,
            name=name,
            queue=job.queue,
            phase=picture.phase(job),
            minimum=job.min_available,
            states=_in_order(states),
            barrier=self._barrier(job, states),
            members=tuple(self._member(entry) for entry in first),
            more=len(entries) - len(first),
        )

    def _barrier(self, job: JobInfo, states: Counter[str]) -> BarrierView:
        calls = self.barrier.by_job.get(job.key, {}).values()
        posting = sum(uid in job.tasks for uid in self.barrier.commits)
        now = self.model.now()
        return BarrierView(
            needed=job.min_available,
            here=states["Arrived"] + states["Bound"],
            parked=len(calls),
            posting=posting,
            waiting_s=round(max((now - call.since for call in calls), default=0.0), 3),
        )

    def _member(self, entry: Entry) -> Member:
        refusals = self.nacks.last.get(entry.job, {}) if entry.job else {}
        return Member(
            entry.name,
            entry.uid,
            entry.state.value,
            entry.node,
            rfc3339(self.moment(entry.since)),
            self._nack(refusals.get(entry.name)),
        )

    def _nack(self, refusal: Refusal | None) -> Nack | None:
        if refusal is None:
            return None
        at = rfc3339(self.moment(refusal.at))
        return Nack(refusal.pod, refusal.node, at, refusal.reason, refusal.message)


def _in_order(states: Counter[str]) -> dict[str, int]:
    return {state: states[state] for state in STATES if states[state]}


async def _desk(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


Asks = Annotated[Desk, Depends(_desk)]
"""The parameter of a page that reads the extender."""
