"""
Choosing: which cards of a node a pod gets.

The containers of a pod are served one after the other. Each gets different cards, one slot on each;
the policy says in which order they are tried: `binpack` the one with the most memory in use first,
`spread` the one with the fewest shares, otherwise the last card first. The older kinds of sharing
take the first card that will do.

Where cards say at which NUMA node they are, this goes before the policy for pods that ask for
several. The whole pod gets cards of one NUMA node, if there is one with enough, else each container
gets cards of as few as can be. Of those with enough, the one with the fewest cards that will do is
taken, so that others stay whole; among equal ones the policy decides, by the card it puts first.
All this is a preference: what fits in any way fits.

    node 0: a, b, c, d; node 1: e, f, g, and h, which is full
    two cards are of node 1, where three will do, four of node 0, and seven all there are

Init containers run before the apps, so what a pod holds of a card is the larger of both. (On cards
that are cut into instances each container keeps its own.)

All of it works on values: how much of each card is in use, in the order of the node's cards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    fits = (_serve_all(server, uses) for server in _servers(makes, uses, ask, policy, hidden))
    return next((fit for fit in fits if fit is not None), None)


def _servers(
    makes: Sequence[Make], uses: Uses, ask: Ask, policy: Policy, hidden: int
) -> Iterator[_Server]:
    """Yield who may serve an ask, with the NUMA nodes heeded as far as can be first."""
    server = _Server(makes, hidden, ask, policy)
    if sum(step.number for step in ask.steps) > 1 and len({make.numa for make in makes}) > 1:
        if len(ask.steps) > 1:
            for cards in server.numa_nodes(ask.steps, uses):
                elsewhere = sum(1 << i for i in range(len(makes)) if i not in cards)
                yield _Server(makes, hidden | elsewhere, ask, policy)
        yield _Server(makes, hidden, ask, policy, near=True)
    yield server


def _serve_all(server: _Server, uses: Uses) -> Fit | None:
    """Return cards for all containers: what runs side by side, then the init containers."""
    ask, makes = server.ask, server.makes
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
    """Serves the containers of one ask; `near` says whether NUMA nodes matter."""

    def __init__(
        self,
        makes: Sequence[Make],
        hidden: int,
        ask: Ask,
        policy: Policy,
        *,
        near: bool = False,
    ) -> None:
        self.makes = makes
        self.ask = ask
        self._policy = policy
        self._near = near
        self._open = [
            i for i, make in enumerate(makes) if not hidden >> i & 1 and _is_wanted(make, ask)
        ]
        self.picks: dict[int, tuple[Pick, ...]] = {}
        self.score = 0.0

    def serve(self, step: Step, uses: Uses) -> Uses | None:
        """Pick cards for one container; return what is in use with them."""
        after = list(uses)
        picks: list[Pick] = []
        cards = self._nearby(step, uses) if self._near else self._in_order(uses)
        for card in cards:
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

    def numa_nodes(self, steps: Sequence[Step], uses: Uses) -> list[list[int]]:
        """Return the cards that will do for any of the steps by NUMA node, the fewest first."""
        nodes: dict[int, list[int]] = {}
        for card in self._in_order(uses):
            if any(self._pick(card, uses[card], step) for step in steps):
                nodes.setdefault(self.makes[card].numa, []).append(card)
        return sorted(nodes.values(), key=len)

    def _nearby(self, step: Step, uses: Uses) -> list[int]:
        """Return the cards to try for one container: of as few NUMA nodes as can be."""
        nodes = self.numa_nodes([step], uses)
        tried: list[int] = []
        while nodes and len(tried) < step.number:
            rest = step.number - len(tried)
            enough = (cards for cards in nodes if len(cards) >= rest)
            node = next(enough, max(nodes, key=len))
            nodes.remove(node)
            tried += node
        return tried

    def _in_order(self, uses: Uses) -> list[int]:
        if self.ask.kind != "vgpu":
            return self._open
        match self._policy:
            case "binpack":
                return sorted(self._open, key=lambda card: -uses[card].memory)
            case "spread":
                return sorted(self._open, key=lambda card: uses[card].slots)
        return self._open[::-1]

    def _pick(self, card: int, use: Use, step: Step) -> Pick | None:
        """Return what a container gets of a card, None where there is not enough."""
        make = self.makes[card]
        if self.ask.kind == "number":
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
        make = self.makes[pick.card]
        match self._policy if self.ask.kind == "vgpu" else "":
            case "binpack":
                return 100 * (before.memory + pick.memory) / make.memory if make.memory else 0.0
            case "spread":
                return 100 * (make.slots - before.slots) / make.slots
        return 0.0
