"""
The inventory: the cards of all nodes, how they are shared, and who has which.

A bound pod has what stands on it, and one that is planned what was chosen for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pumice.core import names
from pumice.core.api.core import Node
from pumice.core.devices.asks import Ask
from pumice.core.devices.cards import Offer, offers_of, pool_of, registered
from pumice.core.devices.mig import KNOWN, Known
from pumice.core.devices.notes import Choice, choice_of
from pumice.core.devices.sharing import NO_SHARING, Sharing
from pumice.core.devices.table import Devices, Holding, NodeCards
from pumice.core.ids import PodUid
from pumice.core.model.nodes import NodeInfo
from pumice.core.model.tasks import Status, Task


class Inventory:
    """The table of devices, and by which rules it changes."""

    def __init__(self) -> None:
        self._table = Devices()
        #: how cards are shared; changed from outside, as the configuration says
        self.sharing: Sharing = NO_SHARING
        #: how cards can be cut
        self._geometries: Known = KNOWN
        #: what was chosen for pods that are not seen bound yet
        self._chosen: dict[PodUid, Choice] = {}

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self._table

    @property
    def nodes(self) -> Mapping[str, NodeCards]:
        """Return the entries by node."""
        return self._table.nodes

    def share(self) -> Mapping[str, NodeCards]:
        """Return the entries as they are now; they are not changed any more."""
        return self._table.share()

    # What nodes have.

    def set_node(self, node: Node) -> str:
        """Take over what a node registers; return what is wrong with it, if anything."""
        offers, faults = offers_of(node, self._geometries)
        self._table.register(node.metadata.name, offers)
        return "; ".join(faults)

    def recall_node(self, name: str, offers: tuple[Offer, ...]) -> None:
        """Take over what a node had registered."""
        self._table.register(name, offers)

    def remove_node(self, name: str) -> None:
        """Forget what a node registered."""
        self._table.register(name, ())

    def recut(self, known: Known, infos: Iterable[NodeInfo]) -> Iterator[tuple[str, str]]:
        """
        Read anew what nodes register where cards are cut otherwise from now on.

        Yield each node that has such cards, and what is wrong with them, if anything.
        """
        if known == self._geometries:
            return
        self._geometries = known
        for info in infos:
            entry, text = self.nodes.get(info.name), info.annotations.get(names.VGPU_REGISTER)
            if text and entry is not None and entry.offer("vgpu") is not None:
                faults: list[str] = []
                others = (offer for offer in entry.offers if offer.pool != "vgpu")
                self._table.register(info.name, (registered(text, faults, known), *others))
                yield info.name, "; ".join(faults)

    # What pods have.

    def chosen(self, uid: PodUid) -> Choice | None:
        """Return what was chosen for a pod that is not seen bound yet."""
        return self._chosen.get(uid)

    def note(self, uid: PodUid, choice: Choice | None) -> None:
        """Take note of what was chosen for a pod, or that nothing is any more."""
        if choice is None:
            self._chosen.pop(uid, None)
        else:
            self._chosen[uid] = choice

    def settle(self, task: Task) -> None:
        """Let a task hold its cards for as long as it occupies its node."""
        if not task.cls.signature.devices and task.uid not in self._table:
            return
        holding = self.holding(task)
        if holding is None:
            self._table.release(task.uid)
        else:
            self._table.hold(task.uid, task.node, holding)

    def release(self, uid: PodUid) -> None:
        """Let a pod hold nothing."""
        self._table.release(uid)

    def holding(self, task: Task) -> Holding | None:
        """Return what a task holds by what stands on its pod, or was chosen for it, if anything."""
        if not task.occupies:
            return None
        choice = self._chosen.get(task.uid)
        if choice is None:
            notes = task.pod.metadata.annotations or {}
            if task.pod.spec.node_name:
                choice = choice_of(notes, task.uid, task.node, task.cls.signature.devices)
        if choice is None:
            return None
        leaving = task.status is Status.RELEASING
        return Holding.of(choice, task.job, task.labels, leaving)

    # What pods may have.

    def ask(self, task: Task) -> Ask | None:
        """Return what a task asks of the cards of its node, where cards are shared that way."""
        return self.sharing.ask(task.cls.signature.devices)

    def choose(self, task: Task, node: str) -> Choice | None:
        """Return cards of a node for a task that asks for some, None where they are not left."""
        ask = self.ask(task)
        if ask is None:
            return None
        hidden = self._hidden(task, node, ask)
        return self._table.choose(task.uid, node, ask, self.sharing.policy, hidden)

    def admits(self, task: Task, node: str, choice: Choice) -> bool:
        """Return whether a task may have the cards of a node that were chosen for it."""
        hidden = self._hidden(task, node, choice.ask)
        return self._table.admits(task.uid, node, choice, hidden)

    def _hidden(self, task: Task, node: str, ask: Ask) -> int:
        entry = self._table.without(task.uid, node)
        offer = entry.offer(pool_of(ask.kind)) if entry else None
        if entry is None or offer is None:
            return 0
        return self.sharing.hidden(ask, offer, entry, task.job, self.sharing.matching(task.labels))
