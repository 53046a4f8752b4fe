"""
Pods of others on the same nodes: one that an administrator binds, or many that come and go.

    blocker = occupy(bed, node, cpu=4)          # bound as the administrator, past every scheduler
    async with Churn(bed, per_s=20, cpu="500m") as churn:   # pods of the default scheduler
        ...
"""

from __future__ import annotations

import asyncio
import itertools
from time import monotonic
from types import TracebackType
from typing import Self

from tests.acceptance.bed import Bed, pod_path
from tests.acceptance.objects import EXIT_AFTER, Object, a_pod

SERIAL = itertools.count()
CHURN_LABEL = "churn"


def occupy(bed: Bed, node: str, *, cpu: int) -> Object:
    """Create a plain pod of nobody's scheduler and bind it to a node as the administrator."""
    body = a_pod(f"foreign-{next(SERIAL)}", scheduler="somebody-else", cpu=cpu)
    (pod,) = bed.create(body)
    meta = {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
    target = {"kind": "Node", "name": node}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
    bed.api.post(f"{pod_path(pod)}/binding", binding)
    return pod


class Churn:
    """Short-lived pods of the default scheduler, so many a second; a context manager."""

    def __init__(self, bed: Bed, *, per_s: float, cpu: str, life_s: float = 1.0) -> None:
        self.per_s = per_s
        self.created = 0
        self._bed = bed
        self._cpu = cpu
        self._life_s = life_s
        self._started = 0.0
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._started = monotonic()
        work = {"create": self._create(), "sweep": self._sweep()}
        self._tasks = [asyncio.create_task(run, name=f"churn: {n}") for n, run in work.items()]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for task in self._tasks:
            task.cancel()
        outcomes = await asyncio.gather(*self._tasks, return_exceptions=True)
        failures = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        if failures and error is None:
            raise failures[0]
        await self._remove("")

    @property
    def seconds(self) -> float:
        """For how long it has gone on."""
        return monotonic() - self._started

    def bound(self) -> int:
        """Return how many of the pods have been seen on a node so far."""
        history = list(self._bed.pods.history)
        mine = (s.object for s in history if CHURN_LABEL in s.object["metadata"].get("labels", {}))
        return len({pod["metadata"]["uid"] for pod in mine if pod["spec"].get("nodeName")})

    async def _create(self) -> None:
        """Keep the pace; what was missed is caught up with."""
        while True:
            behind = int(self.seconds * self.per_s) - self.created
            if behind:
                pods = [self._a_pod(self.created + i) for i in range(behind)]
                await self._bed.aside(self._bed.create_many, pods)
                self.created += behind
            await asyncio.sleep(1 / self.per_s)

    def _a_pod(self, serial: int) -> Object:
        return a_pod(
            f"churn-{serial}",
            scheduler="default-scheduler",
            labels={CHURN_LABEL: ""},
            annotations={EXIT_AFTER: str(self._life_s)},
            cpu=self._cpu,
        )

    async def _sweep(self) -> None:
        """Remove what has run to its end, once a second."""
        while True:
            await asyncio.sleep(1)
            await self._remove("&fieldSelector=status.phase%3DSucceeded")

    async def _remove(self, which: str) -> None:
        pods = f"/api/v1/namespaces/{self._bed.namespace}/pods?labelSelector={CHURN_LABEL}{which}"
        await self._bed.aside(self._bed.api.delete, pods, {"gracePeriodSeconds": 0})
