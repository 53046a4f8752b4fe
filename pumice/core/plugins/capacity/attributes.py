"""
What each queue may have, keeps and deserves.

Side by side, a queue may have what nobody else is guaranteed, its own guarantee and no more than
its capability; it deserves at most that and at least its guarantee.

In a tree, what a queue does not limit itself it takes over from the queue above. A queue may have
what its parent may have, less what the parent's children are guaranteed, plus its own guarantee.
The root guarantees and deserves what its children do together, and has no limit but its own
capability. What queues hold is added up towards the root.

What one queue is guaranteed stays free for it, however many others there are: of what the cluster
has, or a parent may have, a queue gets only what the others neither hold nor are guaranteed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from pumice.core.api.scheduling import Queue
from pumice.core.model.queues import QueueInfo
from pumice.core.model.snapshots import QueueSums
from pumice.core.model.tasks import TaskClass
from pumice.core.names import ROOT_QUEUE
from pumice.core.queue_limits import Pool
from pumice.core.resources import EPSILON, Floats, ResourceSpace, excess, is_empty, pad, plus, share


@dataclass(slots=True)
class Attributes:
    """A queue in one session. Vectors have all rows; `allocated` follows the session."""

    queue: QueueInfo
    size: int
    guarantee: Floats
    #: the limits that stand in the queue or above it, infinite where none does
    capability: Floats
    #: what the queue may have, beside what others are guaranteed
    limit: list[float] = field(default_factory=list)
    deserved: Floats = field(default_factory=lambda: np.zeros(0))
    allocated: list[float] = field(default_factory=list)
    #: what is kept for pods that came through the gate of their queue; empty where there are none
    reserved: list[float] = field(default_factory=list)
    inqueue: Floats = field(default_factory=lambda: np.zeros(0))
    elastic: Floats = field(default_factory=lambda: np.zeros(0))
    #: of a queue in a tree: the one above, and those below
    parent: Attributes | None = None
    children: list[Attributes] = field(default_factory=list)
    #: what it shares with its siblings, or with all others; the root shares nothing
    pool: Pool | None = None
    #: how much of its due the queue holds; of inner queues, as the session found it
    share: float = 0.0

    @classmethod
    def of(cls, queue: QueueInfo, size: int) -> Attributes:
        """Start with what stands in the queue itself, and nothing held."""
        made = cls(queue, size, pad(queue.guarantee, size), queue.bound(size))
        made.deserved = np.maximum(pad(queue.deserved, size), made.guarantee)
        made.allocated = [0.0] * size
        made.inqueue, made.elastic = np.zeros(size), np.zeros(size)
        return made

    @property
    def chain(self) -> Iterable[Attributes]:
        """Yield the queue and those above it, the root last."""
        found: Attributes | None = self
        while found is not None:
            yield found
            found = found.parent

    @property
    def ancestors(self) -> list[Attributes]:
        """Return the queues above, the parent first, without the root."""
        return [attr for attr in self.chain if attr is not self and attr.parent is not None]

    @property
    def path(self) -> list[Attributes]:
        """Return the queues from the root down to this one."""
        return [*self.chain][::-1]

    @property
    def has_due(self) -> bool:
        """Return whether the queue deserves anything."""
        return not is_empty(self.deserved)

    def add(self, usage: QueueSums) -> None:
        """Add what jobs hold and were promised."""
        self.allocated = plus(np.array(self.allocated), usage.allocated).tolist()
        self.inqueue = plus(self.inqueue, usage.inqueue)
        self.elastic = plus(self.elastic, usage.elastic)

    @property
    def held(self) -> list[float]:
        """Return what the queue holds together with what it keeps room for."""
        return [a + r for a, r in zip(self.allocated, self.reserved, strict=True)]

    def take(self, cls: TaskClass, n: int) -> None:
        """Hold so many tasks more, or fewer."""
        for row in cls.rows:
            before = self.allocated[row]
            self.allocated[row] += n * float(cls.req[row])
            if self.pool is not None:
                self.pool.follow(row, before, self.allocated[row], float(self.guarantee[row]))

    def reserve(self, cls: TaskClass, n: int) -> None:
        """Keep room for so many tasks more, or fewer."""
        if not self.reserved:
            self.reserved = [0.0] * self.size
        for row in cls.rows:
            self.reserved[row] += n * float(cls.req[row])

    def measure(self) -> None:
        """Work out the share: the largest part that is held of any resource deserved."""
        dues = zip(self.allocated, self.deserved.tolist(), strict=True)
        shares = (share(held, due) for held, due in dues if due >= EPSILON)
        self.share = max(shares, default=0.0) if self.has_due else 1.0


def side_by_side(
    queues: Mapping[str, QueueInfo], usage: Mapping[str, QueueSums], total: Floats
) -> dict[str, Attributes]:
    """Return the queues that have jobs, each by itself."""
    guaranteed = np.zeros(total.size)
    for queue in queues.values():
        guaranteed = plus(guaranteed, queue.guarantee)
    free = excess(total, guaranteed)
    found = {}
    for name, sums in usage.items():
        if name not in queues:
            continue
        attr = found[name] = Attributes.of(queues[name], total.size)
        limit = np.minimum(free + attr.guarantee, attr.capability)
        attr.limit = limit.tolist()
        attr.deserved = np.maximum(np.minimum(attr.deserved, limit), attr.guarantee)
        attr.add(sums)
        attr.measure()
    held = {name: attr.allocated for name, attr in found.items()}
    pool = Pool.of_all(total, queues, held)
    for attr in found.values():
        attr.pool = pool
    return found


def tree(
    queues: Mapping[str, QueueInfo], usage: Mapping[str, QueueSums], total: Floats
) -> tuple[dict[str, Attributes], list[str]]:
    """
    Return the queues that hang together with the root, and what is wrong with the others.

    A root that nobody has made counts as an empty one.
    """
    size = total.size
    found = {name: Attributes.of(queue, size) for name, queue in queues.items()}
    root = found.setdefault(ROOT_QUEUE, Attributes.of(_bare_root(), size))
    for attr in found.values():
        if attr is not root and attr.queue.parent in found:
            attr.parent = found[attr.queue.parent]
            attr.parent.children.append(attr)
    hanging = {attr.queue.name: attr for attr in _downwards(root)}
    faults = [_fault(found[name].queue, queues) for name in found if name not in hanging]
    for name, attr in hanging.items():
        if name in usage:
            for above in attr.chain:
                above.add(usage[name])
    _share_out(root, total)
    for attr in hanging.values():
        attr.measure()
    return hanging, faults


def _bare_root() -> QueueInfo:
    queue = Queue()
    queue.metadata.name = ROOT_QUEUE
    return QueueInfo.of(queue, ResourceSpace())


def _fault(queue: QueueInfo, queues: Mapping[str, QueueInfo]) -> str:
    why = "does not hang together with the root" if queue.parent in queues else "does not exist"
    return f"queue {queue.name}: its parent {queue.parent} {why}, nothing of it is scheduled"


def _downwards(root: Attributes) -> Iterable[Attributes]:
    """Yield a queue and all below it, parents before children."""
    yield root
    for child in root.children:
        yield from _downwards(child)


def _share_out(root: Attributes, total: Floats) -> None:
    """Hand limits down from the root, and have siblings share what their parent may have."""
    zero = np.zeros(root.size)
    root.guarantee = sum((child.guarantee for child in root.children), zero)
    root.deserved = sum((child.deserved for child in root.children), zero)
    root.limit = root.capability.tolist()
    for attr in _downwards(root):
        kept = sum((child.guarantee for child in attr.children), zero)
        free = np.maximum(np.array(attr.limit) - kept, 0.0)
        shared = np.minimum(np.array(attr.limit), total)
        pool = Pool.of(shared, ((child.allocated, child.guarantee) for child in attr.children))
        for child in attr.children:
            child.pool = pool
            bound = child.capability
            child.capability = np.where(np.isinf(bound), attr.capability, bound)
            child.limit = np.minimum(free + child.guarantee, child.capability).tolist()
