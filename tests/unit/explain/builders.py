"""Pictures in one line: a session over a small world, and what it leads to."""

from __future__ import annotations

from collections.abc import Iterable

from pumice.core.conf import Configuration
from pumice.core.cycle import run_session
from pumice.core.explain.answers import Explanation
from pumice.core.explain.groups import explain_group
from pumice.core.explain.picture import Picture, Progress
from pumice.core.ids import JobKey
from pumice.core.plan import Reason
from tests.builders import Thing, a_cluster, a_conf

ROOM = a_conf("enqueue allocate backfill", ["priority", "gang"], ["predicates", "binpack"])
"""Room on nodes is all that counts."""
SHARES = a_conf(
    "enqueue allocate backfill",
    ["priority", "gang"],
    ["overcommit", "predicates", "proportion", "nodeorder"],
)
"""So do the shares of queues."""
CAPACITY = a_conf("enqueue allocate backfill", ["priority", "gang"], ["predicates", "capacity"])
"""So does what queues may have."""


def a_picture(*things: Thing | Iterable[Thing], conf: Configuration = ROOM) -> Picture:
    """Return what a session sees in a world, and what it decides."""
    snapshot = a_cluster(*things).snapshot()
    return Picture(snapshot, run_session(snapshot, conf, 0.0, "s1"))


def the_reason(picture: Picture, name: str = "j") -> Reason:
    """Return why a job waits."""
    reason = picture.reason(picture.snapshot.jobs[JobKey(f"ns/{name}")])
    assert reason is not None
    return reason


def explained(picture: Picture, name: str = "j", progress: Progress | None = None) -> Explanation:
    """Return the explanation of a group."""
    job = picture.snapshot.jobs[JobKey(f"ns/{name}")]
    return explain_group(picture, job, progress or Progress(), kind="podgroup", name=name)
