"""
The node table: every node a column, every resource a row.

`used` holds all tasks that are charged to a node, those on their way out included; `releasing`
is the part of it that will come back, `pipelined` what waiting tasks were promised of that:

    idle        = alloc - used                       may be negative, where a node shrank
    future idle = idle + releasing - pipelined

Columns stand in the order in which the nodes came to be known; this order breaks all ties.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from pumice.core import names
from pumice.core.api.core import Node, Taint
from pumice.core.ids import PodUid
from pumice.core.model.columns import Columns
from pumice.core.model.signatures import image_name
from pumice.core.model.tasks import Status, Task
from pumice.core.resources import CPU, MEMORY, Floats, ResourceSpace, pad

HEARTBEAT = "-handshake"
"""How annotations end by which device plugins say, again and again, that they are there."""

Residents = Mapping[PodUid, Task]


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """What is known of a node besides its amounts."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    #: image name with tag -> size in bytes
    images: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, node: Node) -> NodeInfo:
        """Read a node."""
        images = {
            image_name(name): image.size_bytes
            for image in node.status.images or ()
            for name in image.names or ()
        }
        return cls(
            node.metadata.name,
            node.metadata.labels or {},
            _facts(node.metadata.annotations or {}),
            tuple(node.spec.taints or ()),
            node.spec.unschedulable,
            images,
        )


def allocatable(node: Node, space: ResourceSpace) -> Floats:
    """
    Return what a node offers, over-subscribed amounts included.

    Volcano's annotations add cpu in thousandths and memory in bytes; what is no number is left
    out. QuantityError is raised for a malformed amount.
    """
    offered = space.vector(node.status.allocatable).copy()
    annotations = node.metadata.annotations or {}
    extra = {CPU: names.OVERSUBSCRIPTION_CPU, MEMORY: names.OVERSUBSCRIPTION_MEMORY}
    for row, key in extra.items():
        text = annotations.get(key, "")
        offered[row] += float(text) if text.isdecimal() else 0.0
    return offered


def _facts(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """Return the annotations that say something new when they change."""
    if any(key.endswith(HEARTBEAT) for key in annotations):
        return {k: text for k, text in annotations.items() if not k.endswith(HEARTBEAT)}
    return annotations


class NodeTable:
    """All nodes. The arrays have shape (resources, nodes)."""

    __slots__ = ("_amounts", "_columns", "_count", "index", "infos", "names", "residents")

    def __init__(self, rows: int) -> None:
        self.names: list[str] = []
        self.index: dict[str, int] = {}
        self.infos: list[NodeInfo] = []
        #: tasks by node name; also of nodes that are not known (yet), which charge nothing
        self.residents: dict[str, dict[PodUid, Task]] = {}
        # Four tables with spare columns, so that adding a node is cheap: (4, rows, capacity).
        self._amounts = np.zeros((4, rows, 8))
        self._count = 0
        self._columns: Columns | None = None

    def __len__(self) -> int:
        return self._count

    @property
    def amounts(self) -> Floats:
        """Return the four tables in one, (4, R, N): alloc, used, releasing, pipelined; a view."""
        return self._amounts[:, :, : self._count]

    @property
    def alloc(self) -> Floats:
        """Return what the nodes offer; a view, as the other tables are."""
        return self._amounts[0, :, : self._count]

    @property
    def used(self) -> Floats:
        """Return what is charged."""
        return self._amounts[1, :, : self._count]

    @property
    def releasing(self) -> Floats:
        """Return the part of what is charged that is on its way out."""
        return self._amounts[2, :, : self._count]

    @property
    def pipelined(self) -> Floats:
        """Return what is promised to waiting tasks."""
        return self._amounts[3, :, : self._count]

    @property
    def idle(self) -> Floats:
        """Return what is free now."""
        idle: Floats = self.alloc - self.used
        return idle

    @property
    def future_idle(self) -> Floats:
        """Return what will be free when the tasks on their way out are gone."""
        future: Floats = self.alloc - self.used + self.releasing - self.pipelined
        return future

    def future(self, i: int) -> Floats:
        """Return what will be free on the node in column `i`; a vector of its own."""
        alloc, used, releasing, pipelined = self._amounts[:, :, i]
        future: Floats = alloc - used + releasing - pipelined
        return future

    @property
    def rows(self) -> int:
        """Return the number of resources."""
        return self._amounts.shape[1]

    @property
    def columns(self) -> Columns:
        """Return labels, taints and images as columns; kept until some node's facts change."""
        if self._columns is None:
            self._columns = Columns(list(self.infos))
        return self._columns

    def tasks_on(self, node: str) -> Residents:
        """Return the tasks charged to a node."""
        return self.residents.get(node, {})

    def pods_on(self, i: int) -> Iterator[Task]:
        """Yield the tasks charged to the node in column `i`."""
        yield from self.tasks_on(self.names[i]).values()

    def copy(self) -> NodeTable:
        """Return a table of its own arrays and lists; residents and columns stay shared."""
        other = NodeTable.__new__(NodeTable)
        other.names, other.infos = list(self.names), list(self.infos)
        other.index, other.residents = dict(self.index), dict(self.residents)
        other._amounts = self._amounts[:, :, : self._count].copy()
        other._count, other._columns = self._count, self.columns
        return other

    def grow(self, rows: int) -> None:
        """Make room for so many resources."""
        if rows > self.rows:
            count, old, capacity = self._amounts.shape
            wider = np.zeros((count, rows, capacity))
            wider[:, :old] = self._amounts
            self._amounts = wider

    def put(self, info: NodeInfo, alloc: Floats) -> None:
        """Add a node, or take over what changed of it."""
        self.grow(alloc.size)
        i = self.index.get(info.name)
        if i is None:
            i = self._add(info)
        elif self.infos[i] != info:
            self.infos[i] = info
            self._columns = None
        self._amounts[0, :, i] = pad(alloc, self.rows)

    def drop(self, name: str) -> None:
        """Remove a node; those behind it move up. Its residents stay known, uncharged."""
        i = self.index.pop(name, None)
        if i is None:
            return
        del self.names[i], self.infos[i]
        self._amounts[:, :, i : self._count - 1] = self._amounts[:, :, i + 1 : self._count].copy()
        self._amounts[:, :, self._count - 1] = 0
        self._count -= 1
        self.index = {n: k for k, n in enumerate(self.names)}
        self._columns = None

    def charge(self, task: Task, sign: float = 1.0) -> None:
        """Charge a task to its node, if the node is known; a negative sign takes it off."""
        i = self.index.get(task.node)
        if i is None:
            return
        req = task.cls.req
        self.grow(req.size)
        self._amounts[1, : req.size, i] += sign * req
        if task.status is Status.RELEASING:
            self._amounts[2, : req.size, i] += sign * req

    def _add(self, info: NodeInfo) -> int:
        tables, rows, capacity = self._amounts.shape
        if self._count == capacity:
            wider = np.zeros((tables, rows, capacity * 2))
            wider[:, :, :capacity] = self._amounts
            self._amounts = wider
        i = self.index[info.name] = self._count
        self.names.append(info.name)
        self.infos.append(info)
        self._count += 1
        self._columns = None
        for task in self.tasks_on(info.name).values():
            self.charge(task)
        return i
