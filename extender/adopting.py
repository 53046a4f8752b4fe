"""
Adopting: pods first seen with a pin or a nomination that this process did not give them.

After a restart these are our own releases; but anyone who may patch pods can make one. So each
is checked once, when every cache is synced: where its node has the room, its queue allows it and
its gang is as close together as it must be, it is taken over, else it is given up like any other
refused member. Cards are chosen for it once more: a choice is written down with the binding and not
before.
"""

from __future__ import annotations

from collections.abc import Callable

from extender.model import Model
from extender.releases import Releases
from pumice.core.ids import JobKey
from pumice.core.ledger import State
from pumice.core.model.tasks import Task
from pumice.core.room import lacking, standings_of


def check_adopted(model: Model, releases: Releases, within_queue: Callable[[Task], bool]) -> int:
    """Check the pods that were adopted since the last time; return how many were given up."""
    given_up = 0
    adopted = (model.cluster.task(uid) for uid in model.adopted)
    scattered = _scattered(model, {task.job for task in adopted if task is not None})
    for uid in list(model.adopted):
        model.adopted.discard(uid)
        entry, task = model.ledger.get(uid), model.cluster.task(uid)
        if entry is None or task is None or entry.state is not State.RELEASED:
            continue
        gone = entry.node not in model.cluster.nodes.index
        astray = task.job in scattered
        short = gone or lacking(model.cluster, uid, entry.node) or not model.equip(uid, entry.node)
        if astray or short or not within_queue(task):
            releases.replan(uid, "")
            given_up += 1
    return given_up


def _scattered(model: Model, jobs: set[JobKey | None]) -> set[JobKey]:
    """Return the jobs whose pods are not within the HyperNodes that they must be in."""
    standings = {key: standings_of(model.cluster, key) for key in jobs if key is not None}
    return {key for key, found in standings.items() if found is not None and not found.hold()}
