"""
pytorch: tell every pod the address of the master and its own rank.

`torch.distributed` reads MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK. The master has rank 0,
worker n has rank n + 1; pods of other tasks have none. Workers may wait in an init container
until the master listens.
"""

from __future__ import annotations

from typing import Final

from pumice.core.api.batch import Job, TaskSpec
from pumice.core.api.meta import Template
from pumice.core.jobs.plugins.addresses import address, task_named
from pumice.core.jobs.plugins.arguments import Flag
from pumice.core.jobs.plugins.plugin import JobPlugin
from pumice.core.jobs.templates import MAIN, containers, extend, open_port, variable

MASTER: Final = Flag("master", "master")
WORKER: Final = Flag("worker", "worker")
PORT: Final = Flag("port", 23456)
WAIT: Final = Flag("wait-master-enabled", False)
WAIT_S: Final = Flag("wait-master-timeout", 300)
WAIT_IMAGE: Final = Flag("wait-master-image", "busybox:1.36.1")
PORT_NAME: Final = "pytorchjob-port"
WAIT_NAME: Final = "wait-for-master"

_SCRIPT: Final = """\
echo "waiting for the master at {address}:{port}"
left={seconds}
until nc -z {address} {port} 2>/dev/null || (: </dev/tcp/{address}/{port}) 2>/dev/null; do
  left=$((left - 2))
  if [ "$left" -le 0 ]; then
    echo "timeout: the master at {address}:{port} did not listen within {seconds} s"
    exit 1
  fi
  sleep 2
done
echo "the master is ready"
"""


class Pytorch(JobPlugin):
    """The plugin; without a task for the master it changes nothing."""

    name = "pytorch"
    flags = (MASTER, WORKER, PORT, WAIT, WAIT_S, WAIT_IMAGE)

    #: rank of the task's first pod, and by how much the rank grows with the index
    _ranks: tuple[int, int] | None = None

    def faults(self, job: Job) -> list[str]:
        """Add that the master is missing."""
        name = self.args.get(MASTER)
        missing = [] if task_named(job, name) else [f"the job has no task {name}"]
        return super().faults(job) + missing

    def on_task(self, job: Job, task: TaskSpec, spec: Template) -> None:
        """Open the port and tell where the master is; have workers wait for it if asked to."""
        master = task_named(job, self.args.get(MASTER))
        worker = task_named(job, self.args.get(WORKER))
        if master is None:
            return
        port = self.args.get(PORT)
        where = address(job, master, 0)
        size = master.replicas + (worker.replicas if worker else 0)
        for container in containers(spec, MAIN):
            open_port(container, PORT_NAME, port)
            told = variable("MASTER_ADDR", where), variable("MASTER_PORT", str(port))
            extend(container, "env", [*told, variable("WORLD_SIZE", str(size))])
        self._ranks = {self.args.get(WORKER): (1, 1), self.args.get(MASTER): (0, 0)}.get(
            task.name or ""
        )
        if self.args.get(WAIT) and task.name == self.args.get(WORKER):
            self._wait(spec, where)

    def on_pod(self, index: int, body: Template) -> None:
        """Tell the rank."""
        if self._ranks is not None:
            first, step = self._ranks
            for container in containers(body["spec"], MAIN):
                extend(container, "env", [variable("RANK", str(first + step * index))])

    def _wait(self, spec: Template, address: str) -> None:
        there = [box.get("name") for box in containers(spec, ("initContainers",))]
        if WAIT_NAME in there:
            return
        script = _SCRIPT.format(
            address=address, port=self.args.get(PORT), seconds=self.args.get(WAIT_S)
        )
        waits = {
            "name": WAIT_NAME,
            "image": self.args.get(WAIT_IMAGE),
            "command": ["sh", "-c", script],
        }
        extend(spec, "initContainers", [waits])
