"""The plugin `numa-aware`: asks each node's cpus, and keeps the books of a session."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from pumice.core import names, quantity
from pumice.core.api.numatopology import Numatopology
from pumice.core.conf import Arguments
from pumice.core.extension import (
    BatchNodeOrder,
    Code,
    Event,
    EventHandler,
    LivePredicate,
    PredicateResult,
    Refusal,
)
from pumice.core.ids import PodUid
from pumice.core.model.tasks import Status, Task, TaskClass
from pumice.core.plugins.numa_aware.cpus import NOTHING, Cpus, Layout, parse_cpus
from pumice.core.qos import whole_cpus
from pumice.core.resources import Floats, Ints
from pumice.core.session import Session

NAME = "numa-aware"
MAX_SCORE: Final = 100.0
NO_INFO: Final = "numa info is empty"
Asked = tuple[tuple[str, int], ...]
"""Containers and the whole cpus that they ask for."""


@dataclass(slots=True)
class Machine:
    """A node's cpus in this session."""

    layout: Layout
    cpu_policy: str
    policy: str
    free: Cpus
    #: pods whose cpus the exporter has reported
    reported: frozenset[str]
    held: dict[PodUid, Cpus] = field(default_factory=dict)
    answers: dict[tuple[Asked, str], Cpus | str] = field(default_factory=dict)

    @classmethod
    def of(cls, topology: Numatopology) -> Machine:
        """Read a node's cpus; raise ValueError where they make no sense."""
        spec = topology.spec
        policies, resources = spec.policies or {}, spec.numares or {}
        layout = Layout({int(cpu): info for cpu, info in (spec.cpu_detail or {}).items()})
        cpus = resources["cpu"].allocatable if "cpu" in resources else ""
        free = parse_cpus(cpus) & frozenset(layout.cpus)
        reserved = math.ceil(quantity.parse((spec.res_reserved or {}).get("cpu", "0")))
        everything = frozenset(layout.cpus)
        kept = layout.take(reserved, everything) if reserved else NOTHING
        return cls(
            layout,
            policies.get("CPUManagerPolicy", ""),
            policies.get("TopologyManagerPolicy", ""),
            free - kept,
            frozenset(pod.uid for pod in spec.pod_allocations or ()),
        )

    @property
    def is_managed(self) -> bool:
        """Return whether the kubelet places cpus at all."""
        return self.cpu_policy == "static" and self.policy not in ("", "none")

    def fault(self, policy: str) -> str:
        """Return why a pod that insists on a policy cannot come here, if so."""
        if self.cpu_policy != "static":
            return "cpu manager policy isn't static"
        if policy != self.policy:
            return f"task topology policy[{policy}] is different with node[{self.policy}]"
        if not self.layout.cpus:
            return "no topo information"
        return "" if self.free or self.held else "cpu allocatable map is empty"

    def assign(self, asked: Asked, policy: str) -> Cpus | str:
        """Return the cpus that a pod would get here, or why it gets none."""
        key = (asked, policy)
        found = self.answers.get(key)
        if found is None:
            found = self.answers[key] = self._assign(asked, policy)
        return found

    def _assign(self, asked: Asked, policy: str) -> Cpus | str:
        taken: Cpus = NOTHING
        for name, number in asked:
            cpus = self.layout.assign(policy, number, self.free - taken)
            if cpus is None:
                return f"container {name} cannot be assigned by numa"
            taken |= cpus
        return taken

    def give(self, uid: PodUid, cpus: Cpus) -> None:
        """Let a pod have cpus."""
        self.held[uid] = cpus
        self.free -= cpus
        self.answers.clear()

    def take_back(self, uid: PodUid) -> None:
        """Take a pod's cpus away again, if it has any."""
        self.free |= self.held.pop(uid, NOTHING)
        self.answers.clear()


class NumaAware:
    """The plugin."""

    name = NAME

    def __init__(self, args: Arguments) -> None:
        self.weight = args.integer("weight", 1)
        self.machines: dict[int, Machine] = {}

    def on_session_open(self, ssn: Session) -> None:
        """Read the nodes' cpus; give those pods theirs that no exporter has reported yet."""
        for name, topology in ssn.snapshot.inputs.numa.items():
            i = ssn.nodes.index.get(name)
            if i is None:
                continue
            try:
                self.machines[i] = Machine.of(topology)
            except ValueError as fault:
                ssn.findings.warnings.append(f"numatopology {name}: {fault}")
                continue
            residents = ssn.nodes.tasks_on(name).values()
            for task in sorted(residents, key=lambda t: (t.created, t.uid)):
                if task.uid not in self.machines[i].reported:
                    self._give(task, i, whole_cpus(task.pod))
        points = ssn.points
        points.live_predicate[NAME] = LivePredicate(self._applies, lambda c: self.check(ssn, c))
        points.batch_node_order[NAME] = BatchNodeOrder(
            lambda cls: bool(cls.signature.cpus and _policy(cls)), self.score
        )
        ssn.listen(EventHandler(self._placed, self._removed))

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing: what was given is found again by the pods on each node."""

    def _applies(self, cls: TaskClass) -> bool:
        return bool(cls.signature.cpus) and bool(self.machines or _policy(cls))

    def check(self, ssn: Session, cls: TaskClass) -> PredicateResult:
        """Return the nodes that have cpus for the class as its policy, or theirs, wants them."""
        n = len(ssn.nodes)
        mask = np.ones(n, bool)
        refused: dict[tuple[Code, str], list[int]] = {}
        policy = _policy(cls)
        for i in range(n) if policy else self.machines:
            answer = self._refusal(i, cls, policy)
            if answer is not None:
                mask[i] = False
                refused.setdefault(answer, []).append(i)
        reasons = []
        for (code, message), columns in refused.items():
            nodes = np.zeros(n, bool)
            nodes[columns] = True
            reasons.append(Refusal(code, message, nodes))
        return PredicateResult(mask, tuple(reasons))

    def _refusal(self, i: int, cls: TaskClass, policy: str) -> tuple[Code, str] | None:
        machine = self.machines.get(i)
        if policy:
            fault = machine.fault(policy) if machine else NO_INFO
            if fault:
                return (Code.ERROR, fault)
        if machine is None or not machine.is_managed:
            return None
        found = machine.assign(cls.signature.cpus, machine.policy)
        return (Code.UNRESOLVABLE, found) if isinstance(found, str) else None

    def score(self, cls: TaskClass, at: Ints) -> Floats:
        """Prefer nodes where the cpus lie on few NUMA nodes, compared with the worst."""
        spans = np.array([self._span(int(i), cls) for i in at], float)
        most = spans.max(initial=0.0)
        if not most:
            return np.full(at.size, MAX_SCORE * self.weight)
        scores: Floats = np.floor(MAX_SCORE - MAX_SCORE * spans / most) * self.weight
        return scores

    def _span(self, i: int, cls: TaskClass) -> int:
        machine = self.machines.get(i)
        if machine is None:
            return 0
        found = machine.assign(cls.signature.cpus, machine.policy)
        return 0 if isinstance(found, str) else machine.layout.spanned(found)

    def _give(self, task: Task, node: int, asked: Asked) -> None:
        machine = self.machines.get(node)
        if machine is None or not machine.is_managed or not asked:
            return
        found = machine.assign(asked, machine.policy)
        if not isinstance(found, str):
            machine.give(task.uid, found)

    def _placed(self, event: Event) -> None:
        for task, node in zip(event.tasks, event.nodes, strict=True):
            if task.status & (Status.ALLOCATED | Status.PIPELINED):
                self._give(task, node, event.cls.signature.cpus)

    def _removed(self, event: Event) -> None:
        for task, node in zip(event.tasks, event.nodes, strict=True):
            if node in self.machines and task.status & (Status.ALLOCATED | Status.PIPELINED):
                self.machines[node].take_back(task.uid)


def _policy(cls: TaskClass) -> str:
    """Return the topology policy that the pod insists on, if any."""
    policy = cls.signature.traits.get(names.NUMA_POLICY, "")
    return "" if policy == "none" else policy
