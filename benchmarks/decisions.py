"""How fast the engine decides."""

from __future__ import annotations

from benchmarks.figures import Figure
from benchmarks.sessions import decide, places
from benchmarks.worlds import a_cluster, add_jobs, add_running


def measure() -> list[Figure]:
    """Return the decision figures."""
    return [
        _many_jobs(),
        _one_gang(),
        _idle(),
    ]


def _many_jobs() -> Figure:
    cluster = a_cluster(1_000)
    add_jobs(cluster, 32_000, 1)
    seconds = decide(cluster, places(32_000))
    return Figure.of("decide 32,000 one-CPU jobs on 1,000 nodes", seconds, "s", 3.0)


def _one_gang() -> Figure:
    cluster = a_cluster(10_000)
    add_jobs(cluster, 1, 5_000)
    seconds = decide(cluster, places(5_000))
    return Figure.of("decide a gang of 5,000 on 10,000 nodes", 1_000 * seconds, "ms", 100.0)


def _idle() -> Figure:
    cluster = a_cluster(10_000)
    add_running(cluster, 1_000, 100, 10_000)
    seconds = decide(cluster, places(0))
    name = "session with nothing to do, 10,000 nodes and 100,000 pods"
    return Figure.of(name, 1_000 * seconds, "ms", 50.0)
