"""
The PodGroup controller: a group for every pod of ours that names none.

    pods without a group, by the name of the group they belong to ──┐
    groups that somebody deleted, after a while ────────────────────┤
    ReplicaSets and StatefulSets ───────────────────────────────────┴──► one worker a group

What to do is decided in `pumice.core.groups`. The group is created once for all its pods, then
each pod is annotated. Where the API server refuses a group, its pods are told by an event and
looked at again when they change; the others go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar, assert_never

from controllers.caches import Cache, Caches, Index
from controllers.rows import Workload
from pumice.core import names
from pumice.core.api.core import Pod
from pumice.core.api.scheduling import PodGroup
from pumice.core.groups import reconcile as g
from pumice.core.quantity import QuantityError
from pumice.kube import resources
from pumice.kube.client import Client, Preconditions
from pumice.kube.clock import Clock
from pumice.kube.errors import AlreadyExists, ApiError, Conflict, Forbidden, Invalid, NotFound
from pumice.kube.events import Recorder
from pumice.kube.informer import Deleted, Event
from pumice.kube.patches import MergePatch
from pumice.kube.resources import Object, Plain, Resource
from pumice.kube.workqueue import WorkQueue

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)

WORKERS: Final = 5
IN_FLIGHT: Final = 16
LOST_S: Final = 1.0
"""After how long a group that is gone is made again: one that goes with its owner stays away."""
OWNERS: Final[dict[str, Resource[Plain]]] = {
    resource.kind: Resource(resource.api_version, resource.kind, resource.plural, Plain)
    for resource in (
        resources.REPLICA_SETS,
        resources.STATEFUL_SETS,
        resources.DAEMON_SETS,
        resources.KUBERNETES_JOBS,
    )
}


class PodGroupController:
    """Watches and works until `run` is cancelled; make it before the caches run."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        events: Recorder,
        *,
        workers: int = WORKERS,
        inherits: bool = True,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._caches = caches
        self._events = events
        self._inherits = inherits
        self._slots = asyncio.Semaphore(IN_FLIGHT)
        #: ReplicaSets and StatefulSets by the key of their group
        self._workloads: dict[str, Workload] = {}
        #: uids of groups that we deleted and the cache still shows
        self._gone: set[str] = set()
        #: by group, what each of its pods was told about why it has none
        self._told: dict[str, dict[str, str]] = {}
        self.queue: WorkQueue[str] = WorkQueue(
            "podgroups", self._work, workers=workers, clock=clock
        )
        #: pods that name no group, by `namespace/name` of the one they belong to
        self._ungrouped: Index[Pod] = Index(self._group_key, caches.pods)
        #: pods that name the group which was made for them, by `namespace/name` of that
        self._members: Index[Pod] = Index(self._made_key, caches.pods)
        caches.pods.subscribe(self._on_pod)
        caches.pod_groups.subscribe(self._on_group)
        self._follow(caches.replica_sets)
        self._follow(caches.stateful_sets)

    async def run(self) -> None:
        """Follow pods and workloads."""
        await self._caches.wait()
        await self.queue.run()

    def shutdown(self) -> None:
        """Begin nothing more; `run` returns when what is under way is done."""
        self.queue.shutdown()

    # Changes become keys.

    def _group_key(self, pod: Pod) -> str | None:
        if not g.wants_group(pod, self._caches.scheduler_names):
            return None
        return f"{pod.metadata.namespace}/{g.group_name(pod)}"

    def _made_key(self, pod: Pod) -> str | None:
        if not g.has_group(pod, self._caches.scheduler_names):
            return None
        return f"{pod.metadata.namespace}/{g.group_name(pod)}"

    def _on_pod(self, event: Event[Pod, Pod]) -> None:
        if isinstance(event, Deleted):
            return
        if key := self._group_key(event.obj):
            self.queue.add(key)
        elif (key := self._made_key(event.obj)) and self._caches.pod_groups.get(key) is None:
            self.queue.add_after(key, LOST_S)

    def _on_group(self, event: Event[PodGroup, PodGroup]) -> None:
        if isinstance(event, Deleted):
            self._gone.discard(event.uid)
            if self._members.get(event.key):
                self.queue.add_after(event.key, LOST_S)

    def _follow(self, workloads: Cache[T, Workload]) -> None:
        """Look at the group of a workload when it loses its last replica, or gets a first."""

        def on_change(event: Event[T, Workload]) -> None:
            row = event.old if isinstance(event, Deleted) else workloads.get(event.key)
            if row is None:
                return
            key = f"{row.namespace}/{g.name_for(row.uid)}"
            was_empty = self._is_empty(key)
            if isinstance(event, Deleted):
                self._workloads.pop(key, None)
            else:
                self._workloads[key] = row
            if was_empty != self._is_empty(key):
                self.queue.add(key)

        workloads.subscribe(on_change)

    def _is_empty(self, key: str) -> bool:
        row = self._workloads.get(key)
        return row is not None and not row.replicas

    # Keys become effects.

    async def _work(self, key: str) -> None:
        """Do what one group needs; what the API server refuses is told to the pods."""
        group = self._caches.pod_groups.get(key)
        if group is not None and group.metadata.uid in self._gone:
            group = None
        if self._is_empty(key):
            await self._carry_out(g.reconcile_workload(0, group))
            return
        pods = sorted(
            self._ungrouped.get(key).values(),
            key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name),
        )
        if not pods and group is None:
            pods = await self._loser(key)
        if not pods:
            self._told.pop(key, None)
            return
        row = self._workloads.get(key)
        matters = self._inherits and (group is None or g.follows_pods(pods[0]))
        owners = await self._owners(pods[0], row) if matters else []
        revision = row.revision if row else ""
        try:
            await self._carry_out(g.reconcile(pods, owners, group, revision=revision))
        except (Invalid, QuantityError) as error:
            self._refused(key, pods, error)  # It stays so until a pod changes.
        except Forbidden as error:
            self._refused(key, pods, error)
            raise  # A quota may have room later.

    async def _loser(self, key: str) -> list[Pod]:
        """Return one of the pods whose group is gone, as a whole; none where there is none."""
        for pod in self._members.get(key).values():
            meta = pod.metadata
            with suppress(NotFound):
                whole = await self._client.get(resources.PODS, meta.namespace, meta.name)
                return [whole] if whole.metadata.uid == meta.uid else []
        return []

    async def _owners(self, pod: Pod, row: Workload | None) -> list[Mapping[str, str]]:
        """Return the annotations of the pod's owners; one that is gone has none."""
        found: list[Mapping[str, str]] = []
        for owner in g.inherits_from(pod):
            if row is not None and row.uid == owner.uid:
                found.append(row.annotations)
                continue
            try:
                obj = await self._client.get(OWNERS[owner.kind], pod.metadata.namespace, owner.name)
            except NotFound:
                continue
            if obj.metadata.uid == owner.uid:
                found.append(g.inheritable(obj.metadata.annotations))
        return found

    async def _carry_out(self, effects: Sequence[g.Effect]) -> None:
        """Do all effects in order, annotations at the same time; raise the first error."""
        annotations: list[g.AnnotatePod] = []
        for effect in effects:
            match effect:
                case g.CreatePodGroup(group=group):
                    await self._create(group)
                case g.PatchPodGroup():
                    await self._patch(effect)
                case g.DeletePodGroup():
                    await self._delete(effect)
                case g.AnnotatePod():
                    annotations.append(effect)
                case other:
                    assert_never(other)
        done = await asyncio.gather(*map(self._annotate, annotations), return_exceptions=True)
        for error in done:
            if error is not None:
                raise error

    async def _create(self, group: PodGroup) -> None:
        namespace = group.metadata.namespace
        with suppress(AlreadyExists):
            created = await self._client.create(resources.POD_GROUPS, namespace, group)
            self._caches.pod_groups.observe(created)

    async def _patch(self, effect: g.PatchPodGroup) -> None:
        """Change a group; one that is gone by now is made anew with the next look."""
        patch, given = MergePatch(effect.patch), Preconditions(uid=effect.uid)
        changed = await self._client.patch(
            resources.POD_GROUPS, effect.namespace, effect.name, patch, given=given
        )
        self._caches.pod_groups.observe(changed)

    async def _delete(self, effect: g.DeletePodGroup) -> None:
        given = Preconditions(uid=effect.uid)
        with suppress(NotFound, Conflict):
            await self._client.delete(
                resources.POD_GROUPS, effect.namespace, effect.name, given=given
            )
        # The cache may show it for a moment: pods that come now need a new one.
        group = self._caches.pod_groups.get(f"{effect.namespace}/{effect.name}")
        if group is not None and group.metadata.uid == effect.uid:
            self._gone.add(effect.uid)

    async def _annotate(self, effect: g.AnnotatePod) -> None:
        """Annotate a pod; one that is gone, or another by now, needs nothing."""
        patch = MergePatch({"metadata": {"annotations": {names.GROUP_NAME: effect.group}}})
        given = Preconditions(uid=effect.uid)
        async with self._slots:
            with suppress(NotFound, Conflict):
                pod = await self._client.patch(
                    resources.PODS, effect.namespace, effect.name, patch, given=given
                )
                self._caches.pods.observe(pod)

    def _refused(self, key: str, pods: Sequence[Pod], error: Exception) -> None:
        """Tell the pods why they have no group, each reason once."""
        message = error.message if isinstance(error, ApiError) else str(error)
        text = f"Failed to create PodGroup: {message}"
        old = self._told.get(key, {})
        self._told[key] = {pod.metadata.uid: text for pod in pods}
        for pod in pods:
            if old.get(pod.metadata.uid) != text:
                self._events.record(
                    resources.PODS, pod.metadata, "Warning", "FailedCreatePodGroup", text
                )
