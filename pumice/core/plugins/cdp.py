"""
cdp: a pod that was placed a short while ago is not evicted yet.

The label, else the annotation, `volcano.sh/cooldown-time` of a running pod says for how long
after it was scheduled. What is no duration protects nobody.
"""

from __future__ import annotations

from collections.abc import Sequence

from pumice.core import names
from pumice.core.conf import Arguments
from pumice.core.extension import Victims, Vote
from pumice.core.jobs.durations import seconds
from pumice.core.model.tasks import Task
from pumice.core.session import Session
from pumice.core.timestamps import moment

NAME = "cdp"


class Cdp:
    """The plugin. It has no arguments."""

    name = NAME

    def __init__(self, args: Arguments) -> None:
        """Take no arguments."""

    def on_session_open(self, ssn: Session) -> None:
        """Protect pods that cool down."""

        def evictable(_: Task, candidates: Sequence[Task]) -> Victims:
            return [t for t in candidates if not is_cooling(t, ssn.now)], Vote.PERMIT

        ssn.points.preemptable[NAME] = evictable
        ssn.points.reclaimable[NAME] = evictable

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""


def is_cooling(task: Task, now: float) -> bool:
    """Return whether the task's time of protection is not over at `now`."""
    notes = task.pod.metadata.annotations or {}
    text = task.labels.get(names.COOLDOWN_TIME, notes.get(names.COOLDOWN_TIME, ""))
    cooldown = seconds(text)
    if cooldown is None or task.pod.status.phase != "Running":
        return False
    scheduled = (
        moment(condition.last_transition_time)
        for condition in task.pod.status.conditions or ()
        if condition.type == "PodScheduled" and condition.status == "True"
    )
    return any(at + cooldown > now for at in scheduled)
