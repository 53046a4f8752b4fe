"""A whole session with the built-in configuration, over objects as the API server gives them."""

from __future__ import annotations

from collections.abc import Iterable

from pumice.core.conf import DEFAULT
from pumice.core.cycle import run_session
from tests.builders import Thing, a_cluster, a_job, a_plan, nodes, phases, placements, waits

WORLD: list[Iterable[Thing]] = [
    nodes(n0="4 16Gi", n1="4 16Gi"),
    a_job("first", 5, phase="Pending", resources="5", created=1),
    a_job("second", 5, phase="Pending", resources="5", created=2),
    a_job("small", 2, gang=1, phase="Pending", created=3),
]


def test_one_gang_starts_whole_one_waits_and_a_small_job_slips_in() -> None:
    plan = a_plan(DEFAULT, *WORLD)
    assert plan.warnings == ()
    assert [e.job for e in plan.enqueued] == ["ns/first", "ns/small"]
    placed = placements(plan)
    assert sorted(placed) == [*(f"first-{i}" for i in range(5)), "small-0", "small-1"]
    assert {node: list(placed.values()).count(node) for node in ("n0", "n1")} == {"n0": 4, "n1": 3}
    assert phases(plan) == {"first": "Inqueue", "second": "Pending", "small": "Inqueue"}
    (text,) = waits(plan).values()
    reason = "resource in cluster is overused: overused cpu: 5 cpu asked for, 8 in the cluster"
    assert text.endswith(f"Origin reason is: {reason}")


def test_the_same_state_gives_the_same_plan() -> None:
    snapshots = [a_cluster(*WORLD).snapshot() for _ in range(2)]
    plans = [run_session(snapshot, DEFAULT, 7.0, "s") for snapshot in snapshots]
    assert plans[0] == plans[1]


def test_a_session_leaves_its_snapshot_as_it_was() -> None:
    snapshot = a_cluster(*WORLD).snapshot()
    first = run_session(snapshot, DEFAULT, 7.0, "s")
    assert first.allocations
    assert run_session(snapshot, DEFAULT, 7.0, "s") == first


def test_an_empty_cluster_decides_nothing() -> None:
    plan = run_session(a_cluster().snapshot(), DEFAULT, 7.0, "s")
    assert (plan.allocations, plan.enqueued, plan.groups) == ((), (), ())
