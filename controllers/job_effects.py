"""
Carry out what the core decided for a Job: API calls, in order, answers fed back to the caches.

Effects of one kind that stand together go out in parallel; the first failure ends the batch, and
nothing after it is done. "Exists already" and "gone already" are successes: the caches were a
moment behind. Whatever fails otherwise comes out as one of three errors, because they are answered
differently: `Refused` counts against the action's tries, `Stale` asks for a look at fresher
caches, and `Away` waits for the API server however long it takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Protocol, TypeVar

import msgspec

from controllers.job_objects import ObjectHands
from controllers.job_outcomes import Away, Record, Refused, Stale
from pumice.core import names
from pumice.core.api.batch import Job
from pumice.core.api.core import Pod
from pumice.core.api.scheduling import PodGroup
from pumice.core.jobs import types as t
from pumice.core.jobs.difference import difference
from pumice.kube import resources
from pumice.kube.client import Client, Preconditions
from pumice.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Disconnected,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
)
from pumice.kube.patches import MergePatch
from pumice.kube.resources import PersistentVolumeClaim, Resource

IN_FLIGHT = 50
_TRANSIENT = (Disconnected, TooManyRequests, ServerError, Unauthorized, Gone)
_FAILED = {
    t.CreatePod: ("FailedCreate", "Error creating pods: "),
    t.MarkOutOfSync: ("FailedDelete", "Error deleting pods: "),
    t.DeletePod: ("FailedDelete", "Error deleting pods: "),
    t.CreatePodGroup: ("PodGroupError", "Failed to create PodGroup, err: "),
    t.PatchPodGroup: ("PodGroupError", "Failed to create PodGroup, err: "),
    t.CreateClaim: ("PVCError", "Failed to create PVC, err: "),
    t.CreateObject: ("PluginError", "Execute plugin when job add failed, err: "),
    t.ReplaceData: ("PluginError", "Execute plugin when job add failed, err: "),
    t.DeleteObject: ("PluginError", "Execute plugin when job delete failed, err: "),
}

C = TypeVar("C", Pod, PodGroup, PersistentVolumeClaim)
D = TypeVar("D", Pod, PodGroup)


Answer = Job | Pod | PodGroup | PersistentVolumeClaim
"""What the API server says of an object that we wrote."""


class Observer(Protocol):
    """Where answers go."""

    def changed(self, obj: Answer) -> None:
        """Take an object as a write left it."""
        ...

    def deleted(self, key: str, uid: str, last: Pod | PodGroup | None) -> None:
        """Take that an object is gone or going; `last` is what the server said of it."""
        ...


class Hands:
    """Carries effects out, one Job at a time or many at once."""

    def __init__(
        self,
        client: Client,
        observer: Observer,
        record: Record,
        objects: ObjectHands,
        *,
        in_flight: int = IN_FLIGHT,
    ) -> None:
        self._client = client
        self._observer = observer
        self._record = record
        self._objects = objects
        self._in_flight = in_flight
        self._slots = asyncio.Semaphore(in_flight)

    async def carry_out(self, job: Job, effects: Iterable[t.Effect]) -> int:
        """Do all in order; return how many pods' names somebody else holds."""
        blocked = 0
        for _, alike in groupby(effects, key=type):
            blocked += sum(await self._batch(job, list(alike)))
        return blocked

    async def _batch(self, job: Job, effects: Sequence[t.Effect]) -> list[int]:
        """Do effects of one kind, a few at a time, until one fails."""
        if len(effects) == 1:
            return [await self._do(job, effects[0])]
        left = iter(effects)
        done: list[int] = []
        errors: list[Refused | Stale | Away] = []

        async def work() -> None:
            for effect in left:
                if errors:
                    return
                try:
                    async with self._slots:
                        done.append(await self._do(job, effect))
                except (Refused, Stale, Away) as error:
                    errors.append(error)

        async with asyncio.TaskGroup() as group:
            for n in range(min(self._in_flight, len(effects))):
                group.create_task(work(), name=f"job {job.metadata.key}: {n}")
        if errors:
            # A refusal says more than an outage or a race that came with it.
            raise next((e for e in errors if isinstance(e, Refused)), errors[0])
        return done

    async def _do(self, job: Job, effect: t.Effect) -> int:
        """Do one effect; return 1 where it found its name taken."""
        try:
            return await self._send(job, effect)
        except _TRANSIENT as error:
            raise Away(str(error)) from error
        except Conflict as error:
            raise Stale(str(error)) from error
        except KubeError as error:
            text = error.message if isinstance(error, ApiError) else str(error)
            reason, prefix = _FAILED.get(type(effect), ("JobStatusError", ""))
            event = t.RecordEvent("Warning", reason, prefix + (text or str(error)))
            raise Refused(str(error), event) from error

    async def _send(self, job: Job, effect: t.Effect) -> int:
        """Send one effect's request."""
        namespace = job.metadata.namespace
        match effect:
            case t.CreatePod():
                return await self._create(resources.PODS, namespace, effect.body)
            case t.CreatePodGroup():
                await self._create(resources.POD_GROUPS, namespace, effect.group)
            case t.CreateClaim():
                await self._create(resources.CLAIMS, namespace, effect.body)
            case t.MarkOutOfSync():
                await self._mark(namespace, effect)
            case t.DeletePod():
                await self._delete(resources.PODS, namespace, effect)
            case t.DeletePodGroup():
                await self._delete(resources.POD_GROUPS, namespace, effect)
            case t.PatchPodGroup():
                await self._patch_group(namespace, effect)
            case t.CreateObject():
                await self._objects.create(job, effect)
            case t.ReplaceData():
                await self._objects.replace(job, effect)
            case t.DeleteObject():
                await self._objects.delete(job, effect)
            case t.PatchJob() | t.PatchStatus():
                await self._patch_job(job, effect)
            case t.RecordEvent():
                self._record(job, effect)
            case t.Fail():
                raise Refused(effect.message)
        return 0

    async def _create(self, resource: Resource[C], namespace: str, body: object) -> int:
        """Create an object; return 1 where there is one of its name."""
        try:
            obj = await self._client.create(resource, namespace, body)
        except AlreadyExists:
            return 1
        self._observer.changed(obj)
        return 0

    async def _mark(self, namespace: str, effect: t.MarkOutOfSync) -> None:
        """Mark a pod; one that is gone, or another by now, needs no mark."""
        patch = MergePatch({"metadata": {"annotations": {names.OUT_OF_SYNC: "true"}}})
        given = Preconditions(uid=effect.uid)
        try:
            pod = await self._client.patch(
                resources.PODS, namespace, effect.name, patch, given=given
            )
        except (NotFound, Conflict, Invalid):
            return  # Another uid makes the patch invalid, as a uid cannot be changed.
        self._observer.changed(pod)

    async def _delete(
        self, resource: Resource[D], namespace: str, effect: t.DeletePod | t.DeletePodGroup
    ) -> None:
        """Delete an object; that it is gone, or another by now, is as good."""
        given = Preconditions(uid=effect.uid)
        last: D | None = None
        with suppress(NotFound, Conflict):
            last = await self._client.delete(resource, namespace, effect.name, given=given)
        self._observer.deleted(f"{namespace}/{effect.name}", effect.uid, last)

    async def _patch_group(self, namespace: str, effect: t.PatchPodGroup) -> None:
        """Change the PodGroup's specification, which nobody else writes."""
        patch, given = MergePatch({"spec": effect.spec}), Preconditions(uid=effect.uid)
        try:
            group = await self._client.patch(
                resources.POD_GROUPS, namespace, effect.name, patch, given=given
            )
        except NotFound as error:
            raise Stale(str(error)) from error
        self._observer.changed(group)

    async def _patch_job(self, job: Job, effect: t.PatchJob | t.PatchStatus) -> None:
        """Change the Job or its status, on the version that the decision was made on."""
        meta = job.metadata
        given = Preconditions(uid=effect.uid, resource_version=effect.resource_version)
        try:
            if isinstance(effect, t.PatchJob):
                changed = await self._client.patch(
                    resources.JOBS, meta.namespace, meta.name, MergePatch(effect.patch), given=given
                )
            else:
                old, new = msgspec.to_builtins(job.status), msgspec.to_builtins(effect.status)
                body = {"status": difference(old, new)}
                changed = await self._client.patch_status(
                    resources.JOBS, meta.namespace, meta.name, MergePatch(body), given=given
                )
        except NotFound:
            return
        self._observer.changed(changed)
