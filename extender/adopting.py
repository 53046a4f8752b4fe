"""
Adopting: pods first seen with a pin or a nomination that this process did not give them.

After a restart these are our own releases; but anyone who may patch pods can make one. So each
is checked once, when every cache is synced: where its node has the room and its queue allows
it, it is taken over, else it is given up like any other refused member.
"""

from __future__ import annotations

from collections.abc import Callable

from extender.model import Model
from extender.releases import Releases
from pumice.core.ledger import State
from pumice.core.model.tasks import Task


def check_adopted(model: Model, releases: Releases, within_queue: Callable[[Task], bool]) -> int:
    """Check the pods that were adopted since the last time; return how many were given up."""
    given_up = 0
    for uid in list(model.adopted):
        model.adopted.discard(uid)
        entry, task = model.ledger.get(uid), model.cluster.task(uid)
        if entry is None or task is None or entry.state is not State.RELEASED:
            continue
        gone = entry.node not in model.cluster.nodes.index
        if gone or model.cluster.fits(uid, entry.node) or not within_queue(task):
            releases.replace(uid, "")
            given_up += 1
    return given_up
