"""
Objects as they come in, before the API server's schema has looked at them.

Defaults are given first, so what the schema would refuse and a default would replace must be
readable here: a weight of zero, a task with an empty name. Zero and absent are the same.
"""

from __future__ import annotations

import msgspec

from pumice.core.api.batch import Job, JobSpec, TaskSpec
from pumice.core.api.scheduling import Queue, QueueSpec


class TaskDraft(TaskSpec):
    """A task whose name may be empty."""

    name: str | None = None


class JobSpecDraft(JobSpec):
    """A specification of such tasks."""

    # A list of a narrower kind is read here and never added to.
    tasks: list[TaskDraft] | None = None  # type: ignore[assignment]


class JobDraft(Job):
    """A Job to be given defaults."""

    spec: JobSpecDraft = msgspec.field(default_factory=JobSpecDraft)


class QueueSpecDraft(QueueSpec):
    """A specification whose weight may be zero."""

    weight: int = 0


class QueueDraft(Queue):
    """A queue to be given defaults."""

    spec: QueueSpecDraft = msgspec.field(default_factory=QueueSpecDraft)
