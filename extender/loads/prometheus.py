"""
Figures of node-exporter, by Prometheus' query API.

Two queries answer for all nodes. The label `instance` must be the node's name; a port behind it
does no harm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from extender.loads.source import PERIOD, Figures, JsonServer, SourceError, joined
from pumice.core.model.inputs import Load

_IDLE: Final = 'avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m]))'
_FREE: Final = "node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes"
CPU: Final = f"avg_over_time((100 - 100 * {_IDLE})[{PERIOD}:30s])"
MEMORY: Final = f"avg_over_time((100 - 100 * avg by (instance) ({_FREE}))[{PERIOD}:30s])"


@dataclass(frozen=True, slots=True)
class Prometheus:
    """The source of type `prometheus`."""

    server: JsonServer

    async def read(self) -> dict[str, Load]:
        """Return the figures by node."""
        return joined(await self._query(CPU), await self._query(MEMORY))

    async def _query(self, query: str) -> Figures:
        answer = await self.server.ask("/api/v1/query", {"query": query})
        try:
            return dict(_figure(row) for row in answer["data"]["result"])
        except (KeyError, TypeError, ValueError) as error:
            raise SourceError(f"{self.server.address}: not an answer to a query") from error


def _figure(row: Any) -> tuple[str, tuple[float, float]]:
    at, value = row["value"]
    return row["metric"]["instance"].partition(":")[0], (float(value), float(at))
