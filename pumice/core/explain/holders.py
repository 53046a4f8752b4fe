"""
Who holds what is short: queues, and the jobs that hold most.

Where a job waits for room, everybody counts; where its queue has no more for it, the queue's own
jobs do. Lists are short; whoever is left out is summed up as `others`, and so is whoever the
reader must not know of (`veil`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from pumice.core import quantity
from pumice.core.explain.answers import Amounts, Explanation, Holder
from pumice.core.explain.comparisons import short_resources
from pumice.core.explain.picture import Picture
from pumice.core.explain.sentences import numbers_of
from pumice.core.model.jobs import JobInfo
from pumice.core.plan import Reason
from pumice.core.resources import EPSILON, Floats, as_text

LISTED = 10
"""So many jobs, and so many queues, are named."""

T = TypeVar("T")
Held = tuple[float, ...]
"""What somebody holds of each resource that is short, in units."""


def holders(picture: Picture, reason: Reason) -> tuple[Holder, ...]:
    """Return who holds what a job waits for, those that hold most first."""
    found = [(name, picture.space.find(name)) for name in short_resources(reason)]
    rows = {name: row for name, row in found if row is not None}
    if not rows:
        return ()
    tables = _Tables(picture, tuple(rows), tuple(rows.values()))
    if reason.obstacle == "queue" or numbers_of(reason, "capability"):
        return tuple(tables.jobs(reason.queue))
    return (*tables.queues(), *tables.jobs(), *tables.others())


class _Tables:
    """The tables of a picture, as far as some resources go."""

    def __init__(self, picture: Picture, names: Sequence[str], rows: Sequence[int]) -> None:
        self._snapshot = picture.snapshot
        self._names = names
        self._rows = rows
        self._all = self._of(self._snapshot.nodes.alloc.sum(axis=1))

    def queues(self) -> Iterator[Holder]:
        """Yield the queues that hold most."""
        usage = self._snapshot.usage
        for name, held in self._largest((name, self._of(u.allocated)) for name, u in usage.items()):
            yield Holder("queue", self._text(held), name=name)

    def jobs(self, queue: str = "") -> Iterator[Holder]:
        """Yield the jobs that hold most, of one queue or of all, and the rest of them as one."""
        jobs = [j for j in self._snapshot.jobs.values() if not queue or j.queue == queue]
        held = [(job, amounts) for job in jobs if any(amounts := self._of(job.allocated))]
        named = self._largest(held)
        yield from (_named(job, self._text(amounts)) for job, amounts in named)
        if left := len(held) - len(named):
            whole, listed = _sum(held, len(self._rows)), _sum(named, len(self._rows))
            rest = tuple(a - b for a, b in zip(whole, listed, strict=True))
            yield Holder("others", self._text(rest), jobs=left)

    def others(self) -> Iterator[Holder]:
        """Yield what pods hold for which no job is charged."""
        nodes, usage = self._snapshot.nodes, self._snapshot.usage
        ending, used = self._of(nodes.releasing.sum(axis=1)), self._of(nodes.used.sum(axis=1))
        charged = _sum([("", self._of(u.allocated)) for u in usage.values()], len(self._rows))
        outside = tuple(u - e - c for u, e, c in zip(used, ending, charged, strict=True))
        if text := self._text(ending):
            yield Holder("ending", text)
        if text := self._text(outside):
            yield Holder("outside", text)

    def _of(self, vector: Floats) -> Held:
        return tuple(float(vector[row]) if row < vector.size else 0.0 for row in self._rows)

    def _largest(self, held: Iterable[tuple[T, Held]]) -> list[tuple[T, Held]]:
        """Return those that hold most, by the part of the cluster that they hold."""

        def part(entry: tuple[T, Held]) -> float:
            return max(h / max(a, EPSILON) for h, a in zip(entry[1], self._all, strict=True))

        return heapq.nlargest(LISTED, (entry for entry in held if any(entry[1])), key=part)

    def _text(self, held: Held) -> Amounts:
        pairs = zip(self._names, held, strict=True)
        return {name: as_text(name, units) for name, units in pairs if units >= EPSILON}


def _sum(held: Iterable[tuple[object, Held]], size: int) -> Held:
    total = [0.0] * size
    for _, amounts in held:
        for i, units in enumerate(amounts):
            total[i] += units
    return tuple(total)


def _named(job: JobInfo, held: Amounts) -> Holder:
    namespace, _, name = job.key.partition("/")
    return Holder("job", held, namespace, name, job.queue)


def veil(
    explanation: Explanation, sees: Callable[[str], bool], *, sees_queues: bool
) -> Explanation:
    """Return an explanation for somebody who may see the groups of some namespaces only."""
    shown: list[Holder] = []
    hidden: list[Holder] = []
    for holder in explanation.holders:
        if holder.kind == "others" or (holder.kind == "job" and not sees(holder.namespace)):
            hidden.append(holder)
        elif holder.kind != "queue" or sees_queues or holder.name == explanation.queue:
            known = sees_queues or holder.queue == explanation.queue
            shown.append(holder if known else replace(holder, queue=""))
    if hidden:
        jobs = sum(max(holder.jobs, 1) for holder in hidden)
        shown.append(Holder("others", _together(hidden), jobs=jobs))
    return replace(explanation, holders=tuple(shown))


def _together(hidden: Iterable[Holder]) -> Amounts:
    """Return what several hold, added up."""
    total: dict[str, quantity.Exact] = {}
    for holder in hidden:
        for name, text in holder.holds.items():
            total[name] = total.get(name, 0) + quantity.parse(text)
    return {name: quantity.text(sum_, binary=name == "memory") for name, sum_ in total.items()}
