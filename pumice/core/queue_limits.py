"""
Limits of queues: how much of one is left, and what is said where it is not enough.

Limits are compared strictly, without a tolerance, and only in the resources that are asked for;
pods are not counted.
"""

from __future__ import annotations

from collections.abc import Sequence

from pumice.core.model.tasks import TaskClass
from pumice.core.plan import Reason
from pumice.core.resources import PODS, Floats, as_text, over_limit, plus


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
