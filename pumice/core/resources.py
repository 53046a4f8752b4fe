"""
The resource space: resource names as rows of vectors, their units, and the comparison rules.

Rows are given out once and for good: cpu (in thousandths), memory (in bytes), pods (plain), then
every scalar resource in the order in which it first appears (in thousandths, so one GPU is 1000).
A vector may be shorter than the space when rows were added after it was made; the rows that it
lacks are zero. Vectors are never changed in place, so they can be shared.

All comparisons have the tolerance that Volcano has: two amounts that differ by less than
`EPSILON` are equal. Rules that compare strictly say so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pumice.core import quantity
from pumice.core.api.core import ResourceList
from pumice.core.names import VGPU_MEMORY_PERCENTAGE
from pumice.core.quantity import Exact

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

EPSILON: Final = 0.1
CPU: Final = 0
MEMORY: Final = 1
PODS: Final = 2
NATIVE: Final = ("cpu", "memory", "pods")
UNLIMITED: Final = float("inf")

_SCALAR_PREFIXES: Final = ("hugepages-", "attachable-volumes-")
_QUALIFIED: Final = re.compile(
    r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)


class ResourceSpace:
    """Names and their rows. It only grows; `names` is replaced, never changed, when it does."""

    __slots__ = ("_rows", "names")

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: tuple[str, ...] = NATIVE
        self._rows = {name: row for row, name in enumerate(self.names)}
        for name in names:
            self.row(name)

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return len(self.names)

    def row(self, name: str) -> int:
        """Return the row of a resource, a new one when the name is new."""
        row = self._rows.get(name)
        if row is None:
            row = self._rows[name] = len(self.names)
            self.names = (*self.names, name)
        return row

    def find(self, name: str) -> int | None:
        """Return the row of a resource, or None when nothing has mentioned it yet."""
        return self._rows.get(name)

    def vector(self, amounts: ResourceList | None) -> Floats:
        """Return amounts as a vector; names that are no countable resource are left out."""
        return self.of(_exact(amounts))

    def limits(self, amounts: ResourceList | None) -> Floats:
        """Return amounts as an upper bound: what is not named is unlimited."""
        return self.of(_exact(amounts), UNLIMITED)

    def of(self, amounts: Mapping[str, Exact], missing: float = 0.0) -> Floats:
        """Return exact amounts as a vector; `missing` stands in the rows that are not named."""
        known = ((name, amount) for name, amount in amounts.items() if is_counted(name))
        rows = {self.row(name): in_units(name, amount) for name, amount in known}
        out = np.full(self.size, missing)
        for row, amount in rows.items():
            out[row] = amount
        return out

    def pad(self, vector: Floats, missing: float = 0.0) -> Floats:
        """Return the vector with all rows of the space."""
        return pad(vector, self.size, missing)

    def amounts(self, vector: Floats) -> dict[str, str]:
        """Return a vector as quantities in text, without what is zero."""
        return {
            name: as_text(name, float(amount))
            for name, amount in zip(self.names, vector, strict=False)
            if abs(amount) >= EPSILON and np.isfinite(amount)
        }


def is_counted(name: str) -> bool:
    """
    Return whether a name of a resource list is an amount that nodes hold and pods ask for.

    Extended resources have a domain; of Kubernetes' own, huge pages, volume slots and ephemeral
    storage count besides cpu, memory and pods. Object counts and quota names do not, nor does a
    percentage of a card's memory: it is a part of another amount on each card.
    """
    if name in NATIVE or name == "ephemeral-storage" or name.startswith(_SCALAR_PREFIXES):
        return True
    if name.startswith(("count/", "requests.")) or name == VGPU_MEMORY_PERCENTAGE:
        return False
    return _QUALIFIED.fullmatch(name) is not None


def _exact(amounts: ResourceList | None) -> dict[str, Exact]:
    return {name: quantity.parse(amount) for name, amount in (amounts or {}).items()}


def in_units(name: str, amount: Exact) -> float:
    """Return an amount in the unit of its row, rounded up as Kubernetes does."""
    return float(math.ceil(amount if name in ("memory", "pods") else amount * 1000))


def as_text(name: str, amount: float) -> str:
    """Return an amount of a row as a quantity."""
    if name == "memory":
        return quantity.text(round(amount), binary=True)
    if name == "pods":
        return quantity.text(round(amount))
    return quantity.text(Fraction(round(amount), 1000))


def pad(vector: Floats, size: int, missing: float = 0.0) -> Floats:
    """Return the vector with at least `size` rows."""
    if vector.size >= size:
        return vector
    out = np.full(size, missing)
    out[: vector.size] = vector
    return out


def plus(a: Floats, b: Floats) -> Floats:
    """Return the sum; the longer vector decides the length."""
    if a.size == b.size:
        return a + b
    if not a.size:
        return b
    size = max(a.size, b.size)
    return pad(a, size) + pad(b, size)


def minus(a: Floats, b: Floats) -> Floats:
    """Return the difference, which may be negative."""
    if a.size == b.size:
        return a - b
    size = max(a.size, b.size)
    return pad(a, size) - pad(b, size)


def excess(a: Floats, b: Floats) -> Floats:
    """Return by how much `a` exceeds `b`, row by row (Volcano's `ExceededPart`)."""
    return np.maximum(minus(a, b), 0.0)


def is_empty(vector: Floats) -> bool:
    """Return whether nothing is asked for; the pod's own slot does not count."""
    for row, amount in enumerate(vector.tolist()):
        if amount >= EPSILON and row != PODS:
            return False
    return True


def fits(need: Floats, room: Floats) -> bool:
    """Return whether every row of `need` is at most that of `room` (`LessEqual` with Zero)."""
    return not shortages(need, room)


def shortages(need: Floats, room: Floats) -> list[int]:
    """Return the rows where `need` exceeds `room` by the tolerance or more."""
    size = max(need.size, room.size)
    over = pad(need, size) - pad(room, size) >= EPSILON
    rows: list[int] = np.flatnonzero(over).tolist()
    return rows


def is_below(amount: Floats, limit: Floats, missing: float = 0.0) -> bool:
    """
    Return whether `amount` is strictly less than `limit` in cpu, memory and all scalars it has.

    Both vectors have `missing`, 0 or UNLIMITED, in the rows that they do not name (`Less`).
    """
    size = max(amount.size, limit.size)
    rows = zip(pad(amount, size, missing).tolist(), pad(limit, size, missing).tolist(), strict=True)
    for row, (held, bound) in enumerate(rows):
        absent = row > MEMORY and held == missing and (missing == 0 or bound == missing)
        if not (absent or held < bound):
            return False
    return True


def over_limit(amount: Floats, limit: Floats, asked: Floats, missing: float = 0.0) -> list[int]:
    """
    Return the asked-for rows, pods aside, where `amount` exceeds `limit` at all.

    Volcano's `LessEqualWithDimensionAndResourcesName`: strict, without the tolerance.
    """
    amounts, limits = amount.tolist(), limit.tolist()
    over = []
    for row, wanted in enumerate(asked.tolist()):
        if wanted <= 0 or row == PODS:
            continue
        held = amounts[row] if row < len(amounts) else 0.0
        if held > (limits[row] if row < len(limits) else missing):
            over.append(row)
    return over


def whole_units(vector: Floats) -> Floats:
    """Return the vector with amounts that are whole but for a rounding error made whole."""
    nearest = np.rint(vector)
    close = np.abs(vector - nearest) <= 1e-9 * np.maximum(nearest, 1.0)
    return np.where(close, nearest, vector)


def share(amount: float, whole: float) -> float:
    """Return `amount / whole`, where anything of nothing is 1 and nothing of nothing 0."""
    if whole == 0:
        return 0.0 if amount == 0 else 1.0
    return amount / whole
