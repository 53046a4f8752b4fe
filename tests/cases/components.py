"""
The components as a case treats them: stopped and started by steps, else kept alive.

A component that ends by itself is started again, as its pod's kubelet would do, and that is
written down.
"""

from __future__ import annotations

from time import monotonic

from pumice.local.cluster import Cluster
from pumice.local.scheduler import PUMICE as KUBE_SCHEDULER
from tests.cases.errors import StepError
from tests.cases.record import Revival

PROCESSES = {
    "extender": "extender",
    "scheduler": KUBE_SCHEDULER,
    "controllers": "controllers",
    "webhooks": "webhooks",
}
REVIVAL_S = 1.0


class Components:
    """The components of a cluster, by the names that cases give them."""

    def __init__(self, cluster: Cluster, revivals: list[Revival]) -> None:
        self._cluster = cluster
        self._processes = cluster.plane.processes
        self._stopped: set[str] = set()
        self._revivals = revivals
        self._looked = 0.0

    def stop(self, name: str) -> None:
        """Stop a component until it is started."""
        self._stopped.add(name)
        if self._runs(name):
            self._processes.stop(PROCESSES[name])

    def start(self, name: str) -> None:
        """Start a component and wait until it is ready."""
        self._stopped.discard(name)
        if not self._runs(name):
            self._processes.restart(PROCESSES[name])
        self._wait_ready(name)

    def restart(self, name: str) -> None:
        """Stop a component and start it again."""
        self.stop(name)
        self.start(name)

    def revive(self) -> None:
        """Start what has ended by itself."""
        if monotonic() < self._looked + REVIVAL_S:
            return
        self._looked = monotonic()
        for name, process in PROCESSES.items():
            if name not in self._stopped and not self._runs(name):
                self._revivals.append(Revival(monotonic(), name))
                self._processes.restart(process)

    def _runs(self, name: str) -> bool:
        return self._processes.exit_code(PROCESSES[name]) is None

    def _wait_ready(self, name: str) -> None:
        if name == "extender":
            self._cluster.extender.wait_ready()
        elif self._cluster.scheduler is not None:
            self._cluster.scheduler.wait_ready()
        else:
            raise StepError(f"{name} was never started")
