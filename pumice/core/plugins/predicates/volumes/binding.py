"""
Where the volumes of a pod are, or can be (kube-scheduler's VolumeBinding).

* A claim that is bound: the node reaches its volume.
* An unbound one: the node reaches a volume of the stock that will do, or one can be made for it.
  Claims of one pod choose one after the other, the smallest first.

A volume that is kept for the claim is the only one of the stock that it takes, and where a volume
is being made for some node already, that is the only node. Several pods that mount one unbound
claim get its volume together: the first of them chooses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import numpy as np

from pumice.core.api.storage import PersistentVolume
from pumice.core.extension import Code, Refusal
from pumice.core.ids import PodUid
from pumice.core.model.columns import Columns
from pumice.core.model.storage import Storage
from pumice.core.plugins.predicates.masks import all_of
from pumice.core.plugins.predicates.volumes.needs import (
    Ask,
    Needs,
    Reach,
    class_of_volume,
    reach_of,
)
from pumice.core.plugins.predicates.volumes.places import Places
from pumice.core.plugins.predicates.volumes.provisioning import Provisioning
from pumice.core.plugins.predicates.volumes.stock import FreeVolume, Stock
from pumice.core.resources import Bools, Ints

OUT_OF_REACH: Final = "node(s) didn't match PersistentVolume's node affinity"
NOTHING_TO_BIND: Final = "node(s) didn't find available persistent volumes to bind"
TOO_LITTLE: Final = "node(s) did not have enough free storage"
LOST: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


@dataclass(slots=True)
class _Decision:
    """What was decided for a claim that several pods mount."""

    #: None where a volume is to be made
    volume: FreeVolume | None
    of: str
    pods: int = 0


@dataclass(frozen=True, slots=True)
class _Promise:
    """What was promised to a pod."""

    volumes: tuple[tuple[str, FreeVolume], ...]
    shared: tuple[str, ...]


class Binding:
    """What the volumes of a session say of nodes, promises included."""

    def __init__(self, storage: Storage, columns: Columns) -> None:
        self._storage = storage
        self._columns = columns
        self._places = Places(columns)
        self._provisioning = Provisioning(storage, self._places)
        self._free: Mapping[str, list[PersistentVolume]] | None = None
        self._stocks: dict[str, Stock] = {}
        self._kept: dict[str, Bools] = {}
        self._decided: dict[str, _Decision] = {}
        self._promises: dict[PodUid, _Promise] = {}

    # What nodes are refused for.

    def is_settled(self, needs: Needs) -> bool:
        """Return whether nothing that is placed changes what is said of these needs."""
        return not any(ask.shared or self._chooses(ask) for ask in needs.asks)

    def refuse_bound(self, needs: Needs) -> list[Refusal]:
        """Refuse the nodes that do not reach the volumes of bound claims."""
        if needs.lost:
            return [Refusal(Code.UNRESOLVABLE, LOST, self._columns.all())]
        if not needs.reaches:
            return []
        reached = all_of(self._places.mask(reach) for reach in needs.reaches)
        return [Refusal(Code.UNRESOLVABLE, OUT_OF_REACH, ~reached)]

    def refuse_unbound(self, needs: Needs) -> list[Refusal]:
        """Refuse the nodes that have no volumes to give, as things stand."""
        if not needs.asks:
            return []
        nothing, too_little = self._unsatisfied(needs.asks)
        return [
            Refusal(Code.UNRESOLVABLE, NOTHING_TO_BIND, nothing),
            Refusal(Code.UNRESOLVABLE, TOO_LITTLE, too_little),
        ]

    def _unsatisfied(self, asks: tuple[Ask, ...]) -> tuple[Bools, Bools]:
        """Return the nodes without a volume for some ask, and those with too little storage."""
        nothing, too_little = np.zeros((2, self._columns.size), bool)
        for ask in asks:
            if ask.selected:
                nothing |= ~self._named(ask.selected)
        lacking = self._lacking(asks)
        # Those for which a volume is being made come first.
        for i, ask in sorted(enumerate(asks), key=lambda entry: not entry[1].selected):
            left = lacking[i] & ~nothing & ~too_little
            decided = self._decided.get(ask.shared)
            if decided is not None and decided.volume is not None:
                nothing |= left
                continue
            made, enough = self._provisioning.of(ask)
            nothing |= left & ~made
            too_little |= left & made & ~enough
        return nothing, too_little

    def _lacking(self, asks: tuple[Ask, ...]) -> list[Bools]:
        """Return for each ask the nodes that have no volume for it."""
        lacking = [self._columns.all() for _ in asks]
        for i, ask in enumerate(asks):
            decided = self._decided.get(ask.shared)
            if ask.selected:
                continue
            if decided is not None:
                if decided.volume is not None:
                    lacking[i] = ~self._reached(decided.volume.reach)
            elif ask.kept:
                lacking[i] = ~self._reached_by_kept(ask.kept)
        for of, places in self._choosing(asks):
            found = self._stock(of).lacking(tuple(asks[i] for i in places))
            for i, nodes in zip(places, found, strict=True):
                lacking[i] = nodes
        return lacking

    def _choosing(self, asks: tuple[Ask, ...]) -> Iterator[tuple[str, list[int]]]:
        """Yield by class the asks, as indices, that choose from the stock."""
        choosing = [i for i, ask in enumerate(asks) if self._chooses(ask)]
        choosing = [i for i in choosing if asks[i].shared not in self._decided]
        choosing.sort(key=lambda i: asks[i].of)
        for of, places in groupby(choosing, key=lambda i: asks[i].of):
            yield of, list(places)

    def _chooses(self, ask: Ask) -> bool:
        return not ask.selected and not ask.kept and self._stock(ask.of).serves(ask)

    def _named(self, node: str) -> Bools:
        named = np.zeros(self._columns.size, bool)
        if node in self._columns.index:
            named[self._columns.index[node]] = True
        return named

    def _reached(self, reach: Reach | None) -> Bools:
        return self._columns.all() if reach is None else self._places.mask(reach)

    def _reached_by_kept(self, name: str) -> Bools:
        found = self._kept.get(name)
        if found is None:
            found = self._kept[name] = self._reached(reach_of(self._storage.volumes[name]))
        return found

    def _stock(self, of: str) -> Stock:
        found = self._stocks.get(of)
        if found is None:
            if self._free is None:
                self._free = _free(self._storage)
            found = self._stocks[of] = Stock(self._free.get(of, ()), self._places)
        return found

    # What is promised.

    def fullness(self, asks: tuple[Ask, ...]) -> list[Ints]:
        """Return by class how full the volumes of each node would be; -1 where it gives none."""
        return [
            self._stock(of).fullness(tuple(asks[i] for i in places))
            for of, places in self._choosing(asks)
        ]

    def _choice(self, asks: tuple[Ask, ...], node: int) -> list[tuple[Ask, FreeVolume]]:
        """Return what the asks would get of the stock on a node."""
        chosen = []
        for of, places in self._choosing(asks):
            mine = tuple(asks[i] for i in places)
            found = self._stock(of).choice(mine, node)
            chosen += [(a, v) for a, v in zip(mine, found, strict=True) if v is not None]
        return chosen

    def promise(self, uid: PodUid, needs: Needs, node: int) -> None:
        """Give a pod what it gets on its node; nothing happens where it has its volumes."""
        if not needs.asks or uid in self._promises:
            return
        found = self._choice(needs.asks, node)
        chosen = dict(found)
        shared = [ask for ask in needs.asks if ask.shared and not (ask.kept or ask.selected)]
        for ask in shared:
            first = self._decided.setdefault(ask.shared, _Decision(chosen.get(ask), ask.of))
            first.pods += 1
        for ask, volume in found:
            self._stock(ask.of).take(volume)
        own = tuple((ask.of, volume) for ask, volume in found if not ask.shared)
        self._promises[uid] = _Promise(own, tuple(ask.shared for ask in shared))

    def take_back(self, uid: PodUid) -> None:
        """Take from a pod what was promised to it."""
        promise = self._promises.pop(uid, None)
        if promise is None:
            return
        for of, volume in promise.volumes:
            self._stock(of).give_back(volume)
        for key in promise.shared:
            decided = self._decided[key]
            decided.pods -= 1
            if not decided.pods:
                del self._decided[key]
                if decided.volume is not None:
                    self._stock(decided.of).give_back(decided.volume)


def _free(storage: Storage) -> dict[str, list[PersistentVolume]]:
    """Return the volumes that are there and belong to no claim, by class."""
    found: dict[str, list[PersistentVolume]] = {}
    for volume in storage.volumes.values():
        available = volume.status.phase == "Available" and volume.spec.claim_ref is None
        if available and not volume.metadata.deletion_timestamp:
            found.setdefault(class_of_volume(volume), []).append(volume)
    return found
