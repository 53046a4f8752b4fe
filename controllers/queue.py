"""
The queue controller: states, the tree, and counts of PodGroups.

    queue changed ──────────────► now ─┐
    PodGroup changed ──► in a second ──┼──► one worker a queue ──► reconcile ──► effects
    Command ──► deleted ──► an order ──┘

What to do is decided in `pumice.core.queues`. A command is deleted before it is obeyed, so that
it is obeyed at most once. Counts alone wait up to a second for more of them; a queue that waits
to be Closed does not. An order that cannot be carried out is tried again, and after 15 times
given up with an event.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, assert_never

from controllers.caches import Caches
from pumice.core import names
from pumice.core.api.bus import Command
from pumice.core.api.meta import ObjectMeta
from pumice.core.api.scheduling import PodGroup, PodGroupPhase, Queue
from pumice.core.queues import types as t
from pumice.core.queues.reconcile import missing_queues, reconcile
from pumice.kube import resources
from pumice.kube.client import Client, Preconditions
from pumice.kube.clock import Clock
from pumice.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from pumice.kube.events import Recorder
from pumice.kube.informer import Added, Deleted, Event, Updated
from pumice.kube.metrics import Metrics
from pumice.kube.patches import Json, MergePatch
from pumice.kube.retry import wait_s
from pumice.kube.workqueue import WorkQueue

log = logging.getLogger(__name__)

WORKERS: Final = 5
COUNTS_S: Final = 1.0
MAX_RETRIES: Final = 15
PHASES: Final = ("inqueue", "pending", "running", "unknown", "completed")


STALE_S: Final = 0.05


class NotYetError(Exception):
    """An action cannot be carried out as things are."""


class StaleError(Exception):
    """The queue is not as it was when the effect was decided."""


class QueueController:
    """Watches and works until `run` is cancelled; make it before the caches run."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        events: Recorder,
        metrics: Metrics,
        *,
        workers: int = WORKERS,
        max_requeues: int = MAX_RETRIES,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._caches = caches
        self._events = events
        self._max_requeues = max_requeues
        self._gauges = {
            phase: metrics.gauge(
                f"queue_pod_group_{phase}_count", f"PodGroups that are {phase}.", ["queue_name"]
            )
            for phase in PHASES
        }
        #: actions asked for, by queue, in order, each once
        self._orders: dict[str, dict[t.Action, None]] = {}
        self._failures: Counter[str] = Counter()
        self.queue: WorkQueue[str] = WorkQueue("queues", self._work, workers=workers, clock=clock)
        self.commands: WorkQueue[str] = WorkQueue(
            "queue commands", self._obey, workers=1, clock=clock
        )
        caches.queues.subscribe(self._on_queue)
        caches.pod_groups.subscribe(self._on_group)
        caches.commands.subscribe(self._on_command)

    async def run(self) -> None:
        """Create the queues that must be there, then follow all of them."""
        await self._caches.wait()
        for missing in missing_queues(self._names()):
            self.queue.add(missing.queue.metadata.name)
        async with asyncio.TaskGroup() as group:
            group.create_task(self.queue.run(), name="queues")
            group.create_task(self.commands.run(), name="queue commands")

    def shutdown(self) -> None:
        """Begin nothing more; `run` returns when what is under way is done."""
        self.queue.shutdown()
        self.commands.shutdown()

    # Changes become keys.

    def _on_queue(self, event: Event[Queue, Queue]) -> None:
        """Look at a queue and those below it; what the extender writes is none of our business."""
        if isinstance(event, Updated) and _shape(event.obj) == _shape(event.old):
            return
        name = event.key
        if isinstance(event, Deleted):
            self._forget(name)
        self.queue.add(name)
        for child in self._caches.queues_by_parent.get(name):
            self.queue.add(child)

    def _on_group(self, event: Event[PodGroup, PodGroup]) -> None:
        if isinstance(event, Updated):
            old, new = event.old, event.obj
            if (old.status.phase, old.spec.queue) == (new.status.phase, new.spec.queue):
                return
            self._count(old.spec.queue)
        self._count((event.old if isinstance(event, Deleted) else event.obj).spec.queue)

    def _count(self, name: str) -> None:
        queue = self._caches.queues.get(name)
        if queue is None:
            return
        self.queue.add_after(name, 0 if queue.status.state == "Closing" else COUNTS_S)

    def _on_command(self, event: Event[Command, Command]) -> None:
        if isinstance(event, Added) and _for_queue(event.obj):
            self.commands.add(event.key)

    async def _obey(self, key: str) -> None:
        """Delete the command, then pass its order on; whoever deletes it obeys it."""
        command = self._caches.commands.get(key)
        if command is None or command.target is None:
            return
        meta, given = command.metadata, Preconditions(uid=command.metadata.uid)
        try:
            await self._client.delete(resources.COMMANDS, meta.namespace, meta.name, given=given)
        except (NotFound, Conflict):
            return
        log.info("command %s: %s of queue %s", key, command.action, command.target.name)
        match command.action:
            case "OpenQueue" | "CloseQueue" as action:
                # Whoever says the opposite has changed his mind.
                opposite: t.Action = "CloseQueue" if action == "OpenQueue" else "OpenQueue"
                self._orders.get(command.target.name, {}).pop(opposite, None)
                self._order(command.target.name, action)
            case _:
                self._order(command.target.name, t.SYNC)

    def _order(self, name: str, action: t.Action) -> None:
        self._orders.setdefault(name, {})[action] = None
        self.queue.add(name)

    # Keys become effects.

    async def _work(self, name: str) -> None:
        """Carry out what was ordered, or see what follows from what is there."""
        # What follows from what is there comes last: it may fail for as long as it likes.
        orders: list[t.Action] = list(self._orders.pop(name, {})) or [t.SYNC]
        orders.sort(key=lambda order: order == t.SYNC)
        for done, action in enumerate(orders):
            try:
                await self._act(name, action)
            except StaleError:
                self._again(name, orders[done:], STALE_S)
                return
            except (KubeError, NotYetError) as error:
                self._failed(name, orders[done:], error)
                return
        del self._failures[name]

    async def _act(self, name: str, action: t.Action) -> None:
        queue = self._caches.queues.get(name)
        if queue is None:
            for missing in missing_queues(self._names()):
                if missing.queue.metadata.name == name:
                    await self._create(missing.queue)
            return
        seen = self._observed(queue)
        self._publish(name, seen)
        for effect in reconcile(action, seen):
            await self._carry_out(queue, effect)

    def _observed(self, queue: Queue) -> t.Observed:
        name, parent = queue.metadata.name, queue.spec.parent
        below = self._caches.queues_by_parent.get(name)
        groups: Counter[PodGroupPhase] = Counter(
            group.status.phase for group in self._caches.groups_by_queue.get(name).values()
        )
        return t.Observed(
            queue,
            self._caches.queues.get(parent) if parent else None,
            tuple(below[child] for child in sorted(below) if child != name),
            groups,
        )

    async def _carry_out(self, queue: Queue, effect: t.Effect) -> None:
        """Do one effect."""
        match effect:
            case t.CreateQueue(queue=new):
                await self._create(new)
            case t.SetParent(name=name, uid=uid, parent=parent):
                await self._patch(name, {"spec": {"parent": parent}}, Preconditions(uid=uid))
            case t.PatchStatus():
                await self._patch_status(effect)
            case t.MarkClosedByParent(name=name, uid=uid, closed=closed):
                mark = {names.CLOSED_BY_PARENT: str(closed).lower()}
                body = {"metadata": {"annotations": mark}}
                await self._patch(name, body, Preconditions(uid=uid))
            case t.Enqueue(name=name, action=action):
                self._order(name, action)
            case t.RecordEvent():
                self._record(queue.metadata, effect)
            case t.Fail(message=message):
                raise NotYetError(message)
            case other:
                assert_never(other)

    async def _create(self, queue: Queue) -> None:
        try:
            created = await self._client.create(resources.QUEUES, "", queue)
        except AlreadyExists:
            return
        self._caches.queues.observe(created)

    async def _patch_status(self, effect: t.PatchStatus) -> None:
        """Write state and counts; the extender writes the same status, so the version decides."""
        state = {"state": effect.state} if effect.state else {}
        body = {"status": {**state, **effect.counts}}
        given = Preconditions(effect.uid, effect.resource_version)
        await self._patch(effect.name, body, given, subresource="status")

    async def _patch(
        self, name: str, body: Json, given: Preconditions, *, subresource: str = ""
    ) -> None:
        """Change a queue; one that is gone needs nothing."""
        patch = MergePatch(body)
        try:
            queue = await self._client.patch(
                resources.QUEUES, "", name, patch, subresource=subresource, given=given
            )
        except NotFound:
            return
        except Conflict as error:
            raise StaleError from error
        self._caches.queues.observe(queue)

    def _failed(self, name: str, left: Sequence[t.Action], error: Exception) -> None:
        """Try again later; after many times say so, and go on without it."""
        self._failures[name] += 1
        failures = self._failures[name]
        log.warning("queue %s: %s: %s", name, left[0], error)
        if 0 <= self._max_requeues < failures:
            del self._failures[name]
            queue = self._caches.queues.get(name)
            meta = queue.metadata if queue else ObjectMeta(name=name)
            message = f"{left[0]} queue failed for {error}"
            self._record(meta, t.RecordEvent("Warning", left[0], message))
            for action in left[1:]:
                self._order(name, action)
            return
        self._again(name, left, wait_s(failures, base_s=0.005, cap_s=60.0))

    def _again(self, name: str, left: Sequence[t.Action], after_s: float) -> None:
        """Have these actions done later, before newer ones."""
        newer = self._orders.get(name, {})
        self._orders[name] = dict.fromkeys((*left, *newer))
        self.queue.add_after(name, after_s)

    def _record(self, meta: ObjectMeta, event: t.RecordEvent) -> None:
        self._events.record(resources.QUEUES, meta, event.type, event.reason, event.message)

    def _names(self) -> set[str]:
        return {name for name, _ in self._caches.queues.items()}

    # Metrics.

    def _publish(self, name: str, seen: t.Observed) -> None:
        counts: Counter[str] = Counter()
        for phase, number in seen.groups.items():
            counts[(phase or "Pending").lower()] += number
        for lower, gauge in self._gauges.items():
            gauge.labels(name).set(counts[lower])

    def _forget(self, name: str) -> None:
        self._orders.pop(name, None)
        del self._failures[name]
        for gauge in self._gauges.values():
            with suppress(KeyError):
                gauge.remove(name)


def _shape(queue: Queue) -> tuple[str, str, str]:
    """Return what a sync depends on, of the queue itself."""
    mark = (queue.metadata.annotations or {}).get(names.CLOSED_BY_PARENT, "")
    return queue.status.state, queue.spec.parent, mark


def _for_queue(command: Command) -> bool:
    target = command.target
    return (
        target is not None
        and target.api_version == names.SCHEDULING_API
        and target.kind == resources.QUEUES.kind
    )
