"""What the specifications of groups come to in a cluster, with its priority classes."""

from __future__ import annotations

from collections.abc import Iterator

from pumice.core.api.core import PriorityClass
from pumice.core.api.scheduling import PodGroup
from pumice.core.model.jobs import Terms
from pumice.core.quantity import QuantityError
from pumice.core.resources import Floats, ResourceSpace


class Priorities:
    """The priority classes."""

    def __init__(self) -> None:
        self._classes: dict[str, PriorityClass] = {}

    def __iter__(self) -> Iterator[PriorityClass]:
        return iter(self._classes.values())

    def put(self, priority_class: PriorityClass) -> None:
        """Take over a priority class."""
        self._classes[priority_class.metadata.name] = priority_class

    def drop(self, name: str) -> bool:
        """Forget a priority class; return whether it was known."""
        return self._classes.pop(name, None) is not None

    def of(self, name: str) -> tuple[int, str]:
        """Return the priority by the name of a class, or by none, and what is odd about it."""
        found = self._classes.get(name) or self._default()
        priority = found.value if found else 0
        if name and name not in self._classes:
            return priority, f"priority class {name} does not exist, priority is {priority}"
        return priority, ""

    def _default(self) -> PriorityClass | None:
        defaults = (c for c in self if c.global_default)
        return min(defaults, key=lambda c: (-c.value, c.metadata.name), default=None)


def terms_of(
    group: PodGroup, space: ResourceSpace, priorities: Priorities, default_queue: str
) -> Terms:
    """Return what a group's specification comes to."""
    spec, fault = group.spec, ""
    few = f"minMember {spec.min_member} counts as 0" if spec.min_member < 0 else ""
    least: Floats | None = None
    try:
        if spec.min_resources is not None:
            least = space.vector(spec.min_resources)
    except QuantityError as error:
        fault = f"minResources: {error}"
    priority, odd = priorities.of(spec.priority_class_name)
    remarks = tuple(remark for remark in (few, odd) if remark)
    return Terms(spec.queue or default_queue, priority, least, fault, remarks)
