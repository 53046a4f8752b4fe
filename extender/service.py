"""The parts of the extender put together: informers, model, engine, barrier and pages."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
from collections.abc import Callable
from dataclasses import dataclass

from extender.addresses import is_loopback, split
from extender.admissions import Admissions
from extender.adopting import check_adopted
from extender.answers import NO_ROOM
from extender.api.app import make_app
from extender.api.desk import Desk
from extender.api.readers import Readers
from extender.barrier import Barrier
from extender.configuration import ConfigurationFile
from extender.engine import Engine
from extender.evicting import Evictions
from extender.fencing import fence
from extender.hot import HotPath
from extender.loads.polling import Polling
from extender.logbook import Logbook
from extender.metrics import Metrics
from extender.model import Model, Urgency
from extender.nacks import Nacks
from extender.policies import PolicyServer
from extender.posting import Poster
from extender.queues import within_queue
from extender.releases import Releases
from extender.statuses import Statuses
from extender.strangers import Strangers
from extender.verbs import EngineVerbs
from extender.watching import Watching
from extender.writes import OutboxWrites
from pumice.core import names
from pumice.core.cluster import Cluster
from pumice.core.conf import Configuration
from pumice.core.ids import JobKey, PodUid
from pumice.core.model.inputs import Load
from pumice.core.model.tasks import Task
from pumice.core.room import overcommitted
from pumice.kube.client import Client
from pumice.kube.clock import Clock, SystemClock
from pumice.kube.config import connect
from pumice.kube.events import Recorder
from pumice.kube.memory import trim_regularly
from pumice.kube.outbox import Outbox
from pumice.kube.rights import Rights

log = logging.getLogger(__name__)

TICK_S = 0.25
COMPONENT = "pumice-extender"


@dataclass(slots=True)
class Service:
    """One extender process."""

    client: Client
    model: Model
    watching: Watching
    outbox: Outbox
    recorder: Recorder
    configuration: ConfigurationFile
    releases: Releases
    evictions: Evictions
    barrier: Barrier
    engine: Engine
    nacks: Nacks
    app: HotPath
    clock: Clock
    metrics: Metrics
    queue_allows: Callable[[Task], bool]
    synced: asyncio.Event
    polling: Polling
    policies: PolicyServer

    @classmethod
    async def connect(cls, args: argparse.Namespace) -> Service:
        """Connect with the credentials that the command line names."""
        client = await connect(args.kubeconfig, component=COMPONENT)
        return cls.assemble(client, args, SystemClock())

    @classmethod
    def assemble(cls, client: Client, args: argparse.Namespace, clock: Clock) -> Service:
        """Put the parts together on a client."""
        scheduler_names = frozenset(args.scheduler_name or [names.DEFAULT_SCHEDULER])
        model = Model(
            now=clock.monotonic,
            cluster=Cluster(scheduler_names, args.default_queue),
            scheduler_names=scheduler_names,
        )
        metrics = Metrics()
        engine: Engine
        barrier: Barrier
        outbox: Outbox

        def wake(urgency: Urgency = Urgency.NOW) -> None:
            engine.wake(urgency)

        watching = Watching.of(client, clock, model, wake, lambda node: barrier.node_gone(node))
        outbox = Outbox(
            client,
            observe={
                i.resource: i.observe for i in (watching.pods, watching.groups, watching.queues)
            },
            clock=clock,
        )
        writes = OutboxWrites(outbox)
        recorder = Recorder(client, COMPONENT, clock=clock)
        releases = Releases(model, writes, wake=wake)
        evictions = Evictions(model, client, writes, recorder, clock)

        def refused(uid: PodUid, text: str) -> None:
            entry = model.ledger.get(uid)
            if text == NO_ROOM:
                releases.replan(uid, entry.node if entry else "")
            else:
                releases.replace(uid)
            wake()

        def queue_allows(task: Task) -> bool:
            return within_queue(model.cluster, task)

        post = Poster(client, clock, last_order=model.last_order, version=model.version).post
        barrier = Barrier(
            model,
            post,
            refused,
            wake,
            queue_allows,
            metrics.bound,
            enabled=args.barrier == "on",
        )
        configuration = ConfigurationFile(args.scheduler_conf, clock)
        policies = PolicyServer()

        def take_loads(loads: dict[str, Load]) -> None:
            model.cluster.inputs.loads = loads
            wake(Urgency.LATER)

        polling = Polling(client, clock, take_loads)

        def follow(conf: Configuration) -> None:
            watching.follow(conf)
            polling.follow(conf)

        follow(configuration.current)
        configuration.listeners += [follow, lambda _: wake()]
        statuses = Statuses(model, outbox, writes, recorder, clock)
        engine = Engine(
            model,
            releases,
            statuses,
            clock,
            lambda: configuration.current,
            lambda: watching.age(clock.monotonic()),
            metrics,
            evictions.enter,
            Admissions(model, writes).enter,
            policies,
            Logbook(args.decision_log, max(args.decision_log_files, 1)),
            watching.unread_storage,
        )
        synced = asyncio.Event()

        def adopt(_: JobKey | None) -> None:
            # Before any call for the pod can come.
            if model.adopted and synced.is_set():
                check_adopted(model, releases, queue_allows)

        model.watchers.append(barrier.look)
        model.listeners += [adopt, barrier.evaluate, lambda _: releases.pump()]
        strangers = Strangers(model, post)
        verbs = EngineVerbs(
            model,
            barrier,
            lambda: configuration.current,
            clock,
            synced,
            strangers,
            policies,
        )
        nacks = Nacks(model, releases, barrier)
        pages = make_app(
            Desk(
                model,
                engine,
                barrier,
                nacks,
                metrics,
                clock,
                lambda: configuration.current,
                watching.missing,
            ),
            Readers(Rights(client, clock), on_loopback=is_loopback(split(args.listen)[0])),
        )
        return cls(
            client,
            model,
            watching,
            outbox,
            recorder,
            configuration,
            releases,
            evictions,
            barrier,
            engine,
            nacks,
            HotPath(verbs, pages, guarded=args.client_ca is not None),
            clock,
            metrics,
            queue_allows,
            synced,
            polling,
            policies,
        )

    def start(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """Start everything that runs."""
        return [
            *self.watching.run(group),
            group.create_task(self.outbox.run(), name="outbox"),
            group.create_task(self.recorder.run(), name="events"),
            group.create_task(self.evictions.run(), name="evictions"),
            group.create_task(self.configuration.watch(), name="configuration"),
            group.create_task(self.polling.run(), name="figures of nodes"),
            group.create_task(self.policies.run(), name="policy server"),
            group.create_task(trim_regularly(self.clock), name="memory"),
            group.create_task(self._decide(), name="engine"),
        ]

    async def _decide(self) -> None:
        """Wait for the caches, then run the engine and look after what is on its way."""
        await self.watching.synced()
        while self.watching.missing():
            # Adopting asks for HyperNodes, and for whatever else is read only if it is there.
            await self.clock.sleep(TICK_S)
        # What is known now mostly stays: the collector need not walk it again and again.
        gc.collect()
        gc.freeze()
        self.model.configure(self.configuration.current)
        await fence(self.model, self.outbox)
        check_adopted(self.model, self.releases, self.queue_allows)
        self.synced.set()
        log.info("synced: %d pods in the ledger", len(self.model.ledger))
        async with asyncio.TaskGroup() as group:
            group.create_task(self.engine.run(), name="sessions")
            group.create_task(self._tick(), name="tick")

    async def _tick(self) -> None:
        """Look at the pods that are on their way, until cancelled."""
        while True:
            await self.clock.sleep(TICK_S)
            try:
                self.nacks.check()
                self.releases.pump()
                self.metrics.ledger_entries.set(len(self.model.ledger))
                self.metrics.cached_pods.set(len(self.model.cluster.pods))
                self.metrics.task_classes.set(self.model.cluster.task_classes)
                self.metrics.in_flight.set(self.model.ledger.in_flight())
                self.metrics.parked.set(len(self.barrier.parked))
                self.metrics.bind_errors.set(self.barrier.errors)
                self.metrics.replaced.set(self.releases.replaced)
                self.metrics.overcommitted.set(len(overcommitted(self.model.cluster)))
            except Exception:
                log.exception("the look at pods on their way failed; it is repeated")

    async def stop(self) -> None:
        """Answer every parked call."""
        await self.barrier.close()
