"""Figures that running parts give of themselves: kube-scheduler's metrics, extender's ledger."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pumice.local.scheduler import metric_sum
from tests.acceptance.bed import Bed


class Entry(msgspec.Struct, frozen=True):
    """What the extender's ledger says of a pod."""

    uid: str
    namespace: str
    name: str
    job: str | None
    node: str
    state: str
    since: float


class Ledger(msgspec.Struct, frozen=True):
    """The extender's ledger, and its bind calls: open, all so far, answered with *Error*."""

    entries: list[Entry]
    parked: int
    calls: int
    errors: int

    @property
    def states(self) -> Counter[str]:
        """How many pods are in each state."""
        return Counter(entry.state for entry in self.entries)

    @property
    def in_flight(self) -> int:
        """How many pods are on their way: what the window limits."""
        return self.states["Released"] + self.states["Arrived"]


def ledger(bed: Bed) -> Ledger:
    """Read the extender's ledger."""
    return msgspec.json.decode(bed.cluster.extender.get("/debug/ledger")[1], type=Ledger)


def scheduling_attempts(bed: Bed) -> float:
    """Return how many attempts kube-scheduler has made, whatever came of them."""
    assert bed.cluster.scheduler is not None
    return bed.cluster.scheduler.metric("scheduler_schedule_attempts_total")


@dataclass(frozen=True, slots=True)
class Sockets:
    """The open sockets of a process."""

    pid: int

    def count(self) -> int:
        """Count them now."""
        return sum(self._is_socket(fd) for fd in Path(f"/proc/{self.pid}/fd").iterdir())

    def _is_socket(self, fd: Path) -> bool:
        try:
            return str(fd.readlink()).startswith("socket:")
        except FileNotFoundError:
            return False  # closed since it was listed


def extender_metric(bed: Bed, name: str, **labels: str) -> float:
    """Return the sum of all series of one of the extender's metrics that carry the labels."""
    return metric_sum(bed.cluster.extender.get("/metrics")[1].decode(), name, **labels)
