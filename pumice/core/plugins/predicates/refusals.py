"""
Refusals: which nodes a filter turns down, and how.

A filter looks at all nodes at once and returns what it refuses. The code says what could still
change it: evictions may help where a node is `UNSCHEDULABLE`, they cannot where it is
`UNRESOLVABLE`, and there later filters are not asked any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from pumice.core.model.signatures import Signature
from pumice.core.resources import Bools

UNSCHEDULABLE = 2
UNRESOLVABLE = 3


class Refusal(NamedTuple):
    """Nodes refused for one reason; the text is kube-scheduler's."""

    code: int
    message: str
    nodes: Bools  # (N,)


Filter = Callable[[Signature], Sequence[Refusal]]
