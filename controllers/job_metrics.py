"""
What is measured of Jobs: how many ended well or badly, and how soon their first pods were made.

By queue and not by Job: there is no bound to the number of Jobs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pumice.core import timestamps
from pumice.core.api.batch import Job
from pumice.core.jobs import types as t
from pumice.kube.metrics import Metrics

_MILLISECONDS: Final = (10, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 600_000)


class JobMetrics:
    """The metrics of the Job controller."""

    def __init__(self, metrics: Metrics) -> None:
        ends = {"Completed": "job_completed_phase_count", "Failed": "job_failed_phase_count"}
        self._ends = {
            phase: metrics.counter(name, f"Jobs that are {phase}.", ["queue_name"])
            for phase, name in ends.items()
        }
        self._latency = metrics.histogram(
            "controller_job_to_pod_creation_latency_milliseconds",
            "From the creation of a Job to that of its first pods.",
            buckets=_MILLISECONDS,
        )

    def count(self, job: Job, effects: Iterable[t.Effect], now: float) -> None:
        """Count what was done for a Job; `now` is in seconds since 1970."""
        old = job.status
        is_first = not old.version and not old.task_status_count
        for effect in effects:
            if isinstance(effect, t.PatchStatus):
                phase = effect.status.state.phase
                if phase != old.state.phase and phase in self._ends:
                    self._ends[phase].labels(job.spec.queue).inc()
            elif isinstance(effect, t.CreatePod) and is_first:
                is_first = False
                created = timestamps.moment(job.metadata.creation_timestamp)
                self._latency.observe((now - created) * 1000 if created else 0)
