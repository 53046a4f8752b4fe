"""conformance: pods that keep the cluster itself running are never evicted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pumice.core import names
from pumice.core.conf import Arguments
from pumice.core.extension import Vote
from pumice.core.model.tasks import Task
from pumice.core.session import Session

NAME = "conformance"
SYSTEM_NAMESPACE: Final = "kube-system"


class Conformance:
    """The plugin. It has no arguments."""

    name = NAME
    steady = True

    def __init__(self, args: Arguments) -> None:
        """Take no arguments."""

    def on_session_open(self, ssn: Session) -> None:
        """Protect system pods from every kind of eviction."""
        points = ssn.points
        points.preemptable[NAME] = lambda task, tasks: (ordinary(tasks), Vote.PERMIT)
        points.reclaimable[NAME] = lambda task, tasks: (ordinary(tasks), Vote.PERMIT)
        points.unified_evictable[NAME] = lambda action, job, tasks: (ordinary(tasks), Vote.PERMIT)

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""


def ordinary(candidates: Iterable[Task]) -> list[Task]:
    """Return the candidates that are no system pods."""
    return [
        task
        for task in candidates
        if task.namespace != SYSTEM_NAMESPACE
        and task.priority_class not in names.SYSTEM_CRITICAL_CLASSES
    ]
