"""
Carry out what the core decided for a Job: API calls, in order, answers fed back to the caches.

Effects of one kind that stand together go out in parallel, a bounded number at a time; the first
failure ends the batch, and nothing after it is done. "Exists already" and "gone already" are
successes: the caches were a moment behind. Whatever fails otherwise comes out as one of three
errors, because they are answered differently: `Refused` counts against the action's tries, `Stale`
asks for a look at fresher caches, and `Away` waits for the API server however long it takes.

A pod that is refused does not keep the others from being made. Which they are is returned, and
what comes after the pods, being the count of them, is left for the next look.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import Protocol, TypeVar

import msgspec

from controllers.job_objects import ObjectHands
from controllers.job_outcomes import Away, Made, Record, Refused, Stale
from pumice.core import names
from pumice.core.api.batch import Job
from pumice.core.api.core import Pod
from pumice.core.api.scheduling import PodGroup
from pumice.core.api.storage import PersistentVolumeClaim
from pumice.core.jobs import types as t
from pumice.core.jobs.difference import difference
from pumice.core.jobs.membership import restart_notes
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
from pumice.kube.resources import Resource

IN_FLIGHT = 50
"""Requests of all Jobs together that wait for their answers, at most."""
REFUSED_ALIKE = 10
"""After so many refused pods of a task the rest of its pods is not tried."""
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

E = TypeVar("E", bound=t.Effect)
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

    async def carry_out(self, job: Job, effects: Iterable[t.Effect]) -> Made:
        """Do all in order; return what has become of the pods to be made."""
        made = Made()
        for kind, alike in groupby(effects, key=type):
            if kind is t.CreatePod:
                made = await self._create_pods(
                    job, [e for e in alike if isinstance(e, t.CreatePod)]
                )
                if made.refusal:
                    break
            else:
                await self._in_parallel(job, list(alike), partial(self._do, job))
        return made

    async def _create_pods(self, job: Job, pods: Sequence[t.CreatePod]) -> Made:
        """Create pods; those that are refused do not stop the others."""
        blocked = 0
        refusals: dict[str, Refused] = {}
        by_task: Counter[str] = Counter()
        tried: set[str] = set()

        async def create(pod: t.CreatePod) -> None:
            nonlocal blocked
            if by_task[pod.task] >= REFUSED_ALIKE:
                return
            tried.add(pod.name)
            try:
                blocked += await self._do(job, pod)
            except Refused as error:
                refusals[pod.name] = error
                by_task[pod.task] += 1

        await self._in_parallel(job, pods, create)
        refused = [pod.name for pod in pods if pod.name in refusals or pod.name not in tried]
        first = next((refusals[name] for name in refused if name in refusals), None)
        return Made(blocked, frozenset(refused), first)

    async def _in_parallel(
        self, job: Job, effects: Sequence[E], do: Callable[[E], Awaitable[object]]
    ) -> None:
        """Do effects of one kind, a few at a time, until one fails."""
        left = iter(effects)
        errors: list[Refused | Stale | Away] = []

        async def work() -> None:
            for effect in left:
                if errors:
                    return
                try:
                    async with self._slots:
                        await do(effect)
                except (Refused, Stale, Away) as error:
                    errors.append(error)

        if len(effects) == 1:
            await work()
        else:
            async with asyncio.TaskGroup() as group:
                for n in range(min(self._in_flight, len(effects))):
                    group.create_task(work(), name=f"job {job.metadata.key}: {n}")
        if errors:
            # A refusal says more than an outage or a race that came with it.
            raise next((e for e in errors if isinstance(e, Refused)), errors[0])

    async def _do(self, job: Job, effect: t.Effect) -> int:
        """Do one effect; return 1 where it found its name taken."""
        try:
            return await self._send(job, effect)
        except _TRANSIENT as error:
            if not _is_told(error):
                raise Away(str(error)) from error
            event = _event(effect, error)
            if isinstance(effect, t.CreatePod):
                raise Refused(str(error), event, counts=False) from error
            raise Away(str(error), event) from error
        except Conflict as error:
            raise Stale(str(error)) from error
        except KubeError as error:
            raise Refused(str(error), _event(effect, error)) from error

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
        notes = {names.OUT_OF_SYNC: "true", **restart_notes(effect.restart)}
        patch = MergePatch({"metadata": {"annotations": notes}})
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


def _is_told(error: KubeError) -> bool:
    """Tell whether an outage is one that the server explains: a webhook that does not answer."""
    return isinstance(error, ServerError) and error.status == 500


def _event(effect: t.Effect, error: KubeError) -> t.RecordEvent:
    """Return what the owner of the Job is told."""
    text = error.message if isinstance(error, ApiError) else str(error)
    reason, prefix = _FAILED.get(type(effect), ("JobStatusError", ""))
    return t.RecordEvent("Warning", reason, prefix + (text or str(error)))
