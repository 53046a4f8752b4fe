"""
What a session decided, as values.

A decision names uids, never positions, and carries the reason it was made for. It may be old
when it is applied: the extender checks it again against the present cache before it becomes
true, and a decision that no longer holds is dropped and made anew by the next session.

What a session makes for each job that waits is a struct: a frozen dataclass of so many fields
takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from pumice.core.api.scheduling import PodGroupCondition, PodGroupPhase
from pumice.core.devices.notes import Choice
from pumice.core.fitness import Confinement, FitErrors
from pumice.core.ids import JobKey, PodUid
from pumice.core.model.inputs import Reservation

Obstacle = Literal[
    "", "malformed", "no queue", "too few pods", "admission", "queue", "room", "promised", "gates"
]
"""
What keeps a job waiting: how it is written, its queue that is not there, pods that are, whether
it is let in, what its queue may have, room on nodes, pods that are still to go, gates of others.
"""


class Reason(msgspec.Struct, frozen=True):
    """Why a decision was made, or could not be, as data; every text is rendered from this."""

    action: str
    plugin: str
    message: str
    #: numbers compared, by name: resource units of `pumice.core.resources`
    numbers: Mapping[str, float] = msgspec.field(default_factory=dict)
    #: nodes refused, by reason
    nodes: Mapping[str, int] = msgspec.field(default_factory=dict)
    #: who holds what is short, `namespace/name`
    holders: tuple[str, ...] = ()
    #: the numbers in words, where the message does not have them
    detail: str = ""
    #: what is in the way, where something is
    obstacle: Obstacle = ""
    #: the gang is whole, and what waits is more than it needs
    whole: bool = False
    queue: str = ""
    #: tasks that wait; those of them for which there would be a node, were their gang whole
    waiting: int = 0
    found: int = 0
    #: what one of the tasks that found no node asks for, in units
    asks: Mapping[str, float] = msgspec.field(default_factory=dict)
    #: nodes that were looked at for it; what one of those that lack a resource has left at most
    of_nodes: int = 0
    most: Mapping[str, float] = msgspec.field(default_factory=dict)
    #: HyperNodes that were to hold the gang, or a sub-group of it, as a whole
    confined: Confinement | None = None
    #: queues whose room was not taken for the job, since they could take it back
    rivals: tuple[str, ...] = ()
    #: when the job starts at the latest, in seconds since 1970, where room is kept for it
    expected: float | None = None
    #: of an eviction: the pod that wants the room, `namespace/name`, and the tier of plugins,
    #: counted from 1, that agreed on the victim
    sake: str = ""
    tier: int = 0


@dataclass(frozen=True, slots=True)
class Placement:
    """One pod on one node."""

    uid: PodUid
    node: str
    score: float = 0.0
    #: the cards that it gets there, if it asks for any
    cards: Choice | None = None


@dataclass(frozen=True, slots=True)
class Allocate:
    """Placements that were committed together: the job is ready with them, or was before."""

    job: JobKey
    group_uid: str
    placements: tuple[Placement, ...]
    reason: Reason


@dataclass(frozen=True, slots=True)
class Victim:
    """One pod that is to leave its node."""

    uid: PodUid
    job: JobKey
    node: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Evict:
    """
    Victims that go for one job, and the room that it is promised with what they leave.

    The job starts, or has all that was missing, once its pods are where `claims` says; until
    the victims are gone that room is nobody else's. It may be room that others leave: there are
    decisions without victims, and those of one plan hold together.
    """

    job: JobKey
    group_uid: str
    victims: tuple[Victim, ...]
    claims: tuple[Placement, ...]
    action: str


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Let the group's pods be created: phase Inqueue."""

    job: JobKey
    group_uid: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Admit:
    """Pods that are let out of the gate of their queue; no node is decided for them."""

    job: JobKey
    group_uid: str
    pods: tuple[PodUid, ...]
    reason: Reason


@dataclass(frozen=True, slots=True)
class PodNote:
    """The PodScheduled condition of a pod that waits. `node` is where it could go, if anywhere."""

    reason: Literal["Unschedulable", "Schedulable"]
    message: str
    node: str = ""
    #: False where the queue holds the pod, not capacity: then no condition is written on the pod
    by_capacity: bool = True
    #: why no node took it; the message is this in words
    errors: FitErrors | None = field(default=None, compare=False)


class GroupStatus(msgspec.Struct, frozen=True):
    """The status of a group at the end of the session, whether or not it changed."""

    job: JobKey
    group_uid: str
    phase: PodGroupPhase
    running: int
    succeeded: int
    failed: int
    #: those of this session bear neither its id nor the time: who writes them does that
    conditions: tuple[PodGroupCondition, ...]
    #: type, reason and message of the event to send, if any
    event: tuple[Literal["Normal", "Warning"], str, str] | None = None
    pods: Mapping[PodUid, PodNote] = msgspec.field(default_factory=dict)
    #: why the group, or a part of it, waits
    reason: Reason | None = None
    #: the session made the Unschedulable condition; one that is kept is of an earlier one
    unschedulable: bool = False
    #: the lowest HyperNode that holds the group's pods, of one that is to be in few; empty where
    #: none does, None where nothing is to be said
    hypernode: str | None = None


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
    evictions: tuple[Evict, ...] = ()
    enqueued: tuple[Enqueue, ...] = ()
    admitted: tuple[Admit, ...] = ()
    groups: tuple[GroupStatus, ...] = ()
    queues: tuple[QueueUse, ...] = ()
    #: queue -> what it deserves by the plugin that shares the cluster out, in units by row
    deserved: Mapping[str, Sequence[float]] = field(default_factory=dict)
    #: faults of single objects or of the configuration, for the log
    warnings: tuple[str, ...] = ()
    #: third-party plugins that raised -> how often
    failures: Mapping[str, int] = field(default_factory=dict)
    #: plugins that act from time to time and did so now -> when; an input of later sessions
    acted: Mapping[str, float] = field(default_factory=dict)
    #: room that is kept for a gang; an input of the next session
    reservation: Reservation | None = None
    #: nothing was decided or promised, by nobody whose answers change with time: a session over
    #: the same state comes to the same; see `pumice.core.recall`
    steady: bool = False
