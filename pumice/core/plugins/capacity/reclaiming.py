"""
Who must give back, and who may ask for it.

A queue may ask while, with the new tasks, it stays within what it may have, and within what it
deserves of at least one of the resources asked for. With `ancestorReclaimLevel` the queues above
it, up to so many levels and never the root, may stand in for it.

A task must go while its queue holds more than it deserves of a resource that the task takes, or
deserves nothing that the task takes. Its queue keeps its guarantee, and the task must take
something that is asked for. With `ancestorReclaimLevel` the same must hold of the queues above
it, except those that it has in common with the one that asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest

import numpy as np

from pumice.core.model.tasks import Task, TaskClass
from pumice.core.plugins.capacity.attributes import Attributes
from pumice.core.resources import EPSILON, PODS, Floats, fits, minus, over_limit, plus


def may_ask(attr: Attributes, tasks: Sequence[Task], level: int) -> bool:
    """Return whether a queue may take room from others for these tasks."""
    asked = np.zeros(attr.size)
    for task in tasks:
        asked = plus(asked, task.cls.req)
    if over_limit(plus(np.array(attr.allocated), asked), np.array(attr.limit), asked):
        return False
    return any(_stays_within(above, asked) for above in [attr, *attr.ancestors[:level]])


def _stays_within(attr: Attributes, asked: Floats) -> bool:
    """Return whether the queue stays within its due in some resource that is asked for."""
    future, due = plus(np.array(attr.allocated), asked), attr.deserved
    rows = (row for row in np.flatnonzero(asked) if row != PODS)
    return any(future[row] <= due[row] for row in rows)


@dataclass(slots=True)
class Reclaiming:
    """One search for victims; what was taken is taken off what the queues hold."""

    own: Attributes
    level: int
    left: dict[str, Floats] = field(default_factory=dict)

    def takes(self, attr: Attributes, cls: TaskClass, asking: TaskClass) -> bool:
        """Return whether a task of the queue must go for another; count it as gone, then."""
        if not any(row in asking.rows for row in cls.rows if row != PODS):
            return False
        if not self.keeps_guarantee(attr, cls) or not self.must_give(attr, cls):
            return False
        if not is_due(attr, cls) and self._are_kin_without_due(attr, asking):
            return False
        checked = self._unshared(attr)
        if not all(self.must_give(above, cls) for above in checked):
            return False
        for queue in (attr, *checked):
            self.give(queue, cls)
        return True

    def give(self, attr: Attributes, cls: TaskClass) -> None:
        """Count a task of the queue as gone."""
        self.left[attr.queue.name] = minus(self._held(attr), cls.req)

    def keeps_guarantee(self, attr: Attributes, cls: TaskClass) -> bool:
        """Return whether the queue holds its guarantee without the task."""
        return fits(attr.guarantee, minus(self._held(attr), cls.req))

    def must_give(self, attr: Attributes, cls: TaskClass) -> bool:
        """Return whether the queue deserves nothing of the kind, or holds more than it does."""
        if not is_due(attr, cls):
            return True
        held = self._held(attr)
        return any(held[r] > attr.deserved[r] >= EPSILON for r in cls.rows if r != PODS)

    def _held(self, attr: Attributes) -> Floats:
        return self.left.setdefault(attr.queue.name, np.array(attr.allocated))

    def _are_kin_without_due(self, attr: Attributes, asking: TaskClass) -> bool:
        """
        Return whether both belong to one family, where nothing is due to the one that asks.

        Neither has the better claim then, and they would take from each other in turn.
        """
        shared = _names(attr, self.level) & _names(self.own, self.level)
        return bool(shared) and not is_due(self.own, asking, pods=False)

    def _unshared(self, attr: Attributes) -> list[Attributes]:
        """Return the queues above that the asking one does not have at the same level."""
        pairs = zip_longest(attr.ancestors, self.own.ancestors)
        return [
            theirs for theirs, ours in islice(pairs, self.level) if theirs and theirs is not ours
        ]


def is_due(attr: Attributes, cls: TaskClass, *, pods: bool = True) -> bool:
    """Return whether the queue deserves any of the resources that the tasks take."""
    return any(attr.deserved[row] >= EPSILON for row in cls.rows if pods or row != PODS)


def _names(attr: Attributes, level: int) -> set[str]:
    return {above.queue.name for above in attr.ancestors[:level]}
