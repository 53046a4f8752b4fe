"""
A work queue: each key is worked on by one worker at a time, and never forgotten meanwhile.

    add ──► waiting ──► worked on ──► done
               ▲            │ added again meanwhile: waits once more
               └────────────┴ failed: after 5 ms, 10 ms, 20 ms, ...

A key added ten times while it waits is worked on once. Work that raises is logged and tried
again after a wait that doubles; work that returns ends the series. Delays never block workers.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from pumice.kube.clock import Clock, SystemClock
from pumice.kube.errors import KubeError
from pumice.kube.retry import wait_s
from pumice.kube.timers import Timers

log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

BASE_S = 0.005
CAP_S = 60.0


class WorkQueue(Generic[K]):
    """Keys, and the coroutine that works on one; `run` works until `shutdown` or cancelled."""

    def __init__(
        self,
        name: str,
        work: Callable[[K], Awaitable[None]],
        *,
        workers: int = 3,
        clock: Clock | None = None,
        cap_s: float = CAP_S,
    ) -> None:
        self.name = name
        self._work = work
        self._workers = workers
        self._cap_s = cap_s
        self._timers: Timers[K] = Timers(clock or SystemClock(), self.add)
        self._waiting: deque[K] = deque()
        #: keys in `_waiting`, and keys that are worked on and shall wait again afterwards
        self._dirty: set[K] = set()
        self._working: set[K] = set()
        self._failures: dict[K, int] = {}
        #: one permit for each waiting key; after `shutdown`, one that all workers pass on
        self._permits = asyncio.Semaphore(0)
        self._closed = False

    def add(self, key: K) -> None:
        """Have the key worked on soon."""
        if self._closed or key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._working:
            self._push(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Have the key worked on after a while; the earlier of two such times counts."""
        if seconds <= 0:
            self.add(key)
        elif not self._closed:
            self._timers.set(key, seconds)

    def add_failed(self, key: K) -> None:
        """Have the key worked on after a wait that doubles each time until `forget`."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add_after(key, wait_s(failures, base_s=BASE_S, cap_s=self._cap_s))

    def forget(self, key: K) -> None:
        """End the key's series of failures."""
        self._failures.pop(key, None)

    def num_requeues(self, key: K) -> int:
        """Return the length of the key's series of failures."""
        return self._failures.get(key, 0)

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def idle(self) -> bool:
        """Whether nothing waits or is worked on now; what is delayed does not count."""
        return not self._waiting and not self._working

    def shutdown(self) -> None:
        """Take no more keys; `run` returns when the workers are done with theirs."""
        self._closed = True
        self._waiting.clear()
        self._timers.clear()
        self._permits.release()

    async def run(self) -> None:
        """Work until `shutdown`."""
        async with asyncio.TaskGroup() as group:
            timers = group.create_task(self._timers.run(), name=f"{self.name}: timers")
            workers = [
                group.create_task(self._worker(), name=f"{self.name}: worker {i}")
                for i in range(self._workers)
            ]
            await asyncio.wait(workers)
            timers.cancel()

    def _push(self, key: K) -> None:
        self._waiting.append(key)
        self._permits.release()

    async def _worker(self) -> None:
        """Take keys one after the other."""
        while True:
            await self._permits.acquire()
            if self._closed:
                self._permits.release()
                return
            key = self._waiting.popleft()
            self._dirty.discard(key)
            self._working.add(key)
            try:
                await self._attempt(key)
            finally:
                self._working.discard(key)
                if key in self._dirty and not self._closed:
                    self._push(key)

    async def _attempt(self, key: K) -> None:
        """Work on the key once; whatever goes wrong concerns this key alone."""
        try:
            await self._work(key)
        except KubeError as e:
            log.warning("%s: %s: %s", self.name, key, e)
            self.add_failed(key)
        except Exception:
            log.exception("%s: %s failed", self.name, key)
            self.add_failed(key)
        else:
            self.forget(key)
