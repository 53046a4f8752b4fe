"""
The words of the Job controller: requests in, effects out.

A request says what happened, an effect what is to be done. Every effect that touches an existing
object names the uid (or the resourceVersion) it was decided for, so that an effect that comes late
can never hit an object made later under the same name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pumice.core.api.batch import Event, Job, JobStatus
from pumice.core.api.core import Pod
from pumice.core.api.meta import Template
from pumice.core.api.scheduling import PodGroup, Queue
from pumice.core.ids import PodUid

SYNC: Final = "SyncJob"
ABORT: Final = "AbortJob"
RESTART: Final = "RestartJob"
RESTART_TASK: Final = "RestartTask"
RESTART_POD: Final = "RestartPod"
RESTART_PARTITION: Final = "RestartPartition"
TERMINATE: Final = "TerminateJob"
COMPLETE: Final = "CompleteJob"
RESUME: Final = "ResumeJob"
RESTARTS: Final = (RESTART, RESTART_TASK, RESTART_POD, RESTART_PARTITION)

MAX_PODS: Final = 100_000
"""A Job of more pods is refused: walking through them would keep every other Job waiting."""

ObjectKind = Literal["ConfigMap", "NetworkPolicy", "Secret", "Service"]
"""Kinds that Job plugins make."""

ObjectKey = tuple[ObjectKind, str]
"""Kind and name of an object in the Job's namespace."""

Action = str
"""One of the names above. A Command may carry any text; what is unknown acts as the table says."""


@dataclass(frozen=True, slots=True)
class Request:
    """Something happened to a Job, or somebody ordered something; merged while equal and queued."""

    event: Event | Literal[""] = ""
    #: set: this action is run, and no policy is asked
    action: Action = ""
    #: uid of the Job that the pod or group belongs to; empty: whichever Job has the name
    job_uid: str = ""
    #: status.version that the pod was made for; None: not made for any, never out of date
    version: int | None = None
    task: str = ""
    pod: str = ""
    pod_uid: str = ""
    partition: str = ""
    exit_code: int = 0
    #: the retry that the action spends; once the Job has spent it, the action has been run
    retry: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """What a request leads to: an action on a target, now or later."""

    action: Action
    request: Request
    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """An object that a plugin wants beside the Job's pods."""

    kind: ObjectKind
    name: str
    #: everything but the metadata; data may follow the Job, the rest is written once
    content: Template
    #: no pod can start without it, so an object of another owner will not do
    is_vital: bool = False
    #: whoever makes it draws an ssh key pair and adds it to the data
    draws_keys: bool = False


@dataclass(frozen=True, slots=True)
class Owned:
    """What is known of a plugin's object that the Job owns."""

    uid: str
    #: fingerprint of those of its data that follow the Job
    data: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """All that the caches know about one Job at one moment."""

    #: with the defaults that Volcano's admission gives
    job: Job
    #: the pods that this very Job (by uid) owns, by name, terminating ones included
    pods: Mapping[str, Pod] = field(default_factory=dict)
    #: names of its pods that somebody else's pods hold, such as those of a deleted namesake
    taken: frozenset[str] = frozenset()
    group: PodGroup | None = None
    queue: Queue | None = None
    #: claims of spec.volumes that exist
    claims: frozenset[str] = frozenset()
    #: what the plugins have made for this very Job
    objects: Mapping[ObjectKey, Owned] = field(default_factory=dict)
    #: names of the plugins' objects that others hold and that the Job can live with
    foreign: frozenset[ObjectKey] = frozenset()
    #: value of each PriorityClass
    priorities: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreatePod:
    """Create a pod; it may exist already."""

    name: str
    body: Template
    #: pods of one task are alike: where one is refused, so are probably the others
    task: str


@dataclass(frozen=True, slots=True)
class Restart:
    """Why a pod goes: an action, and which retry of the Job it is."""

    action: Action
    retry: int


@dataclass(frozen=True, slots=True)
class MarkOutOfSync:
    """Annotate a pod so that its end raises no policy, and where it restarts, for what."""

    name: str
    uid: PodUid
    restart: Restart | None = None


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete a pod; it may be gone already."""

    name: str
    uid: PodUid


@dataclass(frozen=True, slots=True)
class CreatePodGroup:
    """Create the Job's PodGroup; it may exist already."""

    group: PodGroup


@dataclass(frozen=True, slots=True)
class PatchPodGroup:
    """Merge these fields of the specification into the PodGroup."""

    name: str
    uid: str
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DeletePodGroup:
    """Delete the PodGroup; it may be gone already."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class CreateClaim:
    """Create a PersistentVolumeClaim that the Job owns; it may exist already."""

    name: str
    body: Template


@dataclass(frozen=True, slots=True)
class CreateObject:
    """Create an object of a plugin; one of its name may exist already, whosever it is."""

    kind: ObjectKind
    name: str
    body: Template
    is_vital: bool = False
    draws_keys: bool = False


@dataclass(frozen=True, slots=True)
class ReplaceData:
    """Replace those data of an object of a plugin that follow the Job: all of a ConfigMap's."""

    kind: ObjectKind
    name: str
    uid: str
    data: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """Delete an object of a plugin; it may be gone already."""

    kind: ObjectKind
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class PatchJob:
    """Merge these fields (not the status) into the Job."""

    uid: str
    resource_version: str
    patch: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PatchStatus:
    """
    Write the Job's status.

    `urgent` is False where only counters moved: such a write may wait a moment for more of them.
    """

    uid: str
    resource_version: str
    status: JobStatus
    urgent: bool = True


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """Tell the owner of the Job."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Fail:
    """Stop here and try the same action again later; after too many times the Job is ended."""

    message: str


Effect = (
    CreatePod
    | MarkOutOfSync
    | DeletePod
    | CreatePodGroup
    | PatchPodGroup
    | DeletePodGroup
    | CreateClaim
    | CreateObject
    | ReplaceData
    | DeleteObject
    | PatchJob
    | PatchStatus
    | RecordEvent
    | Fail
)
