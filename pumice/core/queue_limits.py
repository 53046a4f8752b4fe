"""
Limits of queues: how much of one is left, and what is said where it is not enough.

Limits are compared strictly, without a tolerance, and only in the resources that are asked for;
pods are not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pumice.core.fitness import Limit
from pumice.core.model.queues import QueueInfo
from pumice.core.model.tasks import TaskClass
from pumice.core.plan import Reason
from pumice.core.resources import EPSILON, PODS, Floats, as_text, over_limit, pad, plus


@dataclass(slots=True)
class Pool:
    """
    What several queues share, and what of it stays free for those that are guaranteed some.

    Each queue by itself leaves the others their guarantees; several of them together would not.
    """

    total: Sequence[float]
    #: resources of which any queue is guaranteed some
    rows: tuple[int, ...]
    #: what the queues hold together, each counted with its guarantee where that is more
    taken: list[float]

    @classmethod
    def of(cls, total: Floats, queues: Iterable[tuple[Sequence[float], Floats]]) -> Pool:
        """Return the pool of queues that hold, and are guaranteed, so much each."""
        taken, guaranteed = np.zeros(total.size), np.zeros(total.size)
        for held, guarantee in queues:
            least = pad(guarantee, total.size)
            taken += np.maximum(held, least)
            guaranteed += least
        rows = (row for row in np.flatnonzero(guaranteed >= EPSILON).tolist() if row != PODS)
        return cls(total.tolist(), tuple(rows), taken.tolist())

    @classmethod
    def of_all(
        cls,
        total: Floats,
        queues: Mapping[str, QueueInfo],
        held: Mapping[str, Sequence[float]],
    ) -> Pool:
        """Return the pool of all queues, of which those that are not in `held` hold nothing."""
        nothing = [0.0] * total.size
        return cls.of(total, ((held.get(q.name, nothing), q.guarantee) for q in queues.values()))

    def follow(self, row: int, before: float, after: float, guarantee: float) -> None:
        """Take note that a queue holds more, or less, of a resource."""
        self.taken[row] += max(after, guarantee) - max(before, guarantee)

    def limit(self, held: Sequence[float], guarantee: Floats) -> list[float]:
        """Return what a queue may hold beside what the others hold or are guaranteed."""
        most = [float("inf")] * len(self.total)
        for row in self.rows:
            least = float(guarantee[row])
            others = self.taken[row] - max(held[row], least)
            most[row] = max(self.total[row] - others, least)
        return most


def affordable(
    cls: TaskClass, held: Sequence[float], limit: Sequence[float], n: int
) -> tuple[int, int | None]:
    """Return how many of `n` tasks fit beside `held`, and the row that allows no more."""
    tightest = None
    for row in cls.rows:
        if row == PODS or limit[row] == float("inf"):
            continue
        asked, taken, most = float(cls.req[row]), held[row], limit[row]
        number = max(int((most - taken) // asked), 0)
        # The division may be off by one either way; what counts is the sum.
        while number and taken + number * asked > most:
            number -= 1
        while taken + (number + 1) * asked <= most:
            number += 1
        if number < n:
            n, tightest = number, row
    return n, tightest


def insufficient(
    plugin: str, queue: str, least: Floats, held: Floats, limit: Floats, names: Sequence[str]
) -> Reason | None:
    """Return why a group that needs `least` may not enter beside `held`; None where it may."""
    short = over_limit(plus(held, least), limit, least)
    if not short:
        return None
    numbers = {f"minimum {names[row]}": float(least[row]) for row in short}
    numbers |= {f"taken {names[row]}": float(held[row]) for row in short}
    numbers |= {f"capability {names[row]}": float(limit[row]) for row in short}
    lacking = ", ".join(f"insufficient {names[row]}" for row in short)
    message = f"queue resource quota insufficient: {lacking}"
    # Of the queue only what doesn't change with every pod: the text stands in a condition.
    detail = ", ".join(
        f"{as_text(names[row], least[row])} {names[row]} asked for, queue {queue} may have "
        f"{as_text(names[row], limit[row])} in all"
        for row in short
    )
    return Reason("enqueue", plugin, message, numbers, detail=detail)


def guaranteed_to_others(
    plugin: str, queue: str, resource: str, *, by_capacity: bool = True
) -> Limit:
    """Return what to say where a queue gets no more because of other queues' guarantees."""
    message = f"what is left of {resource} is guaranteed to other queues than {queue}"
    return Limit(message, by_capacity, plugin)
