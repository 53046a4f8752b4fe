"""One session on one state, timed: CPU time of one thread from snapshot to plan, no I/O."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from pumice.core.cluster import Cluster
from pumice.core.conf import DEFAULT, Configuration
from pumice.core.plan import Plan
from pumice.core.session import run_session

REPEAT = 3


def decide(
    cluster: Cluster,
    check: Callable[[Plan], None],
    repeat: int = REPEAT,
    conf: Configuration = DEFAULT,
) -> float:
    """Return the best time of a few sessions on one state, in seconds."""
    times = []
    for _ in range(repeat):
        gc.collect()
        gc.freeze()
        began = time.process_time()
        plan = run_session(cluster.snapshot(), conf, 1_770_000_000.0, "bench")
        times.append(time.process_time() - began)
        gc.unfreeze()
        check(plan)
    return min(times)


def places(pods: int) -> Callable[[Plan], None]:
    """Return a check that a plan places so many pods."""

    def check(plan: Plan) -> None:
        placed = sum(len(decision.placements) for decision in plan.allocations)
        if placed != pods:
            raise AssertionError(f"{placed} pods were placed, not {pods}")

    return check


def evicts(pods: int) -> Callable[[Plan], None]:
    """Return a check that a plan evicts so many pods, for as many that are promised room."""

    def check(plan: Plan) -> None:
        gone = sum(len(decision.victims) for decision in plan.evictions)
        claims = sum(len(decision.claims) for decision in plan.evictions)
        if (gone, claims) != (pods, pods):
            raise AssertionError(f"{gone} pods go for {claims}, not {pods} for {pods}")

    return check
