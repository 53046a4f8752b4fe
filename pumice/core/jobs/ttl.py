"""When a finished Job is to be deleted: `ttlSecondsAfterFinished` after its last transition."""

from __future__ import annotations

from typing import Final

from pumice.core import timestamps
from pumice.core.api.batch import Job, JobPhase

FINISHED: Final[frozenset[JobPhase]] = frozenset({"Completed", "Failed", "Terminated"})
"""Phases that are never left. An aborted Job is not finished: it may be resumed."""


def expiry(job: Job) -> float | None:
    """
    Return when the Job is due, in seconds since 1970; None where it stays.

    A Job that does not say when it finished stays too: it is not known whether it is due.
    """
    ttl, state = job.spec.ttl_seconds_after_finished, job.status.state
    if ttl is None or state.phase not in FINISHED or job.metadata.deletion_timestamp is not None:
        return None
    finished = timestamps.moment(state.last_transition_time)
    return finished + ttl if finished else None
