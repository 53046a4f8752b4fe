"""What a session says of nodes, for the one pod that waits."""

from __future__ import annotations

import numpy as np

from pumice.core.extension import Code
from pumice.core.model.tasks import Task
from pumice.core.session import Session


def task(ssn: Session, name: str) -> Task:
    """Return a task of the session by the pod's name."""
    jobs = ssn.space.jobs.values()
    return next(t for job in jobs for t in job.tasks.values() if t.name == name)


def scores(ssn: Session, name: str = "p") -> dict[str, float]:
    """Return what each node scores for a pod."""
    everywhere = np.arange(len(ssn.nodes))
    found = ssn.views.of_task(task(ssn, name)).scores(everywhere)
    return dict(zip(ssn.nodes.names, found.round(4).tolist(), strict=True))


def refused(ssn: Session, name: str = "p") -> dict[str, tuple[Code, str]]:
    """Return the nodes that refuse a pod, with the first reason of each."""
    found: dict[str, tuple[Code, str]] = {}
    for refusal in ssn.views.of_task(task(ssn, name)).refusals():
        for i in np.flatnonzero(refusal.nodes):
            found.setdefault(ssn.nodes.names[int(i)], (refusal.code, refusal.message))
    assert {ssn.nodes.names[int(i)] for i in np.flatnonzero(~candidates(ssn, name))} == set(found)
    return found


def candidates(ssn: Session, name: str = "p") -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return the mask of the nodes that would take a pod."""
    return ssn.views.of_task(task(ssn, name)).candidates()
