"""
Reconcile one queue.

                 CloseQueue, PodGroups left
      ┌──────┐ ───────────────────────────► ┌─────────┐
      │ Open │                              │ Closing │──┐ no PodGroup left
      └──────┘ ◄─────────────────────────── └─────────┘  │
        ▲  │          OpenQueue                          ▼
        │  └──────── CloseQueue, no PodGroups ───► ┌────────┐
        └─────────────── OpenQueue ─────────────── │ Closed │
                                                   └────────┘

An empty state becomes Open; Unknown stays until an action, and acts like Open then. PodGroups in
any phase keep a queue Closing, finished ones too. A state that a client writes counts like one
that an action led to.

Closing a queue closes those below it, and opening it opens again those that were closed for its
sake, which is noted in an annotation; what a user closed stays closed, be it that its parent had
closed it before. `root` never closes.
Counts of PodGroups go into the status, where Volcano leaves zeros.

A queue's own state is written before anything follows for those below: whoever crashes between
leaves a parent that says what its children are to do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, assert_never

from pumice.core import names
from pumice.core.api.meta import ObjectMeta
from pumice.core.api.scheduling import Queue, QueueSpec, QueueState
from pumice.core.queues.types import (
    CLOSE,
    CLOSE_WITH_PARENT,
    OPEN,
    Action,
    CreateQueue,
    Effect,
    Enqueue,
    Fail,
    MarkClosedByParent,
    Observed,
    PatchStatus,
    RecordEvent,
    SetParent,
)

SHUT: Final = frozenset({"Closed", "Closing"})


def missing_queues(existing: Collection[str]) -> list[CreateQueue]:
    """Return the creation of `root` and `default` where they are not there."""
    wanted = {names.ROOT_QUEUE: False, names.DEFAULT_QUEUE: True}
    return [
        CreateQueue(
            Queue(metadata=ObjectMeta(name=name), spec=QueueSpec(weight=1, reclaimable=reclaimable))
        )
        for name, reclaimable in wanted.items()
        if name not in existing
    ]


def reconcile(action: Action, seen: Observed) -> list[Effect]:
    """
    Return what the action needs, or what follows from what is seen where nothing was asked.

    The status comes before other changes of the same queue, which would make it out of date.
    """
    state = seen.queue.status.state or "Open"
    match action:
        case "OpenQueue" if state != "Open":
            return [*_open(seen), *_parent(seen)]
        case "CloseQueue" | "CloseWithParent" if state not in SHUT:
            return [*_close(seen), *_parent(seen)]
        case "CloseQueue" if _closed_by_parent(seen.queue) == "true":
            return [*_status(seen, _settled(seen)), *_mark(seen.queue, closed=False)]
        case "SyncQueue" | "OpenQueue" | "CloseQueue" | "CloseWithParent":
            return [*_status(seen, _settled(seen)), *_parent(seen), *_follow_parent(seen)]
        case other:
            assert_never(other)


def _parent(seen: Observed) -> Iterator[Effect]:
    """Put a queue without a parent below root."""
    meta = seen.queue.metadata
    if meta.name != names.ROOT_QUEUE and not seen.queue.spec.parent:
        yield SetParent(meta.name, meta.uid, names.ROOT_QUEUE)


def _settled(seen: Observed) -> QueueState:
    """Return the state that the queue has come to without anybody asking."""
    state = seen.queue.status.state or "Open"
    if seen.queue.metadata.name == names.ROOT_QUEUE:
        return "Open"
    return _shut(seen) if state == "Closing" else state


def _shut(seen: Observed) -> QueueState:
    return "Closing" if any(seen.groups.values()) else "Closed"


def _status(seen: Observed, state: QueueState) -> Iterator[Effect]:
    """Write what differs; a group without a phase has not been looked at yet, so it is pending."""
    meta, status = seen.queue.metadata, seen.queue.status
    groups = seen.groups
    truth = {
        "pending": groups.get("Pending", 0) + groups.get("", 0),
        "inqueue": groups.get("Inqueue", 0),
        "running": groups.get("Running", 0),
        "unknown": groups.get("Unknown", 0),
        "completed": groups.get("Completed", 0),
    }
    told = {
        "pending": status.pending,
        "inqueue": status.inqueue,
        "running": status.running,
        "unknown": status.unknown,
        "completed": status.completed,
    }
    counts = {name: count for name, count in truth.items() if count != told[name]}
    changed = state if state != status.state else None
    if counts or changed:
        yield PatchStatus(meta.name, meta.uid, meta.resource_version, changed, counts)


def _follow_parent(seen: Observed) -> Iterator[Effect]:
    """Close with a closed parent, and open again with it."""
    meta, parent, here = seen.queue.metadata, seen.queue.spec.parent, seen.queue.status.state
    if meta.name == names.ROOT_QUEUE:
        return
    # What root says of itself does not matter: it cannot be closed.
    above: QueueState = "Open"
    if parent not in ("", names.ROOT_QUEUE):
        if seen.parent is None:
            yield Fail(f"parent queue {parent} not found")
            return
        above = seen.parent.status.state
    was_closed = _closed_by_parent(seen.queue) == "true"
    if above in SHUT and here not in SHUT:
        yield from _mark(seen.queue, closed=True)
        yield Enqueue(meta.name, CLOSE_WITH_PARENT)
    elif above == "Open" and here in SHUT and was_closed:
        yield Enqueue(meta.name, OPEN)
    elif above == "Open" and here == "Open" and was_closed:
        # Opened by whoever wrote its status: if it is closed again, it is not for its parent.
        yield from _mark(seen.queue, closed=False)


def _open(seen: Observed) -> Iterator[Effect]:
    name, parent = seen.queue.metadata.name, seen.queue.spec.parent
    if parent != names.ROOT_QUEUE and seen.parent and seen.parent.status.state in SHUT:
        yield Fail(
            f"Failed to open queue {name} because its parent queue {parent} is closing or closed."
            " Open the parent queue first."
        )
        return
    yield from _status(seen, "Open")
    for child in seen.children:
        if _closed_by_parent(child) == "true":
            yield Enqueue(child.metadata.name, OPEN)
    yield from _mark(seen.queue, closed=False)


def _close(seen: Observed) -> Iterator[Effect]:
    if seen.queue.metadata.name == names.ROOT_QUEUE:
        yield RecordEvent("Warning", CLOSE, "Close queue failed for root queue can not be closed")
        return
    yield from _status(seen, _shut(seen))
    for child in seen.children:
        if child.status.state not in SHUT:
            yield from _mark(child, closed=True)
            yield Enqueue(child.metadata.name, CLOSE_WITH_PARENT)
    yield RecordEvent("Normal", CLOSE, "Close queue succeed")


def _mark(queue: Queue, *, closed: bool) -> Iterator[Effect]:
    if _closed_by_parent(queue) != str(closed).lower():
        yield MarkClosedByParent(queue.metadata.name, queue.metadata.uid, closed)


def _closed_by_parent(queue: Queue) -> str:
    return (queue.metadata.annotations or {}).get(names.CLOSED_BY_PARENT, "")
