"""
Metrics of one process, in a registry of their own.

Labels are bound once and have few values: never the name of a job, pod or node, whose number
has no bound. The registry is rendered in a thread, since that takes long when it is large.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

CONTENT_TYPE = CONTENT_TYPE_LATEST
#: from a millisecond to a minute
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
#: labels that would grow without bound
FORBIDDEN = frozenset({"job", "job_name", "job_id", "pod", "pod_name", "node", "node_name", "uid"})

disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """Makes metrics and renders them; `prefix` stands before each name."""

    def __init__(self, prefix: str = "") -> None:
        self.registry = CollectorRegistry()
        self._prefix = prefix
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Counter:
        """Return a counter; its children are bound with `labels` once, where it is used."""
        return Counter(self._prefix + name, text, _checked(labels), registry=self.registry)

    def gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> Gauge:
        """Return a gauge."""
        return Gauge(self._prefix + name, text, _checked(labels), registry=self.registry)

    def histogram(
        self,
        name: str,
        text: str,
        labels: Sequence[str] = (),
        buckets: Sequence[float] = SECONDS,
    ) -> Histogram:
        """Return a histogram, by default of seconds."""
        return Histogram(
            self._prefix + name, text, _checked(labels), registry=self.registry, buckets=buckets
        )

    async def render(self, others: Callable[[], Iterable[Metric]] = tuple) -> bytes:
        """Return all metrics in Prometheus' text format, and with them what `others` makes."""
        return await asyncio.to_thread(self._render, others)

    def _render(self, others: Callable[[], Iterable[Metric]]) -> bytes:
        made = CollectorRegistry()
        made.register(_Made(others))
        return generate_latest(self.registry) + generate_latest(made)


class _Made(Collector):
    def __init__(self, make: Callable[[], Iterable[Metric]]) -> None:
        self._make = make

    def collect(self) -> Iterable[Metric]:
        return self._make()


def _checked(labels: Sequence[str]) -> Sequence[str]:
    if bad := FORBIDDEN & set(labels):
        raise ValueError(f"labels without bound: {', '.join(sorted(bad))}")
    return labels
