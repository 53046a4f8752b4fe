"""
The decision log: one file for each session that decided something, to be replayed.

Files are written in a thread after the decisions are on their way. The oldest go when there are
more than are to be kept; what cannot be written is told of once, and keeps nobody waiting.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pumice.core.conf import Configuration
from pumice.core.model.snapshots import Snapshot
from pumice.core.plan import Plan
from pumice.core.replay.answers import Exchange
from pumice.core.replay.record import record

log = logging.getLogger(__name__)

KEPT = 100
SUFFIX = ".session.json.gz"


@dataclass(frozen=True, slots=True)
class Entry:
    """A session to be recorded."""

    snapshot: Snapshot
    conf: Configuration
    answers: Sequence[Exchange]
    plan: Plan

    def encode(self) -> bytes:
        """Return the record, compressed."""
        text = record(self.snapshot, self.conf, self.answers, self.plan)
        return gzip.compress(text, compresslevel=3, mtime=0)

    @property
    def name(self) -> str:
        """Return the name of its file; names sort by time."""
        return f"{self.plan.now:014.3f}-{self.plan.session}{SUFFIX}"


@dataclass(slots=True)
class Logbook:
    """Writes the log; without a directory it writes nothing."""

    directory: Path | None = None
    kept: int = KEPT
    #: what went wrong last, "" when nothing did
    fault: str = ""

    async def write(self, entry: Entry) -> None:
        """Write the record of a session."""
        if self.directory is None:
            return
        try:
            await asyncio.to_thread(self._write, self.directory, entry)
        except OSError as error:
            fault = f"{self.directory}: {error.strerror}"
            if fault != self.fault:
                log.error("the session is not recorded: %s", fault)
            self.fault = fault
        else:
            self.fault = ""

    def _write(self, directory: Path, entry: Entry) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        unfinished = directory / f".{entry.name}"
        unfinished.write_bytes(entry.encode())
        unfinished.rename(directory / entry.name)
        for old in sorted(directory.glob(f"[0-9]*{SUFFIX}"))[: -self.kept]:
            old.unlink(missing_ok=True)
