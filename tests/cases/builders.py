"""Worlds of the unit tests: pods, moments and histories in one line."""

from __future__ import annotations

from typing import Any

import msgspec

from pumice.local.api import Object
from pumice.local.watching import Seen, key_of
from tests.cases.checks import AnyCheck
from tests.cases.moment import Moment
from tests.cases.selection import Selection


def a_pod(
    name: str,
    *,
    uid: str = "",
    job: str = "",
    task: str = "",
    group: str = "",
    queue: str = "",
    node: str = "",
    phase: str = "Pending",
    terminating: bool = False,
    cpu: str = "1",
    owner: str = "",
) -> Object:
    """Return a pod of namespace `a`."""
    labels = {"volcano.sh/job-name": job, "volcano.sh/task-spec": task}
    notes = {"scheduling.k8s.io/group-name": group, "scheduling.volcano.sh/queue-name": queue}
    meta: Object = {
        "namespace": "a",
        "name": name,
        "uid": uid or f"uid-{name}",
        "labels": {key: value for key, value in labels.items() if value},
        "annotations": {key: value for key, value in notes.items() if value},
    }
    if terminating:
        meta["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    if owner:
        meta["ownerReferences"] = [{"kind": "Job", "name": job, "uid": owner}]
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    spec: Object = {"containers": [container]}
    if node:
        spec["nodeName"] = node
    return {"metadata": meta, "spec": spec, "status": {"phase": phase}}


def an_object(name: str, *, uid: str = "", namespace: str = "a", **fields: Any) -> Object:
    """Return an object with a name, a uid, and what else is given."""
    meta: Object = {"name": name, "uid": uid or f"uid-{name}"}
    if namespace:
        meta["namespace"] = namespace
    return {"metadata": meta, "spec": {}, "status": {}, **fields}


def a_group(name: str, *, owner: str = "", queue: str = "default", **status: Any) -> Object:
    """Return a PodGroup."""
    found = an_object(name, spec={"queue": queue}, status=status)
    if owner:
        found["metadata"]["ownerReferences"] = [{"uid": owner}]
    return found


def a_moment(
    *pods: Object,
    at: float = 100.0,
    jobs: tuple[Object, ...] = (),
    groups: tuple[Object, ...] = (),
    queues: tuple[Object, ...] = (),
    others: dict[str, Object | None] | None = None,
) -> Moment:
    """Return a moment with these objects."""
    return Moment(
        at,
        pods={key_of(pod): pod for pod in pods},
        jobs={key_of(job): job for job in jobs},
        groups={key_of(group): group for group in groups},
        queues={key_of(queue): queue for queue in queues},
        others=others or {},
    )


def select(**keys: Any) -> Selection:
    """Return a selection as it is read from a file."""
    return msgspec.convert(keys, Selection)


def check(name: str, **keys: Any) -> AnyCheck:
    """Return a check as it is read from a file; `in_` is `in`."""
    read = {key.rstrip("_"): value for key, value in keys.items()}
    found: AnyCheck = msgspec.convert({"check": name, **read}, AnyCheck)
    return found


def seen(at: float, pod: Object, kind: str = "MODIFIED") -> Seen:
    """Return an event of a watch."""
    return Seen(at, kind, pod)
