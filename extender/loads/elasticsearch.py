"""Figures of Metricbeat, by Elasticsearch's search API: one search answers for all nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from extender.loads.source import PERIOD, JsonServer, SourceError, joined
from pumice.core.model.inputs import Load
from pumice.kube.clock import Clock

CPU: Final = "host.cpu.usage"
MEMORY: Final = "system.memory.actual.used.pct"
INDEX: Final = "metricbeat-*"
NAME_FIELD: Final = "host.hostname"
NODES: Final = 20_000
"""How many nodes an answer is for at most."""


@dataclass(frozen=True, slots=True)
class Elasticsearch:
    """The source of type `elasticsearch`."""

    server: JsonServer
    clock: Clock
    index: str = INDEX
    #: the field that holds a node's name
    name_field: str = NAME_FIELD

    async def read(self) -> dict[str, Load]:
        """Return the figures by node; they are parts of one in the index."""
        answer = await self.server.ask(f"/{self.index}/_search", body=self._search())
        now = self.clock.now()
        try:
            rows = answer["aggregations"]["nodes"]["buckets"]
            cpu = {row["key"]: (_percent(row["cpu"]), now) for row in rows}
            memory = {row["key"]: (_percent(row["memory"]), now) for row in rows}
        except (KeyError, TypeError, ValueError) as error:
            raise SourceError(f"{self.server.address}: not an answer to a search") from error
        return joined(cpu, memory)

    def _search(self) -> dict[str, Any]:
        averages = {"cpu": CPU, "memory": MEMORY}
        return {
            "size": 0,
            "query": {"range": {"@timestamp": {"gte": f"now-{PERIOD}", "lt": "now"}}},
            "aggs": {
                "nodes": {
                    "terms": {"field": self.name_field, "size": NODES},
                    "aggs": {key: {"avg": {"field": field}} for key, field in averages.items()},
                }
            },
        }


def _percent(average: Any) -> float:
    """Return an average in percent; there is none where no document has the field."""
    value = average["value"]
    return float("nan") if value is None else 100 * float(value)
