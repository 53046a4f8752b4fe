"""
What the controllers know of the cluster, kept once for all of them.

A `Cache` is one collection with its subscribers. Whoever needs objects by something other than
their name makes an `Index`, which is brought up to date before any later subscriber hears of a
change. Of pods, only those of our schedulers are kept, filtered by the API server, and little
of those that have their PodGroup. Of kinds that may be many and matter little, a row is kept
instead of the object.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Hashable, ItemsView, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from pumice.core.api.batch import Job
from pumice.core.api.bus import Command
from pumice.core.api.core import Pod, PodSpec, PriorityClass
from pumice.core.api.scheduling import PodGroup, Queue
from pumice.core.names import GROUP_NAME
from pumice.kube import resources, wire
from pumice.kube.client import EVERYTHING, Client, Selector
from pumice.kube.clock import Clock, SystemClock
from pumice.kube.informer import Deleted, Event, Informer, Updated
from pumice.kube.resources import Object, PersistentVolumeClaim, ReplicaSet, Resource, StatefulSet

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)
V = TypeVar("V")
Malformed = Callable[[wire.Malformed], None]


@dataclass(frozen=True, slots=True)
class Workload:
    """What is kept of a ReplicaSet or StatefulSet."""

    namespace: str
    uid: str
    replicas: int


class Cache(Generic[T, V]):
    """One collection, kept up to date by its informer; V is what is kept of each object."""

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        *,
        select: Selector = EVERYTHING,
        project: Callable[[T], V] | None = None,
        on_malformed: Malformed | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.resource = resource
        self.informer: Informer[T, V] = Informer(
            client,
            resource,
            self._tell,
            select=select,
            project=project,
            on_malformed=on_malformed,
            clock=clock,
        )
        self._subscribers: list[Callable[[Event[T, V]], None]] = []

    def subscribe(self, handler: Callable[[Event[T, V]], None]) -> None:
        """Have the handler called for each change, on the loop; subscribe before `run`."""
        self._subscribers.append(handler)

    def get(self, key: str) -> V | None:
        """Return what is kept of `namespace/name`."""
        return self.informer.store.get(key)

    def items(self) -> ItemsView[str, V]:
        """Return key and value of everything that is kept."""
        return self.informer.store.items()

    def observe(self, obj: T) -> None:
        """Take the answer of a write, ahead of the watch."""
        self.informer.observe(obj)

    @property
    def synced(self) -> bool:
        """Whether the whole collection has been told."""
        return self.informer.synced.is_set()

    def _tell(self, event: Event[T, V]) -> None:
        """Tell all subscribers; one that fails does not keep it from the others."""
        for subscriber in self._subscribers:
            try:
                subscriber(event)
            except Exception:
                log.exception("%s: a subscriber failed on %s", self.resource, event.key)


class Index(Generic[V]):
    """What a cache keeps, by something else than its name; None leaves an object out."""

    def __init__(self, cache: Cache[T, V], by: Callable[[V], Hashable]) -> None:
        self._by = by
        self._groups: dict[Hashable, dict[str, V]] = {}

        def follow(event: Event[T, V]) -> None:
            if isinstance(event, Updated | Deleted):
                self._remove(by(event.old), event.key)
            if not isinstance(event, Deleted) and (kept := cache.get(event.key)) is not None:
                self._add(event.key, kept)

        cache.subscribe(follow)

    def get(self, value: Hashable) -> Mapping[str, V]:
        """Return key -> object of those that have the value; do not keep it."""
        return self._groups.get(value, {})

    def _add(self, key: str, kept: V) -> None:
        value = self._by(kept)
        if value is not None:
            self._groups.setdefault(value, {})[key] = kept

    def _remove(self, value: Hashable, key: str) -> None:
        group = self._groups.get(value)
        if group is None:
            return
        group.pop(key, None)
        if not group:
            del self._groups[value]


class Caches:
    """All collections that the controllers look at; `run` keeps them until it is cancelled."""

    def __init__(
        self,
        client: Client,
        scheduler_names: Collection[str],
        *,
        on_malformed: Malformed | None = None,
        clock: Clock | None = None,
    ) -> None:
        clock = clock or SystemClock()
        self.scheduler_names = frozenset(scheduler_names)
        self.jobs: Cache[Job, Job] = Cache(
            client, resources.JOBS, on_malformed=on_malformed, clock=clock
        )
        self.pods: Cache[Pod, Pod] = Cache(
            client,
            resources.PODS,
            select=_ours(self.scheduler_names),
            project=_slim,
            on_malformed=on_malformed,
            clock=clock,
        )
        self.pod_groups: Cache[PodGroup, PodGroup] = Cache(
            client, resources.POD_GROUPS, on_malformed=on_malformed, clock=clock
        )
        self.queues: Cache[Queue, Queue] = Cache(
            client, resources.QUEUES, on_malformed=on_malformed, clock=clock
        )
        self.commands: Cache[Command, Command] = Cache(
            client, resources.COMMANDS, on_malformed=on_malformed, clock=clock
        )
        self.priority_classes: Cache[PriorityClass, PriorityClass] = Cache(
            client, resources.PRIORITY_CLASSES, on_malformed=on_malformed, clock=clock
        )
        self.claims: Cache[PersistentVolumeClaim, str] = Cache(
            client, resources.CLAIMS, project=lambda claim: claim.metadata.uid, clock=clock
        )
        self.replica_sets: Cache[ReplicaSet, Workload] = Cache(
            client, resources.REPLICA_SETS, project=_workload, clock=clock
        )
        self.stateful_sets: Cache[StatefulSet, Workload] = Cache(
            client, resources.STATEFUL_SETS, project=_workload, clock=clock
        )
        #: pods by the uid of the object that controls them
        self.pods_by_owner: Index[Pod] = Index(self.pods, _owner)
        #: PodGroups by the name of their queue
        self.groups_by_queue: Index[PodGroup] = Index(self.pod_groups, lambda g: g.spec.queue)
        #: queues by the name of the queue above them
        self.queues_by_parent: Index[Queue] = Index(self.queues, lambda q: q.spec.parent or None)

    @property
    def all(self) -> Sequence[Cache[Any, Any]]:
        """Return every cache."""
        return (
            self.jobs,
            self.pods,
            self.pod_groups,
            self.queues,
            self.commands,
            self.priority_classes,
            self.claims,
            self.replica_sets,
            self.stateful_sets,
        )

    @property
    def synced(self) -> bool:
        """Whether every cache is."""
        return all(cache.synced for cache in self.all)

    async def wait(self) -> None:
        """Wait until every cache is synced."""
        for cache in self.all:
            await cache.informer.synced.wait()

    async def run(self) -> None:
        """Keep all caches up to date."""
        async with asyncio.TaskGroup() as group:
            for cache in self.all:
                group.create_task(cache.informer.run(), name=f"informer: {cache.resource}")


def _ours(scheduler_names: Collection[str]) -> Selector:
    """Return the selector of our pods; a field has no `in`, so several names take in more."""
    if len(scheduler_names) == 1:
        return Selector(fields=f"spec.schedulerName={next(iter(scheduler_names))}")
    return Selector(fields="spec.schedulerName!=default-scheduler")


def _slim(pod: Pod) -> Pod:
    """Return the pod without what only its PodGroup is made from, once it names one."""
    if not (pod.metadata.annotations or {}).get(GROUP_NAME):
        return pod
    kept = PodSpec(scheduler_name=pod.spec.scheduler_name, node_name=pod.spec.node_name)
    return msgspec.structs.replace(pod, spec=kept)


def _owner(pod: Pod) -> str | None:
    owner = pod.metadata.controller
    return owner.uid if owner else None


def _workload(obj: ReplicaSet | StatefulSet) -> Workload:
    """Return the row; Kubernetes defaults replicas to 1."""
    replicas = 1 if obj.spec.replicas is None else obj.spec.replicas
    return Workload(obj.metadata.namespace, obj.metadata.uid, replicas)
