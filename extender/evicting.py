"""
Evicting: victims are told to go, and what they leave is held for those they go for.

        decided ──► entered ──► covered by a budget, one by one ──► the others ──► gone
                       │                   │ 429                       │ 429
                       └── no longer true ─┴──── called off ◄──────────┘

The decisions of a plan are checked again together when they are entered, and each before every
victim. From then on the victims count as on their way out and the winners as nominated, whatever
the watch says, so that no session decides the same twice; and the winners are nominated, so that a
restart does not lose their room.

Those whom a disruption budget covers go first. Any answer of 429 ends it there: nobody else is
touched, the winners' room is given back, and who was refused is not asked again for `SPARED_S`.
A pod that is not there any more (404), or is another one by now (409), counts as gone. Where the
API server is away each eviction is repeated, for as long as its decision holds.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np

from extender.model import Model
from extender.releases import PodWrites
from pumice.core import steering
from pumice.core.ids import PodUid
from pumice.core.model.tasks import PREEMPTABLE_STATUSES, Status, Task
from pumice.core.plan import Evict, Plan, Victim
from pumice.core.plugins.pdb import Budget
from pumice.core.resources import Floats, fits, plus
from pumice.core.selectors import SelectorError
from pumice.kube.clock import Clock
from pumice.kube.errors import (
    Conflict,
    Disconnected,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
)
from pumice.kube.events import Recorder
from pumice.kube.resources import POD_GROUPS, PODS
from pumice.kube.retry import Backoff

log = logging.getLogger(__name__)

_NONE: Floats = np.zeros(0)
AT_A_TIME = 16
SPARED_S = 30.0
SHOWN_S = 30.0
"""How long the watch may take to show that an evicted pod is on its way out."""
FAILS_S = 30.0
"""For so long a server error is taken for one that passes."""
FIRST_WAIT_S = 0.1
LAST_WAIT_S = 5.0


class Evictor(Protocol):
    """The eviction API."""

    async def evict(self, namespace: str, name: str, *, uid: str) -> None:
        """Evict a pod."""


class Answer(Enum):
    """What came of telling one victim to go."""

    GOING = "going"
    REFUSED = "refused"
    VOID = "void"


@dataclass(slots=True)
class Eviction:
    """A decision that is being carried out."""

    decision: Evict
    #: those who were not told yet
    left: dict[PodUid, Victim]
    off: bool = False


@dataclass(slots=True)
class Evictions:
    """Carries decisions out; `run` works until it is cancelled."""

    model: Model
    api: Evictor
    writes: PodWrites
    recorder: Recorder
    clock: Clock
    rng: random.Random = field(default_factory=random.SystemRandom)
    evicted: int = 0
    refused: int = 0
    _entered: asyncio.Queue[Eviction] = field(default_factory=asyncio.Queue)
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_A_TIME))
    #: who was told to go -> until when the watch must have shown it
    _told: dict[PodUid, float] = field(default_factory=dict)

    # --- what was decided -------------------------------------------------------------------

    def enter(self, plan: Plan) -> int:
        """Take over the decisions of a plan that still hold; return how many."""
        self._look_after()
        held = self._tenable(plan.evictions)
        for decision in held:
            self._begin(decision)
        return len(held)

    def _begin(self, decision: Evict) -> None:
        for victim in decision.victims:
            self.model.cluster.dismiss(victim.uid)
        for claim in decision.claims:
            self._nominate(claim.uid, claim.node)
        left = {victim.uid: victim for victim in decision.victims}
        self._entered.put_nowait(Eviction(decision, left))

    def _tenable(self, decisions: Sequence[Evict]) -> list[Evict]:
        """
        Return the decisions that hold together: what all victims leave is enough for all winners.

        Where it is not, the last that wants room on the node is dropped.
        """
        held, going, balance = [], set[PodUid](), dict[str, Floats]()
        for decision in decisions:
            victims = {victim.uid for victim in decision.victims}
            if self._is_current(decision) and self._may_go(decision) and not victims & going:
                held.append(decision)
                going |= victims
                self._book(balance, decision, 1.0)
        while (
            late := next((d for d in reversed(held) if self._lacks(d, balance)), None)
        ) is not None:
            held.remove(late)
            self._book(balance, late, -1.0)
        return held

    def _is_current(self, decision: Evict) -> bool:
        """Tell whether the winners still wait for what they were promised."""
        job = self.model.cluster.jobs.get(decision.job)
        if job is None or job.uid != decision.group_uid:
            return False
        for claim in decision.claims:
            entry = self.model.ledger.get(claim.uid)
            if claim.uid not in self.model.pending or (entry is not None and entry.node):
                return False
        return True

    def _may_go(self, decision: Evict) -> bool:
        """Tell whether the victims are where they were, and the winners' nodes are there."""
        cluster = self.model.cluster
        tasks = [self._victim(victim) for victim in decision.victims]
        return all(task and task.status is not Status.RELEASING for task in tasks) and all(
            claim.node in cluster.nodes.index and cluster.task(claim.uid)
            for claim in decision.claims
        )

    def _book(self, balance: dict[str, Floats], decision: Evict, sign: float) -> None:
        """Note by node what winners take and victims leave; a negative sign crosses it out."""
        amounts = [(claim.uid, claim.node, sign) for claim in decision.claims]
        amounts += [(victim.uid, victim.node, -sign) for victim in decision.victims]
        for uid, node, factor in amounts:
            task = self.model.cluster.task(uid)
            if task is not None:
                balance[node] = plus(balance.get(node, _NONE), task.cls.req * factor)

    def _lacks(self, decision: Evict, balance: Mapping[str, Floats]) -> bool:
        """Tell whether a node is too small for all that is claimed on it."""
        nodes = self.model.cluster.nodes
        return any(
            not fits(balance[claim.node], nodes.future(nodes.index[claim.node]))
            for claim in decision.claims
        )

    def _victim(self, victim: Victim) -> Task | None:
        """Return a victim's task, if it is still where it was."""
        task = self.model.cluster.task(victim.uid)
        there = task is not None and task.node == victim.node
        on = PREEMPTABLE_STATUSES | Status.RELEASING
        return task if task is not None and there and task.status & on else None

    # --- carrying it out --------------------------------------------------------------------

    async def run(self) -> None:
        """Tell victims to go."""
        async with asyncio.TaskGroup() as group:
            while True:
                eviction = await self._entered.get()
                group.create_task(self._work(eviction), name=f"evict {eviction.decision.job}")

    async def _work(self, eviction: Eviction) -> None:
        try:
            await self._carry_out(eviction)
        except Exception:
            log.exception("the evictions for %s failed, called off", eviction.decision.job)
            self._call_off(eviction)

    async def _carry_out(self, eviction: Eviction) -> None:
        """Tell the victims of one decision to go, those that a budget covers first."""
        covered = [v for v in eviction.decision.victims if self._is_covered(v)]
        for victim in covered:
            await self._tell(eviction, victim)
        others = [v for v in eviction.decision.victims if v.uid in eviction.left]
        async with asyncio.TaskGroup() as group:
            for victim in others:
                group.create_task(self._tell(eviction, victim), name=f"evict {victim.uid}")

    def _is_covered(self, victim: Victim) -> bool:
        task = self.model.cluster.task(victim.uid)
        return task is not None and any(budget.covers(task) for budget in self._budgets())

    def _budgets(self) -> Iterable[Budget]:
        for budget in self.model.cluster.inputs.budgets.values():
            try:
                yield Budget.of(budget)
            except SelectorError:
                continue

    async def _tell(self, eviction: Eviction, victim: Victim) -> None:
        """Tell one victim to go; call the rest off where it may not, or need not."""
        backoff = Backoff(self.rng, base_s=FIRST_WAIT_S, cap_s=LAST_WAIT_S)
        answer: Answer | None = None
        began = self.clock.monotonic()
        while answer is None:
            async with self._slots:
                answer = await self._attempt(eviction, victim, began)
            if answer is None:
                await self.clock.sleep(backoff.next_s())
        if answer is Answer.GOING:
            eviction.left.pop(victim.uid, None)
            return
        if answer is Answer.REFUSED:
            self.refused += 1
            self.model.spare(victim.uid, SPARED_S)
        self._call_off(eviction)

    async def _attempt(self, eviction: Eviction, victim: Victim, began: float) -> Answer | None:
        """
        Send one eviction once; None where it is to be sent again.

        A server that fails at this very eviction, as it does where two budgets cover a pod, may
        fail for ever: then it counts as refused.
        """
        if eviction.off:
            return Answer.VOID
        pod = self.model.cluster.pods.get(victim.uid)
        if pod is None or self._victim(victim) is None or pod.metadata.deletion_timestamp:
            return Answer.GOING
        if not self._is_current(eviction.decision):
            return Answer.VOID
        meta = pod.metadata
        try:
            await self.api.evict(meta.namespace, meta.name, uid=victim.uid)
        except (NotFound, Conflict):
            log.info("%s is gone already", meta.key)
        except TooManyRequests as error:
            log.info("%s may not be evicted now: %s", meta.key, error)
            return Answer.REFUSED
        except (Disconnected, ServerError) as error:
            fails = isinstance(error, ServerError)
            if fails and self.clock.monotonic() - began >= FAILS_S:
                log.warning("%s cannot be evicted: %s", meta.key, error)
                return Answer.REFUSED
            log.info("eviction of %s: %s; again", meta.key, error)
            return None
        except KubeError as error:
            log.warning("eviction of %s: %s", meta.key, error)
            return Answer.REFUSED
        else:
            self.evicted += 1
            self._record(eviction.decision, victim)
        self._told[victim.uid] = self.clock.monotonic() + SHOWN_S
        return Answer.GOING

    def _record(self, decision: Evict, victim: Victim) -> None:
        pod = self.model.cluster.pods.get(victim.uid)
        if pod is not None:
            message = f"Pod is evicted, because of {decision.action}"
            self.recorder.record(PODS, pod.metadata, "Warning", "Evict", message)
        job = self.model.cluster.jobs.get(victim.job)
        if job is not None:
            meta = job.group.metadata
            self.recorder.record(POD_GROUPS, meta, "Normal", "Evict", decision.action)

    def _call_off(self, eviction: Eviction) -> None:
        """Let those stay who were not told, and give back the room that winners still wait for."""
        if eviction.off:
            return
        eviction.off = True
        for uid in eviction.left:
            self.model.cluster.retain(uid)
        eviction.left.clear()
        for claim in eviction.decision.claims:
            entry = self.model.ledger.get(claim.uid)
            if entry is None or not entry.node:
                self._nominate(claim.uid, "")

    def _nominate(self, uid: PodUid, node: str) -> None:
        """Promise a waiting pod a node, or take the promise back where `node` is empty."""
        pod = self.model.pending.get(uid)
        if pod is None:
            return
        self.model.cluster.promise(uid, node)

        def needless() -> bool:
            now = self.model.pending.get(uid)
            return now is None or now.status.nominated_node_name == node

        self.writes.patch_status(pod, steering.nominate_patch(node), needless)

    def _look_after(self) -> None:
        """Let those be what they show who were told to go and do not."""
        now = self.clock.monotonic()
        for uid, until in list(self._told.items()):
            pod = self.model.cluster.pods.get(uid)
            if pod is None or pod.metadata.deletion_timestamp:
                del self._told[uid]
            elif now > until:
                del self._told[uid]
                self.model.cluster.retain(uid)
