"""The numbers that a reason compared: who wanted how much, and how much was there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite

from pumice.core.explain.answers import Comparison, Scope
from pumice.core.explain.sentences import least_of, numbers_of
from pumice.core.plan import Reason
from pumice.core.resources import EPSILON, as_text

MEMBERS = "members"


def comparisons(reason: Reason) -> tuple[Comparison, ...]:
    """Return what was compared: of the gang, then of its queue, the cluster and single nodes."""
    return (*_gang(reason), *_queue(reason), *_admission(reason), *_room(reason))


def short_resources(reason: Reason) -> list[str]:
    """Return the resources of which there is too little, as far as the reason says."""
    found = dict.fromkeys(reason.most)
    for word in ("minimum", "held"):
        found |= dict.fromkeys(name for name in numbers_of(reason, word) if name in reason.asks)
    if not found and reason.obstacle in ("admission", "queue", "room"):
        found = dict.fromkeys(reason.asks)
    return list(found)


def _gang(reason: Reason) -> Iterator[Comparison]:
    least = least_of(reason)
    if least and not reason.whole and reason.obstacle != "admission":
        have = int(reason.numbers.get("ready", 0)) + reason.found
        yield Comparison("gang", "gang", MEMBERS, str(least), str(have))


def _queue(reason: Reason) -> Iterator[Comparison]:
    held, needed = numbers_of(reason, "held"), numbers_of(reason, "needed")
    bound = {**numbers_of(reason, "capability"), **numbers_of(reason, "deserved")}
    for name, asked in reason.asks.items():
        if name in held and name in bound:
            wanted, most = needed.get(name, asked), bound[name]
            yield _compare(reason.plugin, "queue", name, wanted, most - held[name], most)


def _admission(reason: Reason) -> Iterator[Comparison]:
    least = numbers_of(reason, "minimum")
    if not least:
        return
    yield from _within(reason, "cluster", least, numbers_of(reason, "limit"), "let in", "cluster")
    bound = numbers_of(reason, "capability")
    yield from _within(reason, "queue", least, bound, "taken", "capability")


def _within(
    reason: Reason,
    scope: Scope,
    wanted: Mapping[str, float],
    bound: Mapping[str, float],
    taken: str,
    whole: str,
) -> Iterator[Comparison]:
    """Yield what is wanted against a bound, of which something is taken already."""
    gone, total = numbers_of(reason, taken), numbers_of(reason, whole)
    for name, units in bound.items():
        left = units - gone.get(name, 0.0)
        yield _compare(
            reason.plugin, scope, name, wanted.get(name, 0.0), left, total.get(name, units)
        )


def _room(reason: Reason) -> Iterator[Comparison]:
    needed, free = numbers_of(reason, "needed"), numbers_of(reason, "free")
    for name, units in needed.items():
        # Pod slots are of interest where they are what is short.
        if name != "pods" or units > free.get(name, 0.0) + EPSILON:
            yield _compare(reason.action, "cluster", name, units, free.get(name, 0.0))
    for name, units in reason.most.items():
        # A pod asks for its own slot and says nothing of it.
        yield _compare(reason.action, "node", name, reason.asks.get(name, 1.0), units)


def _compare(
    plugin: str, scope: Scope, name: str, wanted: float, had: float, of: float | None = None
) -> Comparison:
    left = max(had, 0.0)
    whole = "" if of is None or not isfinite(of) else as_text(name, of)
    there = as_text(name, left) if isfinite(left) else "unlimited"
    return Comparison(plugin, scope, name, as_text(name, wanted), there, whole)
