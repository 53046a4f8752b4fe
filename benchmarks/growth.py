"""
How session time and memory grow with the cluster: ten running pods a node, one waiting gang.

Each size is measured in a process of its own (`python -m benchmarks.growth NODES`): memory that
one size freed would otherwise hide what the next one takes.
"""

from __future__ import annotations

import subprocess
import sys

import msgspec
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import CollectorRegistry

from benchmarks.figures import Figure
from benchmarks.sessions import decide, places
from benchmarks.worlds import a_cluster, add_jobs, add_running

SIZES = (100, 1_000, 5_000, 10_000)
PODS_PER_NODE = 10
GANG = 100
MIB = 2**20
LARGEST_GOAL_MIB = 1_536.0


class Growth(msgspec.Struct, frozen=True):
    """What one size takes: a session in ms with and without work, the process in MiB."""

    idle_ms: float
    gang_ms: float
    rss_mib: float


def measure() -> list[Figure]:
    """Return the figures of every size."""
    return [figure for nodes in SIZES for figure in _figures(nodes, _aside(nodes))]


def _figures(nodes: int, found: Growth) -> list[Figure]:
    size = f"{nodes:,} nodes, {nodes * PODS_PER_NODE:,} pods"
    goal = LARGEST_GOAL_MIB if nodes == SIZES[-1] else None
    return [
        Figure.of(f"{size}: session with nothing to do", found.idle_ms, "ms"),
        Figure.of(f"{size}: session that places a gang of {GANG}", found.gang_ms, "ms"),
        Figure.of(f"{size}: memory of model and engine", found.rss_mib, "MiB", goal),
    ]


def _aside(nodes: int) -> Growth:
    command = [sys.executable, "-m", "benchmarks.growth", str(nodes)]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return msgspec.json.decode(answer.stdout, type=Growth)


def _one(nodes: int) -> Growth:
    cluster = a_cluster(nodes)
    add_running(cluster, nodes * PODS_PER_NODE // GANG, GANG, nodes)
    idle = decide(cluster, places(0))
    add_jobs(cluster, 1, GANG)
    gang = decide(cluster, places(GANG))
    return Growth(1_000 * idle, 1_000 * gang, _rss() / MIB)


def _rss() -> float:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    return registry.get_sample_value("process_resident_memory_bytes") or 0.0


if __name__ == "__main__":
    print(msgspec.json.encode(_one(int(sys.argv[1]))).decode())
