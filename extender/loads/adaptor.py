"""
Figures by the API server: the custom metrics that an adapter serves there.

The adapter's rules must offer `node_cpu_usage_avg` and `node_memory_usage_avg` of nodes, as parts
of one. The extender may read these two and no other metric.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from extender.loads.source import Figures, SourceError, joined
from pumice.core import quantity
from pumice.core.model.inputs import Load
from pumice.core.timestamps import moment
from pumice.kube.client import Client
from pumice.kube.errors import KubeError

CPU: Final = "node_cpu_usage_avg"
MEMORY: Final = "node_memory_usage_avg"
_PATH: Final = "/apis/custom.metrics.k8s.io/v1beta1/nodes/*/"


@dataclass(frozen=True, slots=True)
class Adaptor:
    """The source of type `prometheus_adaptor`."""

    client: Client

    async def read(self) -> dict[str, Load]:
        """Return the figures by node."""
        return joined(await self._metric(CPU), await self._metric(MEMORY))

    async def _metric(self, name: str) -> Figures:
        path = _PATH + name
        try:
            answer = msgspec.json.decode(await self.client.call("GET", path))
            return dict(_figure(item) for item in answer["items"])
        except KubeError as error:
            raise SourceError(f"{path}: {error}") from error
        except (KeyError, TypeError, ValueError) as error:
            raise SourceError(f"{path}: not a list of metrics") from error


def _figure(item: Any) -> tuple[str, tuple[float, float]]:
    percent = 100 * float(quantity.parse(item["value"]))
    return item["describedObject"]["name"], (percent, moment(item["timestamp"]))
