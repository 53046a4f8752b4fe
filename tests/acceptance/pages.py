"""
The extender's pages as a test reads them: the ledger, the metrics, and its log.

The ledger is in no watch, so `reaches` looks at it again and again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from pumice.local.processes import Processes
from pumice.local.scheduler import metric_sum
from pumice.local.services import Extender
from tests.acceptance.bed import Bed

LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class Placed:
    """What the ledger says of one pod."""

    uid: str
    state: str
    node: str


Ledger = Mapping[str, Placed]


class Pages:
    """Reads without blocking the event loop of the test."""

    def __init__(self, bed: Bed) -> None:
        self._namespace = bed.namespace
        self._extender: Extender = bed.cluster.extender
        self.log = LogMark(bed.plane.processes, self._extender.name)

    async def ledger(self) -> Ledger:
        """Return what the ledger says of the pods of the test's namespace, by pod name."""
        return {
            e["name"]: Placed(e["uid"], e["state"], e["node"])
            for e in (await self._json("/debug/ledger"))["entries"]
            if e["namespace"] == self._namespace
        }

    async def reaches(self, check: Callable[[Ledger], bool], timeout_s: float, what: str) -> Ledger:
        """Wait until the check holds for the ledger, and return it."""
        deadline = monotonic() + timeout_s
        while not check(ledger := await self.ledger()):
            if monotonic() > deadline:
                lines = [f"  {name}: {placed}" for name, placed in sorted(ledger.items())]
                raise TimeoutError("\n".join([f"not within {timeout_s:g} s: {what}", *lines]))
            await asyncio.sleep(LOOK_S)
        return ledger

    async def metric(self, name: str) -> float | None:
        """Return a metric; None where the page doesn't have it."""
        text = await self._get("/metrics")
        has_it = any(line.startswith((f"{name} ", f"{name}{{")) for line in text.splitlines())
        return metric_sum(text, name) if has_it else None

    async def metric_reaches(
        self, name: str, check: Callable[[float], bool], timeout_s: float
    ) -> None:
        """Wait until a metric is there and the check holds for it."""
        deadline = monotonic() + timeout_s
        while (value := await self.metric(name)) is None or not check(value):
            if monotonic() > deadline:
                raise TimeoutError(f"{name} is still {value} after {timeout_s:g} s")
            await asyncio.sleep(LOOK_S)

    async def _json(self, path: str) -> Any:
        return json.loads(await self._get(path))

    async def _get(self, path: str) -> str:
        status, body = await asyncio.to_thread(self._extender.get, path)
        if status != 200:
            raise AssertionError(f"{path}: {status} {body.decode(errors='replace')}")
        return body.decode()


class LogMark:
    """The part of a component's log that is written after this was made."""

    def __init__(self, processes: Processes, name: str) -> None:
        self.path: Path = processes.log(name)
        self._from = self.path.stat().st_size if self.path.exists() else 0

    def text(self) -> str:
        """Return what was written since."""
        with self.path.open(errors="replace") as log:
            log.seek(self._from)
            return log.read()

    async def shows(self, check: Callable[[str], object], timeout_s: float, what: str) -> str:
        """Wait until the check holds for what was written since, and return that."""
        deadline = monotonic() + timeout_s
        while not check(text := await asyncio.to_thread(self.text)):
            if monotonic() > deadline:
                raise TimeoutError(f"not within {timeout_s:g} s in {self.path}: {what}")
            await asyncio.sleep(LOOK_S)
        return text
