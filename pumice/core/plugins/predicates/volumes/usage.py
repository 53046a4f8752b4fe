"""
What is in use: volumes that are attached to nodes, and claims that are for one pod alone.

A node takes so many volumes of a driver (kube-scheduler's NodeVolumeLimits); a volume counts once
on it, however many pods there mount it. A claim with access mode ReadWriteOncePod that a pod uses
is refused to all others (of its VolumeRestrictions). All pods on a node count, those on their way
out as well, but for those that were sent off in this session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

import numpy as np

from pumice.core.extension import Code, Refusal
from pumice.core.model.columns import Columns
from pumice.core.model.storage import Storage
from pumice.core.model.tasks import Task
from pumice.core.plugins.predicates.volumes.needs import Needs, Reader, attachment
from pumice.core.resources import Bools, Floats

TOO_MANY: Final = "node(s) exceed max volume count"
IN_USE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already"
    " in-use by another pod"
)


class Usage:
    """The volumes on each node, and the users of claims."""

    def __init__(
        self, storage: Storage, columns: Columns, reader: Reader, residents: Iterable[Task]
    ) -> None:
        self._storage = storage
        self._columns = columns
        self._reader = reader
        #: how many pods on nodes use a claim
        self._users: Counter[str] = Counter()
        #: of each volume the nodes that it is attached to, and how many pods mount it there
        self._mounts: dict[tuple[str, str], Counter[int]] = {}
        self._limits = {driver: self._limit(driver) for driver in sorted(reader.limited)}
        self._attached: dict[str, Floats] = {d: np.zeros(columns.size) for d in self._limits}
        for task in residents:
            self.add(task, columns.index[task.node], 1)

    def _limit(self, driver: str) -> Floats:
        limits = np.full(self._columns.size, np.inf)
        for name, node in self._storage.csi_nodes.items():
            at = self._columns.index.get(name)
            for entry in node.spec.drivers or () if at is not None else ():
                count = entry.allocatable.count if entry.allocatable is not None else None
                if entry.name == driver and count is not None:
                    limits[at] = count
        return limits

    def add(self, task: Task, node: int, sign: int) -> None:
        """Count a pod on a node; a negative sign takes it off."""
        for claim in self._reader.claims(task):
            self._users[claim.metadata.key] += sign
            if not self._limits:
                continue
            volume = attachment(claim, self._storage)
            if volume is None or volume[0] not in self._limits:
                continue
            mounts = self._mounts.setdefault(volume, Counter())
            before, mounts[node] = mounts[node], mounts[node] + sign
            self._attached[volume[0]][node] += (mounts[node] > 0) - (before > 0)

    def refuse(self, needs: Needs) -> list[Refusal]:
        """Refuse nodes that would have too many volumes, all where a claim is another pod's."""
        refusals = []
        if any(self._users[key] > 0 for key in needs.exclusive):
            refusals.append(Refusal(Code.UNSCHEDULABLE, IN_USE, self._columns.all()))
        if needs.attached:
            refusals.append(Refusal(Code.UNSCHEDULABLE, TOO_MANY, self._overfull(needs)))
        return refusals

    def _overfull(self, needs: Needs) -> Bools:
        """Return the nodes that would hold more volumes of some driver than they take."""
        new: dict[str, Floats] = {}
        for entry in needs.attached:
            found = new.setdefault(entry.driver, np.zeros(self._columns.size))
            found += 1
            if entry.handle:
                mounts = self._mounts.get((entry.driver, entry.handle), Counter())
                found[[node for node, pods in mounts.items() if pods > 0]] -= 1
        overfull = np.zeros(self._columns.size, bool)
        for driver, number in new.items():
            held = self._attached[driver] + number
            overfull |= (number > 0) & (held > self._limits[driver])
        return overfull
