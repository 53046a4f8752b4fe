"""
shuffle: send off tasks that should be somewhere else.

Plugins name them among all that run, such as `rescheduling` on crowded nodes, or `tdm` at the end
of a zone's hours. Each goes for itself: nobody is promised its room, and the pod that comes in its
place is placed like any other.
"""

from __future__ import annotations

from pumice.core.model.tasks import Status
from pumice.core.plan import Reason
from pumice.core.session import Session

NAME = "shuffle"


class Shuffle:
    """The action. It has no arguments."""

    name = NAME

    def execute(self, ssn: Session) -> None:
        """Send off whom the plugins name."""
        if not ssn.points.victim_tasks:
            return
        running = [
            task
            for name in ssn.nodes.names
            for task in ssn.space.tasks_on(name)
            if task.status is Status.RUNNING
            and task.uid not in ssn.snapshot.spared
            and ssn.job(task.job) is not None
        ]
        agreed = ssn.misplaced(running)
        if not agreed.victims:
            return
        tier, plugins = ssn.points.victim_tasks.authors[agreed.tier]
        for task in agreed.victims:
            message = f"{task.key} should be somewhere else than on {task.node}"
            statement = ssn.statement()
            statement.evict(task, Reason(NAME, ", ".join(plugins), message, tier=tier))
            statement.commit(NAME)
