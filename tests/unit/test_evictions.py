"""Evictions over several sessions: nobody goes in vain, and things come to rest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core.api.core import PodSpec
from pumice.core.conf import Configuration
from pumice.core.explain.sentences import told
from pumice.core.ids import JobKey
from pumice.core.plan import Plan
from tests.builders import (
    DEFAULT_FLAGS,
    Thing,
    a_conf,
    a_group,
    a_job,
    a_node,
    a_plugin,
    a_pod,
    a_priority_class,
    a_queue,
    nodes,
    placements,
)
from tests.effort import examples
from tests.unit.evicting import Life

PREEMPTS, RECLAIMS = "enqueue allocate preempt backfill", "enqueue allocate reclaim backfill"
BOTH = "enqueue allocate preempt reclaim backfill"
GANGS = "enqueue allocate gangpreempt gangreclaim backfill"
ORDERS = [
    PREEMPTS,
    RECLAIMS,
    BOTH,
    GANGS,
    "enqueue reclaim gangpreempt preempt allocate backfill",
    "enqueue gangreclaim allocate gangpreempt preempt reclaim backfill",
]
RANKS = [a_priority_class("p-10", 10), a_priority_class("p-100", 100)]


DRF = a_plugin("drf", *(DEFAULT_FLAGS - {"enablePreemptable"}))


def conf(actions: str, divides: str = "proportion") -> Configuration:
    return a_conf(
        actions,
        ["priority", "gang", "conformance"],
        [DRF, "predicates", divides, "nodeorder", "binpack"],
    )


def test_nobody_goes_for_a_job_of_lower_priority() -> None:
    life = Life(
        conf(PREEMPTS),
        nodes(n1="6 16Gi"),
        RANKS,
        a_job("upper", 6, gang=2, priority="p-100", on=["n1"] * 6),
        a_job("lower", 3, gang=2, priority="p-10"),
    )
    life.settle()
    assert (life.evicted, life.where("lower")) == ([], {})


AS_LISTED = a_conf(
    PREEMPTS,
    ["priority", "gang", "conformance"],
    ["overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"],
)
"""drf has a say below priority, as it has where nobody takes it away."""


def test_nor_by_the_word_of_a_lower_tier() -> None:
    life = Life(
        AS_LISTED,
        nodes(n="4 16Gi"),
        RANKS,
        a_job("upper", 4, priority="p-100", on=["n"] * 4, phase="Running"),
        a_job("lower", priority="p-10"),
    )
    life.settle()
    assert (life.evicted, life.where("lower")) == ([], {})


def test_two_jobs_that_drf_lets_take_from_each_other_come_to_rest() -> None:
    """Only one launcher has room; each without it has the smaller share."""
    gpu, cpu = "2 1Gi a.b/gpu=8", PodSpec(node_selector={"pool": "launchers"})
    life = Life(
        AS_LISTED,
        nodes(g="64 256Gi a.b/gpu=16"),
        a_node("c", "1 4Gi", labels={"pool": "launchers"}),
        [a_group("a", least=2), a_group("b", least=2)],
        [a_pod("a-w", gpu, job="a", node="g"), a_pod("b-w", gpu, job="b", node="g")],
        [a_pod("a-l", "1", job="a", node="c", spec=cpu), a_pod("b-l", "1", job="b", spec=cpu)],
    )
    life.settle()
    assert life.evicted == []


def test_proportion_leaves_it_to_the_tiers_who_gives() -> None:
    """What others hold counts as the cluster's, so that every queue deserves all it asks for."""
    names = ("default", "q2", "q3", "q4")
    life = Life(
        a_conf(
            "enqueue allocate backfill reclaim preempt",
            ["priority", "gang", "conformance", "sla"],
            ["overcommit", DRF, "predicates", "proportion", "nodeorder", "binpack"],
        ),
        nodes(**dict.fromkeys(("n1", "n2", "n3", "n4"), "8 8Gi")),
        RANKS,
        [a_queue(name) for name in names],
        [a_pod(f"other-{i}", "7 7Gi", node=f"n{i}", scheduler="other") for i in range(1, 5)],
        a_job("j1", 2, "1 1Gi", gang=1, priority="p-10", on=["n1", "n2"], created=0),
        a_job("j2", 2, "1 1Gi", gang=1, priority="p-10", on=["n3", "n4"], queue="q2", created=1),
        a_job("j3", 1, "1 1Gi", priority="p-100", queue="q3", created=2),
        a_job("j4", 1, "1 1Gi", priority="p-100", queue="q4", created=3),
    )
    life.settle()
    assert [len(life.where(job)) for job in ("j1", "j2", "j3", "j4")] == [1, 1, 1, 1]


def test_how_many_pods_a_queue_deserves_makes_none_of_them_go() -> None:
    life = Life(
        conf(RECLAIMS, "capacity"),
        nodes(n="8 64Gi"),
        [a_queue("many", deserved="6 64Gi pods=2"), a_queue("owner", deserved="4 64Gi pods=10")],
        a_job("many", 6, "1 1Gi", gang=1, queue="many", on=["n"] * 6, phase="Running"),
        a_job("owner", 1, "4 1Gi", queue="owner"),
    )
    life.settle()
    assert life.evicted == []


def test_a_job_that_wants_nobody_evicted_goes_ahead_when_somebody_leaves() -> None:
    polite = a_pod("polite-0", job="polite", spec=PodSpec(preemption_policy="Never"))
    life = Life(
        conf("allocate preempt backfill"),
        nodes(n1="2 16Gi"),
        RANKS,
        a_job("running", 2, gang=1, priority="p-10", on=["n1", "n1"], created=0),
        a_job("next", priority="p-10", created=1),
        [a_group("polite", priority="p-100", created=2), polite],
    )
    life.settle()
    assert (life.evicted, life.where("polite"), life.where("next")) == ([], {}, {})
    life.finish("running-0")
    life.settle()
    assert (life.where("polite"), life.where("next")) == ({"polite-0": "n1"}, {})


def test_no_more_go_than_the_gang_needs() -> None:
    life = Life(
        conf(RECLAIMS),
        nodes(n1="8 16Gi"),
        [a_queue("default"), a_queue("test", weight=3)],
        a_job("wide", 8, gang=3, on=["n1"] * 8, phase="Running"),
        a_job("small", 2, gang=2, queue="test"),
    )
    life.settle()
    assert len(life.gone("wide")) == 2
    assert (len(life.where("wide")), len(life.where("small"))) == (6, 2)


def test_two_queues_do_not_take_from_each_other_in_turn() -> None:
    life = Life(
        conf(RECLAIMS),
        nodes(n1="4 16Gi"),
        [a_queue("left"), a_queue("right")],
        a_job("left", 5, gang=1, queue="left", on=["n1"] * 4, phase="Running"),
        a_job("right", 5, gang=1, queue="right"),
    )
    life.settle()
    assert len(life.where("left")) >= 2
    assert len(life.where("right")) >= 1
    assert len(life.where("left")) + len(life.where("right")) == 4
    assert life.gone("right") == []


def test_two_gangs_do_not_take_from_each_other_in_turn() -> None:
    """No plugin of the first tier asks what a queue deserves."""
    gpu, wide = "1 1Gi a.b/gpu=1", "3 1Gi"
    life = Life(
        conf(GANGS),
        nodes(n0="2 64Gi a.b/gpu=1", n1="3 64Gi a.b/gpu=1"),
        [a_queue("left"), a_queue("right")],
        a_job("loose", 2, gpu, gang=0, queue="left", on=["n0", "n1"], created=0),
        a_job("narrow", 1, gpu, queue="left", created=1),
        a_job("wide", 1, wide, queue="left", created=2),
        a_job("due", 1, gpu, queue="right", created=3),
    )
    life.settle()
    assert life.evicted == [("loose-1", "n1")]
    assert (life.where("due"), life.where("wide")) == ({"due-0": "n1"}, {})


@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
def test_what_a_queue_deserves_of_one_resource_takes_no_other_for_good(action: str) -> None:
    """Memory alone, of which there is plenty, would entitle both to one cpu more than their due."""
    life = Life(
        conf(f"enqueue allocate {action}", "capacity"),
        nodes(n1="3 64Gi"),
        [a_queue("left", deserved="1 16Gi"), a_queue("right", deserved="1 16Gi")],
        a_job("large", 1, "2 1Gi", queue="left", on=["n1"], phase="Running", created=0),
        a_job("small", 1, "1 1Gi", queue="right", created=1),
        a_job("other", 1, "1 1Gi", queue="right", created=2),
        a_job("alike", 1, "1 1Gi", queue="right", created=3),
    )
    life.settle()
    assert life.evicted == []
    assert [*life.where("large"), *life.where("small")] == ["large-0", "small-0"]
    reasons = {status.job: status.reason for status in life.session().groups}
    for job in ("other", "alike"):
        assert (waits := reasons[JobKey(f"ns/{job}")]) is not None
        assert waits.rivals == ("left",)
        assert told(waits).endswith("that queue could take as much back at once.")


def test_plugins_that_let_so_many_go_mean_the_same_ones() -> None:
    """One pod stays for the gang's minimum and four for the queue's due, the eldest of all."""
    tier = ["gang", "conformance", "capacity", "predicates"]
    life = Life(
        a_conf("enqueue allocate reclaim", tier),
        nodes(n1="8 64Gi"),
        [a_queue("due", deserved="4"), a_queue("over", deserved="4")],
        a_job("loose", 8, gang=1, queue="over", on=["n1"] * 8, phase="Running"),
        a_job("whole", 4, queue="due"),
    )
    life.settle()
    assert life.gone("loose") == [f"loose-{i}" for i in (7, 6, 5, 4)]
    assert len(life.where("whole")) == 4


@pytest.mark.parametrize("first", [["priority", "gang", "conformance"], ["conformance"]])
def test_no_queue_gives_of_its_due_whichever_tier_decides(first: list[str]) -> None:
    """The first tier names whom gangs can spare, or anybody; the first node has those in order."""
    life = Life(
        a_conf("enqueue allocate reclaim", first, ["gang", "predicates", "capacity"]),
        nodes(n1="4 16Gi", n2="6 16Gi"),
        [
            a_queue("even", deserved="4"),
            a_queue("over", deserved="3"),
            a_queue("due", deserved="3"),
        ],
        a_job("even", 4, gang=1, queue="even", on=["n1"] * 4, phase="Running"),
        a_job("over", 6, gang=1, queue="over", on=["n2"] * 6, phase="Running"),
        a_job("due", 3, queue="due"),
    )
    life.settle()
    assert (life.gone("even"), len(life.gone("over"))) == ([], 3)
    assert (len(life.where("due")), len(life.where("over"))) == (3, 3)


def test_another_queue_gives_where_one_has_as_good_a_claim() -> None:
    life = Life(
        conf("enqueue allocate reclaim", "capacity"),
        nodes(n1="5 64Gi"),
        [a_queue(q, deserved="1 16Gi") for q in ("left", "right")],
        a_queue("last", deserved="1 1Gi"),
        a_job("large", 1, "2 1Gi", queue="left", on=["n1"], phase="Running", created=0),
        a_job("small", 1, "1 1Gi", queue="right", on=["n1"], phase="Running", created=1),
        a_job("loose", 2, "1 1Gi", queue="last", on=["n1"] * 2, phase="Running", created=2),
        a_job("more", 1, "1 1Gi", queue="right", created=3),
    )
    life.settle()
    assert life.evicted == [("loose-1", "n1")]
    assert len(life.where("more")) == 1


def test_a_job_that_fits_nowhere_does_not_keep_others_from_what_is_theirs() -> None:
    nowhere = PodSpec(node_selector={"pool": "nowhere"})
    life = Life(
        conf(RECLAIMS, "capacity"),
        nodes(n1="8 16Gi"),
        [a_queue("lender", deserved="6"), a_queue("borrower", deserved="2")],
        a_job("borrowing", 8, gang=1, queue="borrower", on=["n1"] * 8, phase="Running"),
        [
            a_group("hopeless", queue="lender", created=0),
            a_pod("hopeless-0", job="hopeless", spec=nowhere),
        ],
        a_job("able", queue="lender", created=1),
    )
    life.settle()
    assert (life.where("hopeless"), life.where("able")) == ({}, {"able-0": "n1"})
    assert len(life.gone("borrowing")) == 1


def test_no_priority_takes_a_queue_beyond_its_due() -> None:
    life = Life(
        conf(RECLAIMS, "capacity"),
        nodes(n1="9 16Gi"),
        RANKS,
        [a_queue(q, deserved=d) for q, d in (("q-a", "4"), ("q-b", "4"), ("q-c", "1"))],
        a_job("a", 4, gang=1, queue="q-a", on=["n1"] * 4, phase="Running"),
        a_job("b", 4, gang=1, queue="q-b", on=["n1"] * 4, phase="Running"),
        a_job("c", queue="q-c", on=["n1"], phase="Running"),
        a_job("more", queue="q-c", priority="p-100"),
    )
    life.settle()
    assert (life.evicted, life.where("more")) == ([], {})


def test_what_was_promised_is_held_while_victims_leave_and_after() -> None:
    life = Life(
        conf(PREEMPTS),
        nodes(n1="2 16Gi"),
        RANKS,
        a_job("low", 2, gang=0, priority="p-10", on=["n1", "n1"]),
        a_job("first", 1, "2", priority="p-100", created=9),
    )
    life.session()
    # Later comes one that stands before it in every order.
    life.add(a_priority_class("p-1000", 1000), a_job("rival", priority="p-1000", created=0))
    assert not life.session().evictions
    life.let_go()
    assert [p.uid for a in life.session().allocations for p in a.placements] == ["first-0"]


def test_one_stays_where_those_who_go_for_another_job_leave_enough() -> None:
    on = ["n1", "n2"]
    life = Life(
        conf(PREEMPTS, "capacity"),
        nodes(n1="3 64Gi", n2="4 64Gi"),
        RANKS,
        a_queue("default", capability="4"),
        a_job("large", 2, "3", gang=0, priority="p-10", on=on, created=0),
        a_job("small", 1, gang=0, priority="p-10", on=["n2"], created=1),
        a_job("first", priority="p-100", created=2),
        a_job("second", priority="p-100", created=3),
    )
    # For the first alone the queue must lose more than one large pod, for both two of them will do.
    first = life.session()
    assert [d.job for d in first.evictions] == ["ns/first", "ns/second"]
    assert sorted(life.evicted) == [("large-0", "n1"), ("large-1", "n2")]
    life.settle()
    assert life.where("small") == {"small-0": "n2"}


def test_what_is_promised_of_the_room_that_others_leave_is_held_as_well() -> None:
    life = Life(
        conf(RECLAIMS),
        nodes(n0="4 64Gi", n1="3 64Gi"),
        [a_queue("rich"), a_queue("poor"), a_queue("other")],
        a_job("large", 2, "3", gang=0, queue="rich", on=["n0", "n1"], created=0),
        a_job("small", 1, gang=0, queue="rich", on=["n0"], created=1),
        a_job("one", 2, queue="other", gang=2, created=2),
        a_job("two", queue="other", created=3),
    )
    plan = life.session()
    assert [(d.job, len(d.victims), len(d.claims)) for d in plan.evictions] == [
        ("ns/one", 1, 2),
        ("ns/two", 0, 1),
    ]
    life.let_go()
    life.session()
    assert (len(life.where("one")), len(life.where("two"))) == (2, 1)


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_what_was_promised_is_held_before_allocate_has_its_turn(action: str) -> None:
    life = Life(
        conf(f"{action} allocate"),
        nodes(n1="2 16Gi"),
        RANKS,
        a_job("low", 2, gang=0, priority="p-10", on=["n1", "n1"]),
        a_job("first", priority="p-100", created=9),
    )
    life.session()
    # Room enough for a later one, if it could have what is promised.
    life.add(a_priority_class("p-1000", 1000), a_job("rival", 2, priority="p-1000", created=0))
    assert not life.session().evictions
    life.let_go()
    life.session()
    assert life.where("first") == {"first-0": "n1"}


def test_nobody_goes_where_the_job_keeps_off() -> None:
    things = (
        nodes(n1="1 16Gi"),
        RANKS,
        a_job("low", gang=0, priority="p-10", on=["n1"]),
        a_job("high", priority="p-100"),
    )
    life = Life(conf(PREEMPTS), *things)
    life.avoided = {"high": "n1"}
    assert not life.session().evictions
    life.avoided = {}
    assert life.session().evictions


def test_nobody_goes_who_could_not_be_evicted_a_moment_ago() -> None:
    life = Life(
        conf(PREEMPTS),
        nodes(n1="1 16Gi", n2="1 16Gi"),
        RANKS,
        a_job("low", 2, gang=0, priority="p-10", on=["n1", "n2"]),
        a_job("high", priority="p-100"),
    )
    life.spared = {"low-0"}
    life.session()
    assert life.evicted == [("low-1", "n2")]


@st.composite
def worlds(draw: st.DrawFn) -> list[Thing]:
    """Return a few nodes, filled by jobs that can spare pods, and jobs that want their room."""
    room = {f"n{i}": draw(st.integers(2, 5)) for i in range(draw(st.integers(1, 3)))}
    things: list[Thing] = [
        *RANKS,
        *(a_node(name, f"{cpu} 64Gi a.b/gpu={cpu // 2}") for name, cpu in room.items()),
    ]
    devices = {name: cpu // 2 for name, cpu in room.items()}
    queues = [f"q{i}" for i in range(draw(st.integers(1, 3)))]
    for queue in queues:
        deserved = f"{draw(st.integers(0, 6))} 16Gi a.b/gpu={draw(st.integers(0, 3))}"
        things.append(a_queue(queue, weight=draw(st.integers(1, 3)), deserved=deserved))
    kinds = st.sampled_from([(1, 0), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0)])
    runners, seekers = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    for j in range(runners + seekers):
        cpu, gpu = draw(kinds)
        size = draw(st.integers(1, 3))
        on: list[str] = []
        if j < runners:
            for node in room:
                while len(on) < 4 and room[node] >= cpu and devices[node] >= gpu:
                    room[node] -= cpu
                    devices[node] -= gpu
                    on.append(node)
        things += a_job(
            f"j{j}",
            max(size, len(on)),
            f"{cpu} 1Gi a.b/gpu={gpu}",
            gang=draw(st.integers(0, 1)) if on else size,
            queue=draw(st.sampled_from(queues)),
            priority="p-10" if on else draw(st.sampled_from(["p-10", "p-100"])),
            phase="Running" if on else "Inqueue",
            on=on,
            created=j,
        )
    return things


def units(plan: Plan) -> Iterator[set[tuple[str, str]]]:
    """Yield who goes by himself, and of gangs all that go at once: as they would be back."""
    for decision in plan.evictions:
        found: dict[str, set[tuple[str, str]]] = {}
        for victim in decision.victims:
            unit = victim.job if decision.action.startswith("gang") else victim.uid
            found.setdefault(unit, set()).add((f"{victim.uid}'", victim.node))
        yield from found.values()


@settings(max_examples=examples(400), deadline=None)
@given(worlds(), st.sampled_from(ORDERS))
def test_who_goes_makes_room_that_is_kept_and_needed(things: list[Thing], actions: str) -> None:
    """
    Who goes in one session is needed for what that session promises, and the promises are kept.

    What a later session does may leave more than it takes itself, or more to a queue; then some
    who went before need not have gone. Nobody could know: a job that found no room at first finds
    some only since they went. So it is looked whether any could have stayed where nobody followed.
    """
    life = Life(conf(actions), things)
    for _ in range(3):
        first, second = life.session(), life.session()
        evictions = [*first.evictions, *second.evictions]
        life.let_go()
        third = life.session()
        # Nobody else goes for a job that is served, and it gets all that it was promised.
        jobs = [decision.job for decision in (*evictions, *third.evictions)]
        assert len(jobs) == len(set(jobs))
        got = placements(second) | placements(third)
        claims = {c.uid: c.node for decision in evictions for c in decision.claims}
        assert claims.items() <= got.items()
        if not any(decision.victims for decision in second.evictions):
            assert not any(unit <= got.items() for unit in units(first))
        life.let_go()


@settings(max_examples=examples(200), deadline=None)
@given(worlds(), st.sampled_from(ORDERS))
def test_it_comes_to_rest(things: list[Thing], actions: str) -> None:
    """Shown for `preempt` and `reclaim`; two gang actions in one order may go on in turn."""
    Life(conf(actions), things).settle(rounds=12)


def test_what_queues_deserve_does_not_swing_while_victims_are_away() -> None:
    def asks(gpus: int, cpus: int = 1) -> str:
        return f"{cpus} 1Gi a.b/gpu={gpus}"

    places = ["n0", "n0", "n1", "n2"]
    life = Life(
        conf(BOTH),
        nodes(n0="4 64Gi a.b/gpu=2", n1="2 64Gi a.b/gpu=1", n2="3 64Gi a.b/gpu=1"),
        RANKS,
        [a_queue("q0"), a_queue("q1")],
        a_job("j0", 4, asks(1), gang=0, queue="q1", priority="p-10", phase="Running", on=places),
        a_job("j1", 4, asks(0), gang=0, queue="q0", priority="p-10", phase="Running", on=places),
        a_job("j2", 1, asks(1), queue="q1", priority="p-100"),
        a_job("j3", 1, asks(1, cpus=2), queue="q0", priority="p-10"),
    )
    first = life.session()
    assert len(life.evicted) == 2
    second = life.session()
    assert second.deserved == first.deserved
    assert len(life.evicted) == 2
