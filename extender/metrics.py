"""Metrics of the extender; Volcano's names come with the figures that Volcano has."""

from __future__ import annotations

from pumice.kube import metrics

GANG_WAIT_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300)


class Metrics:
    """All metrics of one process."""

    def __init__(self) -> None:
        made = self.made = metrics.Metrics("pumice_")
        self.session_seconds = made.histogram(
            "session_duration_seconds", "Time from snapshot to applied plan."
        )
        self.gang_wait_seconds = made.histogram(
            "bind_gang_wait_seconds",
            "Time that a bind call waited for its gang.",
            buckets=GANG_WAIT_SECONDS,
        )
        self.bind_seconds = made.histogram(
            "bind_duration_seconds", "Time of a bind call without the wait for its gang."
        )
        self.placements = made.counter("placements", "Pods that sessions gave a node.")
        self.dropped = made.counter(
            "placements_dropped", "Placements that no longer held when they were applied."
        )
        self.plugin_failures = made.counter(
            "plugin_failures", "What third-party plugins raised in sessions.", ["plugin"]
        )
        self.failed_sessions = made.counter("sessions_failed", "Sessions that decided nothing.")
        self.replaced = made.gauge("pods_replaced", "Pods given up after a refusal.")
        self.in_flight = made.gauge("pods_in_flight", "Pods Released or Arrived.")
        self.parked = made.gauge("bind_calls_parked", "Open bind calls.")
        self.bind_errors = made.gauge("bind_errors", "bind calls answered with an error.")
        self.overcommitted = made.gauge(
            "nodes_overcommitted", "Nodes on which more is bound than is allocatable."
        )
        self.ledger_entries = made.gauge("ledger_entries", "Pods that the ledger knows.")
        self.cached_pods = made.gauge("cached_pods", "Pods in the model.")
        self.task_classes = made.gauge(
            "task_classes", "Kinds of pods, by requests and constraints, in the model."
        )

    def bound(self, waited_s: float, posted_s: float) -> None:
        """Note one binding."""
        self.gang_wait_seconds.observe(waited_s)
        self.bind_seconds.observe(posted_s)
