"""Statements: what is done can be undone, committed, merged and done again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core.extension import Event, EventHandler
from pumice.core.ids import JobKey, PodUid
from pumice.core.model.tasks import Status, Task
from pumice.core.plan import Reason
from pumice.core.statement import Statement
from pumice.core.workspace import Commitment, Evicted, Trial, Workspace, workspace
from tests.builders import a_cluster, a_job, nodes
from tests.effort import examples

KEY = JobKey("ns/j")
SUMS = ("allocated", "promised", "leaving_request", "pending_request", "total_request")
WHY = Reason("preempt", "gang", "")


class Heard:
    """Counts, for each node, the tasks that the events speak of."""

    def __init__(self) -> None:
        self.balance: dict[str, int] = {}

    def allocate(self, event: Event) -> None:
        self._count(event, 1)

    def deallocate(self, event: Event) -> None:
        self._count(event, -1)

    def _count(self, event: Event, sign: int) -> None:
        for task in event.tasks:
            self.balance[task.node] = self.balance.get(task.node, 0) + sign


def a_workspace() -> tuple[Workspace, Heard]:
    """Return two nodes, a job with three waiting tasks and one with two running ones."""
    cluster = a_cluster(
        nodes(n="4 8Gi", m="4 8Gi"), a_job("j", 3), a_job("r", 2, "2 1Gi", on=["n", "m"])
    )
    snapshot = cluster.snapshot()
    space = workspace(snapshot.nodes, snapshot.jobs, snapshot.active)
    heard = Heard()
    space.handlers.append(EventHandler(heard.allocate, heard.deallocate))
    return space, heard


def tasks(space: Workspace, job: str = "ns/j") -> list[Task]:
    return list(space.jobs[JobKey(job)].tasks.values())


def state(space: Workspace) -> object:
    """Return all that a statement may change and must give back."""
    table = space.nodes
    arrays = [a.tobytes() for a in (table.used, table.releasing, table.pipelined)]
    jobs = {
        key: (dict(job.tasks), job.counts.clone(), *(getattr(job, s).tolist() for s in SUMS))
        for key, job in space.jobs.items()
    }
    placed = {node: dict(tasks) for node, tasks in space.placed.items() if tasks}
    return arrays, {k: _comparable(v) for k, v in jobs.items()}, placed, set(space.evicted_for)


def _comparable(job: tuple[Any, ...]) -> object:
    members, counts, *sums = job
    rows = {uid: (task.status, task.node) for uid, task in members.items()}
    return rows, counts, [[amount for amount in amounts if amount] for amounts in sums]


def test_allocate_takes_what_is_idle() -> None:
    space, heard = a_workspace()
    statement = Statement(space)
    statement.allocate(tasks(space)[:2], [0, 1])
    assert space.nodes.idle[0].tolist() == [1000.0, 1000.0]
    assert space.jobs[KEY].counts.total.by_status == {Status.ALLOCATED: 2, Status.PENDING: 1}
    assert heard.balance == {"n": 1, "m": 1}
    assert space.changed == [0, 1]


def test_pipeline_takes_a_promise() -> None:
    space, heard = a_workspace()
    statement = Statement(space)
    victim = tasks(space, "ns/r")[0]
    statement.evict(victim, WHY)
    statement.pipeline(tasks(space)[:1], [0], evicted=True)
    assert space.nodes.idle[0, 0] == 2000.0
    assert space.nodes.future_idle[0, 0] == 3000.0
    assert heard.balance == {"n": 0}
    assert space.evicted_for == {"j-0"}


def test_discard_remembers_where_tasks_would_have_gone() -> None:
    space, _ = a_workspace()
    statement = Statement(space)
    statement.allocate(tasks(space)[:1], [1])
    statement.pipeline(tasks(space)[1:2], [0], evicted=False)
    statement.discard()
    assert space.last == {
        "j-0": Trial(Status.ALLOCATED, "m"),
        "j-1": Trial(Status.PIPELINED, "n"),
    }


def test_commit_decides() -> None:
    space, _ = a_workspace()
    space.last[PodUid("j-0")] = Trial(Status.ALLOCATED, "m")
    statement = Statement(space)
    statement.allocate(tasks(space)[:2], [0, 1])
    statement.pipeline(tasks(space)[2:], [0], evicted=False)
    statement.commit()
    assert [(c.job, [t.uid for t in c.tasks]) for c in space.committed] == [(KEY, ["j-0", "j-1"])]
    assert [t.status for t in tasks(space)] == [Status.BINDING, Status.BINDING, Status.PIPELINED]
    assert (space.last, statement.operations) == ({}, [])


def test_merge_hands_over_what_was_done() -> None:
    space, _ = a_workspace()
    before = state(space)
    whole, part = Statement(space), Statement(space)
    whole.allocate(tasks(space)[:1], [0])
    part.allocate(tasks(space)[1:2], [0])
    whole.merge(part)
    part.discard()
    assert space.jobs[KEY].counts.total.ready == 2
    whole.discard()
    assert state(space) == before


def test_what_was_saved_can_be_done_again() -> None:
    space, heard = a_workspace()
    statement = Statement(space)
    statement.evict(tasks(space, "ns/r")[0], WHY)
    statement.allocate(tasks(space)[:1], [1])
    statement.pipeline(tasks(space)[1:2], [0], evicted=True)
    want, balance = state(space), dict(heard.balance)
    saved = statement.save()
    statement.discard()
    again = Statement(space)
    again.replay(saved)
    assert (state(space), heard.balance) == (want, balance)


def test_commit_dismisses_for_all_that_the_job_is_promised() -> None:
    space, _ = a_workspace()
    before = Statement(space)
    before.allocate(tasks(space)[:1], [1])
    statement = Statement(space)
    victim = tasks(space, "ns/r")[0]
    statement.evict(victim, WHY)
    statement.pipeline(tasks(space)[1:2], [0], evicted=True)
    statement.commit("preempt")
    [dismissal] = space.dismissed
    assert (dismissal.job, dismissal.victims) == (KEY, (Evicted(victim, WHY, victim.uid),))
    # What an earlier statement holds for it belongs to what it starts with.
    assert {t.uid: t.node for t in dismissal.claims} == {"j-0": "m", "j-1": "n"}
    assert space.evicted_for == {"j-0", "j-1"}


def test_one_that_was_sent_off_may_stay_after_all() -> None:
    space, heard = a_workspace()
    before = state(space)
    statement = Statement(space)
    first, second = tasks(space, "ns/r")
    statement.evict(first, WHY)
    statement.evict(second, WHY)
    statement.spare(first)
    assert statement.evicted == [Evicted(second, WHY, second.uid)]
    assert heard.balance == {"n": 0, "m": -1}
    statement.discard()
    assert state(space) == before


def test_nothing_is_committed_without_placements() -> None:
    space, _ = a_workspace()
    Statement(space).commit()
    assert space.committed == list[Commitment]()


Operation = Callable[[Workspace, Statement], None]


def place(node: int, *, promised: bool, n: int) -> Operation:
    def run(space: Workspace, statement: Statement) -> None:
        waiting = [t for t in tasks(space) if t.status is Status.PENDING][:n]
        if not waiting:
            return
        if promised:
            statement.pipeline(waiting, [node] * len(waiting), evicted=bool(n % 2))
        else:
            statement.allocate(waiting, [node] * len(waiting))

    return run


def evict(i: int) -> Operation:
    def run(space: Workspace, statement: Statement) -> None:
        task = tasks(space, "ns/r")[i]
        if task.status is Status.RUNNING:
            statement.evict(task, WHY)

    return run


def spare(i: int) -> Operation:
    def run(space: Workspace, statement: Statement) -> None:
        if i < len(statement.evicted):
            statement.spare(statement.evicted[i].before)

    return run


operations = st.lists(
    st.one_of(
        st.builds(
            lambda node, promised, n: place(node, promised=promised, n=n),
            st.integers(0, 1),
            st.booleans(),
            st.integers(1, 3),
        ),
        st.integers(0, 1).map(evict),
        st.integers(0, 1).map(spare),
    ),
    max_size=6,
)


@settings(max_examples=examples(60))
@given(operations)
def test_discard_gives_everything_back(done: list[Operation]) -> None:
    space, heard = a_workspace()
    before = state(space)
    statement = Statement(space)
    for operation in done:
        operation(space, statement)
    statement.discard()
    assert state(space) == before
    assert set(heard.balance.values()) <= {0}


@settings(max_examples=examples(60))
@given(operations)
def test_tables_are_sums_over_tasks_after_commit(done: list[Operation]) -> None:
    space, _ = a_workspace()
    statement = Statement(space)
    for operation in done:
        operation(space, statement)
    statement.commit()
    table = space.nodes
    for i, node in enumerate(table.names):
        here = [t for t in space.tasks_on(node) if t.node == node]
        held = [t for t in here if t.status is not Status.PIPELINED]
        assert table.used[0, i] == sum(t.cls.req[0] for t in held)
        leaving = [t for t in here if t.status is Status.RELEASING]
        assert table.releasing[0, i] == sum(t.cls.req[0] for t in leaving)
        promised = [t for t in here if t.status is Status.PIPELINED]
        assert table.pipelined[0, i] == sum(t.cls.req[0] for t in promised)
    assert np.array_equal(table.idle, table.alloc - table.used)
