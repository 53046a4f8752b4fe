"""
The extender's pages as a test reads them: the ledger, the metrics, and its log.

The ledger is in no watch, so `reaches` looks at it again and again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic

from pumice.local.processes import Processes
from pumice.local.scheduler import metric_sum
from pumice.local.services import Extender
from tests.acceptance.bed import Bed
from tests.acceptance.figures import Entry, ledger
from tests.acceptance.length import patient

LOOK_S = 0.05

Entries = Mapping[str, Entry]
"""What the ledger says of the pods of one namespace, by name."""


class Pages:
    """Reads without blocking the event loop of the test."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self._extender: Extender = bed.cluster.extender
        self.log = LogMark(bed.plane.processes, self._extender.name)

    async def entries(self) -> Entries:
        """Return what the ledger says of the pods of the test's namespace."""
        found = (await self._bed.aside(ledger, self._bed)).entries
        return {e.name: e for e in found if e.namespace == self._bed.namespace}

    async def reaches(
        self, check: Callable[[Entries], bool], timeout_s: float, what: str
    ) -> Entries:
        """Wait until the check holds for the ledger, and return that."""
        deadline = monotonic() + patient(timeout_s)
        while not check(entries := await self.entries()):
            if monotonic() > deadline:
                lines = [f"  {name}: {e.state} {e.node}" for name, e in sorted(entries.items())]
                raise TimeoutError("\n".join([f"not within {timeout_s:g} s: {what}", *lines]))
            await asyncio.sleep(LOOK_S)
        return entries

    async def metric(self, name: str) -> float | None:
        """Return a metric; None where the page doesn't have it."""
        text = await self._get("/metrics")
        has_it = any(line.startswith((f"{name} ", f"{name}{{")) for line in text.splitlines())
        return metric_sum(text, name) if has_it else None

    async def metric_reaches(
        self, name: str, check: Callable[[float], bool], timeout_s: float
    ) -> None:
        """Wait until a metric is there and the check holds for it."""
        deadline = monotonic() + patient(timeout_s)
        while (value := await self.metric(name)) is None or not check(value):
            if monotonic() > deadline:
                raise TimeoutError(f"{name} is still {value} after {timeout_s:g} s")
            await asyncio.sleep(LOOK_S)

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
        deadline = monotonic() + patient(timeout_s)
        while not check(text := await asyncio.to_thread(self.text)):
            if monotonic() > deadline:
                raise TimeoutError(f"not within {timeout_s:g} s in {self.path}: {what}")
            await asyncio.sleep(LOOK_S)
        return text
