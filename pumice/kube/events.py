"""
Events for people: `kubectl describe` shows them under the object that they are about.

    record ──► waiting (bounded, same ones counted together) ──► created
                                                             └─► count raised, if seen before

Recording never blocks and never fails: under a flood events are dropped, first those of the
object that floods. An event told again within ten minutes raises the count of the first one.
"""

from __future__ import annotations

import itertools
import logging
from asyncio import Event as Signal
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, TypeVar

from pumice.core.api.meta import ObjectMeta
from pumice.kube.client import Client
from pumice.kube.clock import Clock, SystemClock, rfc3339
from pumice.kube.errors import KubeError, NotFound
from pumice.kube.patches import Json, MergePatch
from pumice.kube.resources import EVENTS, AnyResource

log = logging.getLogger(__name__)

WAITING = 1_000
REMEMBERED = 4_096
AGGREGATE_S = 600.0
#: an object may have this many events at once, and one more every so many seconds
BURST = 25
REFILL_S = 30.0
MAX_MESSAGE = 1_024
#: where events about cluster-scoped objects live
DEFAULT_NAMESPACE = "default"

EventType = Literal["Normal", "Warning"]
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class _Text:
    """What makes two events the same."""

    resource: AnyResource
    namespace: str
    name: str
    uid: str
    type: EventType
    reason: str
    message: str

    def digest(self) -> bytes:
        """Return what stands for the text where thousands are remembered."""
        about = (str(self.resource), self.namespace, self.name, self.uid)
        parts = (*about, self.type, self.reason, self.message)
        return blake2b("\0".join(parts).encode(), digest_size=16).digest()


@dataclass(slots=True)
class _Series:
    """An event that was created, by the end of its name, and how often it happened."""

    suffix: str
    count: int
    last: float


@dataclass(slots=True)
class _Bucket:
    """How many events an object may still have."""

    tokens: float
    since: float

    def is_full(self, now: float) -> bool:
        """Tell whether it is as good as a new one."""
        return now - self.since >= (BURST - self.tokens) * REFILL_S


class Recorder:
    """Records events in the name of a component; `run` sends them until it is cancelled."""

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        clock: Clock | None = None,
        waiting: int = WAITING,
    ) -> None:
        self._client = client
        self._component = component
        self._clock = clock or SystemClock()
        self._limit = waiting
        #: how often each text was told since it last left
        self._waiting: OrderedDict[_Text, int] = OrderedDict()
        #: both with the one in front that was used least lately
        self._series: OrderedDict[bytes, _Series] = OrderedDict()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._serial = itertools.count()
        self._wake = Signal()
        #: events that were not sent, since the start
        self.dropped = 0

    def record(
        self, resource: AnyResource, meta: ObjectMeta, kind: EventType, reason: str, message: str
    ) -> None:
        """Say that something happened to an object."""
        short = message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 3] + "..."
        text = _Text(resource, meta.namespace, meta.name, meta.uid, kind, reason, short)
        if text in self._waiting:
            self._waiting[text] += 1
        elif len(self._waiting) >= self._limit or not self._may(meta.uid or meta.key):
            self.dropped += 1
        else:
            self._waiting[text] = 1
            self._wake.set()

    async def run(self) -> None:
        """Send what is recorded, one event after the other."""
        while True:
            await self._wake.wait()
            while self._waiting:
                text, times = self._waiting.popitem(last=False)
                try:
                    await self._send(text, times)
                except KubeError as e:
                    self.dropped += 1
                    log.info("event %s of %s %s: %s", text.reason, text.resource, text.name, e)
            self._wake.clear()

    async def _send(self, text: _Text, times: int) -> None:
        now = self._clock.now()
        digest = text.digest()
        series = self._series.get(digest)
        if series and now - series.last <= AGGREGATE_S:
            try:
                await self._raise_count(text, series, times, now)
                self._series.move_to_end(digest)
            except NotFound:
                pass  # The server has let it expire: tell it as a new one.
            else:
                return
        suffix = f"{int(now * 1e6):x}{next(self._serial) % 4096:03x}"
        await self._client.create(EVENTS, _home(text), self._body(text, suffix, times, now))
        self._series[digest] = _Series(suffix, times, now)
        self._series.move_to_end(digest)
        _trim(self._series, lambda oldest: now - oldest.last > AGGREGATE_S)

    async def _raise_count(self, text: _Text, series: _Series, times: int, now: float) -> None:
        count = series.count + times
        patch = MergePatch({"count": count, "lastTimestamp": rfc3339(now)})
        name = f"{text.name}.{series.suffix}"
        await self._client.patch(EVENTS, _home(text), name, patch)
        series.count, series.last = count, now

    def _body(self, text: _Text, suffix: str, times: int, now: float) -> Json:
        return {
            "metadata": {"namespace": _home(text), "name": f"{text.name}.{suffix}"},
            "involvedObject": {
                "apiVersion": text.resource.api_version,
                "kind": text.resource.kind,
                "namespace": text.namespace,
                "name": text.name,
                "uid": text.uid,
            },
            "type": text.type,
            "reason": text.reason,
            "message": text.message,
            "count": times,
            "firstTimestamp": rfc3339(now),
            "lastTimestamp": rfc3339(now),
            "source": {"component": self._component},
            "reportingComponent": self._component,
        }

    def _may(self, owner: str) -> bool:
        """Take a token of the object's bucket, if one is left."""
        now = self._clock.monotonic()
        bucket = self._buckets.setdefault(owner, _Bucket(BURST, now))
        self._buckets.move_to_end(owner)
        bucket.tokens = min(BURST, bucket.tokens + (now - bucket.since) / REFILL_S)
        bucket.since = now
        may = bucket.tokens >= 1
        if may:
            bucket.tokens -= 1
        _trim(self._buckets, lambda oldest: oldest.is_full(now))
        return may


def _trim(remembered: OrderedDict[K, V], is_over: Callable[[V], bool]) -> None:
    """Forget what means nothing any more, and what is too much."""
    while len(remembered) > REMEMBERED or is_over(next(iter(remembered.values()))):
        remembered.popitem(last=False)


def _home(text: _Text) -> str:
    return text.namespace or DEFAULT_NAMESPACE
