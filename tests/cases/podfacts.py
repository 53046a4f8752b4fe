"""What the steps and checks ask of a pod, and how much of its node it takes."""

from __future__ import annotations

from fractions import Fraction

import msgspec

from pumice.core import names
from pumice.local.api import Object
from tests.auditor.requests import PodResources, pod_requests

FINISHED = frozenset({"Succeeded", "Failed"})


def path(pod: Object) -> str:
    """Return where the API server serves it."""
    meta = pod["metadata"]
    return f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"


def phase(pod: Object) -> str:
    """Return the phase; a new pod is Pending."""
    return str(pod.get("status", {}).get("phase") or "Pending")


def node(pod: Object) -> str:
    """Return the node, empty while there is none."""
    return str(pod["spec"].get("nodeName") or "")


def is_bound(pod: Object) -> bool:
    """Whether it has a node and has not failed."""
    return bool(node(pod)) and phase(pod) != "Failed"


def is_finished(pod: Object) -> bool:
    """Whether it has run to its end, good or bad."""
    return phase(pod) in FINISHED


def is_terminating(pod: Object) -> bool:
    """Whether it is about to go."""
    return "deletionTimestamp" in pod["metadata"]


def occupies(pod: Object) -> bool:
    """Whether it takes room on a node."""
    return bool(node(pod)) and not is_finished(pod)


def job(pod: Object) -> str:
    """Return `namespace/name` of the Job it was made for, empty for other pods."""
    name = _mark(pod, names.JOB_NAME)
    return f"{pod['metadata']['namespace']}/{name}" if name else ""


def task(pod: Object) -> str:
    """Return the task of the Job it belongs to."""
    return _mark(pod, names.TASK_SPEC)


def group(pod: Object) -> str:
    """Return `namespace/name` of its PodGroup, empty while it has none."""
    name = pod["metadata"].get("annotations", {}).get(names.GROUP_NAME)
    return f"{pod['metadata']['namespace']}/{name}" if name else ""


def queue(pod: Object) -> str:
    """Return the queue that the pod itself names."""
    notes = pod["metadata"].get("annotations", {})
    return str(notes.get(names.QUEUE_NAME) or notes.get(names.JOB_QUEUE_NAME) or "")


def request(pod: Object, resource: str) -> Fraction:
    """Return how much of a resource it takes of its node."""
    asked = pod_requests(msgspec.convert(pod["spec"], PodResources))
    return asked.get(resource, Fraction(0))


def _mark(pod: Object, key: str) -> str:
    """Return a label, or the annotation of the same name."""
    meta = pod["metadata"]
    return str(meta.get("labels", {}).get(key) or meta.get("annotations", {}).get(key) or "")
