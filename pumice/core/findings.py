"""Findings: what actions and plugins write down in a session, to be told at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pumice.core.fitness import Limit, Trouble
from pumice.core.ids import JobKey
from pumice.core.model.inputs import Reservation
from pumice.core.model.jobs import JobInfo
from pumice.core.plan import Admit, Enqueue


@dataclass(slots=True)
class Findings:
    """What actions and plugins write down in the course of a session."""

    troubles: dict[JobKey, Trouble] = field(default_factory=dict)
    #: groups whose gang could not be placed: reason of the condition
    unschedulable: dict[JobKey, str] = field(default_factory=dict)
    #: groups whose gang is ready
    schedulable: set[JobKey] = field(default_factory=set)
    #: why a queue could not have more, as last found
    limits: dict[str, Limit] = field(default_factory=dict)
    #: what each queue deserves, in units by row
    deserved: Mapping[str, Sequence[float]] = field(default_factory=dict)
    #: of groups that are bound to HyperNodes the lowest one that holds their pods, if any
    hypernodes: dict[JobKey, str] = field(default_factory=dict)
    enqueued: list[Enqueue] = field(default_factory=list)
    admitted: list[Admit] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    #: plugins that raised -> the extension points at which they did, and how often
    failures: dict[str, Counter[str]] = field(default_factory=dict)
    #: room that is kept for a gang
    reservation: Reservation | None = None
    #: plugins that act from time to time and did so in this session -> when
    acted: dict[str, float] = field(default_factory=dict)

    def trouble(self, job: JobInfo) -> Trouble:
        """Return the record of what keeps a job's tasks from being placed."""
        found = self.troubles.get(job.key)
        if found is None:
            found = self.troubles[job.key] = Trouble()
        return found
