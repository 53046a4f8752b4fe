"""Places in an order: keys of several parts, and what turns one round."""

from __future__ import annotations

from dataclasses import dataclass
from functools import total_ordering

from pumice.core.extension import SortKey

OrderKey = tuple[SortKey, ...]


@total_ordering
@dataclass(frozen=True, slots=True)
class Reversed:
    """A sort key turned round: what comes first comes last."""

    key: OrderKey

    def __lt__(self, other: Reversed) -> bool:
        return other.key < self.key
