"""The picture that explanations are made of: what the last session saw, and what it decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pumice.core.explain.answers import Amounts, Decision, Nack
from pumice.core.ids import JobKey
from pumice.core.model.jobs import JobInfo
from pumice.core.model.snapshots import Snapshot
from pumice.core.plan import GroupStatus, Plan, Reason
from pumice.core.resources import Floats, ResourceSpace
from pumice.core.timestamps import stamp


@dataclass(frozen=True)
class Picture:
    """A snapshot and the plan that was made of it; both are only read, from any thread."""

    snapshot: Snapshot
    plan: Plan

    @cached_property
    def statuses(self) -> Mapping[JobKey, GroupStatus]:
        """Return what the session said of the groups that it looked at."""
        return {status.job: status for status in self.plan.groups}

    @cached_property
    def placed(self) -> Counter[JobKey]:
        """Return how many pods of each job the session gave a node."""
        placed: Counter[JobKey] = Counter()
        for decision in self.plan.allocations:
            placed[decision.job] += len(decision.placements)
        return placed

    def status(self, job: JobInfo) -> GroupStatus | None:
        """Return what the session said of a job, if it looked at it."""
        return self.statuses.get(job.key)

    def reason(self, job: JobInfo) -> Reason | None:
        """Return why a job, or a part of it, waits, as far as the session knew."""
        status = self.status(job)
        return status.reason if status else None

    def phase(self, job: JobInfo) -> str:
        """Return the phase of a job's group, as the session left it."""
        status = self.status(job)
        return (status.phase if status else job.phase) or "Pending"

    def decision(self, job: JobInfo) -> Decision | None:
        """Return when the session came to what it said of a job."""
        reason = self.reason(job)
        if reason is None:
            return None
        at = stamp(self.plan.now)
        return Decision(self.plan.session, at, reason.action, reason.plugin, reason.message)

    @cached_property
    def space(self) -> ResourceSpace:
        """Return the names and rows of the snapshot."""
        return ResourceSpace(self.snapshot.names)

    def amounts(self, vector: Floats) -> Amounts:
        """Return a vector as quantities, without what is zero or unlimited."""
        return self.space.amounts(vector)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the pods of a job have got, by the ledger."""

    #: state -> pods
    states: Mapping[str, int] = field(default_factory=dict)
    #: Held pods that have a node and wait for their turn
    planned: int = 0
    nack: Nack | None = None
