"""The volume filters of a session, put together and kept up to date."""

from __future__ import annotations

from functools import cached_property

from pumice.core.extension import Event, Refusal
from pumice.core.model.claims import is_bound
from pumice.core.model.snapshots import Snapshot
from pumice.core.model.tasks import Status, Task, TaskClass
from pumice.core.plugins.predicates.volumes.binding import Binding
from pumice.core.plugins.predicates.volumes.fullness import scores
from pumice.core.plugins.predicates.volumes.needs import Needs, Reader
from pumice.core.plugins.predicates.volumes.switches import VolumeSwitches
from pumice.core.plugins.predicates.volumes.usage import Usage
from pumice.core.plugins.predicates.volumes.zones import refuse_other_zones
from pumice.core.resources import Floats, Ints


class VolumeFilter:
    """
    What claims and volumes say of nodes.

    Pods are told apart by the number of their needs; classes that are asked about have one of
    their tasks in `example`.
    """

    def __init__(self, snapshot: Snapshot, switches: VolumeSwitches) -> None:
        self._storage = snapshot.inputs.storage
        self._columns = snapshot.nodes.columns
        self._switches = switches
        self._residents = [
            task
            for task in snapshot.mounting.values()
            if task.occupies and task.node in self._columns.index
        ]
        self._reader = Reader(self._storage, snapshot.mounting, switches)
        self._static: dict[TaskClass, list[Refusal]] = {}

    @cached_property
    def _usage(self) -> Usage:
        return Usage(self._storage, self._columns, self._reader, self._residents)

    @cached_property
    def _binding(self) -> Binding:
        """Return the volumes, of which pods on their way to a node have theirs already."""
        binding = Binding(self._storage, self._columns)
        coming = [task for task in self._residents if task.status & (Status.BINDING | Status.BOUND)]
        for task in sorted(coming, key=lambda t: (t.created, t.uid)):
            if not all(map(is_bound, self._reader.claims(task))):
                self._promise(binding, task, self._columns.index[task.node])
        return binding

    def mark(self, task: Task) -> int | None:
        """Return what tells pods of one class apart."""
        return self._reader.number(task)

    def fault(self, cls: TaskClass) -> str | None:
        """Return why pods of the class can start nowhere, if so."""
        needs = self._reader.of(cls.example)
        return needs.fault or None if needs is not None else None

    def _needs(self, cls: TaskClass) -> Needs | None:
        """Return the needs of a class; None where its pods mount no claims, or cannot start."""
        needs = self._reader.of(cls.example)
        return None if needs is None or needs.fault else needs

    # What nodes are refused for.

    def refuse(self, cls: TaskClass) -> list[Refusal]:
        """Refuse nodes for what no placement changes."""
        needs = self._needs(cls)
        if needs is None:
            return []
        found = self._static.get(cls)
        if found is None:
            found = refuse_other_zones(needs, self._columns) + self._binding.refuse_bound(needs)
            if self._binding.is_settled(needs):
                found += self._binding.refuse_unbound(needs)
            self._static[cls] = found
        return found

    def is_live(self, cls: TaskClass) -> bool:
        """Return whether it depends on other pods which nodes take the class."""
        needs = self._needs(cls)
        if needs is None:
            return False
        used = needs.exclusive or needs.attached
        return bool(used) or not self._binding.is_settled(needs)

    def refuse_for_usage(self, cls: TaskClass) -> list[Refusal]:
        """Refuse nodes for what is attached there, and for claims that are in use."""
        needs = self._needs(cls)
        if needs is None or not (needs.exclusive or needs.attached):
            return []
        return self._usage.refuse(needs)

    def refuse_for_stock(self, cls: TaskClass) -> list[Refusal]:
        """Refuse nodes for what the stock has left."""
        needs = self._needs(cls)
        if needs is None or self._binding.is_settled(needs):
            return []
        return self._binding.refuse_unbound(needs)

    # How well volumes fit.

    def gives(self, cls: TaskClass) -> bool:
        """Return whether nodes give volumes of the stock to the class."""
        needs = self._needs(cls) if self._switches.weight > 0 else None
        return needs is not None and not self._binding.is_settled(needs)

    def score(self, cls: TaskClass, at: Ints) -> Floats:
        """Return how well the volumes fit that the nodes in columns `at` would give."""
        needs = self._needs(cls)
        full = self._binding.fullness(needs.asks) if needs is not None else []
        return scores(self._switches.shape, full, at) * self._switches.weight

    # What is placed and taken away.

    def placed(self, event: Event) -> None:
        """Give pods that were placed what they get, and count them."""
        for task, node in zip(event.tasks, event.nodes, strict=True):
            if task.claims:
                self._count(task, node, 1)
                self._promise(self._binding, task, node)

    def removed(self, event: Event) -> None:
        """Count pods no more that were taken away; what they were promised is free again."""
        for task, node in zip(event.tasks, event.nodes, strict=True):
            if task.claims:
                self._count(task, node, -1)
                self._binding.take_back(task.uid)

    def _count(self, task: Task, node: int, sign: int) -> None:
        needs = self._reader.of(task)
        if needs is not None and (needs.exclusive or self._reader.limited):
            self._usage.add(task, node, sign)

    def _promise(self, binding: Binding, task: Task, node: int) -> None:
        needs = self._reader.of(task)
        if needs is not None and not needs.fault:
            binding.promise(task.uid, needs, node)
