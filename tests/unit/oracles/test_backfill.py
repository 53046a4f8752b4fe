"""backfill: which tasks it takes up, and in which order."""

from __future__ import annotations

from pumice.core.actions.backfill import Backfill, ordered
from pumice.core.model.tasks import Status, Task
from pumice.core.session import Session
from tests.builders import (
    a_cluster,
    a_conf,
    a_group,
    a_plugin,
    a_pod,
    a_priority_class,
    a_session,
    nodes,
)

CONF = a_conf(
    "backfill",
    [a_plugin("priority", "enablePreemptable", "enableTaskOrder", "enableJobOrder")],
    [a_plugin("drf", "enableQueueOrder")],
)
PROMISED = (2, 4)


def a_mixed_session() -> Session:
    """
    Return two jobs, `high` and `low`, with tasks of priority 1 to 4.

    `light` ones ask for nothing. Those of even priority are promised room on the one node.
    """
    tasks = [
        a_pod(f"{job}-{kind}-{i}", asks, job=job, priority=i)
        for job in ("low", "high")
        for kind, asks in (("light", ""), ("heavy", "500m"))
        for i in (1, 2, 3, 4)
    ]
    ssn = a_session(
        CONF,
        a_cluster(
            nodes(n="8 8G"),
            [a_priority_class("class-1", 1), a_priority_class("class-2", 2)],
            a_group("low", priority="class-1", roles={"": 3}),
            a_group("high", priority="class-2", roles={"": 3}),
            tasks,
        ),
    )
    statement = ssn.statement()
    for task in tasks_of(ssn):
        if task.priority in PROMISED:
            statement.pipeline([task], [0], evicted=False)
    return ssn


def tasks_of(ssn: Session) -> list[Task]:
    return [task for job in ssn.active for task in job.tasks.values()]


def test_tasks_that_ask_for_nothing_by_job_then_by_priority() -> None:
    got = [task.name for _, task in ordered(a_mixed_session())]
    assert got == [f"{job}-light-{i}" for job in ("high", "low") for i in (4, 3, 2, 1)]


def test_those_that_were_promised_a_place_are_placed_and_the_others_keep_their_promise() -> None:
    ssn = a_mixed_session()
    Backfill().execute(ssn)
    got = {task.name: task.status for task in tasks_of(ssn)}
    assert {status for name, status in got.items() if "light" in name} == {Status.BINDING}
    assert {status for name, status in got.items() if "heavy" in name and name[-1] in "24"} == {
        Status.PIPELINED
    }
    assert (ssn.nodes.used[2, 0], ssn.nodes.pipelined[2, 0]) == (8, 4)
