"""
How long pods run, as far as they have told.

A pod tells by `activeDeadlineSeconds`, at which the kubelet ends it, or by the annotation
`pumice.dev/expected-duration`, a duration such as `1h30m` that nobody enforces; the shorter one
counts. Of a pod that tells nothing, nothing is known: it never ends. Both count from the moment at
which the kubelet took the pod.
"""

from __future__ import annotations

from typing import Final

from pumice.core import names
from pumice.core.api.core import Pod
from pumice.core.jobs.durations import seconds
from pumice.core.model.tasks import Status, Task
from pumice.core.timestamps import moment

NEVER: Final = float("inf")
GRACE_S: Final = 30.0
"""How long a pod takes to leave that was told to and does not show it yet."""


def run_time(pod: Pod) -> float:
    """Return for how many seconds a pod runs at most, `NEVER` where it has not told."""
    told = seconds((pod.metadata.annotations or {}).get(names.EXPECTED_DURATION, ""))
    expected = NEVER if told is None or told <= 0 else told
    deadline = pod.spec.active_deadline_seconds
    return expected if deadline is None else min(expected, float(deadline))


def end_of(task: Task, now: float) -> float:
    """
    Return when a task that holds a node will be gone; one that is overdue, any moment.

    One that was not taken by its kubelet yet counts as just taken.
    """
    end = _since(task.pod, now) + run_time(task.pod)
    if task.status is Status.RELEASING:
        gone = task.pod.metadata.deletion_timestamp
        end = min(end, moment(gone) if gone else now + GRACE_S)
    return max(end, now)


def _since(pod: Pod, now: float) -> float:
    if pod.status.start_time:
        return moment(pod.status.start_time)
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "True":
            return moment(condition.last_transition_time) if condition.last_transition_time else now
    return now
