"""
States: what the cards of a node are and how much of them is in use, as numbers.

Nodes that are alike in this are one state, so the question where one pod after the other would go
is answered once for all of them. A walk is the answer for one ask: from state to state, a pod at a
time, until there is no room. What was found out is kept for the session.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pumice.core.devices.asks import Ask
from pumice.core.devices.cards import Make
from pumice.core.devices.choosing import Fit, Policy, Uses, choose

Makes = tuple[Make, ...]
At = tuple[int, int]
"""A state, and a mask of the cards that are not to be had."""


@dataclass(slots=True)
class States:
    """The states by number."""

    _numbers: dict[tuple[Makes, Uses], int] = field(default_factory=dict)
    _known: list[tuple[Makes, Uses]] = field(default_factory=list)

    def number(self, makes: Makes, uses: Uses) -> int:
        """Return the number of a state, a new one where it is new."""
        key = (makes, uses)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._known)
            self._known.append(key)
        return found

    def __getitem__(self, number: int) -> tuple[Makes, Uses]:
        return self._known[number]


@dataclass(slots=True)
class Walk:
    """Pods of one ask, one after the other."""

    states: States
    ask: Ask
    policy: Policy
    #: none of them shares a card with another one
    apart: bool
    #: more than so many never fit on a node
    most: int
    _fits: dict[At, Fit | None] = field(default_factory=dict)
    _scores: dict[At, list[float]] = field(default_factory=dict)

    @property
    def looks_at_cards(self) -> bool:
        """Return whether it matters which card is which, and who is there."""
        return self.apart or self.ask.is_choosy

    def fit(self, at: At) -> Fit | None:
        """Return which cards the next pod gets."""
        if at not in self._fits:
            makes, uses = self.states[at[0]]
            self._fits[at] = choose(makes, uses, self.ask, self.policy, at[1])
        return self._fits[at]

    def scores(self, at: At) -> list[float]:
        """Return what each pod to come would score; it is as long as there is room for."""
        found = self._scores.get(at)
        if found is None:
            found, here = [], at
            while len(found) < self.most and (fit := self.fit(here)) is not None:
                found.append(fit.score)
                here = self._after(here, fit)
            self._scores[at] = found
        return found

    def _after(self, at: At, fit: Fit) -> At:
        makes, _ = self.states[at[0]]
        hidden = at[1] | fit.cards if self.apart else at[1]
        return self.states.number(makes, fit.after), hidden
