"""
What a watch saw of pods, as points in time.

All times are those of `Watched.history`: monotonic seconds at which an event reached the test.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from tests.acceptance.bed import JOB_NAME, Bed, label
from tests.acceptance.objects import Object

NEVER = float("inf")


@dataclass(slots=True)
class Life:
    """When one pod was first seen there, without gates, on a node, running, ended, gone."""

    uid: str
    name: str
    job: str
    created: float
    released: float = NEVER
    bound: float = NEVER
    running: float = NEVER
    ended: float = NEVER
    gone: float = NEVER
    node: str = ""

    def see(self, pod: Object, at: float) -> None:
        """Take note of the pod as it was at a time."""
        spec, phase = pod["spec"], pod["status"].get("phase")
        if not spec.get("schedulingGates"):
            self.released = min(self.released, at)
        if spec.get("nodeName"):
            self.bound = min(self.bound, at)
            self.node = spec["nodeName"]
        if phase == "Running":
            self.running = min(self.running, at)
        if phase in ("Succeeded", "Failed"):
            self.ended = min(self.ended, at)


def lives(bed: Bed, job: str | None = None) -> list[Life]:
    """Return the lives of the pods in the test's namespace, or of one of its Jobs."""
    found: dict[str, Life] = {}
    for at, kind, pod in list(bed.pods.history):
        meta = pod["metadata"]
        name = label(pod, JOB_NAME) or ""
        if meta["namespace"] != bed.namespace or job not in (None, name):
            continue
        life = found.setdefault(meta["uid"], Life(meta["uid"], meta["name"], name, at))
        if kind == "DELETED":
            life.gone = at
        else:
            life.see(pod, at)
    return list(found.values())


def by_job(all_lives: Iterable[Life]) -> dict[str, list[Life]]:
    """Sort lives by Job."""
    found: dict[str, list[Life]] = {}
    for life in all_lives:
        found.setdefault(life.job, []).append(life)
    return found


def most(intervals: Iterable[tuple[float, float]]) -> int:
    """Return how many intervals overlap at most; one that ends when another begins doesn't."""
    steps = [step for start, end in intervals if start < end for step in ((start, 1), (end, -1))]
    return max(accumulate(step for _, step in sorted(steps)), default=0)
