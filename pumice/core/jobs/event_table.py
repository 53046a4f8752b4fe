"""
The events of a Job, as one table: when each is raised, whose policies may answer, with what target.

Events that no policy may answer lead to a sync, whatever the policies say; `*` in a policy stands
for all the others. docs/job-states.md shows the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pumice.core.api.batch import Event


@dataclass(frozen=True, slots=True)
class EventKind:
    """One row."""

    #: when it is raised, in words
    when: str
    #: whether policies may answer; those of the pod's task are asked before the Job's
    answered: bool = True
    #: whether only policies with a timeout may
    needs_timeout: bool = False
    #: whether it carries the pod, which RestartPod, RestartTask and RestartPartition then aim at
    of_pod: bool = True


TABLE: Final[Mapping[Event, EventKind]] = {
    "PodPending": EventKind("a pod appears, or is pending again", needs_timeout=True),
    "PodRunning": EventKind("a pod starts to run", answered=False),
    "PodFailed": EventKind("a pod fails; carries the exit code of its first container"),
    "PodEvicted": EventKind("a pod is gone that was not marked out of sync"),
    "TaskCompleted": EventKind("a pod succeeds, and with it all of its task"),
    "TaskFailed": EventKind("containers of a task were restarted maxRetry times in place"),
    "Unknown": EventKind(
        "the PodGroup turns Unknown: it ran, and is below its minimum", of_pod=False
    ),
    "JobUpdated": EventKind("never; policies may name it all the same", of_pod=False),
    "CommandIssued": EventKind(
        "a Command for the Job was taken; its action is run at once", answered=False, of_pod=False
    ),
    "OutOfSync": EventKind("anything else happened", answered=False),
}

_NOTHING: Final = EventKind("", answered=False)
_BY_NAME: Final[Mapping[str, EventKind]] = {str(event): kind for event, kind in TABLE.items()}


def kind_of(event: str) -> EventKind:
    """Return the row of an event; to what has none no policy may answer."""
    return _BY_NAME.get(event, _NOTHING)
