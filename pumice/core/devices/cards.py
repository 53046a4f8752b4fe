"""
Cards: what a node has to share, as its device plugins registered it.

vGPU cards stand in an annotation, each with a uuid, how many pods may share it, its memory, its
type, whether it is healthy, and how it is shared; where it is in HAMi's form, also with the NUMA
node that the card is at. The older GPU sharing says only how many cards there are and how much
memory they have together; there a card is known by its index.

What makes a card different from another one in the eyes of whoever chooses is its `Make`; nodes
whose cards are of the same makes are looked at as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pumice.core import names, quantity
from pumice.core.api.core import Node, ResourceList
from pumice.core.devices.asks import Kind, words
from pumice.core.devices.mig import KNOWN, Geometry, Known, geometry_of

Pool = Literal["vgpu", "gpu"]
MIG = "mig"
NO_NUMA = -1
HAMI_FIELDS = 7
DEFAULT_MODE = "hami-core"
UNLIMITED = 1 << 30


@dataclass(frozen=True, slots=True)
class Make:
    """All of a card that decides who fits on it, and who rather not."""

    slots: int
    memory: int
    type: str = ""
    healthy: bool = True
    mode: str = ""
    #: of a card that is cut into instances
    geometry: Geometry = ()
    #: NO_NUMA where the registration does not say
    numa: int = NO_NUMA


@dataclass(frozen=True, slots=True)
class Offer:
    """The cards of one node that are shared in one way."""

    pool: Pool
    #: uuid, or index, of each card
    uuids: tuple[str, ...]
    makes: tuple[Make, ...]


def pool_of(kind: Kind) -> Pool:
    """Return which cards an ask of this kind is for."""
    return "vgpu" if kind == "vgpu" else "gpu"


def offers_of(node: Node, known: Known = KNOWN) -> tuple[tuple[Offer, ...], list[str]]:
    """Return a node's cards, and what is wrong with their registration; wrong ones are left out."""
    faults: list[str] = []
    found = []
    notes, status = node.metadata.annotations or {}, node.status
    text = notes.get(names.VGPU_REGISTER)
    if text and all(_amount(status.allocatable, name) for name in _VGPU_AMOUNTS):
        found.append(registered(text, faults, known))
    number = _amount(status.capacity, names.GPU_NUMBER)
    memory = _amount(status.capacity, names.GPU_MEMORY)
    if number and memory:
        sick = words(notes.get(names.GPU_UNHEALTHY, ""))
        uuids = tuple(str(i) for i in range(number))
        makes = (Make(UNLIMITED, memory // number, healthy=u not in sick) for u in uuids)
        found.append(Offer("gpu", uuids, tuple(makes)))
    return tuple(found), faults


_VGPU_AMOUNTS = (names.VGPU_NUMBER, names.VGPU_MEMORY, names.VGPU_CORES)


def registered(text: str, faults: list[str], known: Known = KNOWN) -> Offer:
    """Return the vGPU cards of a registration; what is malformed goes to `faults`."""
    cards: dict[str, Make] = {}
    for entry in text.split(":"):
        if not entry.strip():
            continue
        try:
            uuid, make = _card(entry, known)
        except ValueError:
            faults.append(f"annotation {names.VGPU_REGISTER}: {entry!r} is not a card, left out")
            continue
        if make.mode == MIG and not make.geometry:
            faults.append(f"card {uuid}: no MIG geometry is known of a {make.type}, it is not used")
        cards[uuid] = make
    return Offer("vgpu", tuple(cards), tuple(cards.values()))


def _card(entry: str, known: Known) -> tuple[str, Make]:
    """
    Return uuid and make of `uuid,count,memory,type,health,mode`, of which the mode is optional.

    HAMi's form is `uuid,count,memory,cores,type,numa,health,index,mode`, without the last two in
    older releases.
    """
    fields = [field.strip() for field in entry.split(",")]
    numa = NO_NUMA
    if len(fields) >= HAMI_FIELDS:
        numa = int(fields.pop(5))
        del fields[6:7], fields[3]
    uuid, count, memory, card, health = fields[:5]
    mode = (fields[5:6] or [""])[0] or DEFAULT_MODE
    if not uuid or int(count) < 0 or int(memory) < 0:
        raise ValueError(entry)
    geometry = geometry_of(card, known) if mode == MIG else ()
    healthy = health.lower() in ("true", "1", "t")
    return uuid, Make(int(count), int(memory), card, healthy, mode, geometry, numa)


def _amount(amounts: ResourceList | None, name: str) -> int:
    found: Mapping[str, object] = amounts or {}
    return int(quantity.parse(found[name])) if name in found else 0  # type: ignore[arg-type]
