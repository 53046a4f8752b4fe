"""
What a session decided, as values.

A decision names uids, never positions, and carries the reason it was made for. It may be old
when it is applied: the extender checks it again against the present cache before it becomes
true, and a decision that no longer holds is dropped and made anew by the next session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pumice.core.api.scheduling import PodGroupCondition, PodGroupPhase
from pumice.core.ids import JobKey, PodUid


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a decision was made, or could not be, as data; every text is rendered from this."""

    action: str
    plugin: str
    message: str
    #: numbers compared, by name: resource units of `pumice.core.resources`
    numbers: Mapping[str, float] = field(default_factory=dict)
    #: nodes refused, by reason
    nodes: Mapping[str, int] = field(default_factory=dict)
    #: who holds what is short, `namespace/name`
    holders: tuple[str, ...] = ()
    #: the numbers in words, where the message does not have them
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Placement:
    """One pod on one node."""

    uid: PodUid
    node: str
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Allocate:
    """Placements that were committed together: the job is ready with them, or was before."""

    job: JobKey
    group_uid: str
    placements: tuple[Placement, ...]
    reason: Reason


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Let the group's pods be created: phase Inqueue."""

    job: JobKey
    group_uid: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class PodNote:
    """The PodScheduled condition of a pod that waits. `node` is where it could go, if anywhere."""

    reason: Literal["Unschedulable", "Schedulable"]
    message: str
    node: str = ""
    #: False where the queue holds the pod, not capacity: then no condition is written on the pod
    by_capacity: bool = True


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """The status of a group at the end of the session, whether or not it changed."""

    job: JobKey
    group_uid: str
    phase: PodGroupPhase
    running: int
    succeeded: int
    failed: int
    conditions: tuple[PodGroupCondition, ...]
    #: type, reason and message of the event to send, if any
    event: tuple[Literal["Normal", "Warning"], str, str] | None = None
    pods: Mapping[PodUid, PodNote] = field(default_factory=dict)
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class QueueUse:
    """What a queue and its children hold: resource name -> quantity text, for status.allocated."""

    queue: str
    allocated: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Plan:
    """All that one session decided, in order."""

    session: str
    now: float
    allocations: tuple[Allocate, ...] = ()
    enqueued: tuple[Enqueue, ...] = ()
    groups: tuple[GroupStatus, ...] = ()
    queues: tuple[QueueUse, ...] = ()
    #: faults of single objects or of the configuration, for the log
    warnings: tuple[str, ...] = ()
