"""
The loop that decides: snapshot, session in a thread, plan, apply.

A change wakes it; changes that come close together are taken together, and one that starts and
stops nothing waits for others for up to `LATER_S`. Time alone may change a decision, so there is a
session each `PERIOD_S`; where one that decided nothing took long, the next one comes later.

Nothing is planned before every cache is synced, on a cache that has heard nothing for `STALE_S`, or
twice: while a session runs the cache moves on, and what was decided is checked against it again.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from extender.applying import Applied, apply_allocations
from extender.logbook import Entry, Logbook
from extender.metrics import Metrics
from extender.model import Model, Urgency
from extender.releases import Releases
from extender.statuses import Statuses
from pumice.core.conf import Configuration
from pumice.core.cycle import run_session
from pumice.core.explain.picture import Picture
from pumice.core.outside import Ask, nobody
from pumice.core.plan import Plan
from pumice.core.recall import Former
from pumice.core.replay.answers import Listening
from pumice.kube.clock import Clock

log = logging.getLogger(__name__)

DEBOUNCE_S = 0.01
LATER_S = 0.2
PERIOD_S = 1.0
IDLE_SHARE = 0.25
"""The part of the time that may go to sessions that nothing asked for and that decide nothing."""
STALE_S = 90.0
STUCK_S = 120.0
KEPT_SESSIONS = 50


@dataclass(frozen=True, slots=True)
class Past:
    """
    A session that is over: what it decided, how much of that held, how long it took.

    What it found of groups and queues stands in their status and is not kept.
    """

    plan: Plan
    applied: Applied
    seconds: float

    @property
    def decided(self) -> bool:
        """Tell whether anything is to be done."""
        plan = self.plan
        return bool(plan.allocations or plan.evictions or plan.enqueued or plan.admitted)

    def rest_s(self) -> float:
        """Return the seconds until the next session, where nothing changes."""
        return PERIOD_S if self.decided else max(PERIOD_S, self.seconds / IDLE_SHARE)


@dataclass(slots=True)
class Engine:
    """Runs sessions; the newest are kept for the debug API."""

    model: Model
    releases: Releases
    statuses: Statuses
    clock: Clock
    configuration: Callable[[], Configuration]
    #: seconds since the cache that is furthest behind last heard from the API server
    age: Callable[[], float]
    metrics: Metrics
    #: carries out what a plan says of evictions
    evict: Callable[[Plan], object] = lambda plan: None
    #: lets pods out of the gate of their queue, as a plan says
    admit: Callable[[Plan], object] = lambda plan: None
    #: the way to a policy server
    ask: Ask = nobody
    logbook: Logbook = field(default_factory=Logbook)
    #: whether claims and volumes cannot be read
    unread_storage: Callable[[], bool] = lambda: False
    #: the last session as the log has it
    entry: Entry | None = None
    past: deque[Past] = field(default_factory=lambda: deque(maxlen=KEPT_SESSIONS))
    #: what the last session saw, and all that it decided and found
    latest: Picture | None = None
    sessions: int = 0
    #: what the last session warned of; a repetition tells nothing new
    warned: frozenset[str] = frozenset()
    #: when the loop last went round, in monotonic seconds
    turned: float = 0.0
    #: the last session, of which the next one need not find out everything again
    _former: Former | None = None
    #: the longest wait for a change
    _rest_s: float = PERIOD_S
    _awake: asyncio.Event = field(default_factory=asyncio.Event)
    _alarm: asyncio.TimerHandle | None = None
    _stale: bool = False

    def wake(self, urgency: Urgency = Urgency.NOW) -> None:
        """Ask for a session."""
        if urgency is Urgency.NOW:
            self._awake.set()
        elif urgency is Urgency.LATER and self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(LATER_S, self._awake.set)

    def alive(self) -> bool:
        """Tell whether the loop still goes round; before its first turn it is waited for."""
        return not self.turned or self.clock.monotonic() - self.turned < STUCK_S

    async def run(self) -> None:
        """Decide until cancelled."""
        while True:
            try:
                # Not wait_for: in Python 3.11 a cancellation can get lost in it.
                async with asyncio.timeout(self._rest_s):
                    await self._awake.wait()
                await asyncio.sleep(DEBOUNCE_S)
            except TimeoutError:
                pass
            self._awake.clear()
            if self._alarm is not None:
                self._alarm.cancel()
                self._alarm = None
            self.turned = self.clock.monotonic()
            if self._is_stale():
                continue
            try:
                await self.session()
            except Exception:
                self.metrics.failed_sessions.inc()
                log.exception("the session failed; the next one starts anew")

    async def session(self) -> Past:
        """Run one session and apply what it decided."""
        self.sessions += 1
        started = self.clock.monotonic()
        conf, ask = self.configuration(), Listening(self.ask)
        self.model.configure(conf)
        self.model.cluster.inputs.storage.unread = self.unread_storage()
        snapshot = self.model.cluster.snapshot(self.model.avoided_nodes(), self.model.spared_pods())
        plan = await asyncio.to_thread(
            run_session,
            snapshot,
            conf,
            self.clock.now(),
            f"s{self.sessions}",
            ask=ask,
            former=self._former,
        )
        self._former = Former(snapshot, conf, plan)
        seconds = self.clock.monotonic() - started
        applied = apply_allocations(plan, self.model, self.releases)
        self.evict(plan)
        self.admit(plan)
        self.latest = Picture(snapshot, plan)
        self.model.cluster.inputs.acted.update(plan.acted)
        self.model.cluster.inputs.reservation = plan.reservation
        await self.statuses.write(plan)
        past = Past(replace(plan, groups=(), queues=(), deserved={}), applied, seconds)
        self.metrics.session_seconds.observe(seconds)
        self.metrics.placements.inc(applied.placed)
        self.metrics.dropped.inc(applied.dropped)
        for plugin, number in plan.failures.items():
            self.metrics.plugin_failures.labels(plugin).inc(number)
        warns = self._warn(plan)
        self._rest_s = past.rest_s()
        if past.decided or warns:
            self.past.append(past)
        self.entry = Entry(snapshot, conf, ask.heard, plan)
        if past.decided:
            await self.logbook.write(self.entry)
        # What was dropped is decided anew when the change comes that made it void, or a little
        # later: a session right now might come to the same again and again.
        return past

    def _is_stale(self) -> bool:
        """Tell whether the caches are too old to plan on; say so when it begins."""
        age = self.age()
        was, self._stale = self._stale, age > STALE_S
        if self._stale and not was:
            heard = "are not filled yet" if math.isinf(age) else f"heard nothing for {age:.0f} s"
            log.warning("no sessions: the caches %s", heard)
        return self._stale

    def _warn(self, plan: Plan) -> bool:
        """Log what the session before did not warn of; return whether there is any."""
        fresh = [warning for warning in plan.warnings if warning not in self.warned]
        self.warned = frozenset(plan.warnings)
        for warning in fresh:
            log.warning("%s", warning, extra={"session": plan.session})
        return bool(fresh)
