"""
What the controllers know of the cluster, kept once for all of them.

A `Cache` is one collection with its subscribers. Whoever needs objects by something other than
their name makes an `Index`, which is brought up to date before any subscriber hears of a change.
Of pods, only those of our schedulers are kept: the API server filters by `spec.schedulerName`,
one watch for each name. Of kinds that may be many and matter little, a row is kept instead of
the object.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pumice.core.api.batch import Job
from pumice.core.api.bus import Command
from pumice.core.api.core import Pod, PriorityClass
from pumice.core.api.scheduling import PodGroup, Queue
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
    """One collection, kept up to date by its informers; V is what is kept of each object."""

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        *,
        selects: Sequence[Selector] = (EVERYTHING,),
        route: Callable[[T], int] = lambda obj: 0,
        project: Callable[[T], V] | None = None,
        on_malformed: Malformed | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.resource = resource
        #: one for each selector; no object is in two of them
        self.informers: list[Informer[T, V]] = [
            Informer(
                client,
                resource,
                self._tell,
                select=select,
                project=project,
                on_malformed=on_malformed,
                clock=clock,
            )
            for select in selects
        ]
        self._route = route
        self._subscribers: list[Callable[[Event[T, V]], None]] = []

    def subscribe(self, handler: Callable[[Event[T, V]], None]) -> None:
        """Have the handler called for each change, on the loop; subscribe before `run`."""
        self._subscribers.append(handler)

    def get(self, key: str) -> V | None:
        """Return what is kept of `namespace/name`."""
        return next((i.store[key] for i in self.informers if key in i.store), None)

    def items(self) -> Iterator[tuple[str, V]]:
        """Return key and value of everything that is kept."""
        for informer in self.informers:
            yield from informer.store.items()

    def observe(self, obj: T) -> None:
        """Take the answer of a write, ahead of the watch."""
        self.informers[self._route(obj)].observe(obj)

    @property
    def synced(self) -> bool:
        """Whether the whole collection has been told."""
        return all(informer.synced.is_set() for informer in self.informers)

    def last_contact(self) -> float:
        """Return when the server last vouched for all of it, in monotonic seconds."""
        return min(informer.last_contact() for informer in self.informers)

    def _tell(self, event: Event[T, V]) -> None:
        """Tell all subscribers; one that fails does not keep it from the others."""
        for subscriber in self._subscribers:
            try:
                subscriber(event)
            except Exception:
                log.exception("%s: a subscriber failed on %s", self.resource, event.key)


class Index(Generic[T]):
    """The objects of a cache by something else than their name; None leaves an object out."""

    def __init__(self, cache: Cache[T, T], by: Callable[[T], Hashable]) -> None:
        self._by = by
        self._groups: dict[Hashable, dict[str, T]] = {}
        cache.subscribe(self._follow)

    def get(self, value: Hashable) -> Mapping[str, T]:
        """Return key -> object of those that have the value; do not keep it."""
        return self._groups.get(value, {})

    def _follow(self, event: Event[T, T]) -> None:
        if isinstance(event, Updated | Deleted):
            self._remove(self._by(event.old), event.key)
        if not isinstance(event, Deleted):
            value = self._by(event.obj)
            if value is not None:
                self._groups.setdefault(value, {})[event.key] = event.obj

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
        scheduler_names: Sequence[str],
        *,
        on_malformed: Malformed | None = None,
        clock: Clock | None = None,
    ) -> None:
        clock = clock or SystemClock()
        names = list(dict.fromkeys(scheduler_names))
        self.scheduler_names = frozenset(names)
        self.jobs: Cache[Job, Job] = Cache(
            client, resources.JOBS, on_malformed=on_malformed, clock=clock
        )
        self.pods: Cache[Pod, Pod] = Cache(
            client,
            resources.PODS,
            selects=[Selector(fields=f"spec.schedulerName={name}") for name in names],
            route=lambda pod: names.index(pod.spec.scheduler_name),
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
            for informer in cache.informers:
                await informer.synced.wait()

    async def run(self) -> None:
        """Keep all caches up to date."""
        async with asyncio.TaskGroup() as group:
            for cache in self.all:
                for informer in cache.informers:
                    group.create_task(informer.run(), name=f"informer: {cache.resource}")


def _owner(pod: Pod) -> str | None:
    owner = pod.metadata.controller
    return owner.uid if owner else None


def _workload(obj: ReplicaSet | StatefulSet) -> Workload:
    """Return the row; Kubernetes defaults replicas to 1."""
    replicas = 1 if obj.spec.replicas is None else obj.spec.replicas
    return Workload(obj.metadata.namespace, obj.metadata.uid, replicas)
