"""
ray: start a Ray cluster, the head first in line and every worker knowing it by name.

The command of one container in each pod of head and workers is replaced by `ray start`; its
arguments and everything else stay. The Service <job>-head-svc leads to the head from outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.core import names
from pumice.core.api.batch import Job, TaskSpec
from pumice.core.api.meta import Template
from pumice.core.jobs.plugins.addresses import address, task_named
from pumice.core.jobs.plugins.arguments import Flag
from pumice.core.jobs.plugins.plugin import JobPlugin
from pumice.core.jobs.templates import MAIN, containers, open_port
from pumice.core.jobs.types import Wanted

HEAD: Final = Flag("head", "head")
WORKER: Final = Flag("worker", "worker")
HEAD_CONTAINER: Final = Flag("headContainer", "head")
WORKER_CONTAINER: Final = Flag("workerContainer", "worker")
PORT: Final = Flag("port", 6379)
DASHBOARD_PORT: Final = Flag("dashboardPort", 8265)
CLIENT_PORT: Final = Flag("clientPort", 10001)


class Ray(JobPlugin):
    """The plugin."""

    name = "ray"
    flags = (HEAD, WORKER, HEAD_CONTAINER, WORKER_CONTAINER, PORT, DASHBOARD_PORT, CLIENT_PORT)

    def refusal(self, job: Job) -> str:
        """Return that the head is missing: workers would have nobody to go to."""
        name = self.args.get(HEAD)
        return "" if task_named(job, name) else f"the job has no task {name}"

    def on_task(self, job: Job, task: TaskSpec, spec: Template) -> None:
        """Have the head's or the worker's container start Ray."""
        head = task_named(job, self.args.get(HEAD))
        if head is None:
            return
        if task.name == head.name:
            self._start_head(_named(spec, self.args.get(HEAD_CONTAINER)))
        elif task.name == self.args.get(WORKER):
            where = f"{address(job, head, 0)}:{self.args.get(PORT)}"
            for container in _named(spec, self.args.get(WORKER_CONTAINER)):
                container["command"] = ["sh", "-c", f"ray start --block --address={where}"]

    def objects(self, job: Job) -> list[Wanted]:
        """Return the Service of the head."""
        meta = job.metadata
        selector = {
            names.JOB_NAME: meta.name,
            names.JOB_NAMESPACE: meta.namespace,
            names.TASK_SPEC: self.args.get(HEAD),
        }
        ports = [
            {"name": name, "protocol": "TCP", "port": port, "targetPort": name}
            for name, port in self._ports.items()
        ]
        content = {"spec": {"selector": selector, "ports": ports}}
        return [Wanted("Service", f"{meta.name}-head-svc", content)]

    @property
    def _ports(self) -> dict[str, int]:
        return {
            "gcs": self.args.get(PORT),
            "dashboard": self.args.get(DASHBOARD_PORT),
            "client-server": self.args.get(CLIENT_PORT),
        }

    def _start_head(self, found: Sequence[Template]) -> None:
        gcs, dashboard, client = self._ports.values()
        command = (
            "ray start --head --block --dashboard-host=0.0.0.0"
            f" --port={gcs} --dashboard-port={dashboard} --ray-client-server-port={client}"
        )
        for container in found:
            for name, port in self._ports.items():
                open_port(container, name, port)
            container["command"] = ["sh", "-c", command]


def _named(spec: Template, name: str) -> list[Template]:
    return [container for container in containers(spec, MAIN) if container.get("name") == name]
