"""
sla: a group that has waited for too long is let in, and promised room, by all below this tier.

The longest time that a group should wait is the argument `sla-waiting-time`, a duration such as
`1h30m`, or the group's own annotation. Groups with one go first, those whose time is over
earliest before the others. A rejection in the same tier or above it still rejects.
"""

from __future__ import annotations

from pumice.core import names
from pumice.core.conf import Arguments
from pumice.core.extension import SortKey, Vote
from pumice.core.jobs.durations import seconds
from pumice.core.model.jobs import JobInfo
from pumice.core.plan import Reason
from pumice.core.session import Session

NAME = "sla"


class Sla:
    """The plugin."""

    name = NAME

    def __init__(self, args: Arguments) -> None:
        text = args.text("sla-waiting-time")
        self.wait_s = _positive(text)
        if text and self.wait_s is None:
            args.faults["sla-waiting-time"] = f"argument sla-waiting-time: {text!r} is no duration"
        self.now = 0.0

    def on_session_open(self, ssn: Session) -> None:
        """Register the order and the votes."""
        self.now = ssn.now
        ssn.points.job_order[NAME] = self.order
        ssn.points.job_enqueueable[NAME] = self.enqueueable
        ssn.points.job_pipelined[NAME] = self.vote

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""

    def deadline(self, job: JobInfo) -> float:
        """Return when the job's time to wait is over, infinity where it has none."""
        notes = job.group.metadata.annotations or {}
        keys = (names.SLA_WAITING_TIME, names.SLA_WAITING_TIME_BARE)
        own = next((wait for key in keys if (wait := _positive(notes.get(key, "")))), None)
        wait = own or self.wait_s
        return job.created + wait if wait else float("inf")

    def order(self, job: JobInfo) -> SortKey:
        """Put first whose time is over first."""
        return self.deadline(job)

    def vote(self, job: JobInfo) -> Vote:
        """Permit what has waited long enough; have no opinion of anything else."""
        return Vote.PERMIT if self.now >= self.deadline(job) else Vote.ABSTAIN

    def enqueueable(self, job: JobInfo) -> tuple[Vote, Reason | None]:
        """Vote on whether the group may be let in."""
        return self.vote(job), None


def _positive(text: str) -> float | None:
    """Return a duration in seconds; None where it is none, or not above zero."""
    length = seconds(text)
    return length if length and length > 0 else None
