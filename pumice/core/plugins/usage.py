"""
usage: keep away from nodes that are busy, whatever is asked for there.

How busy a node is has been measured from outside, on average over ten minutes. A node above a
threshold takes no pods. The others score by what is left of cpu c and memory m, each in 0..1:

    ((1 - c) * cpu.weight + (1 - m) * memory.weight) / (cpu.weight + memory.weight) * 100
        * usage.weight

Pods that were placed a moment ago do not show in the figures yet. What they will use is estimated
and added, as a part of what the node offers:

    estimate = (request * request_ratio + (limit - request) * burst_ratio) * risk

but no more than the limit, or than the request where there is none; pods that ask for nothing
count as `be_cpu` and `be_mem`. `risk` is 1, and `risk_factor` on nodes whose measured load is at
`risk_threshold` or above. Figures older than five minutes count as none: such nodes take pods,
and score 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from pumice.core import quantity
from pumice.core.conf import Arguments, Yaml
from pumice.core.extension import (
    Code,
    Event,
    EventHandler,
    NodeOrder,
    PredicateResult,
    Refusal,
)
from pumice.core.ids import PodUid
from pumice.core.jobs.durations import seconds
from pumice.core.model.tasks import Status, Task, TaskClass
from pumice.core.quota import pod_limits
from pumice.core.resources import CPU, MEMORY, PODS, Floats, Ints, in_units
from pumice.core.session import Session
from pumice.core.timestamps import moment

NAME = "usage"
CPU_EXCEEDED: Final = "the CPU load of the node exceeds the upper limit."
MEMORY_EXCEEDED: Final = "the memory load of the node exceeds the upper limit."
FRESH_S: Final = 300.0
_ROWS: Final = (CPU, MEMORY)
_UNSEEN: Final = Status.ALLOCATED | Status.PIPELINED | Status.BINDING | Status.BOUND
_MIB: Final = 1024.0 * 1024.0


@dataclass(frozen=True, slots=True)
class Estimator:
    """How much of what a pod asks for it is expected to use."""

    request_ratio: float = 0.7
    burst_ratio: float = 0.0
    risk_threshold: float = 0.6
    risk_factor: float = 1.2
    #: of pods that ask for nothing: thousandths of a cpu, bytes
    nothing: tuple[float, float] = (250.0, 200 * _MIB)

    @classmethod
    def parse(cls, args: Arguments) -> Estimator:
        """Read the settings; what is out of range counts as the default."""
        default = cls()
        return cls(
            _within(args, "request_ratio", default.request_ratio, 0.0, 1.0),
            _within(args, "burst_ratio", default.burst_ratio, 0.0, 1.0),
            _within(args, "risk_threshold", default.risk_threshold, 0.0, 1.0),
            _within(args, "risk_factor", default.risk_factor, 1.0, float("inf")),
            (
                _amount(args.raw.get("be_cpu"), "cpu", 1.0, default.nothing[0]),
                _amount(args.raw.get("be_mem"), "memory", _MIB, default.nothing[1]),
            ),
        )

    def estimate(self, request: float, limit: float, risk: Floats) -> Floats:
        """Return what of one resource is expected to be used, for nodes of these risks."""
        burst = max(limit - request, 0.0) * self.burst_ratio
        expected = (request * self.request_ratio + burst) * risk
        return np.clip(expected, 0.0, limit or request)

    def of(self, task: Task, risk: Floats) -> Floats:
        """Return what a pod is expected to use of cpu and memory: (2, N)."""
        limits = pod_limits(task.pod)
        rows = []
        for row, name in ((CPU, "cpu"), (MEMORY, "memory")):
            request = float(task.cls.req[row]) if row < task.cls.req.size else 0.0
            limit = in_units(name, limits.get(name, 0))
            if request or limit:
                rows.append(self.estimate(request, limit, risk))
            else:
                rows.append(self.nothing[row] * risk)
        return np.array(rows)


def composite(load: Floats, shadow: Floats, capacity: Floats) -> Floats:
    """Return the load in 0..1: measured, in percent, and expected, of what there is."""
    part = np.divide(shadow, capacity, out=np.zeros_like(shadow), where=capacity > 0)
    return np.where(capacity > 0, np.clip(load / 100.0 + part, 0.0, 1.0), 0.0)


@dataclass(slots=True)
class Shadow:
    """What pods that the figures do not show yet are expected to use: (2, N)."""

    amounts: Floats
    estimates: dict[PodUid, tuple[int, Floats]] = field(default_factory=dict)
    gone: dict[PodUid, tuple[int, Floats]] = field(default_factory=dict)

    def add(self, uid: PodUid, node: int, estimate: Floats) -> None:
        """Count a pod on a node."""
        self.estimates[uid] = (node, estimate)
        self.amounts[:, node] += estimate

    def remove(self, uid: PodUid) -> None:
        """Count a pod no more, if it was counted."""
        if uid in self.estimates:
            node, estimate = self.gone[uid] = self.estimates.pop(uid)
            self.amounts[:, node] -= estimate

    def restore(self, uid: PodUid) -> None:
        """Count a pod again that was removed."""
        if uid in self.gone:
            self.add(uid, *self.gone.pop(uid))


class Usage:
    """The plugin."""

    name = NAME

    def __init__(self, args: Arguments) -> None:
        self.weight = args.integer("usage.weight", 5)
        self.weights = (args.integer("cpu.weight", 1), args.integer("memory.weight", 1))
        thresholds = args.section("thresholds")
        self.thresholds = (thresholds.number("cpu", 80.0), thresholds.number("mem", 80.0))
        self.estimator = Estimator.parse(args.section("estimator"))

    def on_session_open(self, ssn: Session) -> None:
        """Take the figures, and estimate what does not show in them."""
        nodes = ssn.nodes
        load, known = np.zeros((2, len(nodes))), np.zeros(len(nodes), bool)
        for name, found in ssn.snapshot.inputs.loads.items():
            i = nodes.index.get(name)
            if i is not None and ssn.now - found.at <= FRESH_S:
                load[:, i], known[i] = (found.cpu, found.memory), True
        risky = self._mean(load / 100.0) >= self.estimator.risk_threshold
        risk = np.where(risky & known, self.estimator.risk_factor, 1.0)
        shadow = self._shadow(ssn, risk)
        own: dict[TaskClass, Floats] = {}

        def score(cls: TaskClass, at: Ints, alloc: Floats, used: Floats) -> Floats:
            if cls not in own:
                own[cls] = self.estimator.of(cls.example, risk) if cls.example else risk * 0
            held = nodes.used[PODS, at] + nodes.pipelined[PODS, at]
            before = used[PODS] - held[:, None] - 1  # (n, T): the copies but the last
            mine = own[cls][:, at, None] if own[cls].ndim == 2 else np.zeros((2, at.size, 1))
            expected = shadow.amounts[:, at, None] + mine * before
            capacity = np.broadcast_to(alloc[list(_ROWS)], expected.shape)
            left = 1.0 - composite(load[:, at, None], expected, capacity)
            scores: Floats = np.where(known[at, None], self._mean(left) * 100.0 * self.weight, 0.0)
            return scores

        refusals = tuple(
            Refusal(Code.UNRESOLVABLE, message, known & (load[row] > most))
            for row, message, most in zip(
                _ROWS, (CPU_EXCEEDED, MEMORY_EXCEEDED), self.thresholds, strict=True
            )
        )
        mask = ~(refusals[0].nodes | refusals[1].nodes)
        ssn.points.distinction[NAME] = lambda task: (NAME, repr(_limits(task)))
        ssn.points.predicate[NAME] = lambda cls: PredicateResult(mask, refusals)
        ssn.points.node_order[NAME] = NodeOrder(score)

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""

    def _mean(self, parts: Floats) -> Floats:
        """Return the weighted mean of cpu and memory; 0 where both weigh nothing."""
        cpu, memory = self.weights
        mean: Floats = (parts[0] * cpu + parts[1] * memory) / ((cpu + memory) or 1)
        return mean

    def _shadow(self, ssn: Session, risk: Floats) -> Shadow:
        """Return what the figures do not show yet, and keep it up to date."""
        shadow = Shadow(np.zeros((2, len(ssn.nodes))))
        interval_s = _interval(ssn.conf.metrics.get("interval"))

        def estimate(task: Task, node: int) -> Floats:
            return self.estimator.of(task, risk[node : node + 1])[:, 0]

        for node, name in enumerate(ssn.nodes.names):
            for task in ssn.nodes.tasks_on(name).values():
                if task.status & _UNSEEN or _is_young(task, ssn.now, interval_s):
                    shadow.add(task.uid, node, estimate(task, node))

        def placed(event: Event) -> None:
            for task, node in zip(event.tasks, event.nodes, strict=True):
                if task.status & (Status.ALLOCATED | Status.PIPELINED):
                    shadow.add(task.uid, node, estimate(task, node))
                else:
                    shadow.restore(task.uid)

        def removed(event: Event) -> None:
            for task in event.tasks:
                shadow.remove(task.uid)

        ssn.listen(EventHandler(placed, removed))
        return shadow


def _limits(task: Task) -> tuple[object, ...]:
    """Return the limits of the containers, which a class does not tell apart."""
    containers = task.pod.spec.containers or ()
    return tuple(c.resources.limits if c.resources else None for c in containers)


def _is_young(task: Task, now: float, interval_s: float) -> bool:
    """Return whether a running task was placed after the last figures were taken."""
    if task.status is not Status.RUNNING:
        return False
    conditions = task.pod.status.conditions or ()
    scheduled = [moment(c.last_transition_time) for c in conditions if c.type == "PodScheduled"]
    return now - max(scheduled, default=task.created) < interval_s


def _interval(value: Yaml) -> float:
    return (seconds(value) if isinstance(value, str) else None) or 30.0


def _within(args: Arguments, key: str, default: float, low: float, high: float) -> float:
    found = args.number(key, default)
    return found if low <= found <= high else default


def _amount(value: Yaml, name: str, unit: float, default: float) -> float:
    """Return an amount that is a quantity, or a number of units; else the default."""
    if isinstance(value, int) and not isinstance(value, bool):
        found = value * unit
    elif isinstance(value, str):
        try:
            found = in_units(name, quantity.parse(value))
        except quantity.QuantityError:
            return default
    else:
        return default
    return found if found >= 0 else default
