"""
The objects beside pods that a Job's plugins want: made first, kept in step, removed at the end.

They exist while the Job lives and go with every kill of the whole Job; a kill of one task or pod
leaves them to the pods that run on. One that is lost while the Job lives is made again. An object
of another owner that has the name of one of ours is never changed and never removed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from pumice.core import names
from pumice.core.api.batch import Job
from pumice.core.api.meta import Template
from pumice.core.jobs import membership, plugins
from pumice.core.jobs import types as t


def follow(seen: t.Observed) -> list[t.Effect]:
    """Return what makes the objects those that the Job is to have now."""
    wanted = plugins.objects(seen.job)
    kept = {(want.kind, want.name) for want in wanted}
    effects = [effect for want in wanted for effect in _step(seen, want)]
    return effects + [_delete(key, has) for key, has in seen.objects.items() if key not in kept]


def remove(seen: t.Observed) -> list[t.Effect]:
    """Return what removes all of them."""
    return [_delete(key, has) for key, has in seen.objects.items()]


def following(kind: t.ObjectKind, data: Mapping[str, str] | None) -> dict[str, str]:
    """Return those data of an object that follow the Job; keys of a Secret stay as drawn."""
    return {k: v for k, v in (data or {}).items() if kind != "Secret" or k == "config"}


def fingerprint(data: Mapping[str, str] | None) -> str:
    """Return a few characters that tell apart what two objects hold."""
    encoded = msgspec.json.encode(data or {}, order="sorted")
    return hashlib.sha256(encoded).hexdigest()[:32]


def _step(seen: t.Observed, want: t.Wanted) -> list[t.Effect]:
    """Return what one object needs; only data follow the Job, the rest is as it was made."""
    key = (want.kind, want.name)
    has = seen.objects.get(key)
    if has is None:
        if key in seen.foreign:
            return []
        body = _body(seen.job, want)
        return [t.CreateObject(want.kind, want.name, body, want.is_vital, want.draws_keys)]
    data = following(want.kind, want.content.get("data"))
    if not data or fingerprint(data) == has.data:
        return []
    return [t.ReplaceData(want.kind, want.name, has.uid, data)]


def _delete(key: t.ObjectKey, has: t.Owned) -> t.DeleteObject:
    kind, name = key
    return t.DeleteObject(kind, name, has.uid)


def _body(job: Job, want: t.Wanted) -> Template:
    """Return the object whole; by its labels the controller finds it again."""
    meta = job.metadata
    return {
        "metadata": {
            "name": want.name,
            "namespace": meta.namespace,
            "labels": {names.JOB_NAME: meta.name, names.JOB_NAMESPACE: meta.namespace},
            "ownerReferences": [membership.owner(job)],
        },
        **want.content,
    }
