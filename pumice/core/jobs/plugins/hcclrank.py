"""
hcclrank: write a pod's rank into the annotation that Ascend's device plugin reads.

The rank is what a container's RANK says, which is why this plugin comes after `pytorch`; else it
is counted, masters first. An annotation that the template brings along is left as it is.
"""

from __future__ import annotations

from typing import Final

from pumice.core.api.batch import Job, TaskSpec
from pumice.core.api.meta import Template
from pumice.core.jobs.plugins.addresses import task_named
from pumice.core.jobs.plugins.arguments import Flag
from pumice.core.jobs.plugins.plugin import JobPlugin
from pumice.core.jobs.templates import MAIN, containers, text

MASTER: Final = Flag("master", "master")
WORKER: Final = Flag("worker", "worker")
ANNOTATION: Final = "hccl/rankIndex"


class HcclRank(JobPlugin):
    """The plugin."""

    name = "hcclrank"
    flags = (MASTER, WORKER)
    is_listed = False

    #: rank of the task's first pod, where ranks are counted; None where its pods have none
    _first: int | None = None

    def on_task(self, job: Job, task: TaskSpec, spec: Template) -> None:
        """Work out where the task's ranks begin."""
        master = task_named(job, self.args.get(MASTER))
        masters = master.replicas if master else 0
        starts = {self.args.get(WORKER): masters, self.args.get(MASTER): 0}
        self._first = starts.get(task.name or "")

    def on_pod(self, index: int, body: Template) -> None:
        """Annotate the pod."""
        annotations = body["metadata"]["annotations"]
        counted = None if self._first is None else str(self._first + index)
        rank = _told(body["spec"]) or counted
        if rank is not None and not annotations.get(ANNOTATION):
            annotations[ANNOTATION] = rank


def _told(spec: Template) -> str:
    """Return the first RANK that a main container's environment names, if it is a plain value."""
    for container in containers(spec, MAIN):
        env = container.get("env")
        for entry in env if isinstance(env, list) else ():
            if isinstance(entry, dict) and entry.get("name") == "RANK":
                return text(entry.get("value"))
    return ""
