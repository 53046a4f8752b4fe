"""
A whole cluster on this machine: control plane, fake nodes, and Pumice in it.

    with Cluster(nodes=20) as cluster:
        print(cluster.plane.kubeconfig())

It comes in two layouts: with a kube-scheduler of Pumice's own, or with one that it shares with all
other pods. The parts are public: whoever needs another arrangement (an extender behind a proxy, no
controllers) uses them one by one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pumice.local.audit import AuditLevel
from pumice.local.controlplane import ControlPlane
from pumice.local.install import install
from pumice.local.nodes import add_nodes
from pumice.local.scheduler import (
    Scheduler,
    start_pumice_scheduler,
    start_shared_scheduler,
    start_stock_scheduler,
)
from pumice.local.services import Controllers, Extender, Webhooks
from pumice.local.watching import Watched

QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
QUEUES_TIMEOUT_S = 30.0

Layout = Literal["own", "shared"]
"""Whose kube-scheduler places Pumice's pods: one of its own, or the cluster's one."""


class Cluster:
    """A control plane with Pumice in it; a context manager."""

    def __init__(
        self,
        directory: Path | None = None,
        *,
        nodes: int = 20,
        audit_level: AuditLevel | None = None,
        configuration: Path | None = None,
        stock_scheduler: bool = False,
        webhooks: bool = False,
        layout: Layout = "own",
    ) -> None:
        """
        Prepare it: `nodes` fake nodes of 32 CPU and 128 GiB in two zones.

        With `stock_scheduler` pods of other scheduler names than Pumice's are placed too; with
        `webhooks` Jobs, queues and PodGroups meet more than the API server's own schema.
        """
        self.plane = ControlPlane(directory, audit_level=audit_level)
        self.layout = layout
        self.extender = Extender(self.plane, configuration, tls=layout == "shared")
        self.controllers = Controllers(self.plane)
        self.webhooks = Webhooks(self.plane) if webhooks else None
        self.scheduler: Scheduler | None = None
        self.stock_scheduler: Scheduler | None = None
        self._nodes = nodes
        self._wants_stock_scheduler = stock_scheduler

    def start(self) -> Self:
        """Start everything and wait until it is ready."""
        self.plane.start()
        try:
            install(self.plane.api, shared=self.layout == "shared")
            if self._nodes:
                add_nodes(self.plane.api, self._nodes, zones=2)
            self.controllers.start(ready=False)
            self.extender.start(ready=False)
            if self.webhooks:
                self.webhooks.start(ready=False)
            self.scheduler = self._start_scheduler()
            self.controllers.wait_ready()
            self._wait_for_queues()
            self.extender.wait_ready()
            if self.webhooks:
                self.webhooks.wait_ready()
            if self._wants_stock_scheduler and self.layout == "own":
                self.start_stock_scheduler()
        except BaseException:
            self.stop(keep=True)
            raise
        return self

    def _wait_for_queues(self) -> None:
        """Wait until the queues that always exist are open: Jobs can be submitted then."""
        queues = Watched(self.plane.api, QUEUES).start()

        def open_for_jobs(found: Watched) -> bool:
            states = {name: q.get("status", {}).get("state") for name, q in found.items()}
            return states.get("root") == states.get("default") == "Open"

        try:
            queues.wait(open_for_jobs, QUEUES_TIMEOUT_S, "the queues are open")
        finally:
            queues.stop()

    def _start_scheduler(self) -> Scheduler:
        if self.layout == "shared":
            return start_shared_scheduler(self.plane, self.extender)
        return start_pumice_scheduler(self.plane, self.extender.url, user=self.scheduler_user)

    @property
    def scheduler_user(self) -> str:
        """Who the kube-scheduler is that places Pumice's pods."""
        return "kube-scheduler" if self.layout == "shared" else "pumice-scheduler"

    def start_stock_scheduler(self) -> Scheduler:
        """Start a plain kube-scheduler for the pods that are not Pumice's."""
        self.stock_scheduler = start_stock_scheduler(self.plane)
        return self.stock_scheduler

    def stop(self, *, keep: bool = False) -> None:
        """Kill everything; the directory with the logs goes too unless it is to be kept."""
        self.plane.stop(keep=keep)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.plane.__exit__(kind, *rest)
