"""
Asking for the figures, every `interval`, while a plugin reads them.

What cannot be had changes nothing: the last figures stay, and the plugins see how old they are.
The log is told once of what is wrong, and again when figures come.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from extender.loads.adaptor import Adaptor
from extender.loads.elasticsearch import INDEX, NAME_FIELD, Elasticsearch
from extender.loads.prometheus import Prometheus
from extender.loads.source import JsonServer, Source, SourceError
from pumice.core.conf import Configuration
from pumice.core.jobs.durations import seconds
from pumice.core.model.inputs import Load
from pumice.kube.client import Client
from pumice.kube.clock import Clock

log = logging.getLogger(__name__)

READERS: Final = frozenset({"usage", "rescheduling"})
INTERVAL_S = 30.0
TYPES: Final = "prometheus, prometheus_adaptor, elasticsearch"

Settings = Mapping[str, str]


@dataclass(slots=True)
class Polling:
    """Reads the figures and hands them on."""

    client: Client
    clock: Clock
    #: takes the figures by node
    take: Callable[[dict[str, Load]], None]
    #: what is wrong, "" while nothing is
    fault: str = ""
    _settings: Settings | None = None
    _turned: asyncio.Event = field(default_factory=asyncio.Event)

    def follow(self, conf: Configuration) -> None:
        """Ask where a configuration says, if a plugin of it reads the figures."""
        wanted = any(option.name in READERS for tier in conf.tiers for option in tier)
        settings = {key: _text(value) for key, value in conf.metrics.items()} if wanted else None
        if settings != self._settings:
            self._settings = settings
            self._turned.set()

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            self._turned.clear()
            settings = self._settings
            if settings is None:
                self.take({})
                await self._turned.wait()
                continue
            await self._ask(settings)
            try:
                async with asyncio.timeout(_interval(settings)):
                    await self._turned.wait()
            except TimeoutError:
                pass

    async def _ask(self, settings: Settings) -> None:
        try:
            loads = await source(settings, self.client, self.clock).read()
        except SourceError as error:
            self._tell(str(error))
        else:
            self._tell("")
            self.take(loads)

    def _tell(self, fault: str) -> None:
        if fault != self.fault:
            if fault:
                log.warning("no figures of how busy nodes are: %s", fault)
            else:
                log.info("there are figures of how busy nodes are")
            self.fault = fault


def source(settings: Settings, client: Client, clock: Clock) -> Source:
    """Return the source that the settings name; raise SourceError where they name none."""
    kind = settings.get("type", "")
    if kind == "prometheus_adaptor":
        return Adaptor(client)
    if kind not in ("prometheus", "elasticsearch"):
        raise SourceError(f"metrics.type: {kind!r} is none of {TYPES}")
    if not settings.get("address"):
        raise SourceError(f"metrics.address: a source of type {kind} needs one")
    server = JsonServer(
        settings["address"],
        verify=settings.get("tls.insecureSkipVerify") != "true",
        user=settings.get("elasticsearch.username", ""),
        password=settings.get("elasticsearch.password", ""),
    )
    if kind == "prometheus":
        return Prometheus(server)
    return Elasticsearch(
        server,
        clock,
        settings.get("elasticsearch.index") or INDEX,
        settings.get("elasticsearch.hostnameFieldName") or NAME_FIELD,
    )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _interval(settings: Settings) -> float:
    return max(seconds(settings.get("interval", "")) or INTERVAL_S, 1.0)
