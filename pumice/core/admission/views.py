"""
The queues that an object is checked against.

A view is a moment: what it holds does not change while an object is checked. The tree is given
by `spec.parent`; a queue without one is a child of `root`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pumice.core import names
from pumice.core.api.scheduling import Queue


@dataclass(frozen=True, slots=True)
class Queues:
    """The queues there are, by name."""

    by_name: Mapping[str, Queue] = field(default_factory=dict)

    def get(self, name: str) -> Queue | None:
        """Return a queue."""
        return self.by_name.get(name)

    def children(self, name: str) -> list[Queue]:
        """Return the queues below, by name."""
        below = (q for q in self.by_name.values() if parent_of(q) == name)
        return sorted(below, key=lambda queue: queue.metadata.name)

    def ancestors(self, queue: Queue, limit: int) -> Iterator[Queue]:
        """Yield the queues above, nearest first, without root; at most `limit`, for cycles."""
        parent = self.get(parent_of(queue))
        for _ in range(limit):
            if parent is None or parent.metadata.name == names.ROOT_QUEUE:
                return
            yield parent
            parent = self.get(parent_of(parent))


def parent_of(queue: Queue) -> str:
    """Return the name of the queue above; root has none."""
    if queue.metadata.name == names.ROOT_QUEUE:
        return ""
    return queue.spec.parent or names.ROOT_QUEUE


def not_found(name: str) -> str:
    """Return Kubernetes' words for a queue that is not there."""
    return f'queue.scheduling.volcano.sh "{name}" not found'
