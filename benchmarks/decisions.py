"""How fast the engine decides."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.figures import Figure
from benchmarks.sessions import decide, evicts, places
from benchmarks.worlds import a_cluster, add_jobs, add_racks, add_running
from pumice.core.api.scheduling import NetworkTopology
from pumice.core.conf import DEFAULT, PluginOption


def measure() -> list[Figure]:
    """Return the decision figures."""
    return [
        _many_jobs(),
        _one_gang(),
        _idle(),
        *_hopeless(),
        _reclaim(),
        _racks(),
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


def _hopeless() -> list[Figure]:
    cluster = a_cluster(1_000)
    add_running(cluster, 1_000, 1, 1_000)
    add_jobs(cluster, 10_000, 2, cpu=64)
    again, anew = decide(cluster, places(0)), decide(cluster, places(0), anew=True)
    name = "refuse one of 10,000 hopeless gangs"
    return [
        Figure.of(f"{name}, nothing changed", 1e6 * again / 10_000, "µs", 10.0),
        Figure.of(f"{name}, some node changed", 1e6 * anew / 10_000, "µs"),
    ]


def _reclaim() -> Figure:
    cluster = a_cluster(500, ("full", "empty"), gpus=8)
    add_running(cluster, 4_000, 1, 500, queue="full", gpus=1)
    add_jobs(cluster, 4_000, 1, queue="empty", gpus=1)
    conf = replace(DEFAULT, actions=("enqueue", "allocate", "reclaim", "backfill"))
    # Each queue deserves half of the devices.
    seconds = decide(cluster, evicts(2_000), conf=conf)
    name = "reclaim: 4,000 one-GPU jobs run on 500 nodes, 4,000 wait"
    return Figure.of(name, seconds, "s", 2.0)


def _racks() -> Figure:
    cluster = a_cluster(640)
    add_racks(cluster, 10, 64)
    for size in (2, 3):
        topology = NetworkTopology("hard", highest_tier_allowed=1)
        add_jobs(cluster, 3_000, size, prefix=f"g{size}-", topology=topology)
    *tiers, last = DEFAULT.tiers
    conf = replace(DEFAULT, tiers=(*tiers, (*last, PluginOption("network-topology-aware"))))
    seconds = decide(cluster, places(15_000), conf=conf)
    name = "decide 15,000 pods in gangs of 2-3, each in one of 10 racks"
    return Figure.of(name, seconds, "s", 5.0)
