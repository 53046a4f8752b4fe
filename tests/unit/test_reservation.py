"""reservation: a gang at the head gets a start, and nobody who goes before it moves that."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core import names
from pumice.core.api.core import Pod
from pumice.core.api.scheduling import PodGroup
from pumice.core.cluster import Cluster
from pumice.core.conf import Configuration
from pumice.core.cycle import run_session
from pumice.core.explain.sentences import explained, fresh_condition
from pumice.core.ids import JobKey, PodUid
from pumice.core.model.inputs import Reservation
from pumice.core.plan import Plan
from pumice.core.plugins.reservation.plugin import KEPT
from pumice.core.replay.record import read, record
from pumice.core.replay.run import rerun
from pumice.core.run_times import GRACE_S, NEVER, end_of, run_time
from pumice.core.timestamps import stamp
from tests.builders import (
    a_cluster,
    a_conf,
    a_group,
    a_node,
    a_plugin,
    a_pod,
    a_queue,
    phases,
    placements,
)
from tests.effort import examples
from tests.volumes import a_claim, a_mounting_pod, a_volume, store

NOW = 1_800_000_000
CONF = a_conf(
    "enqueue allocate backfill",
    ["priority", "gang", a_plugin("reservation", startup="0s")],
    ["predicates", "binpack"],
)
Made = list[PodGroup | Pod]


def told(pod: Pod, runs: int | None, *, since: int | None = None) -> Pod:
    """Return a pod that tells how long it runs, and since when it has."""
    notes = dict(pod.metadata.annotations or {})
    if runs is not None:
        notes[names.EXPECTED_DURATION] = f"{runs}s"
    started = None if since is None else stamp(NOW + since)
    return Pod(
        metadata=msgspec.structs.replace(pod.metadata, annotations=notes),
        spec=pod.spec,
        status=msgspec.structs.replace(pod.status, start_time=started),
    )


def running(name: str, node: str, runs: int | None, cpu: int = 1, since: int = 0) -> Made:
    """Return a job whose pod has run on a node since `since`."""
    pod = a_pod(f"{name}-0", f"{cpu} 1Gi", job=name, node=node)
    return [a_group(name, phase="Running"), told(pod, runs, since=since)]


def waiting(
    name: str, n: int = 1, cpu: int = 1, runs: int | None = None, created: int = 0, **of: object
) -> Made:
    group = a_group(name, least=n, created=created, **of)  # type: ignore[arg-type]
    pods = (a_pod(f"{name}-{i}", f"{cpu} 1Gi", job=name, created=created) for i in range(n))
    return [group, *(told(pod, runs) for pod in pods)]


@dataclass(frozen=True)
class Case:
    """Nodes of four cpus; what runs, and what waits."""

    made: list[Made]
    #: seconds from now; None for no reservation
    start: int | None
    kept: dict[str, float] = field(default_factory=dict)
    placed: dict[str, str] = field(default_factory=dict)
    nodes: int = 2
    gang: str = "gang"


BUSY = [running("r0", "n0", 100, 4), running("r1", "n1", 60, 4)]
CASES = {
    "the gang starts when the last of those has gone that are in its way": Case(
        [*BUSY, waiting("gang", 2, 4)], 100, {"n0": 4.0, "n1": 4.0}
    ),
    "not later than needed": Case([*BUSY, waiting("gang", 1, 4)], 60, {"n1": 4.0}),
    "the run time counts from the start of the pod": Case(
        [running("r", "n0", 100, 4, since=-90), waiting("gang", 2, 4)],
        10,
        {"n0": 4.0, "n1": 4.0},
    ),
    "who is overdue goes any moment": Case(
        [running("r", "n0", 100, 4, since=-500), waiting("gang", 2, 4)],
        0,
        {"n0": 4.0, "n1": 4.0},
    ),
    "who has not told never ends": Case([running("r", "n0", None, 4), waiting("gang", 2, 4)], None),
    "a gang that never fits is passed over for the next one": Case(
        [*BUSY, waiting("huge", 9, 4), waiting("gang", 2, 4, created=1)],
        100,
        {"n0": 4.0, "n1": 4.0},
    ),
    "who ends before it may go first": Case(
        [running("r", "n0", 100, 4), waiting("gang", 2, 4), waiting("small", 1, 1, 100, created=1)],
        100,
        {"n0": 4.0, "n1": 4.0},
        {"small-0": "n1"},
    ),
    "who ends a second too late may not": Case(
        [running("r", "n0", 100, 4), waiting("gang", 2, 4), waiting("small", 1, 1, 101, created=1)],
        100,
        {"n0": 4.0, "n1": 4.0},
    ),
    "who has not told may not": Case(
        [running("r", "n0", 100, 4), waiting("gang", 2, 4), waiting("small", created=1)],
        100,
        {"n0": 4.0, "n1": 4.0},
    ),
    "who takes nothing of its room may go for as long as it likes": Case(
        [running("r", "n0", 100, 3), waiting("gang", 2, 3), waiting("small", created=1)],
        100,
        {"n0": 3.0, "n1": 3.0},
        {"small-0": "n0"},
    ),
    "only as many as there is room for beside it": Case(
        [
            running("r", "n0", 100, 2),
            waiting("gang", 2, 3),
            waiting("a", created=1),
            waiting("b", created=2),
            waiting("c", created=3),
        ],
        100,
        {"n0": 3.0, "n1": 3.0},
        {"a-0": "n0", "b-0": "n1"},
    ),
    "a node that it does not need is free to all": Case(
        [
            running("r", "n0", 100, 3),
            running("s", "n1", 50, 4),
            waiting("gang", 1, 4),
            waiting("small", 1, 1, created=1),
        ],
        50,
        {"n1": 4.0},
        {"small-0": "n0"},
    ),
    "who stands before it in line does not heed it": Case(
        [
            running("r", "n0", 100, 4),
            waiting("first", 1, 1),
            waiting("gang", 2, 4, created=1),
        ],
        None,
        placed={"first-0": "n1"},
    ),
    "a gang that fits needs none": Case(
        [waiting("gang", 2, 4)], None, placed={"gang-0": "n0", "gang-1": "n1"}
    ),
}


def plan_of(cluster: Cluster, now: float = NOW, conf: Configuration = CONF) -> Plan:
    return run_session(cluster.snapshot(), conf, now, "s1")


def cluster_of(case: Case) -> Cluster:
    return a_cluster([a_node(f"n{i}", "4 64Gi") for i in range(case.nodes)], *case.made)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_rule(case: Case) -> None:
    plan = plan_of(cluster_of(case))
    kept = plan.reservation
    assert placements(plan) == case.placed
    assert (None if kept is None else kept.start - NOW) == case.start
    rooms = {} if kept is None else {n: row[0] / 1000 for n, row in kept.rooms.items()}
    assert rooms == case.kept
    assert kept is None or kept.job == f"ns/{case.gang}"


def test_a_gang_whose_members_have_disks_in_different_nodes_gets_those_nodes() -> None:
    members = [a_mounting_pod(f"gang-{i}", f"c{i}", asks="4 1Gi", job="gang") for i in range(2)]
    cluster = cluster_of(Case([*BUSY, [a_group("gang", least=2), *members]], 100, nodes=4))
    store(cluster, [a_claim(f"c{i}", volume=f"v{i}") for i in range(2)])
    store(cluster, [a_volume(f"v{i}", on=f"n{i}") for i in range(2)])
    kept = plan_of(cluster).reservation
    assert kept is not None
    assert (kept.start - NOW, set(kept.rooms)) == (100, {"n0", "n1"})


def test_of_another_queue_everybody_heeds_it() -> None:
    cluster = cluster_of(Case([running("r", "n0", 100, 4), waiting("gang", 2, 4)], 100))
    cluster.set_queue(a_queue("other", priority=9))
    first = plan_of(cluster)
    cluster.inputs.reservation = first.reservation
    for thing in waiting("long", 1, 1, 500, queue="other"):
        show(cluster, thing)
    for thing in waiting("short", 1, 1, 50, queue="other", created=1):
        show(cluster, thing)
    plan = plan_of(cluster, NOW + 1)
    assert placements(plan) == {"short-0": "n1"}
    assert plan.reservation == first.reservation
    (waits,) = (g.reason for g in plan.groups if g.job == "ns/long")
    assert waits is not None
    assert waits.nodes[KEPT] == 1


def show(cluster: Cluster, thing: PodGroup | Pod) -> None:
    if isinstance(thing, Pod):
        cluster.set_pod(thing)
    else:
        cluster.set_pod_group(thing)


def test_the_condition_says_when_it_starts_and_the_text_stands_still() -> None:
    cluster = cluster_of(Case([running("r", "n0", 100, 4), waiting("gang", 2, 4)], 100))
    texts = set()
    for after in (0, 1, 5, 104):
        plan = plan_of(cluster, NOW + after)
        cluster.inputs.reservation = plan.reservation
        (status,) = (g for g in plan.groups if g.job == "ns/gang")
        condition = fresh_condition(status)
        assert condition is not None
        texts.add(explained(condition.message, status.reason))
    (text,) = texts
    assert text.endswith(f"Room is kept for it, it is expected to start by {stamp(NOW + 101)}.")


def test_room_is_kept_when_pods_are_late() -> None:
    """They were to be gone: whoever would take what is free must not make it later still."""
    cluster = cluster_of(Case([running("r", "n0", 100, 4), waiting("gang", 2, 4)], 100))
    cluster.inputs.reservation = plan_of(cluster).reservation
    for thing in waiting("small", 1, 1, 1, created=1):
        show(cluster, thing)
    late = plan_of(cluster, NOW + 103)
    assert placements(late) == {}
    cluster.inputs.reservation = late.reservation
    cluster.remove_pod(PodUid("r-0"))
    there = plan_of(cluster, NOW + 104)
    assert placements(there) == {"gang-0": "n0", "gang-1": "n1"}
    assert there.reservation is None


LOST = {
    "the gang is gone": lambda c: c.remove_pod_group(JobKey("ns/gang")),
    "a node is gone": lambda c: c.remove_node("n1"),
    "the queue is closed": lambda c: c.set_queue(a_queue("default", state="Closed")),
}


@pytest.mark.parametrize("case", LOST)
def test_a_reservation_that_cannot_be_kept_is_given_up(case: str) -> None:
    cluster = cluster_of(Case([running("r", "n0", 100, 4), waiting("gang", 2, 4)], 100))
    cluster.inputs.reservation = plan_of(cluster).reservation
    LOST[case](cluster)
    conf = a_conf("allocate", ["gang", "reservation"], ["predicates", "proportion"])
    assert plan_of(cluster, conf=conf).reservation is None


def test_a_full_queue_is_no_obstacle_where_only_the_cluster_is_too_small() -> None:
    """Of all that the cluster has its one queue deserves no more than that."""
    conf = a_conf("allocate", ["gang", "reservation"], ["predicates", "proportion"])
    plan = plan_of(cluster_of(Case([*BUSY, waiting("gang", 2, 4)], 100)), conf=conf)
    assert plan.reservation is not None
    assert plan.reservation.start == NOW + 100


def test_a_limit_of_the_queue_is_an_obstacle() -> None:
    cluster = cluster_of(Case([*BUSY, waiting("gang", 2, 4)], 100))
    cluster.set_queue(a_queue("default", capability="8 64Gi"))
    conf = a_conf("allocate", ["gang", "reservation"], ["predicates", "proportion"])
    assert plan_of(cluster, conf=conf).reservation is None


def test_the_first_group_of_a_queue_is_let_in_whatever_runs() -> None:
    conf = a_conf("enqueue", ["gang", "reservation"], ["overcommit", "proportion"])
    whole = {"phase": "Pending", "resources": "8 64Gi"}
    outside = [a_group(name, least=2, created=i, **whole) for i, name in enumerate("abc")]  # type: ignore[arg-type]
    plan = plan_of(cluster_of(Case([*BUSY, list(outside)], None)), conf=conf)
    assert phases(plan) | {"a": "Inqueue", "b": "Pending", "c": "Pending"} == phases(plan)


def test_while_room_is_kept_what_is_idle_is_let_in() -> None:
    conf = a_conf("enqueue allocate", ["gang", "reservation"], ["proportion", "predicates"])
    gang = a_group("gang", least=2, resources="8 64Gi")
    pods = waiting("gang", 2, 4)[1:]
    cluster = cluster_of(Case([running("r", "n0", 100, 3), [gang, *pods]], None))
    cluster.inputs.reservation = plan_of(cluster, conf=conf).reservation
    assert cluster.inputs.reservation is not None
    for i, cpu in enumerate((3, 3, 2)):
        group = a_group(f"s{i}", phase="Pending", resources=f"{cpu} 1Gi", created=i + 1)
        cluster.set_pod_group(group)
    found = phases(plan_of(cluster, conf=conf))
    assert [found[f"s{i}"] for i in range(3)] == ["Inqueue", "Pending", "Inqueue"]


def test_nothing_is_let_in_that_could_never_run() -> None:
    conf = a_conf("enqueue", ["gang", "reservation"], ["overcommit"])
    outside = a_group("a", phase="Pending", resources="10 64Gi")
    plan = plan_of(cluster_of(Case([[outside]], None)), conf=conf)
    assert phases(plan) == {"a": "Pending"}


RUN_TIMES: list[tuple[dict[str, str], int | None, float]] = [
    ({}, None, NEVER),
    ({names.EXPECTED_DURATION: "1m30s"}, None, 90.0),
    ({names.EXPECTED_DURATION: "1m30s"}, 60, 60.0),
    ({names.EXPECTED_DURATION: "30s"}, 60, 30.0),
    ({names.EXPECTED_DURATION: "soon"}, 60, 60.0),
    ({names.EXPECTED_DURATION: "-5s"}, None, NEVER),
]


@pytest.mark.parametrize(("notes", "deadline", "want"), RUN_TIMES)
def test_run_times(notes: dict[str, str], deadline: int | None, want: float) -> None:
    pod = a_pod("p", annotations=notes)
    pod.spec.active_deadline_seconds = deadline
    assert run_time(pod) == want


def test_who_is_told_to_leave_goes_when_its_grace_is_over() -> None:
    cluster = a_cluster(
        a_node("n"),
        a_pod("shows", node="n", deleting=True),
        a_pod("hidden", job="j", node="n"),
        a_group("j"),
    )
    cluster.dismiss(PodUid("hidden"))
    shows, hidden = (cluster.task(PodUid(name)) for name in ("shows", "hidden"))
    assert shows is not None
    assert hidden is not None
    assert (end_of(shows, 0.0) > 0, end_of(hidden, float(NOW))) == (True, NOW + GRACE_S)


# The guarantee.


@dataclass
class Life:
    """A cluster whose pods start when they are placed and end when they have told."""

    cluster: Cluster
    now: int = NOW
    ends: dict[str, int] = field(default_factory=dict)
    runs: dict[str, int | None] = field(default_factory=dict)
    started: dict[str, int] = field(default_factory=dict)
    shown: dict[str, list[float]] = field(default_factory=dict)

    def submit(self, name: str, n: int, cpu: int, runs: int | None, queue: str) -> None:
        for thing in waiting(name, n, cpu, runs, created=self.now - NOW, queue=queue):
            show(self.cluster, thing)
            if isinstance(thing, Pod):
                self.runs[thing.metadata.uid] = runs

    def step(self) -> None:
        """Let a second pass: who is done goes, a session decides, what is placed runs."""
        for uid in [uid for uid, end in self.ends.items() if end <= self.now]:
            del self.ends[uid]
            self.cluster.remove_pod(PodUid(uid))
            self.cluster.remove_pod_group(JobKey(f"ns/{uid.rpartition('-')[0]}"))
        plan = plan_of(self.cluster, self.now)
        self.cluster.inputs.reservation = plan.reservation
        self._note(plan.reservation)
        for uid, node in placements(plan).items():
            task = self.cluster.task(PodUid(uid))
            assert task is not None
            self._start(task.pod, node)
        self.now += 1

    def _note(self, kept: Reservation | None) -> None:
        if kept is not None:
            self.shown.setdefault(kept.job, []).append(kept.start)

    def _start(self, pod: Pod, node: str) -> None:
        uid = pod.metadata.uid
        replaced = msgspec.structs.replace(pod.spec, node_name=node)
        status = msgspec.structs.replace(pod.status, phase="Running", start_time=stamp(self.now))
        self.cluster.set_pod(Pod(metadata=pod.metadata, spec=replaced, status=status))
        self.started[uid] = self.now
        runs = self.runs[uid]
        if runs is not None:
            self.ends[uid] = self.now + runs


SECONDS = 26
Submitted = tuple[int, int, int, int | None, str]


def a_stream(rng: random.Random, nodes: int) -> list[Submitted]:
    """Return jobs: when, how many pods, cpu each, run time, queue; some fill whole nodes."""
    queues = ("default", "default", "other")

    def small() -> Submitted:
        runs = rng.choice([*range(1, 10), None])
        return rng.randint(0, 8), rng.randint(1, 2), rng.randint(1, 3), runs, rng.choice(queues)

    def wide() -> Submitted:
        n, cpu, runs = rng.randint(2, nodes), rng.randint(2, 4), rng.randint(1, 9)
        return rng.randint(1, 6), n, cpu, runs, rng.choice(queues)

    jobs = [small() for _ in range(rng.randint(3, 9))]
    return jobs + [wide() for _ in range(rng.randint(1, 2))]


@given(st.integers(0, 2**32))
@settings(max_examples=examples(120), deadline=None)
def test_a_start_that_was_shown_never_moves_later(seed: int) -> None:
    rng = random.Random(seed)
    nodes = rng.randint(2, 3)
    jobs = a_stream(rng, nodes)
    cluster = a_cluster(
        [a_node(f"n{i}", "4 64Gi") for i in range(nodes)],
        a_queue("default"),
        a_queue("other"),
    )
    life = Life(cluster)
    for second in range(SECONDS):
        for number, (at, n, cpu, runs, queue) in enumerate(jobs):
            if at == second:
                life.submit(f"j{number}", n, cpu, runs, queue)
        life.step()
        assert not (cluster.nodes.used > cluster.nodes.alloc).any()
    for job, starts in life.shown.items():
        assert starts == sorted(starts, reverse=True), "a reservation has moved later"
        name = job.partition("/")[2]
        began = [at for uid, at in life.started.items() if uid.startswith(f"{name}-")]
        if starts[0] < NOW + SECONDS:
            assert began, f"{name} was told {starts[0] - NOW} and has not started"
            assert max(began) <= starts[0]


def test_small_jobs_without_end_do_not_starve_a_gang_of_all_nodes() -> None:
    cluster = a_cluster([a_node(f"n{i}", "4 64Gi") for i in range(3)], a_queue("default"))
    life = Life(cluster)
    for i in range(6):
        life.submit(f"early{i}", 1, 2, 5 + i, "default")
    life.step()
    life.submit("gang", 3, 4, 5, "default")
    for second in range(30):
        life.submit(f"short{second}", 1, 1, 2, "default")
        life.submit(f"long{second}", 1, 1, 20, "default")
        life.step()
    first = life.shown["ns/gang"][0]
    start = life.started["gang-0"]
    assert start == max(life.started[f"gang-{i}"] for i in range(3)) <= first == NOW + 10
    before = [uid for uid, at in life.started.items() if NOW < at < start]
    assert len(before) >= 5, "small jobs that end in time use the room meanwhile"
    assert all(uid.startswith("short") for uid in before)


def test_a_session_with_a_reservation_is_replayed() -> None:
    cluster = cluster_of(Case([*BUSY, waiting("gang", 2, 4)], 100))
    conf = replace(
        CONF, text="actions: allocate\ntiers: [{plugins: [{name: gang}, {name: reservation}]}]"
    )
    cluster.inputs.reservation = plan_of(cluster).reservation
    snapshot = cluster.snapshot()
    plan = run_session(snapshot, conf, float(NOW), "s1")
    text = read(record(snapshot, conf, [], plan))
    assert text.seen.inputs.reservation == cluster.inputs.reservation
    assert rerun(text, conf).decisions == bytes(text.decisions)
