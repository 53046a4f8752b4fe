"""
Pods of ours: the gate that holds them until they are planned, and the annotations they may have.

The gate is what the admission policy in `manifests/admission/gate.yaml` puts on, for API servers
that have no such policies; both put it on the same pods, and putting it on twice changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

import msgspec

from pumice.core import names
from pumice.core.admission.errors import FieldError, listed
from pumice.core.api.core import Pod, SchedulingGate

SPARED_NAMESPACES: Final = ("kube-system", names.NAMESPACE)
"""Where a pod is never held: what the cluster, and we ourselves, run on."""

_BUDGETS: Final = (names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE)
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


def check_create(pod: Pod, scheduler_names: Collection[str]) -> list[FieldError]:
    """Return what is wrong with the disruption budget that a pod of ours carries."""
    if pod.spec.scheduler_name not in scheduler_names:
        return []
    notes = pod.metadata.annotations or {}
    given = [key for key in _BUDGETS if key in notes]
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
        return f'invalid value <"{value}"> for {key}, it must be a positive integer'
    number = value.replace("%", "")
    if not _WHOLE.fullmatch(number):
        return f'invalid value strconv.Atoi: parsing "{number}": invalid syntax for {key}'
    if not 1 <= int(number) <= _MOST_PERCENT:
        why = "it must be a valid percentage which between 1% ~ 99%"
        return f'invalid value <"{value}"> for {key}, {why}'
    return ""
