"""
`python -m controllers`: all controllers, those of Jobs, PodGroups, queues and the rest.

They share one client, one set of caches and one event recorder. Every part is a named task of
one group: a part that fails takes the process with it, to be started anew, and everything that
matters is in the API server.

Of several replicas the one that holds the Lease works; the others hold nothing and read nothing
until they get it. Who loses the Lease ends, and nothing it might still write gets out.

On SIGTERM no new work is begun, what is under way may end, and the Lease is given up. Whatever
does not end in time is cancelled: its writes may or may not have been applied, which the next
process sees.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Final, Protocol

import uvloop

from controllers import flags
from controllers.caches import Caches
from controllers.cron import CronJobController
from controllers.flags import COMPONENT, Settings
from controllers.flow import JobFlowController
from controllers.gc import GarbageCollector
from controllers.hypernode import HyperNodeController
from controllers.job import JobController
from controllers.podgroup import PodGroupController
from controllers.queue import QueueController
from controllers.template import JobTemplateController
from pumice.core.api.meta import ObjectMeta
from pumice.kube import logs
from pumice.kube.client import Client
from pumice.kube.clock import Clock, SystemClock
from pumice.kube.config import connect
from pumice.kube.events import Recorder
from pumice.kube.health import serving
from pumice.kube.lease import Election, LeadershipLostError
from pumice.kube.metrics import Metrics
from pumice.kube.wire import Malformed

log = logging.getLogger(__name__)

GRACE_S: Final = 5.0
"""How long what is under way may take at the end."""


class Controller(Protocol):
    """What all controllers are."""

    async def run(self) -> None:
        """Work until cancelled, or shut down and done."""
        ...

    def shutdown(self) -> None:
        """Begin nothing more."""
        ...


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    return flags.arguments(argv, __doc__)


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
    """The controllers that are wanted, on one client; `run` works until it is cancelled."""

    def __init__(
        self, client: Client, metrics: Metrics, settings: Settings, *, clock: Clock
    ) -> None:
        self.events = Recorder(client, COMPONENT, clock=clock)
        self.caches = Caches(
            client,
            settings.scheduler_names,
            configuration=settings.configuration,
            on_malformed=Faults(self.events).report,
            clock=clock,
        )
        common = (client, self.caches, self.events)
        workers, retries = settings.workers, settings.max_requeues
        makers: Mapping[str, Callable[[], Controller]] = {
            "queue-controller": lambda: QueueController(
                *common, metrics, workers=workers.queues, max_requeues=retries, clock=clock
            ),
            "pg-controller": lambda: PodGroupController(
                *common, workers=workers.pod_groups, inherits=settings.inherits, clock=clock
            ),
            "job-controller": lambda: JobController(
                *common, metrics, workers=workers.jobs, max_requeues=retries, clock=clock
            ),
            "gc-controller": lambda: GarbageCollector(
                client, self.caches, workers=workers.garbage, clock=clock
            ),
            "cronjob-controller": lambda: CronJobController(
                *common, workers=workers.cron_jobs, clock=clock
            ),
            "jobflow-controller": lambda: JobFlowController(*common, metrics, clock=clock),
            "jobtemplate-controller": lambda: JobTemplateController(
                client, self.caches, clock=clock
            ),
            "hyperNode-controller": lambda: HyperNodeController(*common, clock=clock),
        }
        #: those that run, by the names that users know them by
        self.parts = {name: make() for name, make in makers.items() if settings.runs(name)}

    async def run(self) -> None:
        """Run every part; one that fails ends them all. Return once `shutdown` is done."""
        async with asyncio.TaskGroup() as group:
            aside = [
                group.create_task(self.events.run(), name="events"),
                group.create_task(self.caches.run(), name="caches"),
            ]
            parts = [group.create_task(p.run(), name=name) for name, p in self.parts.items()]
            await self.caches.wait()
            # What is cached now lives long: no collection needs to look at it again.
            gc.collect()
            gc.freeze()
            log.info("caches are synced; at work: %s", ", ".join(self.parts))
            if parts:
                await asyncio.wait(parts)
            for task in aside:
                task.cancel()

    def shutdown(self) -> None:
        """Begin nothing more: `run` returns when what is under way is done."""
        for part in self.parts.values():
            part.shutdown()


class Replica:
    """One of several processes, of which one works at a time."""

    def __init__(
        self,
        client: Client,
        metrics: Metrics,
        settings: Settings,
        *,
        election: Election | None,
        clock: Clock,
    ) -> None:
        self._client = client
        self._metrics = metrics
        self._settings = settings
        self._election = election
        self._clock = clock
        self._at_work: Controllers | None = None

    @property
    def is_ready(self) -> bool:
        """Whether we work on all there is, or know for whom we wait."""
        if self._at_work:
            return self._at_work.caches.synced
        return bool(self._election and self._election.leader)

    def report(self) -> str:
        """Return who leads, and which informers are synced."""
        if self._at_work:
            lines = [
                f"[{'+' if cache.synced else '-'}] {cache.resource}"
                for cache in self._at_work.caches.all
            ]
            return "\n".join(["at work", *lines])
        leader = self._election.leader if self._election else ""
        return f"waiting, {leader} leads" if leader else "waiting for a look at the Lease"

    async def run(self, stop: asyncio.Event) -> None:
        """Wait for the lease and work until `stop` is set; raise LeadershipLostError."""
        waiting = asyncio.create_task(stop.wait(), name="stop")
        working = asyncio.create_task(self._lead(), name="lead")
        try:
            await asyncio.wait([waiting, working], return_when=asyncio.FIRST_COMPLETED)
            if self._at_work and not working.done():
                log.info("stopping")
                self._at_work.shutdown()
                await asyncio.wait([working], timeout=GRACE_S)
        finally:
            for task in (waiting, working):
                task.cancel()
            with suppress(asyncio.CancelledError):
                await working
            if self._election:
                await self._election.release()

    async def _lead(self) -> None:
        """Work for as long as we lead."""
        client, election = self._client, self._election
        if election:
            await election.acquire()
            client = client.fenced(lambda: election.leads)
        self._at_work = Controllers(client, self._metrics, self._settings, clock=self._clock)
        try:
            async with asyncio.TaskGroup() as group:
                keeping = election and group.create_task(election.keep(), name="lease")
                await self._at_work.run()
                if keeping:
                    keeping.cancel()
        except BaseExceptionGroup as failures:
            lost, others = failures.split(LeadershipLostError)
            if not lost or others:
                raise
            leader = election.leader if election else ""
            raise LeadershipLostError(f"{leader or 'nobody'} leads") from None


async def serve(args: argparse.Namespace) -> None:
    """Run until SIGTERM or SIGINT, then end in order."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    clock, metrics = SystemClock(), Metrics("volcano_")
    async with AsyncExitStack() as stack:
        client = await connect(args.kubeconfig, component=COMPONENT, server=args.master)
        await stack.enter_async_context(client)
        election = None
        if args.leader_elect:
            election = Election(client, flags.terms(args), flags.identity(), clock=clock)
        replica = Replica(client, metrics, flags.settings(args), election=election, clock=clock)
        addresses = [args.healthz, *([args.listen_address] if args.enable_metrics else [])]
        for address in addresses:
            told = serving(address, lambda: replica.is_ready, metrics, report=replica.report)
            await stack.enter_async_context(told)
        await replica.run(stop)


def main(argv: Sequence[str] | None = None) -> None:
    """Start the process."""
    args = arguments(argv)
    logs.configure(args.log_level)
    try:
        uvloop.run(serve(args))
    except LeadershipLostError as lost:
        log.error("%s: this process ends", lost)
        raise SystemExit(1) from None
