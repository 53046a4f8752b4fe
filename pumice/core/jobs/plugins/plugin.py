"""
What a Job plugin is: four questions, to each of which it may have nothing to say.

An instance serves one Job, and of it one task at a time: `on_task` comes before the task's
`on_pod`s and may leave them what it worked out. The same Job always gets the same answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pumice.core.api.batch import Job, TaskSpec
from pumice.core.api.meta import Template
from pumice.core.jobs.plugins.arguments import AnyFlag, Arguments, parse
from pumice.core.jobs.types import Wanted


class JobPlugin:
    """A plugin with its arguments; each kind overrides what it has something to say about."""

    name: ClassVar[str]
    flags: ClassVar[Sequence[AnyFlag]] = ()
    #: whether status.controlledResources names it
    is_listed: ClassVar[bool] = True

    def __init__(self, given: Sequence[str]) -> None:
        self.args: Arguments = parse(given, *self.flags)

    def refusal(self, job: Job) -> str:
        """Return why the Job cannot have the plugin; empty if it can."""
        return ""

    def faults(self, job: Job) -> list[str]:
        """Return what of the Job's wishes is not followed while it runs all the same."""
        return [self.args.fault] if self.args.fault else []

    def on_task(self, job: Job, task: TaskSpec, spec: Template) -> None:
        """Change what the pods of a task have in common: their specification."""

    def on_pod(self, index: int, body: Template) -> None:
        """Change a new pod; its specification is shared but for the uppermost fields."""

    def objects(self, job: Job) -> list[Wanted]:
        """Return the objects that the Job is to have while it lives."""
        return []
