"""The parts put together: queues, certificate, server and registration, in that order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn

from pumice.core.admission.resource_groups import ResourceGroup
from pumice.kube.client import Client
from pumice.kube.clock import Clock
from pumice.kube.connections import KEEP_ALIVE_S, Connection
from pumice.kube.resources import NAMESPACES
from pumice.kube.serving import Server
from pumice.kube.tls import BadPairError, Tls
from webhooks import material
from webhooks.files import CertificateFiles, FileKeeper, GroupsFile
from webhooks.keeper import Keeper, Place
from webhooks.material import Material
from webhooks.metrics import Metrics
from webhooks.queues import QueueCache
from webhooks.register import Endpoint, Gate, Registrar
from webhooks.reviews import Options, Reviews
from webhooks.server import App
from webhooks.table import Webhook, webhooks

log = logging.getLogger(__name__)

SETTLE_S = 10.0
"""How long the API server may take to trust a new authority after it was told."""
GRACE_S = 5


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line says."""

    host: str
    port: int
    endpoint: Endpoint
    secret: str
    options: Options
    gate: Gate = "auto"
    #: paths that are served, where not all are
    paths: frozenset[str] | None = None
    #: a certificate that others make, in place of the Secret
    certificate: CertificateFiles | None = None
    #: the file of resource groups
    groups: Path | None = None
    #: how long what was asked already may take when the process ends
    grace_s: int = GRACE_S

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return the names that the certificate has to be for."""
        service, namespace = self.endpoint.service, self.endpoint.namespace
        names = (f"{service}.{namespace}.svc", f"{service}.{namespace}", service)
        own = urlsplit(self.endpoint.url).hostname if self.endpoint.url else None
        return (*names, own) if own else names


class Service:
    """One process of webhooks; `run` works until it is cancelled."""

    def __init__(self, client: Client, settings: Settings, metrics: Metrics, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._metrics = metrics
        self._settings = settings
        table = self._table(())
        self.queues = QueueCache(client, clock=clock)
        self.reviews = Reviews(self.queues, self._annotations, settings.options)
        self.tls = Tls()
        self.keeper = self._keeper()
        self.registrar = Registrar(
            client, table, settings.endpoint, metrics, clock, gate=settings.gate
        )
        self.server = Server(
            uvicorn.Config(
                App(table, self.reviews, metrics),
                host=settings.host,
                port=settings.port,
                http=Connection,
                ssl_context_factory=lambda *_: self.tls.context,
                lifespan="off",
                ws="none",
                access_log=False,
                log_config=None,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=settings.grace_s,
            )
        )

    @property
    def is_ready(self) -> bool:
        """Whether questions are answered, and the API server knows where."""
        return self.queues.synced and self.server.started and self.registrar.is_registered

    async def run(self) -> None:
        """Learn the queues, take the certificate, serve, and only then be registered."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.queues.run(), name="queues")
            group.create_task(self.keeper.run(), name="certificate")
            if self._settings.groups:
                file = GroupsFile(self._settings.groups, self._regroup, self._clock)
                group.create_task(file.run(), name="resource groups")
            await self.queues.wait()
            await self.keeper.ready.wait()
            group.create_task(self.server.serve(), name="server")
            group.create_task(self.registrar.run(), name="registration")
            group.create_task(self._register(), name="first registration")

    async def stop(self) -> None:
        """Answer what was asked already, and no more."""
        self.server.should_exit = True
        if self.server.started:
            await self.server.ended.wait()

    def _table(self, groups: Sequence[ResourceGroup]) -> Sequence[Webhook]:
        """Return the webhooks that are enabled."""
        options, paths = self._settings.options, self._settings.paths
        found = webhooks(options.scheduler_names, groups, queue_gate=options.queue_gate)
        return [webhook for webhook in found if paths is None or webhook.path in paths]

    def _keeper(self) -> Keeper | FileKeeper:
        """Return what the certificate comes from."""
        settings = self._settings
        if settings.certificate:
            return FileKeeper(settings.certificate, self._adopt, self._clock)
        place = Place(settings.endpoint.namespace, settings.secret)
        return Keeper(self._client, place, settings.hosts, self._adopt, self._clock)

    def _regroup(self, groups: Sequence[ResourceGroup]) -> None:
        """Put pods into these groups from now on."""
        log.info("%d resource groups", len(groups))
        self.reviews.groups = groups
        self.registrar.bring(self._table(groups))

    async def _register(self) -> None:
        await self.server.listening.wait()
        if self.keeper.material:
            await self.registrar.put(self.keeper.material.bundle)

    async def _adopt(self, new: Material) -> None:
        """Put a certificate in force; where its authority is new, the API server learns first."""
        old = self.keeper.material
        if old is None or old.bundle == new.bundle:
            self._load(new)
            return
        await self.registrar.put(new.bundle.rstrip() + b"\n" + old.bundle)
        await self._clock.sleep(SETTLE_S)
        self._load(new)
        # Other replicas are about as far.
        await self._clock.sleep(SETTLE_S)
        await self.registrar.put(new.bundle, alone=True)

    def _load(self, new: Material) -> None:
        try:
            self.tls.load(new.pair)
        except BadPairError:
            self._metrics.certificates_refused.inc()
            raise
        self._metrics.certificate_ends.set(material.expiry(new).timestamp())

    async def _annotations(self, namespace: str) -> Mapping[str, str]:
        found = await self._client.get(NAMESPACES, "", namespace)
        return found.metadata.annotations or {}
