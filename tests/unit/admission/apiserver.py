"""
What an API server does with an object around our functions: defaults and bounds of the schema.

In the order of the real one: our defaults as a patch, the schema's defaults, the schema's bounds
with the words that Kubernetes has for them, then our checks.
"""

from __future__ import annotations

import copy
import zoneinfo
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import msgspec

from pumice.core.admission import (
    commands,
    cronjobs,
    hypernodes,
    job_creation,
    job_templates,
    job_update,
    jobflows,
    jobs,
    patches,
    podgroups,
    pods,
    queues,
)
from pumice.core.admission.drafts import JobDraft, QueueDraft
from pumice.core.admission.errors import FieldError
from pumice.core.admission.queues import Rules
from pumice.core.admission.views import Queues
from pumice.core.api.core import Pod
from pumice.core.api.crd import KINDS, manifest
from pumice.core.api.scheduling import PodGroup, Queue
from tests.builders import a_queue
from tests.fakeapi.patching import operations
from tests.unit.admission.rows.row import Object, Row, merged

OURS = ("volcano",)
RULES = Rules()
STRUCTS = {kind.struct.__name__: kind.struct for kind in KINDS} | {"Pod": Pod}


class Refused(Exception):
    """The object is refused; the message says why."""


def decide(row: Row) -> Object:
    """Return what is stored after the last deed; raise Refused where that is refused."""
    standing = [a_queue("root"), a_queue("default")]
    for body in row.queues:
        queue = msgspec.convert(_completed(body), Queue)
        standing.append(msgspec.structs.replace(queue, status=a_queue("x").status))
    known = Queues({queue.metadata.name: queue for queue in standing})
    if row.deleted:
        _raise(queues.check_delete(row.body["metadata"]["name"], _with(known, row.body), RULES))
        return {}
    stored = _created(row, known)
    return _changed(stored, row.change, known) if row.change else stored


def _created(row: Row, known: Queues) -> Object:
    body = _completed(_defaulted(row.body, dict(row.notes)))
    _bounded(body)
    kind = body["kind"]
    obj = msgspec.convert(body, STRUCTS[kind])
    checks: dict[str, Callable[[Any], Sequence[FieldError]]] = {
        "Job": lambda job: job_creation.check(job, known),
        "Queue": lambda queue: queues.check_create(queue, known, RULES),
        "PodGroup": lambda group: podgroups.check_create(group, known),
        "Pod": lambda pod: pods.check_create(pod, OURS),
        "JobFlow": jobflows.check,
        "JobTemplate": job_templates.check,
        "CronJob": lambda cron: cronjobs.check(cron, is_zone),
        "HyperNode": hypernodes.check,
        "Command": commands.check,
    }
    _raise(checks[kind](obj))
    return body


def _changed(stored: Object, change: Object, known: Queues) -> Object:
    body = _completed(merged(stored, change))
    body["status"] = stored.get("status", {})
    _bounded(body)
    struct = STRUCTS[body["kind"]]
    old, new = msgspec.convert(stored, struct), msgspec.convert(body, struct)
    checks: dict[str, Callable[[Any, Any], Sequence[FieldError]]] = {
        "Job": job_update.check,
        "Queue": lambda old, new: queues.check_update(old, new, _with(known, stored), RULES),
        "JobFlow": lambda _, new: jobflows.check(new),
        "CronJob": lambda _, new: cronjobs.check(new, is_zone),
        "HyperNode": lambda _, new: hypernodes.check(new),
    }
    _raise(checks[body["kind"]](old, new))
    return body


def is_zone(name: str) -> bool:
    return name in zoneinfo.available_timezones()


def _with(known: Queues, body: Object) -> Queues:
    if body["kind"] != "Queue":
        return known
    queue = msgspec.convert(_completed(body), Queue)
    return Queues({**known.by_name, queue.metadata.name: queue})


def _raise(errors: Sequence[FieldError]) -> None:
    if errors:
        raise Refused("denied: " + "; ".join(error.message for error in errors))


def _defaulted(body: Object, notes: dict[str, str]) -> Object:
    """Return the object with our defaults, given as the patch that the API server gets."""
    drafts: dict[str, tuple[type[msgspec.Struct], Callable[[Any], msgspec.Struct]]] = {
        "Job": (JobDraft, jobs.defaults),
        "Queue": (QueueDraft, queues.defaults),
        "PodGroup": (PodGroup, lambda group: podgroups.defaults(group, notes)),
        "Pod": (Pod, lambda pod: pods.gated(pod, "ns", OURS)),
    }
    if body["kind"] not in drafts:
        return body
    struct, defaults = drafts[body["kind"]]
    try:
        draft = msgspec.convert(body, struct)
    except msgspec.ValidationError:
        return body
    steps = msgspec.to_builtins(patches.difference(draft, defaults(draft)))
    return operations({"spec": {}, **body} if steps else body, steps)


@cache
def _schema(kind: str) -> Object:
    found = next((k for k in KINDS if k.struct.__name__ == kind), None)
    if found is None:
        return {}
    schema: Object = manifest(found)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _completed(body: Object) -> Object:
    """Return the object with the defaults of its schema; status is not for those who create."""
    body = copy.deepcopy(body)
    body.pop("status", None)
    if body["kind"] == "Pod":
        _complete_pod(body)
    _complete(body, _schema(body["kind"]))
    return body


def _complete(value: Any, schema: Object) -> None:
    if isinstance(value, dict):
        for name, inner in schema.get("properties", {}).items():
            if name not in value and "default" in inner:
                value[name] = copy.deepcopy(inner["default"])
            if name in value:
                _complete(value[name], inner)
    elif isinstance(value, list):
        for item in value:
            _complete(item, schema.get("items", {}))


def _complete_pod(pod: Object) -> None:
    """Give a pod what Kubernetes gives every pod, as far as the rows look at it."""
    pod["status"] = {"phase": "Pending"}
    pod["spec"].setdefault("schedulerName", "default-scheduler")
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    pod["spec"].setdefault("tolerations", []).extend({"key": key} for key in keys)


def _bounded(body: Object) -> None:
    """Raise Refused where the object is beyond the bounds of its schema."""
    wrong = [text for text in _wrong(body) if text]
    if wrong:
        raise Refused(f"invalid: {', '.join(wrong)}")


def _wrong(body: Object) -> Iterator[str]:
    for error in jsonschema.Draft7Validator(_schema(body["kind"])).iter_errors(body):
        path = ""
        for step in error.absolute_path:
            path += f"[{step}]" if isinstance(step, int) else f".{step}"
        path = path.removeprefix(".")
        limit = error.validator_value
        words = {
            "minimum": f"{path} in body should be greater than or equal to {limit}",
            "minLength": f"{path} in body should be at least {limit} chars long",
            "minItems": f"{path} in body should have at least {limit} items",
            "pattern": f"{path} in body should match '{limit}'",
            "enum": f"{path}: Unsupported value: supported values: {limit}",
        }
        yield words.get(str(error.validator), f"{path}: {error.message}")
