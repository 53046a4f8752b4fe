"""
`pumice demo --nodes N --jobs J --replicas R`: many gangs at once on a large simulated cluster.

All Jobs are submitted together; a line each second says how far they are. The rate at the end
counts from the first Job submitted to the last pod bound, as a user would see it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from pumice.cli.demo import JOBS, PATHS, a_job
from pumice.local.cluster import Cluster
from pumice.local.nodes import CPU
from pumice.local.watching import Watched

WRITERS = 8
LOOK_S = 0.1
SAY_S = 1.0
STALLED_S = 60.0
SLEEPS_S = 3600
JOB_LABEL = "volcano.sh/job-name"


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of it: `jobs` gangs of `replicas` one-CPU pods on `nodes` nodes."""

    nodes: int
    jobs: int
    replicas: int

    @property
    def pods(self) -> int:
        """Pods altogether."""
        return self.jobs * self.replicas

    def refusal(self) -> str:
        """Return why this cannot be shown; empty when it can."""
        if self.pods > self.nodes * CPU:
            return f"{self.pods} pods of 1 CPU do not fit on {self.nodes} nodes of {CPU} CPU"
        return ""


def run(scale: Scale) -> None:
    """Start a cluster, submit the gangs, tell how they are placed."""
    began = time.monotonic()
    print(f"Starting a control plane with Pumice and {scale.nodes} simulated nodes ...")
    with Cluster(nodes=scale.nodes) as cluster:
        print(f"Ready after {time.monotonic() - began:.1f} s.\n")
        pods = Watched(cluster.plane.api, PATHS["pods"]).start()
        try:
            _place(cluster, pods, scale)
        finally:
            pods.stop()


def _place(cluster: Cluster, pods: Watched, scale: Scale) -> None:
    print(f"Submitting {scale.jobs} Jobs of {scale.replicas} pods, each a gang of all its pods:")
    names = [f"gang-{number}" for number in range(scale.jobs)]
    jobs = [a_job(name, scale.replicas, 1, scale.replicas, SLEEPS_S) for name in names]
    began = time.monotonic()
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda job: cluster.plane.api.post(JOBS, job), jobs))
    _follow(pods, scale, began)
    took = time.monotonic() - began
    print(f"\n{scale.jobs} gangs, {scale.pods} pods bound in {took:.1f} s: ", end="")
    print(f"{scale.pods / took:.0f} pods/s from kubectl create to bound.")


def _follow(pods: Watched, scale: Scale, began: float) -> None:
    """Print the progress until every pod is bound."""
    said = moved = began
    before = 0
    while True:
        bound = _bound(pods.values())
        now, count = time.monotonic(), bound.total()
        if now - said >= SAY_S or count == scale.pods:
            whole = sum(number == scale.replicas for number in bound.values())
            print(f"[{now - began:5.1f} s] {len(pods):6} pods created, {count:6} bound; ", end="")
            print(f"{whole} of {scale.jobs} gangs whole")
            said = now
        if count == scale.pods:
            return
        if count > before:
            moved, before = now, count
        elif now - moved > STALLED_S:
            raise TimeoutError(f"no pod was bound for {STALLED_S:g} s")
        # Looked at now and then: at every event it would take the time that it measures.
        time.sleep(LOOK_S)


def _bound(pods: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """Count the pods that have a node, by Job."""
    return Counter(
        pod["metadata"]["labels"][JOB_LABEL] for pod in pods if pod["spec"].get("nodeName")
    )
