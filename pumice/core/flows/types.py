"""The words of the JobFlow controller: what it sees, and what it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pumice.core.api.batch import Job
from pumice.core.api.flow import JobFlow, JobFlowStatus, JobTemplate

SYNC = "SyncJobFlow"
"""The reason of events about what does not work."""


@dataclass(frozen=True, slots=True)
class Check:
    """Something to ask the pods of a task: whether a port is open, or how HTTP is answered."""

    #: name and uid of the Job
    job: str
    uid: str
    task: str
    port: int
    #: None where the port alone matters
    path: str | None = None
    #: name and value
    header: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """What is known about one JobFlow at one moment."""

    flow: JobFlow
    #: what the JobFlow controls, by its uid
    jobs: Sequence[Job] = ()
    #: any JobTemplate of the namespace by its name
    template: Callable[[str], JobTemplate | None] = lambda name: None
    #: any Job of the namespace by its name
    named: Callable[[str], Job | None] = lambda name: None
    #: how many pods of the task answered as they should
    answers: Mapping[Check, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PatchStatus:
    """Make the JobFlow's status this one, on the version that was seen."""

    status: JobFlowStatus


@dataclass(frozen=True, slots=True)
class CreateJob:
    """Create a Job; the name may be taken already."""

    job: Job


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """Delete a Job with all its pods; it may be gone already."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """Tell the owner of the JobFlow."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Make these checks and reconcile once more with the answers, now and every few seconds."""

    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class LookAgain:
    """Reconcile once more after so many seconds."""

    seconds: float


Effect = PatchStatus | CreateJob | DeleteJob | RecordEvent | Ask | LookAgain
