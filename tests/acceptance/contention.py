"""
Contention: thirty gangs of ten at once where ten have room, and random completions.

    gangs = Contention(bed, random.Random(1))
    gangs.submit("first")
    while gangs.unfinished():
        await gangs.until_full(2.0)
        await gangs.complete(*gangs.some_running())
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from tests.acceptance.bed import JOB_NAME, Bed
from tests.acceptance.objects import Object, a_job
from tests.acceptance.timeline import Life, by_job

ROOM = 10
"""Gangs that have room at a time."""
GANGS = 3 * ROOM
SIZE = 10
NODES, NODE_CPU = 25, 4
MOST_AT_ONCE = 4


@dataclass(slots=True)
class Contention:
    """The gangs of one test, and what the watch says of them now."""

    bed: Bed
    rng: random.Random
    gangs: list[str] = field(default_factory=list)

    def submit(self, prefix: str) -> None:
        """Create thirty gangs at once."""
        names = [f"{prefix}-{index}" for index in range(GANGS)]
        self.bed.create_many(a_job(name, replicas=SIZE, min_available=SIZE) for name in names)
        self.gangs += names

    def delete(self) -> None:
        """Delete the gangs, and forget them."""
        for name in self.gangs:
            self.bed.delete(a_job(name))
        self.gangs = []

    def running(self) -> list[str]:
        """Return the gangs that run whole."""
        return self._with_all("Running")

    def unfinished(self) -> list[str]:
        """Return the gangs that have not succeeded whole."""
        finished = set(self._with_all("Succeeded"))
        return [name for name in self.gangs if name not in finished]

    def is_full(self) -> bool:
        """Tell whether as many gangs run as have room, or as there are."""
        return len(self.running()) == min(ROOM, len(self.unfinished()))

    def is_alive(self) -> bool:
        """Tell whether a gang runs, or none is left."""
        return bool(self.running() or not self.unfinished())

    def some_running(self) -> list[str]:
        """Choose some of the gangs that run."""
        running = self.running()
        return self.rng.sample(running, min(len(running), self.rng.randint(1, MOST_AT_ONCE)))

    async def until_full(self, timeout_s: float) -> float:
        """Wait until as many gangs run as have room; return the seconds it took."""
        return await self.bed.until(self.is_full, timeout_s, "every gang that has room runs")

    async def complete(self, *gangs: str) -> None:
        """Let gangs succeed, and wait until they have."""
        ending = [pod for pod in self._pods() if _gang(pod) in gangs]
        await self.bed.aside(self.bed.end, *ending)
        await self.bed.until(
            lambda: not {*gangs} & {*self.unfinished()}, 10, f"{', '.join(gangs)} end"
        )

    def _with_all(self, phase: str) -> list[str]:
        counts = Counter(_gang(pod) for pod in self._pods() if pod["status"].get("phase") == phase)
        return [name for name in self.gangs if counts[name] == SIZE]

    def _pods(self) -> Iterator[Object]:
        namespace = self.bed.namespace
        return (p for p in self.bed.pods.values() if p["metadata"]["namespace"] == namespace)


def _gang(pod: Object) -> str:
    name: str = pod["metadata"].get("labels", {}).get(JOB_NAME, "")
    return name


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which fewer than `ROOM` gangs ran although as many were unfinished."""

    start: float
    end: float
    running: int


def gaps(lives: Iterable[Life], grace_s: float) -> list[Gap]:
    """
    Return the gaps that last beyond `grace_s` after the last completion before them.

    A gang runs from its last pod's start to its last pod's end. Looked at is the time from when
    `ROOM` gangs first ran until fewer are unfinished.
    """
    spans = [
        (max(p.running for p in pods), max(p.ended for p in pods))
        for pods in by_job(lives).values()
    ]
    moments = sorted({at for span in spans for at in span})
    found = []
    begun, completed = False, float("-inf")
    for at, until in pairwise(moments):
        running = sum(start <= at < end for start, end in spans)
        unfinished = sum(at < end for _, end in spans)
        begun = begun or running >= ROOM
        completed = max([completed, *(end for _, end in spans if end <= at)])
        if begun and running < ROOM <= unfinished and until > completed + grace_s:
            found.append(Gap(max(at, completed + grace_s), until, running))
    return found
