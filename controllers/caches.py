"""
What the controllers know of the cluster, kept once for all of them.

A `Cache` is one collection with its subscribers. Whoever needs objects by something other than
their name makes an `Index`, which is brought up to date before any later subscriber hears of a
change. Of pods, only those of our schedulers are kept, filtered by the API server, and little
of those that have their PodGroup; pods that Jobs have given to other schedulers are a collection
of their own, which is the Job controller's alone. Of kinds that may be many and matter little, a
row is kept instead of the object. Secrets are never listed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Hashable, ItemsView, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from controllers.rows import JobObject, Workload, job_object, labels, owner, slim, workload
from pumice.core.api.batch import Job
from pumice.core.api.bus import Command
from pumice.core.api.core import Pod, PriorityClass
from pumice.core.api.cron import CronJob
from pumice.core.api.flow import JobFlow, JobTemplate
from pumice.core.api.scheduling import PodGroup, Queue
from pumice.core.api.storage import PersistentVolumeClaim
from pumice.core.api.topology import HyperNode
from pumice.core.jobs.types import ObjectKind
from pumice.core.names import JOB_NAME, NAMESPACE
from pumice.kube import resources, wire
from pumice.kube.client import EVERYTHING, Client, Selector
from pumice.kube.clock import Clock, SystemClock
from pumice.kube.informer import Deleted, Event, Informer, Updated
from pumice.kube.resources import (
    ConfigMap,
    Object,
    Plain,
    ReplicaSet,
    Resource,
    StatefulSet,
)

log = logging.getLogger(__name__)

DEFAULT_SCHEDULER: Final = "default-scheduler"
OF_JOBS: Final = Selector(labels=JOB_NAME)
CONFIGURATION: Final = (NAMESPACE, "volcano-controller-configmap")
"""Namespace and name of the ConfigMap with the controllers' configuration."""
NODES: Final = Resource(
    resources.NODES.api_version, resources.NODES.kind, resources.NODES.plural, Plain, False
)
"""Nodes as far as labels go."""
PLUGIN_RESOURCES: Final[Mapping[ObjectKind, Resource[Any]]] = {
    "ConfigMap": resources.CONFIG_MAPS,
    "NetworkPolicy": resources.NETWORK_POLICIES,
    "Secret": resources.SECRETS,
    "Service": resources.SERVICES,
}

T = TypeVar("T", bound=Object)
V = TypeVar("V")
Malformed = Callable[[wire.Malformed], None]


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
        #: whether a controller looks at it: others are not watched
        self.is_wanted = False
        self._subscribers: list[Callable[[Event[T, V]], None]] = []

    def subscribe(self, handler: Callable[[Event[T, V]], None]) -> None:
        """Have the handler called for each change, on the loop; subscribe before `run`."""
        self.is_wanted = True
        self._subscribers.append(handler)

    def follow(self, handler: Callable[[Event[T, V]], None]) -> None:
        """Do the same on behalf of those who look at the cache, if there are any."""
        self._subscribers.append(handler)

    def get(self, key: str) -> V | None:
        """Return what is kept of `namespace/name`."""
        return self.informer.store.get(key)

    @property
    def store(self) -> Mapping[str, V]:
        """Everything that is kept, by key."""
        return self.informer.store

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
    """What caches keep, by something else than its name; None leaves an object out."""

    def __init__(self, by: Callable[[V], Hashable], *caches: Cache[Any, V]) -> None:
        self._by = by
        self._groups: dict[Hashable, dict[str, V]] = {}
        for cache in caches:
            self._follow(cache)

    def _follow(self, cache: Cache[Any, V]) -> None:
        def follow(event: Event[Any, V]) -> None:
            if isinstance(event, Updated | Deleted):
                self._remove(event.key, event.old)
            if not isinstance(event, Deleted) and (kept := cache.get(event.key)) is not None:
                self._add(event.key, kept)

        cache.follow(follow)

    def get(self, value: Hashable) -> Mapping[str, V]:
        """Return key -> object of those that have the value; do not keep it."""
        return self._groups.get(value, {})

    def _add(self, key: str, kept: V) -> None:
        value = self._by(kept)
        if value is not None:
            self._groups.setdefault(value, {})[key] = kept

    def _remove(self, key: str, old: V) -> None:
        value = self._by(old)
        group = self._groups.get(value)
        # Of two caches, one may show the new object of a name before the other loses the old.
        if group is None or group.get(key) is not old:
            return
        del group[key]
        if not group:
            del self._groups[value]


@dataclass(frozen=True, slots=True)
class Division:
    """
    Which pods are ours, in words of the API server.

    A field selector has no `in`: one name is asked for, and where there are several, everything
    that is not the default scheduler's is taken.
    """

    name: str
    #: whether pods with the name are ours, or all the others are
    is_name_ours: bool

    @classmethod
    def of(cls, scheduler_names: Collection[str]) -> Division:
        """Return the division for our scheduler names."""
        if len(scheduler_names) == 1:
            return cls(next(iter(scheduler_names)), True)
        return cls(DEFAULT_SCHEDULER, False)

    @property
    def ours(self) -> str:
        """Return the field selector of our pods."""
        return f"spec.schedulerName{'=' if self.is_name_ours else '!='}{self.name}"

    @property
    def others(self) -> str:
        """Return the field selector of all other pods."""
        return f"spec.schedulerName{'!=' if self.is_name_ours else '='}{self.name}"

    def is_ours(self, pod: Pod) -> bool:
        """Tell on which side a pod is."""
        return (pod.spec.scheduler_name == self.name) == self.is_name_ours


class Caches:
    """
    All collections that the controllers look at; `run` keeps them until it is cancelled.

    Only those are kept that somebody has subscribed to, or wants, by then.
    """

    def __init__(
        self,
        client: Client,
        scheduler_names: Collection[str],
        *,
        configuration: tuple[str, str] = CONFIGURATION,
        on_malformed: Malformed | None = None,
        clock: Clock | None = None,
    ) -> None:
        clock = clock or SystemClock()
        self.scheduler_names = frozenset(scheduler_names)
        self.jobs: Cache[Job, Job] = Cache(
            client, resources.JOBS, on_malformed=on_malformed, clock=clock
        )
        self._division = Division.of(self.scheduler_names)
        self.pods: Cache[Pod, Pod] = Cache(
            client,
            resources.PODS,
            select=Selector(fields=self._division.ours),
            project=slim,
            on_malformed=on_malformed,
            clock=clock,
        )
        #: pods of Jobs whose templates name another scheduler
        self.foreign_pods: Cache[Pod, Pod] = Cache(
            client,
            resources.PODS,
            select=Selector(labels=JOB_NAME, fields=self._division.others),
            project=slim,
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
        self.cron_jobs: Cache[CronJob, CronJob] = Cache(
            client, resources.CRON_JOBS, on_malformed=on_malformed, clock=clock
        )
        self.job_flows: Cache[JobFlow, JobFlow] = Cache(
            client, resources.JOB_FLOWS, on_malformed=on_malformed, clock=clock
        )
        self.job_templates: Cache[JobTemplate, JobTemplate] = Cache(
            client, resources.JOB_TEMPLATES, on_malformed=on_malformed, clock=clock
        )
        self.priority_classes: Cache[PriorityClass, PriorityClass] = Cache(
            client, resources.PRIORITY_CLASSES, on_malformed=on_malformed, clock=clock
        )
        self.claims: Cache[PersistentVolumeClaim, str] = Cache(
            client, resources.CLAIMS, project=lambda claim: claim.metadata.uid, clock=clock
        )
        self.replica_sets: Cache[ReplicaSet, Workload] = Cache(
            client, resources.REPLICA_SETS, project=workload, clock=clock
        )
        self.stateful_sets: Cache[StatefulSet, Workload] = Cache(
            client, resources.STATEFUL_SETS, project=workload, clock=clock
        )
        #: labels of every node
        self.nodes: Cache[Plain, dict[str, str]] = Cache(client, NODES, project=labels, clock=clock)
        self.hyper_nodes: Cache[HyperNode, HyperNode] = Cache(
            client, resources.HYPERNODES, on_malformed=on_malformed, clock=clock
        )
        namespace, name = configuration
        #: the one ConfigMap with the controllers' configuration
        self.configuration: Cache[ConfigMap, ConfigMap] = Cache(
            client,
            resources.CONFIG_MAPS,
            select=Selector(namespace=namespace, fields=f"metadata.name={name}"),
            clock=clock,
        )
        #: what plugins made for Jobs, Secrets apart
        self.job_objects: Mapping[ObjectKind, Cache[Any, JobObject]] = {
            kind: Cache(client, resource, select=OF_JOBS, project=job_object, clock=clock)
            for kind, resource in PLUGIN_RESOURCES.items()
            if kind != "Secret"
        }
        #: pods by the uid of the object that controls them
        self.pods_by_owner: Index[Pod] = Index(owner, self.pods, self.foreign_pods)
        #: PodGroups by the name of their queue
        self.groups_by_queue: Index[PodGroup] = Index(lambda g: g.spec.queue, self.pod_groups)
        #: queues by the name of the queue above them
        self.queues_by_parent: Index[Queue] = Index(lambda q: q.spec.parent or None, self.queues)
        #: what plugins made, by the uid of the Job
        self.objects_by_job: Mapping[ObjectKind, Index[JobObject]] = {
            kind: Index(lambda row: row.job_uid or None, cache)
            for kind, cache in self.job_objects.items()
        }

    @property
    def all(self) -> Sequence[Cache[Any, Any]]:
        """Return every cache that a controller looks at."""
        known: Sequence[Cache[Any, Any]] = (
            self.jobs,
            self.pods,
            self.foreign_pods,
            self.pod_groups,
            self.queues,
            self.commands,
            self.cron_jobs,
            self.job_flows,
            self.job_templates,
            self.priority_classes,
            self.claims,
            self.replica_sets,
            self.stateful_sets,
            self.nodes,
            self.hyper_nodes,
            self.configuration,
            *self.job_objects.values(),
        )
        return [cache for cache in known if cache.is_wanted]

    def want(self, *caches: Cache[Any, Any]) -> None:
        """Have caches kept that a controller reads without being told of changes."""
        for cache in caches:
            cache.is_wanted = True

    def pods_like(self, pod: Pod) -> Cache[Pod, Pod]:
        """Return the cache that a pod of a Job is in."""
        return self.pods if self._division.is_ours(pod) else self.foreign_pods

    @property
    def synced(self) -> bool:
        """Whether all of these are."""
        return all(cache.synced for cache in self.all)

    async def wait(self) -> None:
        """Wait until all are synced."""
        for cache in self.all:
            await cache.informer.synced.wait()

    async def run(self) -> None:
        """Keep all caches up to date."""
        async with asyncio.TaskGroup() as group:
            for cache in self.all:
                group.create_task(cache.informer.run(), name=f"informer: {cache.resource}")
