"""The words of the queue controller: what it sees, and what it does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pumice.core.api.scheduling import PodGroupPhase, Queue, QueueState

Action = Literal["SyncQueue", "OpenQueue", "CloseQueue", "CloseWithParent"]

SYNC: Final = "SyncQueue"
OPEN: Final = "OpenQueue"
CLOSE: Final = "CloseQueue"
#: nobody asked for it; it follows from a parent that is closed
CLOSE_WITH_PARENT: Final = "CloseWithParent"


@dataclass(frozen=True, slots=True)
class Observed:
    """What the caches hold about one queue at one moment."""

    queue: Queue
    #: the queue that spec.parent names, where it is there
    parent: Queue | None = None
    children: tuple[Queue, ...] = ()
    #: how many PodGroups of the queue are in each phase
    groups: Mapping[PodGroupPhase, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateQueue:
    """Create a queue; it may be there already."""

    queue: Queue


@dataclass(frozen=True, slots=True)
class SetParent:
    """Put the queue below another."""

    name: str
    uid: str
    parent: str


@dataclass(frozen=True, slots=True)
class PatchStatus:
    """Write these fields of the queue's status, on the version that was seen."""

    name: str
    uid: str
    resource_version: str
    state: QueueState | None = None
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MarkClosedByParent:
    """Note on the queue whether it is closed for its parent's sake, and to open with it."""

    name: str
    uid: str
    closed: bool


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Have an action done on a queue, after this one."""

    name: str
    action: Action


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """Tell the owner of the queue."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Fail:
    """Give up for now and try the same action again later."""

    message: str


Effect = CreateQueue | SetParent | PatchStatus | MarkClosedByParent | Enqueue | RecordEvent | Fail
