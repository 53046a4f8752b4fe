"""env: tell every container the index of its pod within the task."""

from __future__ import annotations

from collections.abc import Sequence

from pumice.core.api.batch import Job
from pumice.core.api.meta import Template
from pumice.core.jobs.plugins.arguments import parse
from pumice.core.jobs.templates import containers, extend
from pumice.core.jobs.types import Wanted

#: the first is what the second was called once
VARIABLES = ("VK_TASK_INDEX", "VC_TASK_INDEX")


class Env:
    """The plugin; it takes no arguments."""

    def __init__(self, arguments: Sequence[str]) -> None:
        fault = parse(arguments).fault
        self.fault = f"job plugin env: {fault}" if fault else ""

    def on_task(self, job: Job, spec: Template) -> None:
        """Change nothing: what is added is another for every pod."""

    def on_pod(self, body: Template) -> None:
        """Add the variables to main and init containers."""
        index = body["metadata"]["name"].rpartition("-")[2]
        for container in containers(body["spec"]):
            extend(container, "env", [{"name": name, "value": index} for name in VARIABLES])

    def objects(self, job: Job) -> list[Wanted]:
        """Return nothing: variables are all."""
        return []
