"""
Actions that wait for their timeout, and what calls them off.

At most one waits for each pod name (the empty name is the Job's own). They live in memory alone,
as in Volcano; but because every pod is judged again when a controller starts, the wait of one
whose cause still stands begins anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from pumice.core.api.core import Pod
from pumice.core.jobs import membership as m
from pumice.core.jobs import types as t


@dataclass(frozen=True, slots=True)
class Delayed:
    """What waits, as the request that will order it, and when it is due (monotonic seconds)."""

    request: t.Request
    due: float


Waiting = Mapping[str, Delayed]
"""By the name of the pod whose event it was."""

JOB_LEVEL: Final = frozenset({t.ABORT, t.RESTART, t.TERMINATE, t.COMPLETE, t.RESUME})
"""Actions on the whole Job, each of which makes all that waits for another one pointless."""


def scheduled(waiting: Waiting, decision: t.Decision, now: float) -> Waiting:
    """
    Return with the decision added; one that waits for the same action keeps its time.

    But where a pod does not start, another one of its name has its own time.
    """
    pod = decision.request.pod
    old = waiting.get(pod)
    if old is not None and old.request.action == decision.action:
        of_another = old.request.pod_uid != decision.request.pod_uid
        if not (of_another and old.request.event == "PodPending"):
            return waiting
    order = replace(decision.request, action=decision.action)
    return {**waiting, pod: Delayed(order, now + decision.after_s)}


def called_off(waiting: Waiting, request: t.Request) -> Waiting:
    """
    Return without what the event of a pod makes pointless.

    What waited because a pod did not start is off when that very pod starts or ends; what waited
    because a pod failed or went is off when a pod of its name runs.
    """
    delayed = waiting.get(request.pod)
    if delayed is None or request.action:
        return waiting
    cause = delayed.request.event
    started_or_ended = request.event in ("PodRunning", "PodFailed", "PodEvicted")
    if cause == "PodPending":
        off = started_or_ended and request.pod_uid == delayed.request.pod_uid
    else:
        off = cause in ("PodFailed", "PodEvicted") and request.event == "PodRunning"
    return _without(waiting, {request.pod}) if off else waiting


def settled(waiting: Waiting, decision: t.Decision) -> Waiting:
    """Return without what an action that has run makes pointless: all that has the same reach."""
    done = decision.request
    off = set()
    for pod, delayed in waiting.items():
        request = delayed.request
        if decision.action in JOB_LEVEL:
            same = request.action in JOB_LEVEL
        elif request.action != decision.action:
            same = False
        else:
            same = {
                t.RESTART_TASK: request.task == done.task,
                t.RESTART_POD: request.pod == done.pod,
                t.RESTART_PARTITION: request.partition == done.partition,
            }.get(decision.action, False)
        if same:
            off.add(pod)
    return _without(waiting, off)


def is_pointless(request: t.Request, pod: Pod | None) -> bool:
    """
    Tell whether an order that was due has no cause any more; `pod` is who has the name by now.

    That is so where it waited for a pod which did not start: whatever became of that, it need not
    have come to our ears as an event of its own, nor after this order had begun to wait.
    """
    if request.event != "PodPending":
        return False
    if pod is None or pod.metadata.uid != request.pod_uid:
        return True
    return m.phase_of(pod) != "Pending" or m.is_terminating(pod)


def due(waiting: Waiting, now: float) -> tuple[list[t.Request], Waiting]:
    """Return the orders whose time has come, and what waits on."""
    ready = {pod for pod, delayed in waiting.items() if delayed.due <= now}
    return [waiting[pod].request for pod in sorted(ready)], _without(waiting, ready)


def _without(waiting: Waiting, pods: set[str]) -> Waiting:
    return {pod: delayed for pod, delayed in waiting.items() if pod not in pods}
