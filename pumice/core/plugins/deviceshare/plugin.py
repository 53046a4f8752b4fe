"""The plugin `deviceshare`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import numpy as np

from pumice.core.conf import Arguments
from pumice.core.devices.asks import Ask, Kind
from pumice.core.devices.cards import pool_of
from pumice.core.devices.notes import Choice
from pumice.core.devices.sharing import PLUGIN, Sharing
from pumice.core.extension import Code, CopyOrder, Event, EventHandler, Room
from pumice.core.model.tasks import Status, Task, TaskClass
from pumice.core.plugins.deviceshare.cards import NO_CARDS, Cards
from pumice.core.plugins.deviceshare.states import At, Walk
from pumice.core.resources import PODS, Bools, Floats, Ints
from pumice.core.session import Session

NAME = PLUGIN
MESSAGES: Final[dict[Kind, str]] = {
    "vgpu": "hami-vgpuDeviceSharing error: no cards with enough left",
    "memory": "GpuShare no enough gpu memory on one card",
    "number": "GpuNumber no enough gpu number",
}
_NOT_SHARED: Final = {
    "deviceshare.AscendMindClusterVNPUEnable": "Ascend devices are not shared",
    "deviceshare.AscendHAMiVNPUEnable": "Ascend devices are not shared",
    "deviceshare.NodeLockEnable": "no node is ever locked: a choice is written with the binding",
}
_PLACED: Final = Status.ALLOCATED | Status.PIPELINED


class DeviceShare:
    """Says how many pods the cards of a node take, and which of them each gets."""

    name = NAME
    steady = True

    def __init__(self, args: Arguments) -> None:
        self.sharing = Sharing.parse(args)
        for key, why in _NOT_SHARED.items():
            if args.boolean(key, False):
                args.faults[key] = f"argument {key}: {why}, ignored"
        self._walks: dict[tuple[Ask, bool], Walk] = {}
        self._cards: Cards | None = None

    def on_session_open(self, ssn: Session) -> None:
        """Register, if cards are shared at all."""
        self._ssn = ssn
        if not self.sharing.kinds:
            return
        [kind] = sorted(self.sharing.kinds)[:1]
        self._pool = pool_of(kind)
        points = ssn.points
        points.room[NAME] = Room(Code.UNSCHEDULABLE, MESSAGES[kind], self._room, self._later)
        if self.sharing.weight > 0:
            points.copy_order[NAME] = CopyOrder(lambda cls: self._ask(cls) is not None, self.score)
        points.distinction[NAME] = self._mark
        ssn.listen(EventHandler(self._placed, self._removed))

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing: choices stand with the placements."""

    @property
    def cards(self) -> Cards:
        """Return the session's cards; they are looked at when the first pod asks for some."""
        if self._cards is None:
            self._cards = Cards(self._ssn.nodes, self._ssn.snapshot.devices, self._pool)
            self._most = int(self._ssn.nodes.alloc[PODS].max(initial=0.0)) + 1
        return self._cards

    # How many, and how well.

    def _room(self, cls: TaskClass, at: Ints) -> Floats:
        return self._copies(cls, at, future=False)

    def _later(self, cls: TaskClass, at: Ints) -> Floats:
        return self._copies(cls, at, future=True)

    def _copies(self, cls: TaskClass, at: Ints, *, future: bool) -> Floats:
        ask = self._ask(cls)
        if ask is None:
            return np.full(at.size, np.inf)
        walk, starts, which = self._starts(ask, cls.example, at, future=future)
        return np.array([len(self._scores(walk, start)) for start in starts], float)[which]

    def score(self, cls: TaskClass, at: Ints, copies: Ints | Floats) -> Floats:
        """Return by the policy how well the cards go together with the last of so many pods."""
        ask = self._ask(cls)
        if ask is None:
            return np.zeros((at.size, copies.size))
        steps = copies.astype(np.int64) - 1
        deep = int(steps.max()) + 1
        scores, idle = self._table(ask, cls.example, at, deep, future=False)
        if not idle.all():
            scores[~idle], _ = self._table(ask, cls.example, at[~idle], deep, future=True)
        scored: Floats = np.floor(scores[:, steps] + 0.5) * self.sharing.weight
        return scored

    def _table(
        self, ask: Ask, example: Task | None, at: Ints, deep: int, *, future: bool
    ) -> tuple[Floats, Bools]:
        """Return the scores of so many pods one after the other, and which nodes take any."""
        walk, starts, which = self._starts(ask, example, at, future=future)
        table = np.zeros((len(starts), deep))
        for row, start in enumerate(starts):
            scores = self._scores(walk, start)[:deep]
            table[row, : len(scores)] = scores
        some = np.array([bool(self._scores(walk, start)) for start in starts], bool)
        return table[which], some[which]

    def _scores(self, walk: Walk, start: At) -> list[float]:
        return walk.scores(start) if start[0] != NO_CARDS else []

    def _starts(
        self, ask: Ask, example: Task | None, at: Ints, *, future: bool
    ) -> tuple[Walk, list[At], Ints]:
        """Return where pods would start from on the nodes `at`, each once, and which is whose."""
        cards = self.cards
        states = (cards.later if future else cards.now)[at]
        walk = self._walk(ask, example)
        if not walk.looks_at_cards:
            distinct, which = np.unique(states, return_inverse=True)
            return walk, [(state, 0) for state in distinct.tolist()], which
        known: dict[At, int] = {}
        numbers = []
        for i, state in zip(at.tolist(), states.tolist(), strict=True):
            hidden = self._hidden(ask, example, i, future=future) if state != NO_CARDS else 0
            numbers.append(known.setdefault((state, hidden), len(known)))
        return walk, list(known), np.array(numbers, np.int64)

    def _hidden(self, ask: Ask, example: Task | None, i: int, *, future: bool) -> int:
        offer, entry = self.cards.offers[i], self.cards.entries[i]
        job, labels = (example.job, example.labels) if example else (None, {})
        matched = self.sharing.matching(labels)
        return self.sharing.hidden(ask, offer, entry, job, matched, future=future)

    def _walk(self, ask: Ask, example: Task | None) -> Walk:
        apart = ask.spread or bool(example and self.sharing.matching(example.labels))
        found = self._walks.get((ask, apart))
        if found is None:
            states, policy = self.cards.states, self.sharing.policy
            found = self._walks[ask, apart] = Walk(states, ask, policy, apart, self._most)
        return found

    def _ask(self, cls: TaskClass) -> Ask | None:
        asks = cls.signature.devices
        return self.sharing.ask(asks) if asks else None

    def _mark(self, task: Task) -> Hashable:
        """Return what keeps a pod from sharing a card with some others, if anything does."""
        ask = self._ask(task.cls)
        if ask is None:
            return None
        matched = self.sharing.matching(task.labels)
        return (task.job if ask.spread else None, matched) if ask.spread or matched else None

    # Which cards.

    def _placed(self, event: Event) -> None:
        ask = self._ask(event.cls)
        if ask is None:
            return
        for task, i in zip(event.tasks, event.nodes, strict=True):
            if not task.status & _PLACED:
                self.cards.send_off(i, task.uid, leaving=False)
            elif i in self.cards.offers:
                self._give(task, i, ask)

    def _give(self, task: Task, i: int, ask: Ask) -> None:
        future = task.status is Status.PIPELINED
        states = self.cards.later if future else self.cards.now
        walk = self._walk(ask, task)
        hidden = self._hidden(ask, task, i, future=future) if walk.looks_at_cards else 0
        fit = walk.fit((int(states[i]), hidden))
        if fit is not None:
            choice = Choice.of(ask, self.cards.offers[i], fit)
            self.cards.put(i, task, choice)
            self._ssn.space.choices[task.uid] = choice

    def _removed(self, event: Event) -> None:
        if self._ask(event.cls) is None:
            return
        for task, i in zip(event.tasks, event.nodes, strict=True):
            if not task.status & _PLACED:
                self.cards.send_off(i, task.uid, leaving=True)
            elif i in self.cards.offers:
                self.cards.take_back(i, task)
                self._ssn.space.choices.pop(task.uid, None)
