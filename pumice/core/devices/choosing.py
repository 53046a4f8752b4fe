"""
Choosing: which cards of a node a pod gets.

The containers of a pod are served one after the other. Each gets different cards, one slot on each;
the policy says in which order they are tried: `binpack` the one with the most memory in use first,
`spread` the one with the fewest shares, otherwise the last card first. The older kinds of sharing
take the first card that will do.

Init containers run before the apps, so what a pod holds of a card is the larger of both. (On cards
that are cut into instances each container keeps its own.)

All of it works on values: how much of each card is in use, in the order of the node's cards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pumice.core.devices.asks import WHOLE, Ask, Kind, Step
from pumice.core.devices.cards import MIG, UNLIMITED, Make
from pumice.core.devices.mig import find_instance

Policy = Literal["", "binpack", "spread"]


class Use(NamedTuple):
    """How much of a card is in use, or held by one pod."""

    slots: int = 0
    memory: int = 0
    cores: int = 0
    #: of a card that is cut into instances: its geometry, and which instances
    group: str = ""
    taken: tuple[int, ...] = ()

    def plus(self, other: Use) -> Use:
        """Return both together."""
        return Use(
            self.slots + other.slots,
            self.memory + other.memory,
            self.cores + other.cores,
            self.group or other.group,
            tuple(sorted(self.taken + other.taken)) if other.taken else self.taken,
        )

    def minus(self, other: Use) -> Use:
        """Return this without the other one, which is a part of it."""
        left = list(self.taken)
        for position in other.taken:
            left.remove(position)
        return Use(
            self.slots - other.slots,
            self.memory - other.memory,
            self.cores - other.cores,
            self.group if left else "",
            tuple(left),
        )

    def most(self, other: Use) -> Use:
        """Return what is in use where both are not at the same time, but either may be."""
        return Use(
            max(self.slots, other.slots),
            max(self.memory, other.memory),
            max(self.cores, other.cores),
            self.group or other.group,
            tuple(sorted({*self.taken, *other.taken})),
        )


NOTHING = Use()
Uses = tuple[Use, ...]


class Pick(NamedTuple):
    """One slot on one card."""

    card: int
    memory: int
    cores: int
    group: str = ""
    position: int = -1

    @property
    def use(self) -> Use:
        """Return what is in use of the card by this."""
        taken = (self.position,) if self.position >= 0 else ()
        return Use(1, self.memory, self.cores, self.group, taken)


@dataclass(frozen=True, slots=True)
class Fit:
    """The cards for a pod."""

    #: for each step of the ask
    picks: tuple[tuple[Pick, ...], ...]
    #: what is in use with them
    after: Uses
    #: of the node, by the policy: the sum over the cards, each up to 100
    score: float

    @property
    def cards(self) -> int:
        """Return the cards as a mask: bit i is card i."""
        mask = 0
        for picks in self.picks:
            for pick in picks:
                mask |= 1 << pick.card
        return mask


def choose(
    makes: Sequence[Make], uses: Uses, ask: Ask, policy: Policy = "", hidden: int = 0
) -> Fit | None:
    """
    Return cards for an ask, None where the node does not have enough.

    `hidden` is a mask of cards that are not to be had.
    """
    server = _Server(makes, hidden, ask, policy)
    beside = after = uses
    for role in ("sidecar", "app", "init"):
        if role == "app":
            beside = after
        for step in ask.steps:
            if step.role != role:
                continue
            start = _before(makes, beside, after) if role == "init" else after
            alone = server.serve(step, start)
            if alone is None:
                return None
            after = tuple(map(Use.most, after, alone)) if role == "init" else alone
    return Fit(tuple(server.picks[step.place] for step in ask.steps), after, server.score)


def _before(makes: Sequence[Make], beside: Uses, after: Uses) -> Uses:
    """Return what is in use when an init container runs; instances are kept by all containers."""
    both = zip(makes, beside, after, strict=True)
    return tuple(whole if make.geometry else part for make, part, whole in both)


def admits(make: Make, use: Use, share: Use, kind: Kind) -> bool:
    """Return whether a card of which `use` is in use has the share left that was chosen of it."""
    if not make.healthy or (kind == "number" and use.slots):
        return False
    if kind == "number":
        return True
    both = use.plus(share)
    return (
        both.slots <= make.slots
        and both.memory <= make.memory
        and both.cores <= WHOLE
        and not (use.slots and max(use.cores, share.cores) >= WHOLE)
        and share.group in ("", both.group)
        and len(set(both.taken)) == len(both.taken)
    )


def _is_wanted(make: Make, ask: Ask) -> bool:
    usable = make.healthy and (make.mode != MIG or bool(make.geometry))
    return usable and ask.mode in ("", make.mode) and ask.takes_type(make.type)


class _Server:
    """Serves the containers of one ask."""

    def __init__(self, makes: Sequence[Make], hidden: int, ask: Ask, policy: Policy) -> None:
        self._makes = makes
        self._ask = ask
        self._policy = policy
        self._open = [
            i for i, make in enumerate(makes) if not hidden >> i & 1 and _is_wanted(make, ask)
        ]
        self.picks: dict[int, tuple[Pick, ...]] = {}
        self.score = 0.0

    def serve(self, step: Step, uses: Uses) -> Uses | None:
        """Pick cards for one container; return what is in use with them."""
        after = list(uses)
        picks: list[Pick] = []
        for card in self._in_order(uses):
            if len(picks) == step.number:
                break
            pick = self._pick(card, uses[card], step)
            if pick is not None:
                picks.append(pick)
                after[card] = uses[card].plus(pick.use)
        if len(picks) < step.number:
            return None
        self.picks[step.place] = tuple(picks)
        self.score += sum(self._score(pick, uses[pick.card]) for pick in picks)
        return tuple(after)

    def _in_order(self, uses: Uses) -> list[int]:
        if self._ask.kind != "vgpu":
            return self._open
        match self._policy:
            case "binpack":
                return sorted(self._open, key=lambda card: -uses[card].memory)
            case "spread":
                return sorted(self._open, key=lambda card: uses[card].slots)
        return self._open[::-1]

    def _pick(self, card: int, use: Use, step: Step) -> Pick | None:
        """Return what a container gets of a card, None where there is not enough."""
        make = self._makes[card]
        if self._ask.kind == "number":
            return None if use.slots else Pick(card, UNLIMITED, 0)
        memory = step.memory or make.memory * step.percentage // WHOLE
        if use.slots >= make.slots or use.memory + memory > make.memory:
            return None
        if use.cores + step.cores > WHOLE or use.cores >= WHOLE:
            return None
        if step.cores == WHOLE and use.slots:
            return None
        if not make.geometry:
            return Pick(card, memory, step.cores)
        found = find_instance(make.geometry, use.group, use.taken, memory)
        if found is None:
            return None
        group, position, size = found
        return Pick(card, size, step.cores, group, position)

    def _score(self, pick: Pick, before: Use) -> float:
        make = self._makes[pick.card]
        match self._policy if self._ask.kind == "vgpu" else "":
            case "binpack":
                return 100 * (before.memory + pick.memory) / make.memory if make.memory else 0.0
            case "spread":
                return 100 * (make.slots - before.slots) / make.slots
        return 0.0
