"""The state table of queues, the tree, and the counts."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core import names
from pumice.core.api.meta import ObjectMeta
from pumice.core.api.scheduling import PodGroupPhase, Queue, QueueSpec, QueueState, QueueStatus
from pumice.core.queues.reconcile import missing_queues, reconcile
from pumice.core.queues.types import (
    Action,
    CreateQueue,
    Effect,
    Enqueue,
    Fail,
    MarkClosedByParent,
    Observed,
    PatchStatus,
    RecordEvent,
    SetParent,
)


def a_queue(
    name: str = "q",
    state: QueueState = "Open",
    *,
    parent: str = "root",
    closed_by_parent: str | None = None,
    running: int = 0,
) -> Queue:
    marks = None if closed_by_parent is None else {names.CLOSED_BY_PARENT: closed_by_parent}
    return Queue(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}", resource_version="7", annotations=marks),
        spec=QueueSpec(parent=parent),
        status=QueueStatus(state=state, running=running),
    )


@dataclass(frozen=True)
class Case:
    seen: Observed
    action: Action = "SyncQueue"
    want: list[Effect] = field(default_factory=list)


ROOT = a_queue("root", parent="")
RUNNING: dict[PodGroupPhase, int] = {"Running": 1}
CLOSED_EVENT = RecordEvent("Normal", "CloseQueue", "Close queue succeed")


def state(to: QueueState, **counts: int) -> PatchStatus:
    return PatchStatus("q", "uid-q", "7", to, counts)


def counts(**numbers: int) -> PatchStatus:
    return PatchStatus("q", "uid-q", "7", None, numbers)


SYNC = {
    "a new queue opens": Case(
        Observed(a_queue(state=""), ROOT),
        want=[state("Open")],
    ),
    "a queue in order needs nothing": Case(
        Observed(a_queue(running=1), ROOT, groups=RUNNING),
    ),
    "a queue without a parent goes below root": Case(
        Observed(a_queue(parent="")),
        want=[SetParent("q", "uid-q", "root")],
    ),
    "root has no parent": Case(
        Observed(ROOT),
    ),
    "groups are counted by phase, those without one as pending": Case(
        Observed(
            a_queue(running=3),
            ROOT,
            groups={
                "": 1,
                "Pending": 1,
                "Inqueue": 2,
                "Running": 3,
                "Unknown": 4,
                "Completed": 5,
            },
        ),
        want=[counts(pending=2, inqueue=2, unknown=4, completed=5)],
    ),
    "counts go back to zero": Case(
        Observed(a_queue(running=3), ROOT),
        want=[counts(running=0)],
    ),
    "a closed queue stays closed": Case(
        Observed(a_queue(state="Closed"), ROOT),
    ),
    "a closing queue with groups goes on closing": Case(
        Observed(a_queue(state="Closing", running=1), ROOT, groups=RUNNING),
    ),
    "a finished group keeps a queue closing": Case(
        Observed(a_queue(state="Closing"), ROOT, groups={"Completed": 1}),
        want=[counts(completed=1)],
    ),
    "a closing queue without groups is closed": Case(
        Observed(a_queue(state="Closing", running=1), ROOT),
        want=[state("Closed", running=0)],
    ),
    "an unknown state stays": Case(
        Observed(a_queue(state="Unknown"), ROOT),
    ),
    "an open queue below a closing one closes with it": Case(
        Observed(a_queue(parent="p"), a_queue("p", "Closing")),
        want=[
            MarkClosedByParent("q", "uid-q", True),
            Enqueue("q", "CloseWithParent"),
        ],
    ),
    "a queue closed by its parent opens with it": Case(
        Observed(a_queue(state="Closed", parent="p", closed_by_parent="true"), a_queue("p")),
        want=[Enqueue("q", "OpenQueue")],
    ),
    "a queue closed by its user does not open with its parent": Case(
        Observed(a_queue(state="Closed", parent="p", closed_by_parent="false"), a_queue("p")),
    ),
    "a queue whose parent is missing says so": Case(
        Observed(a_queue(parent="gone")),
        want=[Fail("parent queue gone not found")],
    ),
    "root is not waited for": Case(
        Observed(a_queue(parent="root"), None),
    ),
    "an unknown queue below a closed one closes with it": Case(
        Observed(a_queue(state="Unknown", parent="p"), a_queue("p", "Closed")),
        want=[
            MarkClosedByParent("q", "uid-q", True),
            Enqueue("q", "CloseWithParent"),
        ],
    ),
    "a queue that somebody else opened is not closed for its parent any more": Case(
        Observed(a_queue(parent="p", closed_by_parent="true"), a_queue("p")),
        want=[MarkClosedByParent("q", "uid-q", False)],
    ),
    "the same below root": Case(
        Observed(a_queue(closed_by_parent="true"), ROOT),
        want=[MarkClosedByParent("q", "uid-q", False)],
    ),
    "one that is about to close with its parent keeps the mark": Case(
        Observed(a_queue(parent="p", closed_by_parent="true"), a_queue("p", "Closing")),
        want=[Enqueue("q", "CloseWithParent")],
    ),
    "root opens again, whoever closed it": Case(
        Observed(a_queue("root", "Closed", parent="")),
        want=[PatchStatus("root", "uid-root", "7", "Open", {})],
    ),
}

CLOSE = {
    "an open queue without groups is closed": Case(
        Observed(a_queue(), ROOT),
        want=[state("Closed"), CLOSED_EVENT],
    ),
    "an open queue with groups closes": Case(
        Observed(a_queue(running=1), ROOT, groups=RUNNING),
        want=[state("Closing"), CLOSED_EVENT],
    ),
    "a new queue closes like an open one": Case(
        Observed(a_queue(state=""), ROOT),
        want=[state("Closed"), CLOSED_EVENT],
    ),
    "an unknown state closes like an open one": Case(
        Observed(a_queue(state="Unknown", running=1), ROOT, groups=RUNNING),
        want=[state("Closing"), CLOSED_EVENT],
    ),
    "a closed queue stays so": Case(
        Observed(a_queue(state="Closed"), ROOT),
    ),
    "a closing queue is looked at again": Case(
        Observed(a_queue(state="Closing"), ROOT),
        want=[state("Closed")],
    ),
    "one that its parent closed is now closed by its user": Case(
        Observed(
            a_queue(state="Closing", parent="p", closed_by_parent="true"), a_queue("p", "Closed")
        ),
        want=[state("Closed"), MarkClosedByParent("q", "uid-q", False)],
    ),
    "root does not close": Case(
        Observed(ROOT),
        want=[
            RecordEvent(
                "Warning", "CloseQueue", "Close queue failed for root queue can not be closed"
            )
        ],
    ),
    "the queues below close too, but for those that are closed": Case(
        Observed(
            a_queue(),
            ROOT,
            children=(
                a_queue("a"),
                a_queue("b", "Closed"),
                a_queue("c", "Unknown", closed_by_parent="true"),
            ),
        ),
        want=[
            state("Closed"),
            MarkClosedByParent("a", "uid-a", True),
            Enqueue("a", "CloseWithParent"),
            Enqueue("c", "CloseWithParent"),
            CLOSED_EVENT,
        ],
    ),
}

OPEN = {
    "an open queue stays so": Case(
        Observed(a_queue(), ROOT),
    ),
    "a closed queue opens": Case(
        Observed(a_queue(state="Closed", closed_by_parent="true"), ROOT),
        want=[state("Open"), MarkClosedByParent("q", "uid-q", False)],
    ),
    "a closing queue opens": Case(
        Observed(a_queue(state="Closing", closed_by_parent="false"), ROOT),
        want=[state("Open")],
    ),
    "an unknown state opens, and says that no parent closed it": Case(
        Observed(a_queue(state="Unknown"), ROOT),
        want=[state("Open"), MarkClosedByParent("q", "uid-q", False)],
    ),
    "a queue below a closed one cannot open": Case(
        Observed(a_queue(state="Closed", parent="p"), a_queue("p", "Closed")),
        want=[
            Fail(
                "Failed to open queue q because its parent queue p is closing or closed."
                " Open the parent queue first."
            )
        ],
    ),
    "the queues below that it closed open with it": Case(
        Observed(
            a_queue(state="Closed", closed_by_parent="false"),
            ROOT,
            children=(
                a_queue("a", "Closed", closed_by_parent="true"),
                a_queue("b", "Closed", closed_by_parent="false"),
                a_queue("c", "Closed"),
            ),
        ),
        want=[state("Open"), Enqueue("a", "OpenQueue")],
    ),
}


@pytest.mark.parametrize("case", SYNC.values(), ids=SYNC.keys())
def test_sync(case: Case) -> None:
    assert reconcile("SyncQueue", case.seen) == case.want


@pytest.mark.parametrize("case", CLOSE.values(), ids=CLOSE.keys())
def test_close(case: Case) -> None:
    assert reconcile("CloseQueue", case.seen) == case.want


def test_a_queue_that_has_closed_with_its_parent_keeps_the_mark() -> None:
    queue = a_queue(state="Closed", parent="p", closed_by_parent="true")
    assert reconcile("CloseWithParent", Observed(queue, a_queue("p", "Closed"))) == []


@pytest.mark.parametrize("case", OPEN.values(), ids=OPEN.keys())
def test_open(case: Case) -> None:
    assert reconcile("OpenQueue", case.seen) == case.want


def test_root_and_default_are_created_where_they_are_missing() -> None:
    root = CreateQueue(
        Queue(metadata=ObjectMeta(name="root"), spec=QueueSpec(weight=1, reclaimable=False))
    )
    default = CreateQueue(
        Queue(metadata=ObjectMeta(name="default"), spec=QueueSpec(weight=1, reclaimable=True))
    )
    assert missing_queues([]) == [root, default]
    assert missing_queues(["default", "q"]) == [root]
    assert missing_queues(["root", "default"]) == []


PHASES: list[PodGroupPhase] = ["", "Pending", "Inqueue", "Running", "Unknown", "Completed"]
STATES: list[QueueState] = ["", "Open", "Closed", "Closing", "Unknown"]
ACTIONS: list[Action] = ["SyncQueue", "OpenQueue", "CloseQueue", "CloseWithParent"]


@given(
    state=st.sampled_from(STATES),
    action=st.sampled_from(ACTIONS),
    groups=st.dictionaries(st.sampled_from(PHASES), st.integers(0, 3)),
)
def test_carrying_out_the_effects_settles_the_queue(
    state: QueueState, action: Action, groups: dict[PodGroupPhase, int]
) -> None:
    queue = a_queue(state=state, parent="")

    for effect in reconcile(action, Observed(queue, groups=groups)):
        queue = carried_out(queue, effect)

    assert reconcile("SyncQueue", Observed(queue, ROOT, groups=groups)) == []


def carried_out(queue: Queue, effect: Effect) -> Queue:
    """Return the queue as it is after one effect on itself."""
    replace = msgspec.structs.replace
    match effect:
        case SetParent(parent=parent):
            return replace(queue, spec=replace(queue.spec, parent=parent))
        case PatchStatus(state=to, counts=numbers):
            new = replace(queue.status, **numbers)
            return replace(queue, status=replace(new, state=to) if to else new)
        case MarkClosedByParent(closed=closed):
            marks = {names.CLOSED_BY_PARENT: str(closed).lower()}
            return replace(queue, metadata=replace(queue.metadata, annotations=marks))
        case _:
            return queue
