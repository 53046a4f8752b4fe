"""
An informer: a collection of the API server, kept here, and its changes told as they come.

          ┌────────────── Gone, or nothing known yet ─────────────┐
          ▼                                                        │
    list in pages ──► differences told ──► watch from its version ─┤
          ▲                                     │ ▲                │
          └── failure: wait, longer each time ──┘ └── ended or lost: resume from the last version

The handler is called on the event loop, once for each difference between what it was told and
what is: a list after lost history gives Added, Updated and Deleted like the watch would have.
An object that does not decode is reported and otherwise left as it was last told. An object
deleted and made again under its name while we looked away is Deleted, then Added.

Writes may be fed back with `observe` as soon as they are answered. Versions then decide: what
the watch brings late is older than what is known and is dropped, and an answer that comes
after the watch has gone past it tells nothing new.

`last_contact` is when the server last vouched for what is kept: at the end of a list, at the
opening of a watch, at each event and bookmark. Where nothing changes there are no bookmarks
either, so a watch is made anew every 40 to 50 s: in a healthy informer the last contact is never
older than that, and a watch that is silent for 60 s is dead.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import msgspec

from pumice.kube import wire
from pumice.kube.client import EVERYTHING, Client, Selector
from pumice.kube.clock import Clock, SystemClock
from pumice.kube.errors import ApiError, Gone, KubeError
from pumice.kube.resources import Object, Resource
from pumice.kube.retry import Backoff

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)
V = TypeVar("V")

WATCH_S = (40, 50)
SILENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Added(Generic[T]):
    """An object is there that was not."""

    key: str
    obj: T


@dataclass(frozen=True, slots=True)
class Updated(Generic[T, V]):
    """An object changed; `old` is what was kept of it."""

    key: str
    obj: T
    old: V


@dataclass(frozen=True, slots=True)
class Deleted(Generic[V]):
    """An object is gone; `old` is what was kept of it."""

    key: str
    uid: str
    old: V


Event = Added[T] | Updated[T, V] | Deleted[V]


class _Known(msgspec.Struct, frozen=True, gc=False):
    """Which state of which object the handler was told last; there may be 100,000 of these."""

    uid: str
    version: int


class Informer(Generic[T, V]):
    """
    Keeps one collection up to date; `run` works until it is cancelled.

    `project` says what to keep of each object (all of it where None, V being T): with many
    objects, a flat row instead of the object's tree saves memory and garbage collection.
    `fatal` are answers that end `run` instead of being waited out.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        handler: Callable[[Event[T, V]], None],
        *,
        select: Selector = EVERYTHING,
        project: Callable[[T], V] | None = None,
        on_malformed: Callable[[wire.Malformed], None] | None = None,
        fatal: tuple[type[ApiError], ...] = (),
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._client = client
        self.resource = resource
        self._handler = handler
        self._select = select
        self._project = project or cast("Callable[[T], V]", _whole)
        self._on_malformed = on_malformed or _log_malformed
        self._fatal = fatal
        self._clock = clock or SystemClock()
        self._rng = rng or random.SystemRandom()
        self._backoff = Backoff(self._rng, base_s=0.1, cap_s=5.0)
        self._store: dict[str, V] = {}
        self._known: dict[str, _Known] = {}
        #: the version up to which the server has told everything
        self._version = 0
        self._contact = -math.inf
        #: set when the first list is told; never cleared
        self.synced = asyncio.Event()
        #: objects that did not decode, by key: what is wrong with them
        self.malformed: dict[str, str] = {}

    @property
    def store(self) -> Mapping[str, V]:
        """What is kept, by key."""
        return self._store

    def last_contact(self) -> float:
        """Return when the server last vouched for the store: monotonic seconds, or -inf."""
        return self._contact

    def observe(self, obj: T) -> None:
        """Take the answer of a write, ahead of the watch; the object must be one selected."""
        version = _number(obj.metadata.resource_version)
        if version > self._version:
            self._put(obj, version)

    def forget(self) -> None:
        """Let go of everything that is kept, and tell it as deleted."""
        for key in list(self._known):
            self._drop(key)

    async def run(self) -> None:
        """List and watch for ever; every failure that is not fatal is waited out."""
        listed = False
        while True:
            try:
                if not listed:
                    await self._list()
                    listed = True
                await self._watch()
            except Gone as e:
                log.info("%s: history lost, listing again: %s", self.resource, e)
                # A list that itself is overtaken by history must not spin.
                wait = not listed
                listed = False
                if wait:
                    await self._clock.sleep(self._backoff.next_s())
            except self._fatal:
                raise
            except KubeError as e:
                log.warning("%s: %s; trying again", self.resource, e)
                await self._clock.sleep(self._backoff.next_s())

    async def _list(self) -> None:
        """Read the collection and tell the differences; what is not in it any more is deleted."""
        seen: set[str] = set()
        rewound = False
        with wire.gc_paused():
            async for page in self._client.pages(self.resource, self._select):
                version = _number(page.resource_version)
                # A server restored from a backup counts from an earlier version again; then
                # nothing that we know compares with what it says.
                if version < self._version and not rewound:
                    rewound = True
                    self._known = {k: _Known(v.uid, -1) for k, v in self._known.items()}
                for obj in page.items:
                    seen.add(obj.metadata.key)
                    self._put(obj, _number(obj.metadata.resource_version))
                for fault in page.malformed:
                    seen.add(fault.key)
                    self._report(fault)
        for key, known in list(self._known.items()):
            if key not in seen and known.version <= version:
                self._drop(key)
        self.malformed = {k: v for k, v in self.malformed.items() if k in seen}
        self._version = version
        self._touch()
        self.synced.set()

    async def _watch(self) -> None:
        """Tell changes until the watch ends; an early end without a word counts as a failure."""
        opened = self._clock.monotonic()
        events = 0
        watch = self._client.watch(
            self.resource,
            self._select,
            resource_version=str(self._version),
            lasting_s=self._rng.randint(*WATCH_S),
            silence_s=SILENCE_S,
            on_open=self._touch,
        )
        async with aclosing(watch):
            async for change in watch:
                events += 1
                self._touch()
                self._backoff.reset()
                self._take(change)
        if not events and self._clock.monotonic() - opened < 1:
            await self._clock.sleep(self._backoff.next_s())

    def _take(self, change: wire.Watched[T]) -> None:
        """Tell what one line of the watch says."""
        match change:
            case wire.Bookmark(version):
                self._version = max(self._version, _number(version))
            case wire.Change(kind, obj):
                self._apply(kind, obj)
            case wire.MalformedChange(kind, fault):
                self._apply_malformed(kind, fault)

    def _apply(self, kind: str, obj: T) -> None:
        """Tell one change of the watch."""
        version = _number(obj.metadata.resource_version)
        key = obj.metadata.key
        self._version = max(self._version, version)
        self.malformed.pop(key, None)
        if kind != "DELETED":
            self._put(obj, version)
            return
        known = self._known.get(key)
        # The name may already stand for a newer object, from the answer to its creation.
        if known and known.uid == obj.metadata.uid:
            self._drop(key)

    def _apply_malformed(self, kind: str, fault: wire.Malformed) -> None:
        """Report an object that does not decode; its deletion needs no decoding."""
        if fault.resource_version.isdigit():
            self._version = max(self._version, int(fault.resource_version))
        if kind != "DELETED":
            self._report(fault)
            return
        self.malformed.pop(fault.key, None)
        known = self._known.get(fault.key)
        if known and known.uid == fault.uid:
            self._drop(fault.key)

    def _put(self, obj: T, version: int) -> None:
        """Keep a state and tell it, unless one as new is known."""
        meta = obj.metadata
        key = meta.key
        known = self._known.get(key)
        if known and version <= known.version:
            return
        if known and known.uid != meta.uid:
            self._drop(key)
            known = None
        self._known[key] = _Known(meta.uid, version)
        if known:
            old = self._store[key]
            self._store[key] = self._project(obj)
            self._tell(Updated(key, obj, old))
        else:
            self._store[key] = self._project(obj)
            self._tell(Added(key, obj))

    def _drop(self, key: str) -> None:
        """Forget an object and tell it."""
        known = self._known.pop(key)
        self._tell(Deleted(key, known.uid, self._store.pop(key)))

    def _tell(self, event: Event[T, V]) -> None:
        """Call the handler; one event that it cannot take does not stop the others."""
        try:
            self._handler(event)
        except Exception:
            log.exception("%s: the handler failed on %s", self.resource, event.key)

    def _report(self, fault: wire.Malformed) -> None:
        self.malformed[fault.key] = fault.error
        self._on_malformed(fault)

    def _touch(self) -> None:
        self._contact = self._clock.monotonic()


def _whole(obj: T) -> T:
    return obj


def _number(version: str) -> int:
    """Return a resourceVersion as a number: on one server, later states have greater ones."""
    return int(version)


def _log_malformed(fault: wire.Malformed) -> None:
    log.error("%s %s does not decode: %s", fault.resource, fault.key, fault.error)
