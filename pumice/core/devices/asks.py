"""
Asks: what a pod wants of the cards of a node.

There are three kinds. `vgpu`: each container wants so many cards, and of each of them an amount of
memory (or a percentage) and of compute. `memory`: the pod wants an amount of one card's memory.
`number`: the pod wants so many cards for itself.

An ask is a value that pods which ask alike share; it hangs on their signature.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pumice.core import names, quantity
from pumice.core.api.core import Container, Pod

Kind = Literal["vgpu", "memory", "number"]
Role = Literal["app", "sidecar", "init"]
"""Init containers run one after the other, beside the sidecars, and have ended when apps run."""
WHOLE = 100
"""A card's compute, and all of its memory as a percentage."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one container wants: `number` cards, and of each of them the same."""

    #: the container's place in the order in which the kubelet starts them: init containers first
    place: int
    number: int
    #: in the unit of the registration; 0 where the percentage counts
    memory: int = 0
    percentage: int = 0
    cores: int = 0
    role: Role = "app"


@dataclass(frozen=True, slots=True)
class Ask:
    """All that a pod says of the cards that it wants."""

    kind: Kind
    steps: tuple[Step, ...]
    #: how many places the written choice has, one for each container
    places: int = 1
    #: how cards are to be shared (`hami-core`, `mig`, `mps`); "" takes any
    mode: str = ""
    use_types: tuple[str, ...] = ()
    avoid_types: tuple[str, ...] = ()
    use_uuids: tuple[str, ...] = ()
    avoid_uuids: tuple[str, ...] = ()
    #: no other pod of the same group on a card
    spread: bool = False

    @property
    def is_choosy(self) -> bool:
        """Return whether single cards are named."""
        return bool(self.use_uuids or self.avoid_uuids)

    def takes_type(self, card: str) -> bool:
        """Return whether a type of card is wanted: any part of its name counts, in any case."""
        name = card.lower()
        if self.use_types:
            return any(wanted in name for wanted in self.use_types)
        return not any(unwanted in name for unwanted in self.avoid_types)

    def takes_uuid(self, uuid: str) -> bool:
        """Return whether this very card is wanted."""
        if uuid in self.avoid_uuids:
            return False
        return not self.use_uuids or uuid in self.use_uuids


def asks_of(pod: Pod) -> tuple[Ask, ...]:
    """Return what a pod asks of cards; raise QuantityError for a malformed amount."""
    spec = pod.spec
    inits, apps = spec.init_containers or [], spec.containers or []
    if not any(_mentions_cards(c) for c in (*inits, *apps)):
        return ()
    found = []
    amounts = [_amounts(c) for c in (*inits, *apps)]
    roles: list[Role] = ["sidecar" if c.restart_policy == "Always" else "init" for c in inits]
    roles += ["app"] * len(apps)
    memory = _of_pod(names.GPU_MEMORY, amounts, roles)
    if memory:
        found.append(Ask("memory", (Step(0, 1, memory),)))
    number = _of_pod(names.GPU_NUMBER, amounts, roles)
    if number:
        found.append(Ask("number", (Step(0, number),)))
    steps = tuple(
        step for i, named in enumerate(amounts) if (step := _step(i, named, roles[i])) is not None
    )
    if steps:
        found.append(_vgpu(steps, pod, len(amounts)))
    return tuple(found)


def _vgpu(steps: tuple[Step, ...], pod: Pod, containers: int) -> Ask:
    # Once it is somewhere it does not matter any more where else it might have gone.
    notes = {} if pod.spec.node_name else pod.metadata.annotations or {}
    inits = len(pod.spec.init_containers or ())
    if all(step.place >= inits for step in steps):
        # No init container wants any: those are left out of the written choice.
        steps = tuple(
            Step(s.place - inits, s.number, s.memory, s.percentage, s.cores) for s in steps
        )
        containers -= inits
    return Ask(
        "vgpu",
        steps,
        containers,
        notes.get(names.VGPU_MODE, ""),
        words(notes.get(names.USE_GPU_TYPE, "").lower()),
        words(notes.get(names.AVOID_GPU_TYPE, "").lower()),
        words(notes.get(names.USE_GPU_UUID, "")),
        words(notes.get(names.AVOID_GPU_UUID, "")),
        notes.get(names.VGPU_GROUP_POLICY) == "spread",
    )


def words(text: str) -> tuple[str, ...]:
    """Return the entries of a list with commas between, without blanks."""
    return tuple(word for part in text.split(",") if (word := part.strip()))


def _step(place: int, amounts: Mapping[str, int], role: Role) -> Step | None:
    number = amounts.get(names.VGPU_NUMBER, 0)
    memory = amounts.get(names.VGPU_MEMORY, 0)
    if not number and memory:
        number = 1
    if not number:
        return None
    percentage = amounts.get(names.VGPU_MEMORY_PERCENTAGE, 0)
    if not memory and not percentage:
        percentage = WHOLE
    return Step(place, number, memory, percentage, amounts.get(names.VGPU_CORES, 0), role)


def _of_pod(name: str, amounts: Sequence[Mapping[str, int]], roles: Sequence[Role]) -> int:
    """Return what a pod asks for: what runs together, or the largest init container."""
    asked = [(a.get(name, 0), role) for a, role in zip(amounts, roles, strict=True)]
    sidecars = sum(n for n, role in asked if role == "sidecar")
    apps = sum(n for n, role in asked if role == "app")
    alone = (n for n, role in asked if role == "init")
    return sidecars + max([apps, *alone])


def _mentions_cards(container: Container) -> bool:
    asked = container.resources
    if asked is None:
        return False
    return any(_known(part or ()) for part in (asked.limits, asked.requests))


def _amounts(container: Container) -> Mapping[str, int]:
    """Return what a container asks of cards: what it is limited to, else what it requests."""
    asked = container.resources
    if asked is None:
        return {}
    found = {**(asked.requests or {}), **(asked.limits or {})}
    return {n: math.ceil(quantity.parse(found[n])) for n in _known(found)}


def _known(amounts: Iterable[str]) -> list[str]:
    return [name for name in amounts if name in names.SHARED_DEVICES]
