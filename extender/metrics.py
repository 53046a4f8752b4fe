"""Metrics of the extender: Volcano's names where it has one; no label that grows with jobs."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

disable_created_metrics()

SESSION_BUCKETS = tuple(0.001 * 2**i for i in range(16))


class Metrics:
    """All metrics, registered once; label children are bound where they are used."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.session_seconds = Histogram(
            "pumice_session_duration_seconds",
            "Time from snapshot to applied plan.",
            buckets=SESSION_BUCKETS,
            registry=registry,
        )
        self.placements = Counter(
            "pumice_placements", "Pods that sessions gave a node.", registry=registry
        )
        self.dropped = Counter(
            "pumice_placements_dropped",
            "Placements that no longer held when they were applied.",
            registry=registry,
        )
        self.replaced = Gauge(
            "pumice_pods_replaced", "Pods given up after a refusal.", registry=registry
        )
        self.in_flight = Gauge(
            "pumice_pods_in_flight", "Pods Released or Arrived.", registry=registry
        )
        self.parked = Gauge("pumice_bind_calls_parked", "Open bind calls.", registry=registry)
        self.bind_errors = Gauge(
            "pumice_bind_errors", "bind calls answered with an error.", registry=registry
        )
        self.overcommitted = Gauge(
            "pumice_nodes_overcommitted",
            "Nodes on which more is bound than is allocatable.",
            registry=registry,
        )
