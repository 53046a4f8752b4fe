"""
The HyperNode controller: discovers the network, and keeps the status of HyperNodes.

    ConfigMap ──► sources ──┐
    node labels changed ────┼──► one worker a source ──► found ──► reconcile ──► effects
    interval over (ufm) ────┘
    HyperNode changed ──► its status
    nodes or HyperNodes came or went ──► in a second, every status

What is found and what to do is decided in `pumice.core.hypernodes`. A source that cannot be read
leaves its HyperNodes as they are and tells so by an event on the ConfigMap. One that is turned
off leaves them, too: whoever wants them gone deletes them by their label.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, assert_never

import msgspec

from controllers import ufm as fabric
from controllers.caches import Caches
from pumice.core.api.topology import HyperNode, HyperNodeSpec
from pumice.core.hypernodes import configuration, labels, reconcile, status, ufm
from pumice.core.hypernodes import types as t
from pumice.core.hypernodes.configuration import LabelSource, Source, UfmSource
from pumice.kube import resources
from pumice.kube.client import Client, Preconditions
from pumice.kube.clock import Clock, SystemClock, rfc3339
from pumice.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from pumice.kube.events import Recorder
from pumice.kube.informer import Added, Deleted, Event, Updated
from pumice.kube.patches import Json, MergePatch
from pumice.kube.resources import ConfigMap, Plain
from pumice.kube.workqueue import WorkQueue

log = logging.getLogger(__name__)

SOON_S: Final = 0.05
"""How long a change of nodes or HyperNodes waits for more of them before it is looked at."""
STATUS_S: Final = 1.0
"""The same for its consequences on the status of all HyperNodes."""
AGAIN_S: Final = 30.0
"""The longest wait after a source that could not be read, or a HyperNode that was refused."""

ALL: Final = ""
"""The key that stands for every HyperNode."""

AskUfm = Callable[[UfmSource, str, str], Awaitable[bytes]]


class HyperNodeController:
    """Watches and works until `run` is cancelled; make it before the caches run."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        events: Recorder,
        *,
        clock: Clock | None = None,
        ask_ufm: AskUfm = fabric.ports,
    ) -> None:
        self._client = client
        self._caches = caches
        self._events = events
        self._clock = clock or SystemClock()
        self._ask_ufm = ask_ufm
        self._sources: dict[str, Source] = {}
        #: the last answer of a source that is asked, and when it is to be asked again
        self._answers: dict[str, tuple[Sequence[t.Found], float]] = {}
        #: what the ConfigMap was told of each source and of itself
        self._told: dict[str, str] = {}
        self.sources: WorkQueue[str] = WorkQueue(
            "hypernode sources", self._discover, workers=2, clock=clock
        )
        self.queue: WorkQueue[str] = WorkQueue("hypernodes", self._work, workers=1, clock=clock)
        caches.configuration.subscribe(self._on_configuration)
        caches.nodes.subscribe(self._on_node)
        caches.hyper_nodes.subscribe(self._on_hyper_node)

    async def run(self) -> None:
        """Discover what is configured, and follow what is there."""
        await self._caches.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.sources.run(), name="hypernode sources")
            group.create_task(self.queue.run(), name="hypernodes")

    def shutdown(self) -> None:
        """Begin nothing more; `run` returns when what is under way is done."""
        self.queue.shutdown()
        self.sources.shutdown()

    # Changes become keys.

    def _on_configuration(self, event: Event[ConfigMap, ConfigMap]) -> None:
        """Begin anew with what is configured now."""
        if isinstance(event, Updated) and event.obj.data == event.old.data:
            return
        found = None if isinstance(event, Deleted) else event.obj
        text = (found.data or {}).get(configuration.KEY, "") if found else ""
        namespace = found.metadata.namespace if found else ""
        sources, wrong = configuration.read(text, namespace)
        for fault in wrong:
            log.warning("configuration of discovery: %s", fault)
        self._tell("", "; ".join(wrong), "InvalidConfiguration")
        self._sources = {source.kind: source for source in sources}
        self._answers.clear()
        for kind in self._sources:
            self.sources.add(kind)

    def _on_node(self, event: Event[Plain, dict[str, str]]) -> None:
        """Look again at what depends on which nodes there are, and on their labels."""
        old = {} if isinstance(event, Added) else event.old
        new = {} if isinstance(event, Deleted) else event.obj.metadata.labels or {}
        if isinstance(event, Updated) and old == new:
            return
        self.queue.add_after(ALL, STATUS_S)
        source = self._sources.get("label")
        if isinstance(source, LabelSource):
            before, after = (labels.relevant(source.topologies, x) for x in (old, new))
            if before != after:
                self.sources.add_after("label", SOON_S)

    def _on_hyper_node(self, event: Event[HyperNode, HyperNode]) -> None:
        """Look at its status, at those that name it, and at the source that keeps it."""
        if not isinstance(event, Deleted):
            self.queue.add(event.key)
        if isinstance(event, Updated) and _shape(event.obj) == _shape(event.old):
            return
        self.queue.add_after(ALL, STATUS_S)
        seen = event.obj if isinstance(event, Added) else event.old
        for kind, source in self._sources.items():
            # A name that a deletion sets free may be one that a source waits for.
            if isinstance(event, Deleted) or reconcile.is_of(source.kind, seen):
                self.sources.add_after(kind, SOON_S)

    # Sources.

    async def _discover(self, kind: str) -> None:
        """Make the HyperNodes of a source what it finds now."""
        source = self._sources.get(kind)
        if source is None:
            return
        try:
            found = await self._found(source)
        except ufm.UfmError as error:
            log.warning("source %s: %s", kind, error)
            self._tell(kind, f"source {kind}: {error}", "DiscoveryFailed")
            most_s = source.interval_s if isinstance(source, UfmSource) else AGAIN_S
            self.sources.add_after(kind, min(AGAIN_S, most_s))
            return
        if self._sources.get(kind) is not source:
            return  # Configured anew meanwhile, and due again for it.
        existing = self._caches.hyper_nodes.store.values()
        complaints = await self._carry_out(reconcile.reconcile(source.kind, found, existing))
        self._tell(kind, "; ".join(complaints), "DiscoveryFailed")
        if complaints:
            self.sources.add_after(kind, AGAIN_S)

    async def _found(self, source: Source) -> Sequence[t.Found]:
        """Return what a source finds; raise UfmError where it cannot be asked."""
        if isinstance(source, LabelSource):
            return labels.discover(source.topologies, self._caches.nodes.store)
        now = self._clock.monotonic()
        answer, due = self._answers.get(source.kind, ([], now))
        if now >= due:
            username, password = await self._credentials(source)
            answer = ufm.discover(await self._ask_ufm(source, username, password))
            due = self._clock.monotonic() + source.interval_s
            if self._sources.get(source.kind) is source:
                self._answers[source.kind] = (answer, due)
        self.sources.add_after(source.kind, due - self._clock.monotonic())
        return answer

    async def _credentials(self, source: UfmSource) -> tuple[str, str]:
        """Return user name and password, read from the Secret by its name."""
        namespace, name = source.secret
        try:
            secret = await self._client.get(resources.SECRETS, namespace, name)
        except ApiError as error:
            raise ufm.UfmError(f"Secret {namespace}/{name}: {error.message}") from error
        data = secret.data or {}
        try:
            username, password = (
                base64.b64decode(data.get(key, ""), validate=True).decode()
                for key in ("username", "password")
            )
        except (binascii.Error, UnicodeDecodeError) as error:
            raise ufm.UfmError(f"Secret {namespace}/{name}: {error}") from error
        if not username or not password:
            raise ufm.UfmError("UFM authentication credentials are not configured")
        return username, password

    async def _carry_out(self, effects: Sequence[t.Effect]) -> list[str]:
        """Do all effects in order; return what could not be done though others can."""
        complaints: list[str] = []
        for effect in effects:
            try:
                await self._do(effect, complaints)
            except (ApiError, AlreadyExists) as error:
                if isinstance(error, Conflict) or error.status >= 429:
                    raise  # The caches will know better, or the server does later.
                complaints.append(f"{_name(effect)}: {error.message}")
        return complaints

    async def _do(self, effect: t.Effect, complaints: list[str]) -> None:
        match effect:
            case t.CreateHyperNode(hypernode=new):
                created = await self._client.create(resources.HYPERNODES, "", new)
                self._caches.hyper_nodes.observe(created)
            case t.PatchHyperNode():
                await self._patch(
                    effect.name,
                    {"metadata": {"labels": dict(effect.labels)}, "spec": _whole(effect.spec)},
                    Preconditions(effect.uid, effect.resource_version),
                )
            case t.DeleteHyperNode(name=name, uid=uid):
                with suppress(NotFound, Conflict):
                    given = Preconditions(uid=uid)
                    await self._client.delete(resources.HYPERNODES, "", name, given=given)
            case t.Complain(message=message):
                complaints.append(message)
            case other:
                assert_never(other)

    # Statuses.

    async def _work(self, name: str) -> None:
        """Write the status of a HyperNode where it is not the truth."""
        if name == ALL:
            for each in self._caches.hyper_nodes.store:
                self.queue.add(each)
            return
        hypernode = self._caches.hyper_nodes.get(name)
        if hypernode is None:
            return
        effect = status.reconcile(
            hypernode,
            self._caches.nodes.store,
            self._caches.hyper_nodes.store,
            rfc3339(self._clock.now()),
        )
        if effect is None:
            return
        body = {
            "status": {
                "nodeCount": effect.status.node_count,
                "conditions": msgspec.to_builtins(effect.status.conditions),
            }
        }
        given = Preconditions(effect.uid, effect.resource_version)
        await self._patch(name, body, given, subresource="status")

    async def _patch(
        self, name: str, body: Json, given: Preconditions, *, subresource: str = ""
    ) -> None:
        """Change a HyperNode; one that is gone needs nothing."""
        with suppress(NotFound):
            changed = await self._client.patch(
                resources.HYPERNODES,
                "",
                name,
                MergePatch(body),
                subresource=subresource,
                given=given,
            )
            self._caches.hyper_nodes.observe(changed)

    def _tell(self, about: str, text: str, reason: str) -> None:
        """Tell the owner of the configuration, each text once."""
        if self._told.get(about, "") == text:
            return
        self._told[about] = text
        if not text:
            return
        for found in self._caches.configuration.store.values():
            self._events.record(resources.CONFIG_MAPS, found.metadata, "Warning", reason, text)


def _shape(hypernode: HyperNode) -> tuple[object, ...]:
    """Return what matters of a HyperNode to others."""
    meta = hypernode.metadata
    return hypernode.spec, meta.labels, meta.deletion_timestamp


def _whole(spec: HyperNodeSpec) -> Json:
    """Return the specification with nulls for what it does not say, to replace all of another."""
    return {"tierName": None, "members": None, **msgspec.to_builtins(spec)}


def _name(effect: t.Effect) -> str:
    match effect:
        case t.CreateHyperNode(hypernode=new):
            return new.metadata.name
        case t.PatchHyperNode(name=name) | t.DeleteHyperNode(name=name):
            return name
        case _:
            return ""
