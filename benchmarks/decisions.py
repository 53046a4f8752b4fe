"""How fast the engine decides: CPU time of one thread from snapshot to plan, no I/O."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from benchmarks.figures import Figure
from benchmarks.worlds import a_cluster, add_jobs, add_running
from pumice.core.cluster import Cluster
from pumice.core.conf import DEFAULT
from pumice.core.plan import Plan
from pumice.core.session import run_session

REPEAT = 3


def measure() -> list[Figure]:
    """Return the decision figures."""
    return [
        _many_jobs(),
        _one_gang(),
        _idle(),
    ]


def _decide(cluster: Cluster, check: Callable[[Plan], None], repeat: int = REPEAT) -> float:
    """Return the best time of a few sessions on one state, in seconds."""
    times = []
    for _ in range(repeat):
        gc.collect()
        gc.freeze()
        began = time.process_time()
        plan = run_session(cluster.snapshot(), DEFAULT, 1_770_000_000.0, "bench")
        times.append(time.process_time() - began)
        gc.unfreeze()
        check(plan)
    return min(times)


def _places(pods: int) -> Callable[[Plan], None]:
    def check(plan: Plan) -> None:
        placed = sum(len(decision.placements) for decision in plan.allocations)
        if placed != pods:
            raise AssertionError(f"{placed} pods were placed, not {pods}")

    return check


def _many_jobs() -> Figure:
    cluster = a_cluster(1_000)
    add_jobs(cluster, 32_000, 1)
    seconds = _decide(cluster, _places(32_000))
    return Figure.of("decide 32,000 one-CPU jobs on 1,000 nodes", seconds, "s", 3.0)


def _one_gang() -> Figure:
    cluster = a_cluster(10_000)
    add_jobs(cluster, 1, 5_000)
    seconds = _decide(cluster, _places(5_000))
    return Figure.of("decide a gang of 5,000 on 10,000 nodes", 1_000 * seconds, "ms", 100.0)


def _idle() -> Figure:
    cluster = a_cluster(10_000)
    add_running(cluster, 1_000, 100, 10_000)
    seconds = _decide(cluster, _places(0))
    name = "session with nothing to do, 10,000 nodes and 100,000 pods"
    return Figure.of(name, 1_000 * seconds, "ms", 50.0)
