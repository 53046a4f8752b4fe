"""
Carry out what Job plugins want beside pods: ConfigMaps, Secrets, Services, NetworkPolicies.

Their names follow from the Job's, so somebody else may hold one:

    the Job itself     it was made by a controller before this one: taken over
    a Job of the name  it is about to be collected with its Job: waited for
    anyone else        left alone; an event tells, and the Job fails if it cannot do without

Nothing that the Job does not own is ever changed or deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from controllers import job_keys
from controllers.caches import PLUGIN_RESOURCES
from controllers.job_outcomes import Record, Refused, Stale
from pumice.core.api.batch import Job
from pumice.core.api.meta import OwnerReference
from pumice.core.jobs import membership as m
from pumice.core.jobs import types as t
from pumice.core.jobs.objects import following
from pumice.kube.client import Client, Preconditions
from pumice.kube.errors import AlreadyExists, Conflict, NotFound
from pumice.kube.patches import JsonPatch
from pumice.kube.resources import Plain


class ObjectObserver(Protocol):
    """Where answers go."""

    def object_changed(self, kind: t.ObjectKind, obj: Plain) -> None:
        """Take an object as a write left it."""
        ...

    def object_deleted(self, kind: t.ObjectKind, key: str, uid: str) -> None:
        """Take that an object is gone or going."""
        ...

    def object_is_foreign(self, job: Job, key: t.ObjectKey) -> None:
        """Take that another owner holds a name that the Job can do without."""
        ...


class ObjectHands:
    """Makes, changes and removes the objects of one Job or of many at once."""

    def __init__(self, client: Client, observer: ObjectObserver, record: Record) -> None:
        self._client = client
        self._observer = observer
        self._record = record

    async def create(self, job: Job, effect: t.CreateObject) -> None:
        """Create an object, or find out whose it is that has its name."""
        resource, namespace = PLUGIN_RESOURCES[effect.kind], job.metadata.namespace
        body = effect.body
        if effect.draws_keys:
            body = {**body, "data": {**body["data"], **await job_keys.draw()}}
        try:
            obj = await self._client.create(resource, namespace, body)
        except AlreadyExists:
            await self._meet(job, effect)
        else:
            self._observer.object_changed(effect.kind, obj)

    async def replace(self, job: Job, effect: t.ReplaceData) -> None:
        """Replace data; one that is gone, or another by now, is looked at afresh."""
        steps = _steps(effect.kind, effect.data)
        obj = await self._patch(job, effect.kind, effect.name, effect.uid, steps)
        self._observer.object_changed(effect.kind, obj)

    async def delete(self, job: Job, effect: t.DeleteObject) -> None:
        """Delete an object; that it is gone, or another by now, is as good."""
        resource, namespace = PLUGIN_RESOURCES[effect.kind], job.metadata.namespace
        with suppress(NotFound, Conflict):
            await self._client.delete(
                resource, namespace, effect.name, given=Preconditions(uid=effect.uid)
            )
        self._observer.object_deleted(effect.kind, f"{namespace}/{effect.name}", effect.uid)

    async def _meet(self, job: Job, effect: t.CreateObject) -> None:
        """Deal with an object that has the name already."""
        resource, meta = PLUGIN_RESOURCES[effect.kind], job.metadata
        text = f"{effect.kind} {effect.name}"
        try:
            obj = await self._client.get(resource, meta.namespace, effect.name)
        except NotFound as error:
            raise Stale(str(error)) from error
        uid, owner = m.owner_uid(obj.metadata), obj.metadata.controller
        is_namesakes = uid not in ("", meta.uid) and _names(owner, job)
        if is_namesakes or obj.metadata.deletion_timestamp:
            raise Stale(f"{text} of before is not gone yet")
        if uid == meta.uid:
            await self._take_over(job, effect, obj)
            return
        text += " exists already and is not this Job's"
        if effect.is_vital:
            raise Refused(text, t.RecordEvent("Warning", "PluginError", text))
        self._record(job, t.RecordEvent("Warning", "PluginError", f"{text}: it is left as it is"))
        self._observer.object_is_foreign(job, (effect.kind, effect.name))

    async def _take_over(self, job: Job, effect: t.CreateObject, obj: Any) -> None:
        """Make an object of the Job what it should be: labelled, so that the caches show it."""
        labels, data = obj.metadata.labels or {}, following(effect.kind, effect.body.get("data"))
        wanted = labels | effect.body["metadata"]["labels"]
        steps: list[Mapping[str, Any]] = []
        if wanted != labels:
            steps.append({"op": "add", "path": "/metadata/labels", "value": wanted})
        if data and data != following(effect.kind, obj.data):
            steps += _steps(effect.kind, data)
        if steps:
            obj = await self._patch(job, effect.kind, effect.name, obj.metadata.uid, steps)
        self._observer.object_changed(effect.kind, obj)

    async def _patch(
        self, job: Job, kind: t.ObjectKind, name: str, uid: str, steps: Sequence[Mapping[str, Any]]
    ) -> Any:
        """Patch an object that is still the one looked at."""
        resource, namespace = PLUGIN_RESOURCES[kind], job.metadata.namespace
        try:
            return await self._client.patch(
                resource, namespace, name, JsonPatch(steps), given=Preconditions(uid=uid)
            )
        except NotFound as error:
            raise Stale(str(error)) from error


def _steps(kind: t.ObjectKind, data: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """Return the patch that sets those data that follow the Job."""
    if kind == "Secret":
        return [{"op": "add", "path": f"/data/{key}", "value": data[key]} for key in data]
    return [{"op": "add", "path": "/data", "value": dict(data)}]


def _names(owner: OwnerReference | None, job: Job) -> bool:
    """Tell whether an owner has the Job's name."""
    return owner is not None and owner.name == job.metadata.name
