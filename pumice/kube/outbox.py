"""
The outbox: API writes that are decided now and sent as soon as may be.

A write is a value. It names its object and what it presumes of it (uid, resourceVersion), so
that sending it late or twice does no harm: the server answers 409 where the object is another
one by now. Writes of one object leave in the order in which they were put in, one at a time;
merge patches of the same object that still wait become one.

    put ──► waiting ──► in flight ──┬── answered ──► done(outcome)
               ▲   merged with      └── 429, 5xx, no answer: waits, longer each time
               └──────────────────────────┘

What only repeating can mend is repeated here, up to `PATIENCE_S`; every other refusal (404, 409,
422, 403, ...) goes to whoever put the write in, who decides anew. So does the 409 of a write with
a resourceVersion, or of a creation, that was applied although no answer came: the watch will show
it. `unless` is asked right before each sending: a write that would change nothing is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from pumice.kube import wire
from pumice.kube.client import Client, Preconditions, Propagation
from pumice.kube.clock import Clock, SystemClock
from pumice.kube.errors import Disconnected, KubeError, ServerError, TooManyRequests
from pumice.kube.patches import JsonPatch, MergePatch, StrategicPatch, is_done, mergeable, merged
from pumice.kube.resources import AnyResource, Object
from pumice.kube.retry import Backoff

log = logging.getLogger(__name__)

IN_FLIGHT = 64
PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Create an object; a name of its own makes a repetition harmless."""

    resource: AnyResource
    namespace: str
    name: str
    body: Any = field(compare=False)

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a create without a name cannot be repeated")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """What all writes to an existing object carry: which object, and what is presumed of it."""

    resource: AnyResource
    namespace: str
    name: str
    uid: str = ""
    resource_version: str = ""

    def __post_init__(self) -> None:
        if not self.uid and not self.resource_version:
            raise ValueError(f"a write to {self.resource} {self.name} that presumes nothing")
        if self.resource.custom and self.part and not self.resource_version:
            raise ValueError(f"{self.part} of {self.resource} {self.name}: the uid is not checked")

    @property
    def part(self) -> str:
        """The subresource written to, "" for the object itself."""
        return ""

    @property
    def given(self) -> Preconditions:
        """What the server shall check."""
        return Preconditions(self.uid, self.resource_version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge(_Change):
    """Change fields by a merge patch."""

    body: Mapping[str, Any] = field(compare=False)
    subresource: str = ""

    @property
    def part(self) -> str:
        return self.subresource


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeByKey(_Change):
    """Change fields by a strategic patch, for lists such as the conditions of a pod."""

    body: Mapping[str, Any] = field(compare=False)
    subresource: str = ""

    @property
    def part(self) -> str:
        return self.subresource


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations(_Change):
    """Change fields by a JSON patch."""

    body: Sequence[Mapping[str, Any]] = field(compare=False)
    subresource: str = ""

    @property
    def part(self) -> str:
        return self.subresource


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(_Change):
    """Delete the object."""

    grace_s: int | None = None
    propagation: Propagation | None = None


Write = Create | Merge | MergeByKey | Operations | Delete


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    How a write ended: with the object as it is now, or with the error.

    Both are None for a deletion that left nothing behind, and for a write that `unless` dropped
    (`sent` is False then).
    """

    write: Write
    obj: Object | None = None
    error: KubeError | None = None
    sent: bool = True


Done = Callable[[Outcome], None]
Unless = Callable[[], bool]
Observe = Callable[[Any], object]


@dataclass(slots=True)
class _Part:
    """One write as it was put in."""

    write: Write
    done: Done | None
    unless: Unless | None


@dataclass(slots=True)
class _Entry:
    """Writes that leave as one."""

    parts: list[_Part]
    since: float
    in_flight: bool = False
    #: sent without an answer: it may have been applied
    lost: bool = False


class Outbox:
    """Sends writes; `run` works until it is cancelled."""

    def __init__(
        self,
        client: Client,
        *,
        observe: Mapping[AnyResource, Observe] | None = None,
        in_flight: int = IN_FLIGHT,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._client = client
        self._observe = dict(observe or {})
        self._slots = asyncio.Semaphore(in_flight)
        self._clock = clock or SystemClock()
        self._rng = rng or random.SystemRandom()
        self._lanes: dict[tuple[AnyResource, str, str], deque[_Entry]] = {}
        #: lanes that no task works on yet
        self._fresh: deque[tuple[AnyResource, str, str]] = deque()
        self._wake = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    def put(self, write: Write, done: Done | None = None, *, unless: Unless | None = None) -> None:
        """Have the write sent. Never blocks; `done` is called on the loop, exactly once."""
        part = _Part(write, done, unless)
        key = (write.resource, write.namespace, write.name)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = deque()
            self._fresh.append(key)
            self._wake.set()
            self._empty.clear()
        if lane and not lane[-1].in_flight and _merges(lane[-1].parts, write):
            lane[-1].parts.append(part)
        else:
            lane.append(_Entry([part], self._clock.monotonic()))

    def __len__(self) -> int:
        return sum(map(len, self._lanes.values()))

    def pending(self, resource: AnyResource, namespace: str, name: str) -> bool:
        """Whether a write of this object waits or is in flight."""
        return (resource, namespace, name) in self._lanes

    async def drain(self) -> None:
        """Wait until nothing waits and nothing is in flight."""
        await self._empty.wait()

    async def run(self) -> None:
        """Send what is put in."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._fresh:
                    key = self._fresh.popleft()
                    group.create_task(self._work(key), name=f"outbox: {key[0]} {key[1]}/{key[2]}")

    async def _work(self, key: tuple[AnyResource, str, str]) -> None:
        """Send the writes of one object, one after the other, until none is left."""
        lane = self._lanes[key]
        while lane:
            await self._deliver(lane[0])
            lane.popleft()
        del self._lanes[key]
        if not self._lanes:
            self._empty.set()

    async def _deliver(self, entry: _Entry) -> None:
        """Send one entry until it is answered for good."""
        backoff = Backoff(self._rng, base_s=0.05, cap_s=5.0)
        while True:
            async with self._slots:
                error = await self._attempt(entry)
            if error is None:
                return
            if self._clock.monotonic() - entry.since > PATIENCE_S:
                _finish(entry.parts, None, error)
                return
            log.info("%s: %s; again", _target(entry.parts[0].write), error)
            # While it waits, newer writes may join it.
            entry.in_flight = False
            await self._clock.sleep(_pause(error, backoff))

    async def _attempt(self, entry: _Entry) -> KubeError | None:
        """Send one entry once; return the error where repeating may mend it."""
        parts = _wanted(entry)
        if not parts:
            return None
        entry.in_flight = True
        write = _joined([p.write for p in parts])
        try:
            obj = await self._as_written(write) if entry.lost else None
            if obj is None:
                obj = await self._send(write)
        except (Disconnected, TooManyRequests, ServerError) as e:
            entry.lost |= isinstance(e, Disconnected)
            return e
        except KubeError as e:
            _finish(parts, None, e)
        except Exception as e:
            # A body that cannot be encoded, say: it concerns this write alone.
            log.exception("%s: not sent", _target(write))
            _finish(parts, None, KubeError(f"not sent: {e!r}"))
        else:
            self._feed_back(write, obj)
            _finish(parts, obj, None)
        return None

    def _feed_back(self, write: Write, obj: Object | None) -> None:
        """Show the answer to the cache that keeps such objects."""
        observe = self._observe.get(write.resource)
        if obj is None or observe is None:
            return
        try:
            observe(obj)
        except Exception:
            log.exception("%s: the answer could not be observed", _target(write))

    async def _as_written(self, write: Write) -> Object | None:
        """Return the object where it is as the write would leave it."""
        if not isinstance(write, Merge | MergeByKey):
            return None
        path = write.resource.path(write.namespace, write.name)
        answer = await self._client.call("GET", path)
        found = msgspec.json.decode(answer)
        given = {"metadata": {"uid": write.uid}} if write.uid else {}
        by_key = isinstance(write, MergeByKey)
        if not is_done(found, given) or not is_done(found, write.body, by_key=by_key):
            return None
        obj: Object = wire.decode(write.resource, answer)
        return obj

    async def _send(self, write: Write) -> Object | None:
        """Send one write once."""
        resource, where = write.resource, (write.namespace, write.name)
        obj: Object | None
        match write:
            case Create():
                obj = await self._client.create(resource, write.namespace, write.body)
            case Delete():
                obj = await self._client.delete(
                    resource,
                    *where,
                    given=write.given,
                    grace_s=write.grace_s,
                    propagation=write.propagation,
                )
            case Merge() | MergeByKey() | Operations():
                obj = await self._client.patch(
                    resource,
                    *where,
                    _patch(write),
                    subresource=write.subresource,
                    given=write.given,
                )
        return obj


def _patch(write: Merge | MergeByKey | Operations) -> MergePatch | StrategicPatch | JsonPatch:
    match write:
        case Merge():
            return MergePatch(write.body)
        case MergeByKey():
            return StrategicPatch(write.body)
        case Operations():
            return JsonPatch(write.body)


def _merges(parts: list[_Part], write: Write) -> bool:
    """Whether all may leave as one: the same part of the same object, presumed the same."""
    return isinstance(write, Merge) and all(
        isinstance(part.write, Merge)
        and part.write.subresource == write.subresource
        and part.write.given == write.given
        and mergeable(part.write.body, write.body)
        for part in parts
    )


def _wanted(entry: _Entry) -> list[_Part]:
    """Return the parts still to be sent; those that are needed no longer are done."""
    wanted: list[_Part] = []
    for part in entry.parts:
        if part.unless and part.unless():
            _tell(part, Outcome(part.write, sent=False))
        else:
            wanted.append(part)
    entry.parts = wanted
    return wanted


def _joined(writes: list[Write]) -> Write:
    """Return one write that does what all do one after the other."""
    first, *rest = writes
    for write in rest:
        assert isinstance(first, Merge)  # noqa: S101 - see `_merges`
        assert isinstance(write, Merge)  # noqa: S101
        first = replace(first, body=merged(first.body, write.body))
    return first


def _finish(parts: list[_Part], obj: Object | None, error: KubeError | None) -> None:
    for part in parts:
        _tell(part, Outcome(part.write, obj, error))


def _tell(part: _Part, outcome: Outcome) -> None:
    """Call back; one callback that fails does not stop the other writes."""
    if part.done is None:
        if outcome.error:
            log.warning("%s: %s", _target(outcome.write), outcome.error)
        return
    try:
        part.done(outcome)
    except Exception:
        log.exception("%s: the callback failed", _target(outcome.write))


def _target(write: Write) -> str:
    return f"{write.resource} {write.namespace}/{write.name}"


def _pause(error: KubeError, backoff: Backoff) -> float:
    """Return how long to wait: what the server asks for, or longer each time."""
    if isinstance(error, TooManyRequests) and error.retry_after_s:
        backoff.reset()
        return max(backoff.next_s(), error.retry_after_s)
    return backoff.next_s()
