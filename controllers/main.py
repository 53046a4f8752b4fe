"""
`python -m controllers`: the controllers of Jobs, CronJobs, PodGroups, queues and HyperNodes.

They share one client, one set of caches and one event recorder. Every part is a named task of
one group: a part that fails takes the process with it, to be started anew, and everything that
matters is in the API server. On SIGTERM all parts are cancelled; writes in flight may or may not
have been applied, which the next process sees.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import signal
from collections.abc import Sequence

import uvloop

from controllers.caches import Caches
from controllers.cron import CronJobController
from controllers.gc import GarbageCollector
from controllers.hypernode import HyperNodeController
from controllers.job import JobController
from controllers.podgroup import PodGroupController
from controllers.queue import QueueController
from pumice.core import names
from pumice.core.api.meta import ObjectMeta
from pumice.kube import logs
from pumice.kube.client import Client
from pumice.kube.clock import Clock, SystemClock
from pumice.kube.config import connect
from pumice.kube.events import Recorder
from pumice.kube.health import serving
from pumice.kube.metrics import Metrics
from pumice.kube.wire import Malformed

log = logging.getLogger(__name__)

COMPONENT = "pumice-controllers"


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="controllers", description=__doc__)
    parser.add_argument("--kubeconfig", help="credentials; in a cluster the ServiceAccount's")
    parser.add_argument(
        "--healthz", default="127.0.0.1:11251", help="address of /healthz, /readyz and /metrics"
    )
    parser.add_argument("--workers", type=int, default=3, help="Jobs worked on at a time")
    parser.add_argument(
        "--scheduler-name",
        action="append",
        help=f"scheduler name to serve, repeatable (default: {names.DEFAULT_SCHEDULER})",
    )
    parser.add_argument("--log-level", default="info")
    return parser.parse_args(argv)


class Faults:
    """Tells the owner of an object that does not decode, once for each thing that is wrong."""

    def __init__(self, events: Recorder) -> None:
        self._events = events
        self._told: dict[tuple[str, str], str] = {}

    def report(self, fault: Malformed) -> None:
        """Record a warning on the object."""
        key = (str(fault.resource), fault.key)
        if self._told.get(key) == fault.error:
            return
        self._told[key] = fault.error
        log.error("%s %s does not decode: %s", fault.resource, fault.key, fault.error)
        namespace, _, name = fault.key.rpartition("/")
        meta = ObjectMeta(name=name, namespace=namespace, uid=fault.uid)
        self._events.record(fault.resource, meta, "Warning", "Malformed", fault.error)


class Controllers:
    """All controllers on one client; `run` works until it is cancelled."""

    def __init__(
        self,
        client: Client,
        metrics: Metrics,
        scheduler_names: Sequence[str],
        *,
        workers: int,
        clock: Clock,
    ) -> None:
        self.events = Recorder(client, COMPONENT, clock=clock)
        self.caches = Caches(
            client, scheduler_names, on_malformed=Faults(self.events).report, clock=clock
        )
        self.queues = QueueController(client, self.caches, self.events, metrics, clock=clock)
        self.groups = PodGroupController(client, self.caches, self.events, clock=clock)
        self.jobs = JobController(
            client, self.caches, self.events, metrics, workers=workers, clock=clock
        )
        self.crons = CronJobController(client, self.caches, self.events, clock=clock)
        self.garbage = GarbageCollector(client, self.caches, clock=clock)
        self.hyper_nodes = HyperNodeController(client, self.caches, self.events, clock=clock)

    async def run(self) -> None:
        """Run every part; one that fails ends them all."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.events.run(), name="events")
            group.create_task(self.caches.run(), name="caches")
            group.create_task(self.queues.run(), name="queue controller")
            group.create_task(self.groups.run(), name="podgroup controller")
            group.create_task(self.jobs.run(), name="job controller")
            group.create_task(self.crons.run(), name="cronjob controller")
            group.create_task(self.garbage.run(), name="garbage collector")
            group.create_task(self.hyper_nodes.run(), name="hypernode controller")
            await self.caches.wait()
            # What is cached now lives long: no collection needs to look at it again.
            gc.collect()
            gc.freeze()
            log.info("caches are synced")


async def serve(args: argparse.Namespace) -> None:
    """Run until SIGTERM or SIGINT, then end in order."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    metrics = Metrics("volcano_")
    async with await connect(args.kubeconfig, component=COMPONENT) as client:
        controllers = Controllers(
            client,
            metrics,
            args.scheduler_name or [names.DEFAULT_SCHEDULER],
            workers=args.workers,
            clock=SystemClock(),
        )
        async with (
            serving(args.healthz, lambda: controllers.caches.synced, metrics),
            asyncio.TaskGroup() as group,
        ):
            running = group.create_task(controllers.run(), name="controllers")
            await stop.wait()
            log.info("stopping")
            running.cancel()


def main(argv: Sequence[str] | None = None) -> None:
    """Start the process."""
    args = arguments(argv)
    logs.configure(args.log_level)
    uvloop.run(serve(args))
