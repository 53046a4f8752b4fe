"""Checks of phases and conditions; an empty phase counts as Pending."""

from __future__ import annotations

from typing import Literal

from pumice.local.api import Object
from tests.cases.checks.check import Check, Choice, Count
from tests.cases.moment import Moment
from tests.cases.record import Record
from tests.cases.selection import Names, expanded


class PodGroupPhase(Choice, frozen=True, kw_only=True, tag="podGroupPhase"):
    """The phase of a PodGroup."""

    pod_group: str

    @property
    def subject(self) -> str:
        return self.pod_group

    def fault(self, record: Record, moment: Moment) -> str:
        group = moment.group(self.pod_group)
        return self.compared(phase(group.get("status", {})) if group else None)


class PodGroupCondition(Check, frozen=True, kw_only=True, tag="podGroupCondition"):
    """A PodGroup's condition of a type, the last of them, has this status."""

    pod_group: str
    type: str
    status: str = "True"

    @property
    def subject(self) -> str:
        return f"{self.pod_group} {self.type}"

    def fault(self, record: Record, moment: Moment) -> str:
        group = moment.group(self.pod_group)
        if group is None:
            return "there is none"
        conditions = group.get("status", {}).get("conditions", ())
        got = [c["status"] for c in conditions if c["type"] == self.type]
        if not got:
            return f"no such condition, expected {self.status}"
        return "" if got[-1] == self.status else f"{got[-1]}, expected {self.status}"


class JobPhase(Choice, frozen=True, kw_only=True, tag="jobPhase"):
    """The phase of a Job."""

    job: str

    @property
    def subject(self) -> str:
        return self.job

    def fault(self, record: Record, moment: Moment) -> str:
        return self.compared(job_phase(moment.jobs.get(self.job)))


class JobPhaseOf(Choice, frozen=True, kw_only=True, tag="jobPhaseOf"):
    """The phase of the Job that was ahead, or of each other one."""

    jobs: list[str]
    which: Literal["winner", "loser"]

    @property
    def subject(self) -> str:
        return f"{self.which} of {', '.join(self.jobs)}"

    def fault(self, record: Record, moment: Moment) -> str:
        winner = record.winner(self.jobs, moment)
        faults = [
            self.compared(job_phase(moment.jobs.get(job)))
            for job in self.jobs
            if (job == winner) == (self.which == "winner")
        ]
        return "; ".join(filter(None, faults))


class JobsInPhase(Count, frozen=True, kw_only=True, tag="jobsInPhase"):
    """How many of the Jobs are in a phase."""

    jobs: Names
    phase: str

    @property
    def subject(self) -> str:
        return f"{self.phase} {self.jobs}"

    def fault(self, record: Record, moment: Moment) -> str:
        names = expanded(self.jobs, moment.jobs)
        return self.compared(sum(job_phase(moment.jobs.get(n)) == self.phase for n in names))


class QueueState(Choice, frozen=True, kw_only=True, tag="queueState"):
    """The state of a queue."""

    queue: str

    @property
    def subject(self) -> str:
        return self.queue

    def fault(self, record: Record, moment: Moment) -> str:
        queue = moment.queues.get(self.queue)
        return self.compared(str(queue.get("status", {}).get("state", "")) if queue else None)


def job_phase(job: Object | None) -> str | None:
    """Return the phase of a Job, None where there is no Job."""
    return phase(job.get("status", {}).get("state", {})) if job else None


def phase(status: Object) -> str:
    """Return the phase in a status."""
    return str(status.get("phase") or "Pending")
