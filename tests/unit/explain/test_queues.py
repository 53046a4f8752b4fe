"""The shares of queues."""

from __future__ import annotations

from pumice.core.explain.answers import QueueShare
from pumice.core.explain.queues import PHASES, list_queues
from tests.builders import a_job, a_queue, nodes
from tests.unit.explain.builders import ROOM, SHARES, a_picture

NO_GROUPS = dict.fromkeys(PHASES, 0)


def test_what_a_queue_deserves_holds_and_asks_for() -> None:
    open_queue = a_queue("a", weight=3, capability="8", guarantee="1", priority=7)
    open_queue.status.running, open_queue.status.inqueue = 2, 1
    picture = a_picture(
        nodes(n="12 64Gi"),
        [open_queue, a_queue("b", state="Closing")],
        a_job("r", 2, "2", queue="a", on=["n", "n"], phase="Running"),
        a_job("w", 4, "2", queue="a"),
        a_job("x", 3, "2", queue="b"),
        conf=SHARES,
    )
    a, b = list_queues(picture, after="", limit=9).items
    assert a == QueueShare(
        name="a",
        parent="root",
        state="Open",
        weight=3,
        priority=7,
        deserved={"cpu": "8", "pods": "6"},
        allocated={"cpu": "4", "pods": "2"},
        requested={"cpu": "12", "pods": "6"},
        capability={"cpu": "8"},
        guarantee={"cpu": "1"},
        share=0.5,
        pod_groups={**NO_GROUPS, "running": 2, "inqueue": 1},
    )
    assert (b.state, b.deserved, b.allocated, b.share) == (
        "Closing",
        {"cpu": "4", "pods": "3"},
        {},
        0.0,
    )


def test_where_no_plugin_shares_out_a_queue_deserves_what_it_says_itself() -> None:
    queues = [a_queue("a", deserved="4"), a_queue("b")]
    picture = a_picture(nodes(n="9 9Gi"), queues, a_job("r", queue="a", on=["n"]), conf=ROOM)
    a, b = list_queues(picture, after="", limit=9).items
    assert (a.deserved, a.share) == ({"cpu": "4"}, 0.25)
    assert (b.deserved, b.share, b.capability) == (None, None, None)


def test_a_queue_holds_what_those_below_it_hold() -> None:
    picture = a_picture(
        nodes(n="9 9Gi"),
        [
            a_queue("root"),
            a_queue("team", parent="root"),
            a_queue("leaf", parent="team"),
            # Two that are each other's parents end somewhere all the same.
            a_queue("loop", parent="pool"),
            a_queue("pool", parent="loop"),
        ],
        a_job("r", asks="2", queue="leaf", on=["n"]),
        a_job("s", asks="1", queue="team", on=["n"]),
        a_job("t", asks="1", queue="loop", on=["n"]),
    )
    held = {q.name: q.allocated.get("cpu") for q in list_queues(picture, after="", limit=9).items}
    assert held == {"leaf": "2", "loop": "1", "pool": "1", "root": "3", "team": "3"}


def test_pages() -> None:
    picture = a_picture([a_queue(name) for name in "abc"])
    first = list_queues(picture, after="", limit=2)
    rest = list_queues(picture, after=first.next_page, limit=2)
    assert [q.name for q in first.items] == ["a", "b"]
    assert [q.name for q in rest.items] == ["c"]
    assert rest.next_page == ""
