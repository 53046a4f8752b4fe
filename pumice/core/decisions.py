"""What was decided of pods and does not show on them yet."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pumice.core.ids import PodUid
from pumice.core.model.tasks import COMPLETED_STATUSES, PREEMPTABLE_STATUSES, Status, Task


@dataclass(slots=True)
class Decisions:
    """Decisions by pod; each is kept until the pod shows it, or can follow it no more."""

    #: waiting pods that hold room on a node
    assumed: dict[PodUid, str] = field(default_factory=dict)
    #: pods that were told to leave
    dismissed: set[PodUid] = field(default_factory=set)
    #: waiting pods that are nominated to a node, or to none any more
    promised: dict[PodUid, str] = field(default_factory=dict)

    def drop(self, uid: PodUid) -> None:
        """Forget a pod that is gone."""
        self.assumed.pop(uid, None)
        self.dismissed.discard(uid)
        self.promised.pop(uid, None)

    def applied(self, task: Task) -> Task:
        """Return a task, as its pod shows it, with what was decided of it."""
        uid = task.uid
        if task.node or task.status & COMPLETED_STATUSES:
            self.assumed.pop(uid, None)
        node = self.assumed.get(uid)
        if node is not None:
            status = Status.BINDING if task.status is Status.PENDING else task.status
            task = task.at(status, node)
        if uid in self.dismissed and task.status & PREEMPTABLE_STATUSES:
            return task.at(Status.RELEASING, task.node)
        nominated = self.promised.get(uid, task.nominated)
        if task.nominated == nominated or task.status is not Status.PENDING:
            self.promised.pop(uid, None)
            return task
        return replace(task, nominated=nominated)
