"""
Whether things that wait for each other have an order, in a language without loops.

Step by step those are found that wait for nothing but what was found before. Once a step finds
nothing new, what is left waits in a circle. There are as many steps as there are variables; where
the last one still finds something, the rest is let through: nothing that has an order is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

STEPS: Final = 16
MOST: Final = 64
"""Of more things than this no order is looked for: the API server bounds what it may cost."""


def variables(items: str, name: str, waits_for: str) -> Mapping[str, str]:
    """
    Return the variables that `has_order` reads, and `items`.

    All are CEL: a list, and of one `it` of it the name and the names that it waits for. Of two
    with the same name the later one counts.
    """
    steps = {
        "items": items,
        "names": f"variables.items.map(it, {name})",
        "last": "variables.names.map(n, variables.items[variables.names.lastIndexOf(n)])",
        "step0": "[]",
    }
    for number in range(1, STEPS + 1):
        found = f"{waits_for}.all(other, other in variables.step{number - 1})"
        steps[f"step{number}"] = f"variables.last.filter(it, {found}).map(it, {name})"
    return steps


def has_order() -> str:
    """Return CEL that holds where there is an order, or it takes too long to say."""
    last, before = f"variables.step{STEPS}", f"variables.step{STEPS - 1}"
    return (
        f"size(variables.items) > {MOST} || size({last}) == size(variables.items)"
        f" || size({last}) > size({before})"
    )
