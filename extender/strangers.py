"""
Strangers: pods of other schedulers that ask for cards.

Somebody has to choose their cards, and there is one table: so in a kube-scheduler that sends them
here they get a choice at `bind`, where there is room on the node that kube-scheduler took. Nothing
else is decided about them: they belong to no queue and to no gang of ours.

A binding that was begun is seen through, whether its caller is still there or not: nobody could say
otherwise whether the cards are taken.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from extender.answers import FAILED, GONE, NO_ROOM, OTHER_NODE
from extender.barrier import Post
from extender.model import Model
from pumice.core.ids import PodUid
from pumice.core.ledger import Entry, State

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Strangers:
    """Chooses cards for them, from what others have left."""

    model: Model
    post: Post
    #: bindings under way
    commits: dict[PodUid, asyncio.Task[str]] = field(default_factory=dict)

    def asks_for_cards(self, uid: PodUid) -> bool:
        """Tell whether a pod wants cards that are shared."""
        return self.model.cluster.ask(uid) is not None

    def scores(self, uid: PodUid, offered: Iterable[str]) -> dict[str, float]:
        """Return those of the nodes that have cards for a pod, and how well they suit it."""
        choices = {node: self.model.cluster.choose_cards(uid, node) for node in offered}
        return {node: cards.score for node, cards in choices.items() if cards is not None}

    async def bind(self, uid: PodUid, node: str) -> str:
        """Choose cards for a pod and bind it with them; return "" once it is bound."""
        while (running := self.commits.get(uid)) is not None:
            # A call before this one is being answered; what comes of it decides.
            await asyncio.wait({running})
        cluster = self.model.cluster
        pod, task = cluster.pods.get(uid), cluster.task(uid)
        if pod is None or task is None:
            return GONE
        if task.node:
            return "" if task.node == node else OTHER_NODE
        cards = cluster.choose_cards(uid, node)
        if cards is None:
            return NO_ROOM
        cluster.assume(uid, node, cards)
        meta, now = pod.metadata, self.model.now()
        entry = Entry(uid, meta.namespace, meta.name, None, State.ARRIVED, now, node, cards=cards)
        commit = asyncio.create_task(self._commit(entry, node), name=f"bind {uid}")
        self.commits[uid] = commit
        return await asyncio.shield(commit)

    async def _commit(self, entry: Entry, node: str) -> str:
        """Post a binding; a pod that was refused gives its cards back."""
        refused = FAILED
        try:
            refused = await self.post(entry, node)
        except Exception:
            log.exception("binding of pod %s", entry.uid)
        finally:
            del self.commits[entry.uid]
            if refused:
                self.model.cluster.forget(entry.uid)
        return refused
