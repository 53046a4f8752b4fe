"""The counters of a Job's status: what its pods are at one moment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from pumice.core.api.batch import JobCondition, JobPhase, JobStatus, TaskState
from pumice.core.api.core import Pod
from pumice.core.api.meta import Time
from pumice.core.jobs import membership as m

PHASES = ("Pending", "Running", "Succeeded", "Failed")


@dataclass(slots=True)
class Counters:
    """Pods by phase, those that are leaving apart; a pod is counted once."""

    terminating: int = 0
    #: task -> pod phase -> pods; a phase that nobody knows counts as Unknown
    tasks: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, pod: Pod) -> None:
        """Count a pod as it is."""
        if m.is_terminating(pod):
            self.terminating += 1
        else:
            self.add_phase(m.task_of(pod), m.phase_of(pod))

    def add_phase(self, task: str, phase: str) -> None:
        """Count a pod that is in the phase, or is about to be made."""
        known = phase if phase in PHASES else "Unknown"
        counts = self.tasks.setdefault(task, {})
        counts[known] = counts.get(known, 0) + 1

    def total(self, phase: str) -> int:
        """Return the pods in the phase, over all tasks."""
        return sum(counts.get(phase, 0) for counts in self.tasks.values())

    def written_to(self, status: JobStatus) -> JobStatus:
        """Return the status with these counters and everything else as it was."""
        states = {task: TaskState(phase=dict(counts)) for task, counts in self.tasks.items()}
        return msgspec.structs.replace(
            status,
            pending=self.total("Pending"),
            running=self.total("Running"),
            succeeded=self.total("Succeeded"),
            failed=self.total("Failed"),
            unknown=self.total("Unknown"),
            terminating=self.terminating,
            task_status_count=states or None,
        )


def count(pods: Iterable[Pod]) -> Counters:
    """Count pods as they are."""
    counters = Counters()
    for pod in pods:
        counters.add(pod)
    return counters


def in_phase(status: JobStatus, phase: JobPhase, now: Time) -> JobStatus:
    """Return the status with the phase entered, or confirmed, now: its condition comes last."""
    conditions = [c for c in status.conditions or () if c.status != phase]
    return msgspec.structs.replace(
        status,
        state=msgspec.structs.replace(status.state, phase=phase, last_transition_time=now),
        conditions=[*conditions, JobCondition(status=phase, last_transition_time=now)],
    )
