"""
overcommit: let in somewhat more than the cluster holds.

Groups are let in while their minima, with those let in before and not yet running, stay within
`overcommit-factor` times the cluster less what is used. The surplus waits as pods, ready to take
what becomes free.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pumice.core.conf import Arguments
from pumice.core.extension import Vote
from pumice.core.model.jobs import JobInfo, without_gated
from pumice.core.plan import Reason
from pumice.core.resources import Floats, as_text, over_limit, plus
from pumice.core.session import Session

NAME = "overcommit"
DEFAULT_FACTOR: Final = 1.2


class Overcommit:
    """The plugin. A factor below 1 counts as the default."""

    name = NAME
    steady = True

    def __init__(self, args: Arguments) -> None:
        factor = args.number("overcommit-factor", DEFAULT_FACTOR)
        self.factor = factor if factor >= 1 else DEFAULT_FACTOR
        self.total: Floats = np.zeros(0)
        self.idle: Floats = np.zeros(0)
        self.inqueue: Floats = np.zeros(0)
        self.names: tuple[str, ...] = ()

    def on_session_open(self, ssn: Session) -> None:
        """Add up what is used and what is let in."""
        self.names = ssn.names
        self.total = ssn.total
        self.idle = ssn.total * self.factor - ssn.nodes.used.sum(axis=1)
        for queue, usage in ssn.snapshot.usage.items():
            if queue in ssn.queues:
                self.inqueue = plus(self.inqueue, usage.admitted)
        ssn.points.job_enqueueable[NAME] = self.enqueueable
        ssn.points.job_enqueued[NAME] = self.enqueued

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""

    def enqueueable(self, job: JobInfo) -> tuple[Vote, Reason | None]:
        """Vote on whether the group's minimum may wait with the others."""
        least = job.min_resources
        if least is None:
            return Vote.PERMIT, None
        wanted = plus(self.inqueue, least)
        short = over_limit(wanted, self.idle, least)
        if not short:
            return Vote.PERMIT, None
        over = ", ".join(f"overused {self.names[row]}" for row in short)
        numbers = {f"minimum {self.names[row]}": float(least[row]) for row in short}
        numbers |= {f"let in {self.names[row]}": float(wanted[row] - least[row]) for row in short}
        numbers |= {f"limit {self.names[row]}": float(self.idle[row]) for row in short}
        numbers |= {f"cluster {self.names[row]}": float(self.total[row]) for row in short}
        message = f"resource in cluster is overused: {over}"
        detail = ", ".join(self._in_words(row, least) for row in short)
        return Vote.REJECT, Reason("enqueue", NAME, message, numbers, detail=detail)

    def _in_words(self, row: int, least: Floats) -> str:
        """Say what is asked for; of the cluster only what doesn't change with every pod."""
        name = self.names[row]
        asked, total = as_text(name, float(least[row])), as_text(name, float(self.total[row]))
        return f"{asked} {name} asked for, {total} in the cluster"

    def enqueued(self, job: JobInfo) -> None:
        """Count a group that was let in."""
        if job.min_resources is not None:
            self.inqueue = plus(self.inqueue, without_gated(job, job.min_resources))
