"""env: tell every container the index of its pod within the task."""

from __future__ import annotations

from pumice.core.api.meta import Template
from pumice.core.jobs.plugins.plugin import JobPlugin
from pumice.core.jobs.templates import containers, extend

#: the first is what the second was called once
VARIABLES = ("VK_TASK_INDEX", "VC_TASK_INDEX")


class Env(JobPlugin):
    """The plugin; it takes no arguments."""

    name = "env"

    def on_pod(self, index: int, body: Template) -> None:
        """Add the variables to main and init containers."""
        for container in containers(body["spec"]):
            extend(container, "env", [{"name": name, "value": str(index)} for name in VARIABLES])
