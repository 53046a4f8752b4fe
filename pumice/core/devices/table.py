"""
The table of devices: for each node its cards, who holds what of them, and the sums.

Pods that are bound hold what stands on them, pods that are planned what was chosen for them; both
until they are gone. What a node registers changes nothing of that: a card that vanished, shrank or
fell ill keeps its holders, takes nobody new where there is not enough of it, and counts again as
it was should it come back.

A snapshot shares the entries of nodes; the next change to one works on a copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pumice.core.devices.asks import Ask
from pumice.core.devices.cards import Offer, Pool, pool_of
from pumice.core.devices.choosing import NOTHING, Policy, Use, Uses, admits, choose
from pumice.core.devices.notes import Choice
from pumice.core.ids import JobKey, PodUid


@dataclass(frozen=True, slots=True)
class Holding:
    """What one pod holds, and what others ask about it before they share a card with it."""

    choice: Choice
    shares: Mapping[str, Use] = field(compare=False)
    job: JobKey | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    #: it is on its way out
    leaving: bool = False

    @classmethod
    def of(
        cls, choice: Choice, job: JobKey | None, labels: Mapping[str, str], leaving: bool
    ) -> Holding:
        """Return what a pod holds by a choice."""
        return cls(choice, choice.shares(), job, labels, leaving)


@dataclass(slots=True)
class NodeCards:
    """One node."""

    offers: tuple[Offer, ...] = ()
    holders: dict[PodUid, Holding] = field(default_factory=dict)
    #: sums over the holders by pool and card
    used: dict[tuple[Pool, str], Use] = field(default_factory=dict)

    def offer(self, pool: Pool) -> Offer | None:
        """Return the cards that are shared in one way, if there are any."""
        return next((offer for offer in self.offers if offer.pool == pool), None)

    def uses(self, offer: Offer, *, future: bool = False) -> Uses:
        """Return what is in use of each card; in `future` without the holders on their way out."""
        uses = [self.used.get((offer.pool, uuid), NOTHING) for uuid in offer.uuids]
        if future:
            at = {uuid: i for i, uuid in enumerate(offer.uuids)}
            for holding in self.holders.values():
                if holding.leaving and holding.choice.pool == offer.pool:
                    for card, share in holding.shares.items():
                        if card in at:
                            uses[at[card]] = uses[at[card]].minus(share)
        return tuple(uses)

    def copy(self) -> NodeCards:
        """Return an entry of its own."""
        return NodeCards(self.offers, dict(self.holders), dict(self.used))

    def put(self, uid: PodUid, holding: Holding) -> None:
        """Let a pod hold cards."""
        self.holders[uid] = holding
        for card, share in holding.shares.items():
            key = (holding.choice.pool, card)
            self.used[key] = self.used.get(key, NOTHING).plus(share)

    def drop(self, uid: PodUid) -> None:
        """Let a pod hold nothing."""
        holding = self.holders.pop(uid)
        for card, share in holding.shares.items():
            key = (holding.choice.pool, card)
            left = self.used[key].minus(share)
            if left == NOTHING:
                del self.used[key]
            else:
                self.used[key] = left


@dataclass(slots=True)
class Devices:
    """All nodes that have cards, or pods that hold some."""

    _nodes: dict[str, NodeCards] = field(default_factory=dict)
    _where: dict[PodUid, str] = field(default_factory=dict)
    #: entries that no snapshot shares
    _own: set[str] = field(default_factory=set)

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self._where

    @property
    def nodes(self) -> Mapping[str, NodeCards]:
        """Return the entries by node."""
        return self._nodes

    def share(self) -> Mapping[str, NodeCards]:
        """Return the entries as they are now; they are not changed any more."""
        self._own.clear()
        return dict(self._nodes)

    def register(self, node: str, offers: tuple[Offer, ...]) -> None:
        """Take over what a node registers; nothing where it is gone."""
        known = self._nodes.get(node)
        if offers == (known.offers if known else ()):
            return
        self._entry(node).offers = offers
        self._tidy(node)

    def holding(self, uid: PodUid) -> Holding | None:
        """Return what a pod holds."""
        node = self._where.get(uid)
        return None if node is None else self._nodes[node].holders[uid]

    def hold(self, uid: PodUid, node: str, holding: Holding) -> None:
        """Let a pod hold cards of a node, and no others any more."""
        if self._where.get(uid) == node and self._nodes[node].holders[uid] == holding:
            return
        self.release(uid)
        self._entry(node).put(uid, holding)
        self._where[uid] = node

    def release(self, uid: PodUid) -> None:
        """Let a pod hold nothing."""
        node = self._where.pop(uid, None)
        if node is not None:
            self._entry(node).drop(uid)
            self._tidy(node)

    def admits(self, uid: PodUid, node: str, choice: Choice, hidden: int = 0) -> bool:
        """
        Return whether a pod may have the chosen cards, others having what they have now.

        `hidden` is a mask of the node's cards that are not to be had.
        """
        entry = self.without(uid, node)
        offer = entry.offer(choice.pool) if entry else None
        if entry is None or offer is None:
            return False
        at = {uuid: i for i, uuid in enumerate(offer.uuids)}
        uses = entry.uses(offer)
        return all(
            card in at
            and not hidden >> at[card] & 1
            and admits(offer.makes[at[card]], uses[at[card]], share, choice.ask.kind)
            for card, share in choice.shares().items()
        )

    def choose(
        self, uid: PodUid, node: str, ask: Ask, policy: Policy, hidden: int = 0
    ) -> Choice | None:
        """Return cards of a node for a pod as things stand, None where there are not enough."""
        entry = self.without(uid, node)
        offer = entry.offer(pool_of(ask.kind)) if entry else None
        if entry is None or offer is None:
            return None
        fit = choose(offer.makes, entry.uses(offer), ask, policy, hidden)
        return None if fit is None else Choice.of(ask, offer, fit)

    def without(self, uid: PodUid, node: str) -> NodeCards | None:
        """Return the entry of a node as it would be without a pod, None where it has none."""
        entry = self._nodes.get(node)
        if entry is not None and uid in entry.holders:
            entry = entry.copy()
            entry.drop(uid)
        return entry

    def _entry(self, node: str) -> NodeCards:
        """Return the entry of a node, which may be changed in place."""
        if node not in self._own or node not in self._nodes:
            known = self._nodes.get(node)
            self._nodes[node] = known.copy() if known else NodeCards()
            self._own.add(node)
        return self._nodes[node]

    def _tidy(self, node: str) -> None:
        entry = self._nodes[node]
        if not entry.offers and not entry.holders:
            del self._nodes[node]
            self._own.discard(node)
