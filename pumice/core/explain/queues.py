"""The shares of the queues: what each deserves, holds, asks for and may have."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

import numpy as np

from pumice.core.explain.answers import Amounts, Queues, QueueShare
from pumice.core.explain.picture import Picture
from pumice.core.model.queues import QueueInfo
from pumice.core.resources import EPSILON, Floats, plus, share

PHASES = ("pending", "inqueue", "running", "unknown", "completed")


def list_queues(picture: Picture, *, after: str, limit: int) -> Queues:
    """Return queues by name, those behind `after` and no more than `limit`."""
    names = (name for name in picture.snapshot.queues if name > after)
    found = heapq.nsmallest(limit + 1, names)
    rows = queue_shares(picture, found[:limit])
    return Queues(tuple(rows), found[limit - 1] if len(found) > limit else "")


def queue_shares(picture: Picture, names: Iterable[str]) -> Iterator[QueueShare]:
    """Yield the shares of some queues."""
    totals = _totals(picture)
    for name in names:
        yield _share(picture, picture.snapshot.queues[name], totals.get(name, _NOTHING))


Total = tuple[Floats, Floats]
"""What a queue and those below it hold, and that with what their waiting pods ask for."""

_NOTHING: Total = (np.zeros(0), np.zeros(0))


def _totals(picture: Picture) -> dict[str, Total]:
    totals: dict[str, Total] = {}
    for name, usage in picture.snapshot.usage.items():
        for above in _with_ancestors(picture, name):
            held, asked = totals.get(above, _NOTHING)
            totals[above] = (plus(held, usage.allocated), plus(asked, usage.request))
    return totals


def _with_ancestors(picture: Picture, name: str) -> Iterable[str]:
    seen: dict[str, None] = {}
    queue = picture.snapshot.queues.get(name)
    while queue is not None and queue.name not in seen:
        seen[queue.name] = None
        queue = picture.snapshot.queues.get(queue.parent)
    return seen


def _share(picture: Picture, queue: QueueInfo, total: Total) -> QueueShare:
    spec, status = queue.queue.spec, queue.queue.status
    deserved = _deserved(picture, queue)
    held, asked = total
    return QueueShare(
        name=queue.name,
        parent=queue.parent,
        state=status.state or "Open",
        weight=queue.weight,
        priority=queue.priority,
        deserved=None if deserved is None else picture.amounts(deserved),
        allocated=picture.amounts(held),
        requested=picture.amounts(asked),
        capability=_capability(picture, queue) if spec.capability else None,
        guarantee=picture.amounts(queue.guarantee),
        share=None if deserved is None else _part(held, deserved),
        pod_groups={phase: getattr(status, phase) for phase in PHASES},
    )


def _deserved(picture: Picture, queue: QueueInfo) -> Floats | None:
    """Return what a plugin says that the queue deserves, else what the queue says itself."""
    shared_out = picture.plan.deserved.get(queue.name)
    if shared_out is not None:
        return np.array(shared_out)
    return queue.deserved if queue.queue.spec.deserved else None


def _capability(picture: Picture, queue: QueueInfo) -> Amounts:
    return picture.amounts(queue.bound(len(picture.snapshot.names)))


def _part(held: Floats, deserved: Floats) -> float:
    """Return the largest part that is held of anything deserved."""
    pairs = zip(held.tolist(), deserved.tolist(), strict=False)
    return max((share(h, due) for h, due in pairs if due >= EPSILON), default=0.0)
