"""
How the answers of plugins become one answer. Volcano's rules, its quirks included.

All functions take the answers by tier: tiers top to bottom, plugins in the order in which they
are listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pumice.core.extension import Victims, Vote
from pumice.core.model.tasks import Task

F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Agreement:
    """Tasks that may go, in order, and the place of the tier that says so."""

    victims: list[Task]
    tier: int = 0


def accepted(tiers: Iterable[Iterable[F]], ask: Callable[[F], Vote]) -> bool:
    """
    Return whether the plugins accept.

    The first rejection rejects. A tier with a permission closes the vote, so a rejection below
    it is not heard. If nobody has an opinion, it is accepted.
    """
    for tier in tiers:
        permitted = False
        for function in tier:
            vote = ask(function)
            if vote < 0:
                return False
            permitted |= vote > 0
        if permitted:
            return True
    return True


def first_tier(tiers: Iterable[Sequence[F]], ask: Callable[[F], bool]) -> bool:
    """Return whether all of the first tier that has any say yes; False where there is none."""
    for tier in tiers:
        if tier:
            return all(ask(function) for function in tier)
    return False


def victims(tiers: Iterable[Iterable[F]], ask: Callable[[F], Victims]) -> Agreement:
    """
    Return the victims that the plugins agree on.

    Within a tier the lists are intersected, in the order of the first; plugins that abstain are
    passed over. A plugin that offers nobody ends its tier, and the next one is asked afresh. Where
    an intersection becomes empty, the next plugin of the same tier starts anew with its own list.
    """
    for place, tier in enumerate(tiers):
        agreed: list[Task] | None = None
        for function in tier:
            offered, vote = ask(function)
            if vote is Vote.ABSTAIN:
                continue
            if not offered:
                agreed = None
                break
            if agreed is None:
                agreed = list(offered)
            else:
                uids = {task.uid for task in offered}
                agreed = [task for task in agreed if task.uid in uids] or None
        if agreed is not None:
            return Agreement(agreed, place)
    return Agreement([])


def union_of_first(tiers: Iterable[Iterable[F]], ask: Callable[[F], Sequence[Task]]) -> Agreement:
    """Return the victims of the first tier that has any, each once."""
    for place, tier in enumerate(tiers):
        found = {task.uid: task for function in tier for task in ask(function)}
        if found:
            return Agreement(list(found.values()), place)
    return Agreement([])
