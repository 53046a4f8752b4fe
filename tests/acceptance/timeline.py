"""
What became of pods, as points in time, read from the audit log.

All times are the API server's, in seconds since 1970, when it had answered the write that made it
so. A watch would bring them late where the machine is busy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

import msgspec

from tests.acceptance.bed import JOB_NAME, Bed, label
from tests.acceptance.objects import Object
from tests.acceptance.trail import trail

NEVER = float("inf")


@dataclass(slots=True)
class Life:
    """When one pod was first there, without gates, on a node, running, ended, gone."""

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
    now: dict[str, Life] = {}
    for write in trail(bed.plane.audit_log, bed.namespace):
        name = write.object_ref.name
        if write.what == "create pods/binding":
            now[name].bound = write.done
            now[name].node = msgspec.json.decode(write.request_object)["target"]["name"]
        elif write.what == "delete pods":
            now[name].gone = write.done
        elif write.what in ("create pods", "patch pods", "patch pods/status"):
            pod = msgspec.json.decode(write.response_object)
            uid, of = pod["metadata"]["uid"], label(pod, JOB_NAME) or ""
            life = now[name] = found.setdefault(uid, Life(uid, name, of, write.done))
            life.see(pod, write.done)
    return [life for life in found.values() if job in (None, life.job)]


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
