"""
Notes: a choice of cards as annotations of the pod, as the device plugins read them.

vGPU: the places of the containers with `;` between, the slices of each ended by `:`, and in a slice
uuid, vendor, memory and cores. A plugin looks for the pod on its node with the oldest time; it
marks what it has handed out in `devices-to-allocate` and leaves `vgpu-ids-new` as it is, so this is
what is read back. An instance of a card that is cut is `uuid[group-position]`.

GPU sharing: the indices of the cards, and a time.

With both stands whose choice it is. A pod that was made from another one's YAML carries a choice,
too, but not one of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pumice.core import names
from pumice.core.devices.asks import Ask
from pumice.core.devices.cards import UNLIMITED, Offer, Pool, pool_of
from pumice.core.devices.choosing import NOTHING, Fit, Use

VENDOR: Final = "NVIDIA"
ALLOCATING: Final = "allocating"
HANDED_OUT: Final = (1 << 64) - 1
"""What device plugins put in the place of the time of a pod that has been served."""
_INSTANCE: Final = re.compile(r"(?P<card>.*)\[(?P<group>.*)-(?P<position>\d+)\]")


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of one card."""

    card: str
    memory: int
    cores: int = 0
    group: str = ""
    position: int = -1

    @property
    def name(self) -> str:
        """Return how a device plugin knows it."""
        return f"{self.card}[{self.group}-{self.position}]" if self.group else self.card

    @property
    def use(self) -> Use:
        """Return what is in use of the card by it."""
        taken = (self.position,) if self.position >= 0 else ()
        return Use(1, self.memory, self.cores, self.group, taken)


@dataclass(frozen=True, slots=True)
class Choice:
    """The cards of one pod."""

    ask: Ask
    #: for each place of the ask
    places: tuple[tuple[Slice, ...], ...]
    #: of the node, by the policy; it is known to whoever made the choice
    score: float = field(default=0.0, compare=False)

    @property
    def pool(self) -> Pool:
        """Return which cards these are."""
        return pool_of(self.ask.kind)

    @classmethod
    def of(cls, ask: Ask, offer: Offer, fit: Fit) -> Choice:
        """Return the choice that a fit on a node's cards is."""
        places: list[tuple[Slice, ...]] = [()] * ask.places
        for step, picks in zip(ask.steps, fit.picks, strict=True):
            places[step.place] = tuple(
                Slice(offer.uuids[p.card], p.memory, p.cores, p.group, p.position) for p in picks
            )
        return cls(ask, tuple(places), fit.score)

    def shares(self) -> dict[str, Use]:
        """Return what the pod holds of each card, init containers not beside the apps."""
        roles = {step.place: step.role for step in self.ask.steps}
        beside: dict[str, Use] = {}
        apps: dict[str, Use] = {}
        inits: list[dict[str, Use]] = []
        for place, slices in enumerate(self.places):
            role = roles.get(place, "app")
            held = {"sidecar": beside, "app": apps}.get(role)
            if held is None:
                held = {}
                inits.append(held)
            for part in slices:
                held[part.card] = held.get(part.card, NOTHING).plus(part.use)
        together = _plus(beside, apps)
        for held in inits:
            for card, use in _plus(beside, held).items():
                whole = together.get(card, NOTHING)
                together[card] = (
                    whole.plus(held.get(card, NOTHING)) if use.taken else whole.most(use)
                )
        return together


def _plus(one: Mapping[str, Use], other: Mapping[str, Use]) -> dict[str, Use]:
    total = dict(one)
    for card, use in other.items():
        total[card] = total.get(card, NOTHING).plus(use)
    return total


def notes_of(choice: Choice, uid: str, node: str, now: float, order: int) -> dict[str, str]:
    """
    Return a choice as annotations.

    `now` is in seconds; `order`, too, but it differs between pods of a node: device plugins serve
    the oldest first, and take one pod for the other where two are of the same time.
    """
    if choice.pool == "gpu":
        return {
            names.ALLOCATION: uid,
            names.GPU_INDEX: ",".join(part.card for part in choice.places[0]),
            names.PREDICATE_TIME: str(int(now * 1e9)),
        }
    ids = ";".join("".join(_written(part) for part in place) for place in choice.places)
    return {
        names.ALLOCATION: uid,
        names.VGPU_NODE: node,
        names.VGPU_TIME: str(order),
        names.VGPU_IDS: ids,
        names.VGPU_TO_ALLOCATE: ids,
        names.BIND_PHASE: ALLOCATING,
        names.BIND_TIME: str(int(now)),
    }


def order_of(notes: Mapping[str, str]) -> int:
    """Return the `order` of the choice on a pod, 0 without one or where it has been handed out."""
    try:
        order = int(notes.get(names.VGPU_TIME, 0))
    except ValueError:
        return 0
    return order if order < HANDED_OUT else 0


def _written(part: Slice) -> str:
    return f"{part.name},{VENDOR},{part.memory},{part.cores}:"


def choice_of(
    notes: Mapping[str, str], uid: str, node: str, asks: tuple[Ask, ...]
) -> Choice | None:
    """Return the choice that stands on a pod, None where there is none, or not its own."""
    if notes.get(names.ALLOCATION, uid) != uid:
        return None
    for ask in asks:
        places = (
            _vgpu_places(notes, node) if pool_of(ask.kind) == "vgpu" else _gpu_places(notes, ask)
        )
        if places is not None:
            return Choice(ask, places)
    return None


def _gpu_places(notes: Mapping[str, str], ask: Ask) -> tuple[tuple[Slice, ...], ...] | None:
    text = notes.get(names.GPU_INDEX)
    if not text:
        return None
    memory = UNLIMITED if ask.kind == "number" else ask.steps[0].memory
    return (tuple(Slice(index.strip(), memory) for index in text.split(",")),)


def _vgpu_places(notes: Mapping[str, str], node: str) -> tuple[tuple[Slice, ...], ...] | None:
    text = notes.get(names.VGPU_IDS)
    if not text or notes.get(names.VGPU_NODE, node) != node:
        return None
    try:
        return tuple(
            tuple(_slice(entry) for entry in place.split(":") if entry) for place in text.split(";")
        )
    except ValueError:
        return None


def _slice(entry: str) -> Slice:
    name, _, memory, cores = entry.split(",")
    found = _INSTANCE.fullmatch(name)
    if found is None:
        return Slice(name, int(memory), int(cores))
    position = int(found["position"])
    return Slice(found["card"], int(memory), int(cores), found["group"], position)
