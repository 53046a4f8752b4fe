"""
Strangers: pods of other schedulers that ask for cards.

Somebody has to choose their cards, and there is one table: so in a kube-scheduler that sends them
here they get a choice at `bind`, where there is room on the node that kube-scheduler took. Nothing
else is decided about them: they belong to no queue and to no gang of ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from extender.barrier import GONE, NO_ROOM, Post
from extender.model import Model
from pumice.core.ids import PodUid
from pumice.core.ledger import Entry, State


@dataclass(slots=True)
class Strangers:
    """Chooses cards for them, from what others have left."""

    model: Model
    post: Post

    def asks_for_cards(self, uid: PodUid) -> bool:
        """Tell whether a pod wants cards that are shared."""
        return self.model.cluster.ask(uid) is not None

    def scores(self, uid: PodUid, offered: Iterable[str]) -> dict[str, float]:
        """Return those of the nodes that have cards for a pod, and how well they suit it."""
        choices = {node: self.model.cluster.choose_cards(uid, node) for node in offered}
        return {node: cards.score for node, cards in choices.items() if cards is not None}

    async def bind(self, uid: PodUid, node: str) -> str:
        """Choose cards for a pod and bind it with them; return "" once it is bound."""
        cluster = self.model.cluster
        pod, cards = cluster.pods.get(uid), cluster.choose_cards(uid, node)
        if pod is None:
            return GONE
        if cards is None:
            return NO_ROOM
        cluster.assume(uid, node, cards)
        meta, now = pod.metadata, self.model.now()
        entry = Entry(uid, meta.namespace, meta.name, None, State.ARRIVED, now, node, cards=cards)
        refused = await self.post(entry, node)
        if refused:
            cluster.forget(uid)
        return refused
