"""One session on one state, timed: CPU time of one thread from snapshot to plan, no I/O."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from pumice.core.cluster import Cluster
from pumice.core.conf import DEFAULT, Configuration
from pumice.core.cycle import run_session
from pumice.core.plan import Plan
from pumice.core.recall import Former

REPEAT = 3


def decide(
    cluster: Cluster,
    check: Callable[[Plan], None],
    repeat: int = REPEAT,
    conf: Configuration = DEFAULT,
    *,
    anew: bool = False,
) -> float:
    """
    Return the best time of a few sessions on one state, in seconds.

    Each knows the one before it, as in the extender, unless each is to find out all `anew`.
    """
    times, former = [], None
    for _ in range(repeat):
        gc.collect()
        gc.freeze()
        began = time.process_time()
        snapshot = cluster.snapshot()
        plan = run_session(snapshot, conf, 1_770_000_000.0, "bench", former=former)
        times.append(time.process_time() - began)
        gc.unfreeze()
        former = None if anew else Former(snapshot, conf, plan)
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
