"""The words of the CronJob controller: what it sees, and what it does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from pumice.core.api.batch import Job
from pumice.core.api.cron import CronJob, CronJobStatus
from pumice.core.crons.timetable import Offset

Offsets = Callable[[str], Offset | None]
"""Return the clock of a zone, the machine's own for ""; None where there is no such zone."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What the caches hold about one CronJob at one moment."""

    cron: CronJob
    #: what the CronJob controls, by its uid
    jobs: Sequence[Job] = ()
    #: uids of Jobs that were deleted for it; that is no news
    removed: Collection[str] = frozenset()
    #: any Job of the namespace by its name
    named: Callable[[str], Job | None] = lambda name: None
    #: since when the schedule is what it is, where that was seen, in seconds since 1970
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class LookAgain:
    """Reconcile once more when this moment has come, in seconds since 1970."""

    at: int


@dataclass(frozen=True, slots=True)
class PatchStatus:
    """Make the CronJob's status this one, on the version that was seen."""

    status: CronJobStatus


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
    """Tell the owner of the CronJob."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    #: the moment that it is about; the same words about another moment are another event
    due: int = 0


Effect = LookAgain | PatchStatus | CreateJob | DeleteJob | RecordEvent
