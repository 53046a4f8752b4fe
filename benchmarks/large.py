"""
What one large Job costs: its pods made, bound and run, half of them taken away, and made again.

Kubelets are played here, unlike where paths are timed: pods that are taken away end in order, and
the Job follows all that becomes of its pods. Each move ends when the Job's status tells of it, and
has cost the writes until then.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from benchmarks.audit import Write, writes
from benchmarks.bed import Bed, Object, a_job
from benchmarks.figures import Figure
from pumice.local.cluster import Cluster
from pumice.local.scheduler import metric_sum
from pumice.local.users import USERS

NODES = 1_000
PODS = 5_000
NAME = "large"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs"
BINDING = "pods/binding"
TIMEOUT_S = 600.0
CREATION: Write = ("create", "pods", USERS["pumice-controllers"].name.rsplit(":", 1)[-1])
ONE_EACH = 1.0


class Move(NamedTuple):
    """A change of the Job's size, and what it took."""

    name: str
    #: how many pods came or went
    pods: int
    #: until the last new pod was bound; 0 where none came
    bound_s: float
    #: until the Job's status told of all
    told_s: float
    cpu_s: float
    writes: Counter[Write]


def measure(say: Callable[[str], None]) -> list[Figure]:
    """Return the figures of one large Job."""
    with Cluster(nodes=NODES, audit_level="Metadata") as cluster:
        large = _Large(Bed(cluster))
        moves = []
        for move in large.moves():
            say(f"  {move.name}: {move.told_s:.1f} s")
            moves.append(move)
        memory = large.metric("process_resident_memory_bytes") / 2**20
    return [
        *(figure for move in moves for figure in _figures(move)),
        Figure.of(f"controllers RSS with a Job of {PODS:,} pods", memory, "MiB"),
    ]


class _Large:
    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        self.namespace = bed.new_namespace()

    def moves(self) -> Iterator[Move]:
        """Make the Job, scale it down to a half and up again."""
        half = PODS // 2
        path = JOBS.format(self.namespace)

        def scale(to: int) -> Callable[[], object]:
            return lambda: self.bed.api.patch(f"{path}/{NAME}", self._scaled(path, to))

        def make() -> None:
            self.bed.create(path, [a_job(NAME, PODS)])

        yield self._move(f"a Job of {PODS:,} pods", make, 0, PODS)
        yield self._move(f"scaled to {half:,}", scale(half), PODS, half)
        yield self._move(f"scaled to {PODS:,}", scale(PODS), half, PODS)

    def metric(self, name: str) -> float:
        """Return a metric of the controllers."""
        return metric_sum(self.bed.cluster.controllers.get("/metrics")[1].decode(), name)

    def _move(self, name: str, act: Callable[[], object], before: int, after: int) -> Move:
        """Change the Job's size, and wait until its status tells of it."""
        cpu = self.metric("process_cpu_seconds_total")
        tail = self.bed.tail()
        began, started = time.time(), time.monotonic()
        act()
        bound_s = 0.0
        if after > before:
            tail.wait("create", BINDING, self.namespace, after - before, TIMEOUT_S)
            bound_s = time.monotonic() - started
        path = f"{JOBS.format(self.namespace)}/{NAME}"
        self.bed.until(lambda: _runs(self.bed.api.get(path), after), name, TIMEOUT_S)
        told_s = time.monotonic() - started
        spent = self.metric("process_cpu_seconds_total") - cpu
        made = writes(self.bed.cluster.plane.audit_log, self.namespace, began, time.time())
        return Move(name, abs(after - before), bound_s, told_s, spent, made)

    def _scaled(self, path: str, to: int) -> Object:
        """Return the patch that gives the Job so many pods, all of which it needs."""
        (task,) = self.bed.api.get(f"{path}/{NAME}")["spec"]["tasks"]
        sized = {**task, "replicas": to, "minAvailable": to}
        return {"spec": {"minAvailable": to, "tasks": [sized]}}


def _runs(job: Object, pods: int) -> bool:
    status = job.get("status", {})
    counted = (status.get("running", 0), status.get("terminating", 0))
    return bool(status.get("state", {}).get("phase") == "Running" and counted == (pods, 0))


def _figures(move: Move) -> Iterator[Figure]:
    if move.bound_s:
        yield Figure.of(f"{move.name}: until the last pod is bound", move.bound_s, "s")
    yield Figure.of(f"{move.name}: until the Job tells of it", move.told_s, "s")
    yield Figure.of("  controllers CPU", move.cpu_s, "s")
    for (verb, resource, who), count in move.writes.most_common():
        goal = ONE_EACH if (verb, resource, who) == CREATION else None
        yield Figure.of(f"  {verb} {resource} by {who}", count / move.pods, "a pod", goal)
