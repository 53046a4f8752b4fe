"""
rescheduling: move pods from crowded nodes to empty ones.

From time to time (`interval`) `shuffle` asks who should be somewhere else. The strategy
`lowNodeUtilization` compares how busy nodes are, in percent of cpu, memory and pods:

    low    every figure is below its `thresholds`, and the node is not cordoned
    high   some figure is above its `targetThresholds`

Where there are both, and not low ones alone, pods leave the high nodes, the busiest first, until
the node is at none of its targets, or a resource of the low nodes is used up: together they take
what lies between their figures and the targets. The least important pods go first: low priority,
then best effort, burstable, guaranteed.

Figures are averages over ten minutes; with another `metricsPeriod` than `10m` there are none,
nodes count as idle, and nothing happens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pumice.core.conf import Arguments
from pumice.core.jobs.durations import seconds
from pumice.core.model.nodes import NodeTable
from pumice.core.model.tasks import Status, Task
from pumice.core.qos import quality
from pumice.core.resources import CPU, MEMORY, PODS, Floats, pad
from pumice.core.session import Session

NAME = "rescheduling"
STRATEGY: Final = "lowNodeUtilization"
_METRICS: Final = ("cpu", "memory", "pods")
_ROWS: Final = [CPU, MEMORY, PODS]
_MEASURED: Final = "10m"


@dataclass(frozen=True, slots=True)
class Strategy:
    """The limits of `lowNodeUtilization`, in percent of cpu, memory and pods: (3,)."""

    low: Floats
    target: Floats

    @classmethod
    def parse(cls, args: Arguments) -> Strategy:
        """Read the limits; what is not named is 100."""
        return cls(*(_limits(args.section(k)) for k in ("thresholds", "targetThresholds")))

    def victims(
        self, nodes: NodeTable, used: Floats, tasks: Mapping[str, list[Task]]
    ) -> list[Task]:
        """Return who should leave; `used` is in percent (3, N), `tasks` run, by node."""
        cordoned = nodes.columns.unschedulable
        low = (used < self.low[:, None]).all(axis=0) & ~cordoned
        high = (used > self.target[:, None]).any(axis=0)
        if not low.any() or not high.any() or low.all():
            return []
        capacity = nodes.alloc[_ROWS]
        room = ((self.target[:, None] - used) / 100.0 * capacity)[:, low].sum(axis=1)
        chosen = []
        for i in sorted(np.flatnonzero(high), key=lambda i: -used[:2, i].sum()):
            left = used[:, i].copy()
            for task in sorted(tasks.get(nodes.names[i], ()), key=_importance):
                if (left < self.target).all() or (room <= 0).any():
                    break
                asked = pad(task.cls.req, PODS + 1)[_ROWS]
                left -= np.divide(
                    asked * 100.0, capacity[:, i], where=capacity[:, i] > 0, out=asked * 0
                )
                room -= asked
                chosen.append(task)
        return chosen


class Rescheduling:
    """The plugin."""

    name = NAME

    def __init__(self, args: Arguments) -> None:
        self.interval_s = seconds(args.text("interval", "5m")) or 300.0
        self.measured = args.text("metricsPeriod", "5m") == _MEASURED
        self.strategies = _strategies(args)

    def on_session_open(self, ssn: Session) -> None:
        """Register who should be somewhere else, once in the interval."""

        def victims(tasks: Sequence[Task]) -> list[Task]:
            if not ssn.is_due(NAME, self.interval_s, at_once=False):
                return []
            used, running = self._figures(ssn), _by_node(tasks)
            found = [s.victims(ssn.nodes, used, running) for s in self.strategies]
            return list({task.uid: task for chosen in found for task in chosen}.values())

        ssn.points.victim_tasks[NAME] = victims

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""

    def _figures(self, ssn: Session) -> Floats:
        """Return how busy nodes are, in percent: (3, N)."""
        nodes = ssn.nodes
        used = np.zeros((3, len(nodes)))
        for name, load in ssn.snapshot.inputs.loads.items() if self.measured else ():
            if name in nodes.index:
                used[:2, nodes.index[name]] = (load.cpu, load.memory)
        offered = nodes.alloc[PODS]
        if self.measured:
            used[2] = np.divide(nodes.used[PODS] * 100.0, offered, where=offered > 0, out=used[2])
        return used


def _strategies(args: Arguments) -> list[Strategy]:
    """Read the list of strategies; what is no known one is told of."""
    entries = args.raw.get("strategies", [{"name": STRATEGY}])
    found = []
    for entry in entries if isinstance(entries, list) else [entries]:
        if isinstance(entry, Mapping) and entry.get("name") == STRATEGY:
            found.append(Strategy.parse(Arguments(dict(entry), args.faults).section("params")))
        else:
            args.faults["strategies"] = f"argument strategies: {entry!r} is not known, ignored"
    return found


def _limits(args: Arguments) -> Floats:
    return np.array([args.number(metric, 100.0) for metric in _METRICS])


def _by_node(tasks: Sequence[Task]) -> dict[str, list[Task]]:
    found: dict[str, list[Task]] = {}
    for task in tasks:
        if task.status is Status.RUNNING:
            found.setdefault(task.node, []).append(task)
    return found


def _importance(task: Task) -> tuple[bool, int, int]:
    """Put pods first that matter least: without a priority, or of a low one; then by quality."""
    priority = task.pod.spec.priority
    return (priority is not None, priority or 0, quality(task.pod))
