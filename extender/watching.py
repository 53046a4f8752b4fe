"""
What the extender watches, and how it becomes the model.

Pods are kept as flat rows in the cluster cache alone; the informer itself keeps nothing of them.
Kinds that only some plugins read are watched while such a plugin is configured.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from extender.model import Model, Urgency
from extender.optional import OptionalWatch, OptionalWatches, everything
from pumice.core.api.core import Node, Pod, PriorityClass
from pumice.core.api.limits import PodDisruptionBudget, ResourceQuota
from pumice.core.api.numatopology import Numatopology
from pumice.core.api.scheduling import PodGroup, Queue
from pumice.core.api.topology import HyperNode
from pumice.core.conf import Configuration
from pumice.core.devices.sharing import Sharing
from pumice.core.ids import JobKey, PodUid
from pumice.core.model.claims import lean
from pumice.core.model.storage import Stored
from pumice.kube.client import Client, Selector
from pumice.kube.clock import Clock
from pumice.kube.errors import ApiError
from pumice.kube.informer import Added, Deleted, Event, Informer, Updated
from pumice.kube.resources import (
    BUDGETS,
    CLAIMS,
    CONFIG_MAPS,
    CSI_CAPACITIES,
    CSI_DRIVERS,
    CSI_NODES,
    HYPERNODES,
    NODES,
    NUMA_TOPOLOGIES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    QUOTAS,
    STORAGE_CLASSES,
    VOLUMES,
    ConfigMap,
    Resource,
)

T = TypeVar("T", bound=Stored)


def _nothing(_: Any) -> None:
    """Keep nothing of an object in the informer."""


def of_geometries(conf: Configuration) -> Selector:
    """Return the one ConfigMap in which the geometries of MIG cards are listed."""
    namespace, name = Sharing.of(conf).geometries
    return Selector(namespace=namespace, fields=f"metadata.name={name}")


@dataclass(slots=True)
class Watching:
    """The informers of the extender."""

    pods: Informer[Pod, None]
    nodes: Informer[Node, None]
    groups: Informer[PodGroup, None]
    queues: Informer[Queue, None]
    classes: Informer[PriorityClass, None]
    budgets: Informer[PodDisruptionBudget, None]
    optional: OptionalWatches

    @classmethod
    def of(
        cls,
        client: Client,
        clock: Clock,
        model: Model,
        wake: Callable[[Urgency], None],
        node_gone: Callable[[str], None],
    ) -> Watching:
        """Make the informers that feed `model`; `wake` is told how soon a change is to be seen."""
        cluster = model.cluster
        storage = cluster.inputs.storage

        def pod(event: Event[Pod, None]) -> None:
            match event:
                case Added(_, obj) | Updated(_, obj, _):
                    wake(model.set_pod(obj))
                case Deleted(_, uid, _):
                    model.remove_pod(PodUid(uid))
                    wake(Urgency.NOW)

        def node(event: Event[Node, None]) -> None:
            match event:
                case Added(_, obj) | Updated(_, obj, _):
                    wake(model.set_node(obj))
                case Deleted(key, _, _):
                    cluster.remove_node(key)
                    node_gone(key)
                    wake(Urgency.NOW)

        def group(event: Event[PodGroup, None]) -> None:
            match event:
                case Added(_, obj) | Updated(_, obj, _):
                    wake(model.set_group(obj))
                case Deleted(key, _, _):
                    model.remove_group(JobKey(key))
                    wake(Urgency.NOW)

        def queue(event: Event[Queue, None]) -> None:
            match event:
                case Added(_, obj) | Updated(_, obj, _):
                    wake(model.set_queue(obj))
                case Deleted(key, _, _):
                    cluster.remove_queue(key)
                    wake(Urgency.NOW)

        def priority_class(event: Event[PriorityClass, None]) -> None:
            match event:
                case Added(_, obj) | Updated(_, obj, _):
                    cluster.set_priority_class(obj)
                case Deleted(key, _, _):
                    cluster.remove_priority_class(key)
            wake(Urgency.NOW)

        def budget(event: Event[PodDisruptionBudget, None]) -> None:
            match event:
                case Added(_, obj) | Updated(_, obj, _):
                    cluster.inputs.set_budget(obj)
                case Deleted(key, _, _):
                    cluster.inputs.budgets.pop(key, None)
            wake(Urgency.LATER)

        def hypernode(event: Event[HyperNode, None]) -> None:
            match event:
                case Added(_, obj) | Updated(_, obj, _):
                    wake(model.set_hypernode(obj))
                case Deleted(key, _, _):
                    cluster.remove_hypernode(key)
                    wake(Urgency.NOW)

        def quota(event: Event[ResourceQuota, None]) -> None:
            match event:
                case Added(_, obj) | Updated(_, obj, _):
                    cluster.inputs.set_quota(obj)
                case Deleted(key, _, _):
                    cluster.inputs.remove_quota(key)
            wake(Urgency.LATER)

        def numa(event: Event[Numatopology, None]) -> None:
            match event:
                case Added(_, obj) | Updated(_, obj, _):
                    cluster.inputs.set_numa(obj)
                case Deleted(key, _, _):
                    cluster.inputs.numa.pop(key, None)
            wake(Urgency.LATER)

        def stored(objects: dict[str, T]) -> Callable[[Event[T, None]], None]:
            def handle(event: Event[T, None]) -> None:
                match event:
                    case Added(key, obj) | Updated(key, obj, _):
                        objects[key] = lean(obj)
                    case Deleted(key, _, _):
                        objects.pop(key, None)
                wake(Urgency.NOW if cluster.claimants else Urgency.NEVER)

            return handle

        def device_config(event: Event[ConfigMap, None]) -> None:
            match event:
                case Added(key, obj) | Updated(key, obj, _):
                    cluster.set_device_config(key, obj.data)
                case Deleted(key, _, _):
                    cluster.set_device_config(key, None)
            wake(Urgency.NOW)

        def optional(
            resource: Resource[Any],
            reader: str | None,
            handler: Callable[[Any], None],
            select: Callable[[Configuration], Selector] = everything,
        ) -> OptionalWatch:
            def make(fatal: tuple[type[ApiError], ...], which: Selector) -> Informer[Any, None]:
                return Informer(
                    client,
                    resource,
                    handler,
                    select=which,
                    project=_nothing,
                    fatal=fatal,
                    clock=clock,
                )

            return OptionalWatch(resource, reader, make, clock, select, wanted=reader is None)

        return cls(
            Informer(client, PODS, pod, project=_nothing, clock=clock),
            Informer(client, NODES, node, project=_nothing, clock=clock),
            Informer(client, POD_GROUPS, group, project=_nothing, clock=clock),
            Informer(client, QUEUES, queue, project=_nothing, clock=clock),
            Informer(client, PRIORITY_CLASSES, priority_class, project=_nothing, clock=clock),
            Informer(client, BUDGETS, budget, project=_nothing, clock=clock),
            OptionalWatches(
                [
                    # Whatever is configured: Jobs may ask for a topology.
                    optional(HYPERNODES, None, hypernode),
                    # Whatever is configured: how a pod is released depends on its claims.
                    optional(CLAIMS, None, stored(storage.claims)),
                    optional(VOLUMES, None, stored(storage.volumes)),
                    optional(STORAGE_CLASSES, None, stored(storage.classes)),
                    optional(CSI_NODES, "predicates", stored(storage.csi_nodes)),
                    optional(CSI_DRIVERS, "predicates", stored(storage.drivers)),
                    optional(CSI_CAPACITIES, "predicates", stored(storage.capacities)),
                    optional(QUOTAS, "resourcequota", quota),
                    optional(NUMA_TOPOLOGIES, "numa-aware", numa),
                    optional(CONFIG_MAPS, "deviceshare", device_config, of_geometries),
                ]
            ),
        )

    def all(self) -> list[Informer[Any, None]]:
        """Return the informers that always run, those first that others refer to."""
        return [self.nodes, self.queues, self.classes, self.budgets, self.groups, self.pods]

    def missing(self) -> str:
        """Say which caches are not synced yet, "" when all are."""
        missing = [str(i.resource) for i in self.all() if not i.synced.is_set()]
        return ", ".join([*missing, *self.optional.missing()])

    def follow(self, conf: Configuration) -> None:
        """Watch what the plugins of a configuration read besides."""
        self.optional.follow(conf)

    async def synced(self) -> None:
        """Wait until every cache is synced that always is there."""
        for informer in self.all():
            await informer.synced.wait()

    def age(self, now: float) -> float:
        """
        Return for how long the cache furthest behind has heard nothing, in seconds.

        It is infinite while one that is wanted has not been filled yet.
        """
        if self.optional.missing():
            return math.inf
        informers = [*self.all(), *self.optional.informers()]
        return max(now - informer.last_contact() for informer in informers)

    def unread_storage(self) -> bool:
        """Tell whether it is not known where volumes are, since that cannot be read."""
        return self.optional.unread(CLAIMS, VOLUMES, STORAGE_CLASSES)

    def run(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """Start the informers."""
        return [
            *(
                group.create_task(informer.run(), name=f"watch {informer.resource}")
                for informer in self.all()
            ),
            group.create_task(self.optional.run(), name="optional watches"),
        ]
