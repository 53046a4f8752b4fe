"""
mpi: tell the master which hosts its workers are, and open the port of their sshd.

The keys are those of `ssh`, the names those of `svc`; a Job with `mpi` has both.
"""

from __future__ import annotations

from typing import Final

from pumice.core.api.batch import Job, TaskSpec
from pumice.core.api.meta import Template
from pumice.core.jobs.plugins.addresses import addresses, task_named
from pumice.core.jobs.plugins.arguments import Flag
from pumice.core.jobs.plugins.plugin import JobPlugin
from pumice.core.jobs.templates import containers, extend, open_port, variable

MASTER: Final = Flag("master", "master")
WORKER: Final = Flag("worker", "worker")
PORT: Final = Flag("port", 22)
PORT_NAME: Final = "mpijob-port"


class Mpi(JobPlugin):
    """The plugin."""

    name = "mpi"
    flags = (MASTER, WORKER, PORT)

    def on_task(self, job: Job, task: TaskSpec, spec: Template) -> None:
        """Open the port in main and init containers; those of the master get MPI_HOST, too."""
        told = []
        if task.name == self.args.get(MASTER):
            worker = task_named(job, self.args.get(WORKER))
            if worker is None:
                return
            told = [variable("MPI_HOST", ",".join(addresses(job, worker)))]
        for container in containers(spec):
            open_port(container, PORT_NAME, self.args.get(PORT))
            extend(container, "env", told)
