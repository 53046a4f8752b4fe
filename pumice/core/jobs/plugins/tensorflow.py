"""
tensorflow: tell every pod the whole cluster and its own place in it, as TF_CONFIG.

    {"cluster": {"ps": ["host:port", ...], "worker": [...]}, "task": {"type": "ps", "index": 0}}

A task plays the role that an argument gives it; one without a role is told its own name as type.
A Job of a single pod needs no cluster and is told nothing.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pumice.core.api.batch import Job, TaskSpec
from pumice.core.api.meta import Template
from pumice.core.jobs.plugins.addresses import address, task_named
from pumice.core.jobs.plugins.arguments import Flag
from pumice.core.jobs.plugins.plugin import JobPlugin
from pumice.core.jobs.templates import MAIN, containers, extend, variable

#: in the order in which they stand in the variable
ROLES: Final = (
    Flag("ps", "ps"),
    Flag("worker", "worker"),
    Flag("chief", "chief"),
    Flag("evaluator", "evaluator"),
)
PORT: Final = Flag("port", 2222)


class Tensorflow(JobPlugin):
    """The plugin."""

    name = "tensorflow"
    flags = (*ROLES, PORT)

    #: the variable for the task at hand, up to the index; empty where pods are told nothing
    _head = ""

    def on_task(self, job: Job, task: TaskSpec, spec: Template) -> None:
        """Work out what all pods of the task are told."""
        self._head = ""
        tasks = job.spec.tasks or []
        if len(tasks) == 1 and tasks[0].replicas == 1:
            return
        roles = {role.name: task_named(job, self.args.get(role)) for role in ROLES}
        cluster = {
            role: self._hosts(job, played) for role, played in roles.items() if played is not None
        }
        cluster = {role: hosts for role, hosts in cluster.items() if hosts}
        kind = next((r.name for r in ROLES if self.args.get(r) == task.name), task.name or "")
        text = [msgspec.json.encode(part).decode() for part in (cluster, kind)]
        self._head = '{{"cluster":{},"task":{{"type":{},"index":'.format(*text)

    def on_pod(self, index: int, body: Template) -> None:
        """Tell the cluster and the pod's place in it to the main containers."""
        if self._head:
            for container in containers(body["spec"], MAIN):
                extend(container, "env", [variable("TF_CONFIG", f"{self._head}{index}}}}}")])

    def _hosts(self, job: Job, task: TaskSpec) -> list[str]:
        port = self.args.get(PORT)
        return [f"{address(job, task, index)}:{port}" for index in range(task.replicas)]
