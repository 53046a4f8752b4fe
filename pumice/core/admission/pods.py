"""
Pods of ours: the gate, the marker, and the annotations they may have.

The gate holds a pod until it is planned. By the marker a kube-scheduler that is shared with other
pods knows which are ours. They are what the admission policies in `manifests/admission/gate.yaml`
and `manifests/shared/marker.yaml` put on, for API servers that have no such policies; both put
them on the same pods, and putting them on twice changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

import msgspec

from pumice.core import names
from pumice.core.admission.errors import FieldError, listed
from pumice.core.api.core import Pod, ResourceRequirements, SchedulingGate

SPARED_NAMESPACES: Final = ("kube-system", names.NAMESPACE)
"""Where a pod is never held or marked: what the cluster, and we ourselves, run on."""

BUDGETS: Final = (names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE)
NOT_POSITIVE: Final = "it must be a positive integer"
NOT_PERCENT: Final = "it must be a valid percentage which between 1% ~ 99%"
_WHOLE: Final = re.compile(r"[+-]?\d+")
_MOST_PERCENT: Final = 99


def gated(pod: Pod, namespace: str, scheduler_names: Collection[str]) -> Pod:
    """Return the pod behind our gate, or as it is where it must not be held."""
    spec = pod.spec
    gates = [gate.name for gate in spec.scheduling_gates or ()]
    if (
        spec.scheduler_name not in scheduler_names
        or namespace in SPARED_NAMESPACES
        # The API server refuses a gate on a pod that has its node already.
        or spec.node_name
        # Volcano's own queue gate holds the pod then, and must be the only one.
        or (pod.metadata.annotations or {}).get(names.QUEUE_ALLOCATION_GATE) == "true"
        or names.GATE_HELD in gates
    ):
        return pod
    held = [*(spec.scheduling_gates or ()), SchedulingGate(name=names.GATE_HELD)]
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(spec, scheduling_gates=held))


def queue_gated(pod: Pod, scheduler_names: Collection[str]) -> Pod:
    """Return the pod behind Volcano's own queue gate, where its annotation asks for that."""
    spec = pod.spec
    gates = [gate.name for gate in spec.scheduling_gates or ()]
    if (
        spec.scheduler_name not in scheduler_names
        or (pod.metadata.annotations or {}).get(names.QUEUE_ALLOCATION_GATE) != "true"
        or names.QUEUE_ALLOCATION_GATE in gates
        or spec.node_name
    ):
        return pod
    gate = SchedulingGate(name=names.QUEUE_ALLOCATION_GATE)
    spec = msgspec.structs.replace(spec, scheduling_gates=[*(spec.scheduling_gates or ()), gate])
    return msgspec.structs.replace(pod, spec=spec)


def marked(pod: Pod, namespace: str, scheduler_names: Collection[str]) -> Pod:
    """
    Return the pod with the marker resources on its first container, or as it is.

    Every pod of ours that is still to be bound has one. The other says that kube-scheduler is
    free to choose the node: pods of our own Jobs are pinned to theirs.
    """
    spec = pod.spec
    if (
        spec.scheduler_name not in scheduler_names
        or namespace in SPARED_NAMESPACES
        or spec.node_name
        or not spec.containers
    ):
        return pod
    owner = pod.metadata.controller
    pinned = owner is not None and owner.kind == "Job" and owner.api_version == names.BATCH_API
    marks = dict.fromkeys([names.MARKER_RESOURCE] if pinned else sorted(names.MARKERS), "1")
    first, *others = spec.containers
    asked = first.resources or ResourceRequirements()
    resources = ResourceRequirements(
        requests={**(asked.requests or {}), **marks}, limits={**(asked.limits or {}), **marks}
    )
    first = msgspec.structs.replace(first, resources=resources)
    spec = msgspec.structs.replace(spec, containers=[first, *others])
    return msgspec.structs.replace(pod, spec=spec)


def check_create(pod: Pod, scheduler_names: Collection[str]) -> list[FieldError]:
    """Return what is wrong with the disruption budget that a pod of ours carries."""
    if pod.spec.scheduler_name not in scheduler_names:
        return []
    notes = pod.metadata.annotations or {}
    given = [key for key in BUDGETS if key in notes]
    found = [
        FieldError(f"metadata.annotations[{key}]", why)
        for key in given
        if (why := _budget(key, notes[key]))
    ]
    if len(given) > 1:
        text = f"not allow configure multiple annotations <{listed(given)}> at same time"
        found.append(FieldError("metadata.annotations", text))
    return found


def _budget(key: str, value: str) -> str:
    """Return what is wrong with one value: a positive number, or 1% to 99%."""
    if _WHOLE.fullmatch(value):
        if int(value) > 0:
            return ""
        return f'invalid value <"{value}"> for {key}, {NOT_POSITIVE}'
    number = value.replace("%", "")
    if not _WHOLE.fullmatch(number):
        return f'invalid value strconv.Atoi: parsing "{number}": invalid syntax for {key}'
    if not 1 <= int(number) <= _MOST_PERCENT:
        return f'invalid value <"{value}"> for {key}, {NOT_PERCENT}'
    return ""
