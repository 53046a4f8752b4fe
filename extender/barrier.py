"""
The barrier in `bind`: a gang's calls wait here until the gang is whole.

kube-scheduler calls `bind` in a goroutine of its own once it has placed a pod, and waits for
the answer. A call is parked until `job_ready`, the definition that the session commits by,
holds where only Arrived and Bound members count. Then every parked member is checked once more
against what is bound on its node, and only after all were checked is the first one posted.

There is no deadline. A parked call ends with an error only when its member is gone, replaced,
has no room left on its node, or when the process ends. The answer is success only after the
API server has accepted the binding.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from extender.answers import (
    FAILED,
    GONE,
    NO_ROOM,
    NOT_PLANNED,
    OTHER_NODE,
    QUEUE_FULL,
    REPLACED,
    SHUTTING_DOWN,
    SUPERSEDED,
)
from extender.model import Model
from extender.moves import move
from pumice.core.ids import JobKey, PodUid
from pumice.core.ledger import Arm, Entry, State
from pumice.core.model.jobs import JobInfo
from pumice.core.model.tasks import Status, Task
from pumice.core.readiness import job_ready, needs_only_number
from pumice.core.room import lacking_when_bound

log = logging.getLogger(__name__)

Post = Callable[[Entry, str], Awaitable[str]]
"""Post the binding of an entry to a node; return "" once it is accepted, else what is wrong."""


@dataclass(slots=True, eq=False)
class Call:
    """One open `bind` call."""

    uid: PodUid
    job: JobKey | None
    node: str
    answer: asyncio.Future[str]
    since: float
    #: when the gang was whole
    opened: float = 0.0


@dataclass(slots=True)
class Barrier:
    """The parked calls; `by_job` has those of them that are not being bound yet."""

    model: Model
    post: Post
    #: what to do with a member that was refused: replace it, or plan it again
    on_refused: Callable[[PodUid, str], None]
    #: asks for a session: a pod came that nobody planned
    wake: Callable[[], None]
    within_queue: Callable[[Task], bool]
    #: told of each binding: seconds that the call waited for its gang, and seconds after that
    on_bound: Callable[[float, float], None] = lambda waited, posted: None
    enabled: bool = True
    parked: dict[PodUid, Call] = field(default_factory=dict)
    by_job: dict[JobKey | None, dict[PodUid, Call]] = field(default_factory=dict)
    commits: dict[PodUid, asyncio.Task[None]] = field(default_factory=dict)
    committing: dict[str, set[PodUid]] = field(default_factory=dict)
    closing: bool = False
    calls: int = 0
    errors: int = 0

    async def bind(self, uid: PodUid, node: str) -> str:
        """Answer one call: "" when the pod is bound to `node`, else why it is not."""
        self.calls += 1
        while (running := self.commits.get(uid)) is not None:
            # A call before this one is being answered; what comes of it decides.
            await asyncio.wait({running})
        answer = self._admit(uid, node)
        if answer is None:
            answer = await self._park(uid, node)
        if answer:
            self.errors += 1
        return answer

    # --- who may wait -----------------------------------------------------------------------

    def _admit(self, uid: PodUid, node: str) -> str | None:
        """Return the answer to a call that has no reason to wait, None for one that has."""
        if self.closing:
            return SHUTTING_DOWN
        entry = self.model.ledger.get(uid)
        if entry is None or entry.state is State.HELD:
            self.wake()
            return NOT_PLANNED
        if entry.state is State.BOUND:
            return "" if entry.node == node else OTHER_NODE
        if entry.leaving:
            return REPLACED
        task = self.model.cluster.task(uid)
        if task is None:
            return GONE
        if entry.arm is Arm.UNGATE and not self.within_queue(task):
            self._withdraw(uid)
            return QUEUE_FULL
        if entry.node != node and (why := move(self.model, entry, node, self.wake)):
            if entry.arm is not Arm.PIN:
                self._withdraw(uid)
            return why
        if not self.model.equip(uid, node):
            self.refuse(uid, NO_ROOM)
            return NO_ROOM
        return None

    def _withdraw(self, uid: PodUid) -> None:
        self.model.withdraw(uid)
        self.wake()

    # --- waiting ----------------------------------------------------------------------------

    async def _park(self, uid: PodUid, node: str) -> str:
        entry = self.model.ledger.arrive(uid, node, self.model.now())
        older = self.parked.get(uid)
        if older is not None:
            self._answer(older, SUPERSEDED)
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        call = Call(uid, entry.job, node, future, self.model.now())
        self.parked[uid] = call
        self.by_job.setdefault(call.job, {})[uid] = call
        self.model.changed(call.job)
        try:
            return await call.answer
        finally:
            if self.parked.get(uid) is call:
                self._unpark(call)
                if uid not in self.commits:
                    self.model.ledger.lose(uid, self.model.now())

    def _answer(self, call: Call, text: str) -> None:
        self._unpark(call)
        if not call.answer.done():
            call.answer.set_result(text)

    def _unpark(self, call: Call) -> None:
        if self.parked.get(call.uid) is call:
            del self.parked[call.uid]
        self._wait_no_more(call)

    def _wait_no_more(self, call: Call) -> None:
        calls = self.by_job.get(call.job, {})
        if calls.get(call.uid) is call:
            del calls[call.uid]
            if not calls:
                del self.by_job[call.job]

    # --- opening ----------------------------------------------------------------------------

    def look(self, uid: PodUid) -> None:
        """
        Answer the call of a pod that is gone or is to go; called when the pod changed.

        Of a pod that kube-scheduler is about to bind elsewhere the charge goes there beforehand.
        """
        self._foresee(uid)
        call = self.parked.get(uid)
        if call is None or uid in self.commits:
            return
        entry = self.model.ledger.get(uid)
        if entry is None:
            self._answer(call, GONE)
        elif entry.leaving:
            self.model.ledger.lose(uid, self.model.now())
            self._answer(call, REPLACED)

    def _foresee(self, uid: PodUid) -> None:
        entry = self.model.ledger.get(uid)
        if entry is None or entry.state is not State.RELEASED or entry.leaving:
            return
        if entry.expected not in ("", entry.node):
            # What is in the way now may not be when the call comes, which is answered by that.
            move(self.model, entry, entry.expected, self.wake)

    def evaluate(self, job: JobKey | None) -> None:
        """Open the barrier of a job, if it is whole; called whenever something about it changed."""
        waiting = self.by_job.get(job)
        if not waiting or not self._whole(job):
            return
        calls = list(waiting.values())
        refused = self._refused(calls)
        for call in refused:
            self.refuse(call.uid, NO_ROOM)
        if refused and not self._whole(job):
            return
        # Not those that were refused, nor any that a change on the way has taken care of.
        self._commit([call for call in calls if waiting.get(call.uid) is call])

    def _whole(self, job: JobKey | None) -> bool:
        if job is None or not self.enabled:
            return True
        info = self.model.cluster.jobs.get(job)
        if info is None:
            return False
        least, most = self._bounds(job, info)
        if most < info.min_available:
            return False
        if least >= info.min_available and needs_only_number(info):
            return True
        return job_ready(info, self._status)

    def _bounds(self, job: JobKey, info: JobInfo) -> tuple[int, int]:
        """Return bounds for what `job_ready` counts, without looking at every member."""
        total = info.counts.total
        seen = total.count(Status.BOUND | Status.RUNNING | Status.SUCCEEDED)
        least = seen + len(self.by_job.get(job, ())) + total.pending_best_effort
        # The ledger knows also of bindings that the watch has not shown yet.
        most = self.model.ledger.come(job) + total.count(Status.SUCCEEDED) + total.best_effort
        return least, most

    def _status(self, task: Task) -> Status:
        """Return a task's status as the barrier sees it: Released members are Pending."""
        entry = self.model.ledger.get(task.uid)
        if entry is None or task.status is not Status.BINDING:
            return task.status
        if entry.state in (State.ARRIVED, State.BOUND):
            return Status.BINDING
        return Status.PENDING

    def _refused(self, calls: Iterable[Call]) -> list[Call]:
        """Check each member against what is bound on its node, in the order of arrival."""
        taken: dict[str, set[PodUid]] = {}
        refused = []
        for call in calls:
            others = taken.setdefault(call.node, set())
            committed = (
                self.model.committed.get(call.node, set())
                | self.committing.get(call.node, set())
                | others
            )
            short = lacking_when_bound(self.model.cluster, call.uid, call.node, committed)
            if short or not self.model.equip(call.uid, call.node):
                refused.append(call)
            else:
                others.add(call.uid)
        return refused

    def refuse(self, uid: PodUid, text: str) -> None:
        """Answer a parked member with an error and have it replaced; the others wait on."""
        if uid in self.commits:
            return
        call = self.parked.get(uid)
        self.model.ledger.lose(uid, self.model.now())
        if call is not None:
            self._answer(call, text)
        self.on_refused(uid, text)

    def _commit(self, calls: Iterable[Call]) -> None:
        for call in calls:
            call.opened = self.model.now()
            self._wait_no_more(call)
            self.committing.setdefault(call.node, set()).add(call.uid)
            task = asyncio.create_task(self._post(call), name=f"bind {call.uid}")
            self.commits[call.uid] = task

    async def _post(self, call: Call) -> None:
        """Post one binding and answer its call; a call that is lost meanwhile changes nothing."""
        entry = self.model.ledger.get(call.uid)
        try:
            text = await self.post(entry, call.node) if entry is not None else GONE
        except asyncio.CancelledError:
            text = SHUTTING_DOWN
        except Exception:
            log.exception("binding of pod %s", call.uid)
            text = FAILED
        finally:
            self.commits.pop(call.uid, None)
            waiting = self.committing.get(call.node, set())
            waiting.discard(call.uid)
            if not waiting:
                self.committing.pop(call.node, None)
        if text:
            self.model.ledger.lose(call.uid, self.model.now())
        else:
            self.model.commit(call.uid, call.node)
            self.on_bound(call.opened - call.since, self.model.now() - call.opened)
        self._answer(call, text)

    # --- ending -----------------------------------------------------------------------------

    def node_gone(self, node: str) -> None:
        """Refuse the members that wait for a node which is no more."""
        for call in [c for c in self.parked.values() if c.node == node]:
            self.refuse(call.uid, NO_ROOM)

    async def close(self) -> None:
        """Answer every call, parked or to come; wait for the bindings that are being posted."""
        self.closing = True
        for call in list(self.parked.values()):
            if call.uid not in self.commits:
                self._answer(call, SHUTTING_DOWN)
        if self.commits:
            await asyncio.wait(list(self.commits.values()), timeout=5)
