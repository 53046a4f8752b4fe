"""
The population: how many pods of each kind are on each node.

Pods are counted by their presence, what other pods notice of them, and apart by whether they are
on their way out. Plugins that need to know who is where start from these counts and not from the
pods, of which there may be a hundred thousand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pumice.core.model.signatures import Presence
from pumice.core.model.tasks import Status, Task

Place = tuple[str, bool]
"""A node's name, and whether the pods counted there are on their way out."""

Headcount = Mapping[Presence, Mapping[Place, int]]


class Population:
    """The counts. What `share` has returned is not changed any more."""

    __slots__ = ("_counts", "_own")

    def __init__(self) -> None:
        self._counts: dict[Presence, dict[Place, int]] = {}
        self._own: set[Presence] = set()

    def clone(self) -> Population:
        """Return counts of their own; what neither changes stays shared."""
        other = Population()
        other._counts = self._counts.copy()
        self._own.clear()
        return other

    def add(self, task: Task, n: int) -> None:
        """Count a task on its node; a negative number takes it off."""
        presence = task.cls.signature.presence
        places = self._places(presence)
        place = (task.node, task.status is Status.RELEASING)
        left = places.get(place, 0) + n
        if left:
            places[place] = left
            return
        del places[place]
        if not places:
            del self._counts[presence]
            self._own.discard(presence)

    def share(self) -> Headcount:
        """Return the counts as they are now."""
        self._own.clear()
        return dict(self._counts)

    def _places(self, presence: Presence) -> dict[Place, int]:
        if presence not in self._own:
            self._counts[presence] = dict(self._counts.get(presence, {}))
            self._own.add(presence)
        return self._counts[presence]


def places(headcount: Headcount) -> Iterator[tuple[Presence, str, bool, int]]:
    """Yield presence, node, whether on the way out, and number."""
    for presence, counts in headcount.items():
        for (node, leaving), number in counts.items():
            yield presence, node, leaving, number
