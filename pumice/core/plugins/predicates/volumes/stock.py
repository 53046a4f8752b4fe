"""
The stock of a class: its volumes that are there and belong to no claim.

A claim gets the smallest volume that will do. Nodes that reach the same volumes make up a *pool*:
what one of them has to give, the others have as well. Of disks in nodes each node is a pool of
its own, of disks in zones each zone. Whatever is taken is taken out of every pool that had it; so
no two claims are ever promised one volume.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pumice.core import quantity
from pumice.core.api.storage import PersistentVolume
from pumice.core.plugins.predicates.volumes.needs import Ask, Reach, reach_of
from pumice.core.plugins.predicates.volumes.places import Places
from pumice.core.quantity import Exact, QuantityError
from pumice.core.resources import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class FreeVolume:
    """A volume of the stock."""

    name: str
    size: Exact
    modes: frozenset[str]
    kind: str
    attributes: str
    labels: dict[str, str]
    reach: Reach | None

    @classmethod
    def read(cls, volume: PersistentVolume) -> FreeVolume | None:
        """Read a volume; None where it has no size that makes sense."""
        spec = volume.spec
        try:
            size = quantity.parse((spec.capacity or {}).get("storage", 0))
        except QuantityError:
            return None
        return cls(
            volume.metadata.name,
            size,
            frozenset(spec.access_modes or ()),
            spec.volume_mode or "Filesystem",
            spec.volume_attributes_class_name or "",
            volume.metadata.labels or {},
            reach_of(volume),
        )

    def will_do(self, ask: Ask) -> bool:
        """Return whether the volume, of the class that is asked for, is what is wanted."""
        return (
            self.size >= ask.bytes
            and self.kind == ask.kind
            and self.attributes == ask.attributes
            and ask.modes <= self.modes
            and ask.selector.matches(self.labels)
        )


Choice = tuple[FreeVolume | None, ...]
"""What each of some asks would get."""


@dataclass(slots=True)
class _Matches:
    """What some asks would get from each pool, as far as it is known."""

    #: which ask gets nothing
    lacking: Bools  # (asks, pools)
    #: what those ask for that get something, and what they get, in bytes
    asked: Floats  # (pools,)
    given: Floats  # (pools,)
    choices: list[Choice]
    #: the state of each pool that the answer is for
    seen: Ints


class Stock:
    """The free volumes of a class, and which of them are promised."""

    def __init__(self, volumes: Iterable[PersistentVolume], places: Places) -> None:
        read = (FreeVolume.read(volume) for volume in volumes)
        #: smallest first
        self.volumes = sorted((v for v in read if v), key=lambda v: (v.size, v.name))
        self._index = {volume.name: i for i, volume in enumerate(self.volumes)}
        self._taken = np.zeros(len(self.volumes), bool)
        self._fits: dict[Ask, Bools] = {}
        self._known: dict[tuple[Ask, ...], _Matches] = {}
        #: the pool of each node
        self.pool_of: Ints = np.zeros(places.columns.size, np.int64)
        self._pools = self._make_pools(places)
        self._state = np.zeros(len(self._pools), np.int64)
        self._pools_with: list[list[int]] = [[] for _ in self.volumes]
        for pool, held in enumerate(self._pools):
            for i in held.tolist():
                self._pools_with[i].append(pool)

    def _make_pools(self, places: Places) -> list[Ints]:
        """Return the volumes of each pool, smallest first, as indices."""
        groups: dict[Reach | None, list[int]] = {}
        for i, volume in enumerate(self.volumes):
            groups.setdefault(volume.reach, []).append(i)
        everywhere = groups.pop(None, [])
        members = list(groups.values())
        reached: list[list[int]] = [[] for _ in range(places.columns.size)]
        for group, reach in enumerate(groups):
            for node in places.at(reach or ()).tolist():
                reached[node].append(group)
        pools: dict[tuple[int, ...], int] = {}
        made: list[Ints] = []
        for node, found in enumerate(map(tuple, reached)):
            number = self.pool_of[node] = pools.setdefault(found, len(made))
            if number == len(made):
                held = sorted([*everywhere, *(i for group in found for i in members[group])])
                made.append(np.array(held, np.int64))
        return made

    def serves(self, ask: Ask) -> bool:
        """Return whether any volume of the stock, taken or not, is what is asked for."""
        return bool(self._fitting(ask).any())

    def lacking(self, asks: tuple[Ask, ...]) -> Bools:
        """Return for each ask the nodes where it gets nothing: (asks, nodes)."""
        lacking: Bools = self._matches(asks).lacking[:, self.pool_of]
        return lacking

    def fullness(self, asks: tuple[Ask, ...]) -> Ints:
        """Return by node how full its volumes would be, in percent; -1 where it gives none."""
        found = self._matches(asks)
        full = np.where(found.given > 0, found.asked * 100 // np.maximum(found.given, 1), 100)
        full[found.lacking.all(axis=0)] = -1
        fullness: Ints = full.astype(np.int64)[self.pool_of]
        return fullness

    def choice(self, asks: tuple[Ask, ...], node: int) -> Choice:
        """Return what the asks would get on a node."""
        return self._matches(asks).choices[int(self.pool_of[node])]

    def take(self, volume: FreeVolume) -> None:
        """Promise a volume to a claim."""
        self._turn(volume, taken=True)

    def give_back(self, volume: FreeVolume) -> None:
        """Have a promised volume to give again."""
        self._turn(volume, taken=False)

    def _turn(self, volume: FreeVolume, *, taken: bool) -> None:
        i = self._index[volume.name]
        self._taken[i] = taken
        self._state[self._pools_with[i]] += 1

    def _matches(self, asks: tuple[Ask, ...]) -> _Matches:
        number = len(self._pools)
        found = self._known.get(asks)
        if found is None:
            lacking, (asked, given) = np.zeros((len(asks), number), bool), np.zeros((2, number))
            found = _Matches(lacking, asked, given, [()] * number, np.full(number, -1))
            self._known[asks] = found
        for pool in np.flatnonzero(found.seen != self._state).tolist():
            choice = found.choices[pool] = self._choose(asks, self._pools[pool])
            found.lacking[:, pool] = [volume is None for volume in choice]
            chosen = [(a, v) for a, v in zip(asks, choice, strict=True) if v is not None]
            found.asked[pool] = sum(math.ceil(ask.bytes) for ask, _ in chosen)
            found.given[pool] = sum(math.ceil(volume.size) for _, volume in chosen)
        found.seen[:] = self._state
        return found

    def _choose(self, asks: Sequence[Ask], volumes: Ints) -> Choice:
        free = ~self._taken[volumes]
        chosen: list[FreeVolume | None] = []
        for ask in asks:
            open_to = np.flatnonzero(free & self._fitting(ask)[volumes])
            if open_to.size:
                free[open_to[0]] = False
                chosen.append(self.volumes[int(volumes[open_to[0]])])
            else:
                chosen.append(None)
        return tuple(chosen)

    def _fitting(self, ask: Ask) -> Bools:
        found = self._fits.get(ask)
        if found is None:
            found = np.array([volume.will_do(ask) for volume in self.volumes], bool)
            self._fits[ask] = found
        return found
