"""Queues: what a session reads of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pumice.core import names
from pumice.core.api.scheduling import Queue
from pumice.core.resources import CPU, MEMORY, UNLIMITED, Floats, ResourceSpace, pad
from pumice.core.timestamps import moment


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """A queue. Vectors may be shorter than the space; limits are unlimited where not named."""

    name: str
    weight: int
    priority: int
    is_open: bool
    reclaimable: bool
    parent: str
    created: float
    #: None where the queue names no capability at all
    capability: Floats | None
    deserved: Floats
    guarantee: Floats
    queue: Queue

    @classmethod
    def of(cls, queue: Queue, space: ResourceSpace) -> QueueInfo:
        """
        Read a queue; raise QuantityError for a malformed amount.

        A queue that no controller has looked at yet has no state and counts as open.
        """
        spec = queue.spec
        guarantee = spec.guarantee.resource if spec.guarantee else None
        return cls(
            name=queue.metadata.name,
            weight=max(spec.weight, 0),
            priority=spec.priority,
            is_open=queue.status.state in ("", "Open"),
            reclaimable=spec.reclaimable is not False,
            parent=spec.parent or ("" if queue.metadata.name == names.ROOT_QUEUE else "root"),
            created=moment(queue.metadata.creation_timestamp),
            capability=space.limits(spec.capability) if spec.capability else None,
            deserved=space.vector(spec.deserved),
            guarantee=space.vector(guarantee),
            queue=queue,
        )

    def bound(self, size: int) -> Floats:
        """Return the capability as a bound; cpu or memory of nothing means not bounded."""
        if self.capability is None:
            return np.full(size, UNLIMITED)
        bound = pad(self.capability, size, UNLIMITED).copy()
        for row in (CPU, MEMORY):
            if bound[row] <= 0:
                bound[row] = UNLIMITED
        return bound

    @property
    def order(self) -> tuple[float, str]:
        """Return the sort key among queues that no plugin tells apart."""
        return (self.created, self.name)
