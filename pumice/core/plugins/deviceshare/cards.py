"""
Cards: the session's own copy of the table of devices.

For each node two things are kept: what is in use now, with all that is still there, and what will
be in use when those on their way out are gone and those with a promise are there. A pod that is to
start now needs room in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pumice.core.devices.cards import Offer, Pool
from pumice.core.devices.choosing import Use, Uses
from pumice.core.devices.notes import Choice
from pumice.core.devices.table import Holding, NodeCards
from pumice.core.ids import PodUid
from pumice.core.model.nodes import NodeTable
from pumice.core.model.tasks import Status, Task
from pumice.core.plugins.deviceshare.states import States
from pumice.core.resources import Ints

NO_CARDS = -1


class Cards:
    """The cards of one pool by column of the node table."""

    def __init__(self, nodes: NodeTable, devices: Mapping[str, NodeCards], pool: Pool) -> None:
        self.states = States()
        self.offers: dict[int, Offer] = {}
        self.entries: dict[int, NodeCards] = {}
        #: states, or NO_CARDS
        self.now: Ints = np.full(len(nodes), NO_CARDS)
        self.later: Ints = np.full(len(nodes), NO_CARDS)
        self._used: dict[int, Uses] = {}
        self._future: dict[int, Uses] = {}
        self._own: set[int] = set()
        for name, entry in devices.items():
            i, offer = nodes.index.get(name), entry.offer(pool)
            if i is not None and offer is not None:
                self.offers[i], self.entries[i] = offer, entry
                self._used[i] = entry.uses(offer)
                self._future[i] = entry.uses(offer, future=True)
                self._renew(i)

    def put(self, i: int, task: Task, choice: Choice) -> None:
        """Let a task that was placed have cards, or a promise of them."""
        holding = Holding.of(choice, task.job, task.labels, leaving=False)
        self._entry(i).holders[task.uid] = holding
        self._change(i, holding.shares, 1, now=task.status is not Status.PIPELINED)

    def take_back(self, i: int, task: Task) -> None:
        """Let a task that was placed have nothing after all."""
        holding = self._entry(i).holders.pop(task.uid, None)
        if holding is not None:
            self._change(i, holding.shares, -1, now=task.status is not Status.PIPELINED)

    def send_off(self, i: int, uid: PodUid, *, leaving: bool) -> None:
        """Count a task as on its way out, or as staying after all."""
        holding = self.entries[i].holders.get(uid) if i in self.entries else None
        if holding is not None and holding.leaving is not leaving:
            self._entry(i).holders[uid] = replace(holding, leaving=leaving)
            self._change(i, holding.shares, -1 if leaving else 1, now=False)

    def _change(self, i: int, shares: Mapping[str, Use], sign: int, *, now: bool) -> None:
        offer = self.offers[i]
        if now:
            self._used[i] = _changed(self._used[i], offer, shares, sign)
        self._future[i] = _changed(self._future[i], offer, shares, sign)
        self._renew(i)

    def _renew(self, i: int) -> None:
        makes, used, future = self.offers[i].makes, self._used[i], self._future[i]
        self.later[i] = self.now[i] = self.states.number(makes, future)
        if used != future:
            self.now[i] = self.states.number(makes, tuple(map(Use.most, used, future)))

    def _entry(self, i: int) -> NodeCards:
        if i not in self._own:
            self.entries[i] = self.entries[i].copy()
            self._own.add(i)
        return self.entries[i]


def _changed(uses: Uses, offer: Offer, shares: Mapping[str, Use], sign: int) -> Uses:
    changed = list(uses)
    for i, uuid in enumerate(offer.uuids):
        share = shares.get(uuid)
        if share is not None:
            changed[i] = uses[i].plus(share) if sign > 0 else uses[i].minus(share)
    return tuple(changed)
