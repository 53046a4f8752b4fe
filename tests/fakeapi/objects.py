"""The rules for one object: create, patch, apply, delete, bind, evict, and owners."""

from __future__ import annotations

import random
import uuid
from typing import Any

from pumice.kube.clock import Clock, rfc3339
from pumice.kube.resources import NAMESPACES, PODS, AnyResource
from tests.fakeapi import patching, pods
from tests.fakeapi.kinds import check, qualified, titled
from tests.fakeapi.refusals import (
    Json,
    Refusal,
    bad_request,
    conflict,
    invalid,
    modified,
    not_found,
)
from tests.fakeapi.store import Store

FOREGROUND = "foregroundDeletion"
#: metadata that only the server writes
KEPT = ("name", "namespace", "generateName", "creationTimestamp", "generation", "deletionTimestamp")


class Objects:
    """Changes objects in the store as the API server would."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._rng = random.Random(0)
        #: server-side apply: which fields each manager speaks of, by uid
        self._owned: dict[tuple[str, str], patching.Owned] = {}
        #: writes that changed nothing: what of which object
        self.idle: list[str] = []

    def find(self, resource: AnyResource, namespace: str, name: str) -> Json:
        obj = self._store.get(resource, namespace, name)
        if obj is None:
            raise not_found(qualified(resource), name)
        return obj

    def create(self, resource: AnyResource, namespace: str, body: Json) -> Json:
        meta: Json = dict(body.get("metadata") or {})
        if meta.get("resourceVersion"):
            raise Refusal(500, "", "resourceVersion should not be set on objects to be created")
        if resource.namespaced and not self._store.get(NAMESPACES, "", namespace):
            raise not_found("namespaces", namespace)
        if meta.get("namespace", namespace) != namespace:
            raise bad_request("the namespace of the provided object does not match the request")
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = meta["generateName"] + "".join(self._rng.choices("bcdfghjklmnpq", k=5))
        meta |= {"uid": str(uuid.UUID(int=self._rng.getrandbits(128))), "generation": 1}
        meta["creationTimestamp"] = rfc3339(self._clock.now())
        if resource.namespaced:
            meta["namespace"] = namespace
        obj = {k: v for k, v in body.items() if k not in ("kind", "apiVersion")} | {
            "metadata": meta
        }
        if resource.has_status:
            obj.pop("status", None)
        check(resource, _without_nulls(obj))
        if self._store.get(resource, namespace, meta["name"]):
            message = f'{qualified(resource)} "{meta["name"]}" already exists'
            raise Refusal(409, "AlreadyExists", message)
        if resource == PODS:
            obj = pods.defaulted(obj, self._clock.now())
        return self._store.put(resource, obj)

    def patch(
        self, resource: AnyResource, old: Json, part: str, patch: Any, content_type: str
    ) -> Json:
        match content_type:
            case "application/merge-patch+json":
                new = patching.merge(old, patch)
            case "application/json-patch+json":
                new = patching.operations(old, patch)
            case "application/strategic-merge-patch+json" if not resource.custom:
                new = patching.strategic(old, patch)
            case _:
                message = "the body of the request was in an unknown format"
                raise Refusal(415, "UnsupportedMediaType", message)
        return self.update(resource, old, part, new)

    def update(self, resource: AnyResource, old: Json, part: str, new: Json) -> Json:
        """Store a changed object; nothing is written where nothing changed."""
        name, had = old["metadata"]["name"], old["metadata"]
        meta: Json = dict(new["metadata"])
        if meta.get("resourceVersion", had["resourceVersion"]) != had["resourceVersion"]:
            raise modified(qualified(resource), name)
        if resource.custom and part == "status":
            meta = dict(had)
        if meta.get("uid", had["uid"]) != had["uid"]:
            message = f'metadata.uid: Invalid value: "{meta["uid"]}": field is immutable'
            raise invalid(titled(resource), name, message)
        if meta.get("name", name) != name:
            raise bad_request("the name of the object does not match the name on the URL")
        for field in KEPT:
            meta.pop(field, None)
            if field in had:
                meta[field] = had[field]
        new = {**new, "metadata": meta}
        if part == "status":
            new = {**old, "status": new.get("status"), "metadata": meta}
        elif resource.has_status:
            new = {**new, "status": old.get("status")}
        new = {k: v for k, v in new.items() if v is not None}
        if new == old:
            self.idle.append(f"{resource} {name} {part}".rstrip())
            return old
        check(resource, _without_nulls(new))
        if resource == PODS:
            pods.check_update(old, new)
        self._check_finalizers(resource, had, meta)
        if _desired(resource, old) != _desired(resource, new):
            meta["generation"] = had.get("generation", 0) + 1
        ending = meta.get("deletionTimestamp") and not meta.get("deletionGracePeriodSeconds")
        if ending and not meta.get("finalizers"):
            return self._removed(resource, old, new)
        return self._store.put(resource, new)

    def _check_finalizers(self, resource: AnyResource, had: Json, meta: Json) -> None:
        added = set(meta.get("finalizers") or ()) - set(had.get("finalizers") or ())
        if had.get("deletionTimestamp") and added:
            message = "metadata.finalizers: Forbidden: no new finalizers can be added if the object"
            raise invalid(titled(resource), had["name"], message)

    def apply(
        self,
        resource: AnyResource,
        namespace: str,
        name: str,
        part: str,
        body: Json,
        manager: str,
        force: bool,
    ) -> tuple[int, Json]:
        """Server-side apply by leaves: lists are one leaf, and replaced whole."""
        old = self._store.get(resource, namespace, name)
        leaves = patching.owned(body)
        if old is None:
            made = self.create(resource, namespace, body)
            self._owned[made["metadata"]["uid"], manager] = leaves
            return 201, made
        uid = old["metadata"]["uid"]
        for (of, other), theirs in list(self._owned.items()):
            if of == uid and other != manager:
                taken = {p for p in theirs & leaves if _at(old, p) != _at(body, p)}
                if taken and not force:
                    message = f'Apply failed with {len(taken)} conflict: conflict with "{other}"'
                    raise Refusal(409, "Conflict", message)
                self._owned[of, other] = theirs - taken
        dropped = self._owned.get((uid, manager), set()) - leaves
        new = patching.merge(patching.drop(old, dropped), _content(body))
        result = self.update(resource, old, part, new)
        self._owned[uid, manager] = leaves
        return 200, result

    def delete(self, resource: AnyResource, obj: Json, options: Json) -> Json:
        """Delete an object, or mark it where something must happen first."""
        meta = obj["metadata"]
        self._check_preconditions(resource, meta, options.get("preconditions") or {})
        finalizers = list(meta.get("finalizers") or ())
        policy = options.get("propagationPolicy")
        if policy == "Orphan":
            self._orphan(meta["uid"])
        if policy == "Foreground" and FOREGROUND not in finalizers:
            finalizers.append(FOREGROUND)
        grace = pods.grace_s(obj, options.get("gracePeriodSeconds")) if resource == PODS else 0
        if not grace and not finalizers:
            return self._removed(resource, obj, obj)
        if "deletionTimestamp" in meta and meta.get("finalizers") == (finalizers or None):
            return obj
        marked = {
            **meta,
            "deletionTimestamp": rfc3339(self._clock.now() + grace),
            "deletionGracePeriodSeconds": grace,
            "generation": meta.get("generation", 0) + 1,
        }
        if finalizers:
            marked["finalizers"] = finalizers
        if meta.get("deletionTimestamp") and grace >= meta["deletionGracePeriodSeconds"] > 0:
            return obj
        put = self._store.put(resource, {**obj, "metadata": marked})
        self._collect_garbage()
        return self._store.get(resource, meta.get("namespace", ""), meta["name"]) or put

    def _check_preconditions(self, resource: AnyResource, meta: Json, given: Json) -> None:
        for field, word in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            if given.get(field, meta[field]) != meta[field]:
                message = f"the {word} in the precondition ({given[field]}) does not match"
                raise conflict(titled(resource), meta["name"], message)

    def bind(self, pod: Json, binding: Json) -> None:
        self._store.put(PODS, pods.bound(pod, binding, self._clock.now()))

    def evict(self, pod: Json, eviction: Json) -> None:
        options = eviction.get("deleteOptions") or {}
        self._check_preconditions(PODS, pod["metadata"], options.get("preconditions") or {})
        if not pod["metadata"].get("deletionTimestamp"):
            reason = "EvictionByEvictionAPI"
            message = "Eviction API: evicting"
            status = pods.with_condition(
                pod["status"], "DisruptionTarget", "True", self._clock.now(), reason, message
            )
            pod = self._store.put(PODS, {**pod, "status": status})
        options = {k: v for k, v in options.items() if k != "preconditions"}
        self.delete(PODS, pod, options)

    # Owners.

    def _removed(self, resource: AnyResource, old: Json, last: Json) -> Json:
        """Take an object out, and with it what it owned."""
        self._store.remove(resource, {**old, **last})
        self._collect_garbage()
        if resource == PODS:
            return last
        return {"kind": "Status", "apiVersion": "v1", "status": "Success", "metadata": {}}

    def _collect_garbage(self) -> None:
        """Delete what has lost all its owners; end foreground deletions that own nothing."""
        while True:
            living = {o["metadata"]["uid"]: o for _, o in self._store.everything()}
            for resource, obj in self._store.everything():
                if self._collect(resource, obj, living):
                    break
            else:
                return

    def _collect(self, resource: AnyResource, obj: Json, living: dict[str, Json]) -> bool:
        meta = obj["metadata"]
        owners = [living.get(o["uid"]) for o in meta.get("ownerReferences") or ()]
        left = [o for o in owners if o and not _in_foreground(o)]
        if owners and not left and not meta.get("deletionTimestamp"):
            policy = "Foreground" if any(owners) else "Background"
            self.delete(resource, obj, {"propagationPolicy": policy})
            return True
        if _in_foreground(obj) and not self._dependents(meta["uid"]):
            rest = [f for f in meta["finalizers"] if f != FOREGROUND]
            self.update(resource, obj, "", {**obj, "metadata": {**meta, "finalizers": rest}})
            return True
        return False

    def _dependents(self, uid: str) -> list[tuple[AnyResource, Json]]:
        return [
            (resource, obj)
            for resource, obj in self._store.everything()
            if any(o["uid"] == uid for o in obj["metadata"].get("ownerReferences") or ())
        ]

    def _orphan(self, uid: str) -> None:
        for resource, obj in self._dependents(uid):
            kept = [o for o in obj["metadata"]["ownerReferences"] if o["uid"] != uid]
            self._store.put(
                resource, {**obj, "metadata": {**obj["metadata"], "ownerReferences": kept}}
            )


def _content(body: Json) -> Json:
    """Return an object as it is stored: without what its collection says."""
    return {k: v for k, v in body.items() if k not in ("kind", "apiVersion")}


def _in_foreground(obj: Json) -> bool:
    return FOREGROUND in (obj["metadata"].get("finalizers") or ())


def _desired(resource: AnyResource, obj: Json) -> Json:
    """Return the part of an object whose changes the generation counts."""
    left_out = ("metadata", "status") if resource.has_status else ("metadata",)
    return {k: v for k, v in obj.items() if k not in left_out}


def _at(obj: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def _without_nulls(value: Any) -> Any:
    """Return the value as the server decodes it: null is absent."""
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_nulls(v) for v in value]
    return value
