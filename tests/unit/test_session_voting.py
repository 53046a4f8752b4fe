"""What plugins register in a session, and what the session makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from pumice.core import catalog
from pumice.core.conf import Arguments
from pumice.core.cycle import run_session
from pumice.core.extension import (
    BatchNodeOrder,
    Code,
    PredicateResult,
    Refusal,
    Room,
    Vote,
)
from pumice.core.ids import PodUid
from pumice.core.model.jobs import SubJob
from pumice.core.model.tasks import Task
from pumice.core.plan import Plan
from pumice.core.resources import Floats, Ints
from pumice.core.session import Session
from tests.builders import (
    ALL_FLAGS,
    a_cluster,
    a_conf,
    a_group,
    a_job,
    a_plugin,
    a_pod,
    a_queue,
    a_session,
    nodes,
    placements,
)


@dataclass
class Probe:
    """A plugin that registers what the test says."""

    register: Callable[[Session], None]
    name: str = "probe"

    def on_session_open(self, ssn: Session) -> None:
        self.register(ssn)

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""


AddProbe = Callable[[Callable[[Session], None]], list[Arguments]]


@pytest.fixture
def probe() -> Iterator[AddProbe]:
    """Add the plugin `probe`; return the arguments that it was built with, as they come."""
    built: list[Arguments] = []

    def add(register: Callable[[Session], None]) -> list[Arguments]:
        def build(args: Arguments) -> Probe:
            built.append(args)
            return Probe(register)

        catalog.add_plugin("probe", build)
        return built

    yield add
    catalog.remove_plugin("probe")


def test_plugins_and_actions_that_are_not_known_are_told() -> None:
    conf = a_conf("allocate elect", ["gang", "elect"])
    plan = run_session(a_cluster().snapshot(), conf, 5.0, "s")
    assert plan == Plan(
        session="s",
        now=5.0,
        queues=plan.queues,
        warnings=(
            "plugin elect is not available, it is left out",
            "action elect is not available, it is left out",
        ),
    )


def test_a_hierarchy_that_is_not_available_is_told() -> None:
    conf = a_conf("enqueue", [a_plugin("gang", "enableHierarchy", "enableJobOrder")])
    plan = run_session(a_cluster().snapshot(), conf, 0.0, "s")
    assert plan.warnings == ("plugin gang has no hierarchy, the flag is left out",)


def test_arguments_of_the_wrong_type_are_told() -> None:
    conf = a_conf("enqueue", [a_plugin("overcommit", **{"overcommit-factor": "2"})])
    plan = run_session(a_cluster().snapshot(), conf, 0.0, "s")
    assert plan.warnings == ("argument overcommit-factor: '2' is not a number, ignored",)


def test_orders_fall_back_to_age_and_name() -> None:
    b = a_job("b", created=5, queue="z")
    b[0].metadata.uid = "0"
    ssn = a_session(
        a_conf("allocate", []),
        a_cluster(
            [a_queue(name) for name in "zy"],
            a_job("old", created=1, queue="z"),
            b,
            a_job("a", created=5, queue="z"),
            [a_pod(n, job="old") for n in ("w-x-10", "w-x-9", "w-y-9", "plain")],
        ),
    )
    jobs = sorted(ssn.active, key=ssn.job_key)
    assert [job.name for job in jobs] == ["old", "a", "b"]
    queues = sorted(ssn.queues.values(), key=ssn.queue_key)
    assert [queue.name for queue in queues] == ["y", "z"]
    tasks = sorted(jobs[0].tasks.values(), key=ssn.task_key)
    assert [task.name for task in tasks] == ["w-x-9", "w-y-9", "w-x-10", "plain", "old-0"]


def test_victims_go_from_the_last_to_the_first() -> None:
    ssn = a_session(
        a_conf("allocate", ["priority"]),
        a_cluster(
            [a_queue("near", priority=0), a_queue("far")],
            a_job("mine", queue="near", created=1),
            [a_group("low", queue="near"), a_group("lost", queue="gone")],
            a_pod("low-a", job="low", priority=1, node="n"),
            a_pod("low-b", job="low", priority=9, node="n"),
            a_pod("lost-a", job="lost", node="n"),
            a_job("other", queue="far", on=["n"], created=9),
        ),
    )
    victims_by_name = {
        task.name: task
        for job in ssn.space.jobs.values()
        for task in job.tasks.values()
        if task.node
    }
    preemptor = next(iter(ssn.active[0].tasks.values()))
    order = sorted(victims_by_name.values(), key=lambda task: ssn.victim_key(task, preemptor))
    assert [task.name for task in order] == ["lost-a", "low-a", "low-b", "other-0"]


def test_a_predicate_is_asked_once_for_each_signature(
    probe: AddProbe,
) -> None:
    asked: list[str] = []

    def refuse_n(cls: object) -> PredicateResult:
        asked.append("asked")
        refused = np.array([True, False])
        return PredicateResult(~refused, (Refusal(Code.UNRESOLVABLE, "not n", refused),))

    def register(ssn: Session) -> None:
        ssn.points.predicate["probe"] = refuse_n

    probe(register)
    conf = a_conf("allocate", ["gang", "probe"])
    cluster = a_cluster(nodes(n="4", m="2"), a_job("j", 2), a_job("k", asks="3"))
    plan = run_session(cluster.snapshot(), conf, 0.0, "s")
    assert placements(plan) == {"j-0": "m", "j-1": "m"}
    assert asked == ["asked"]
    (errors,) = [g.pods[PodUid("k-0")].message for g in plan.groups if g.job == "ns/k"]
    assert errors == "0/2 nodes are unavailable: 1 Insufficient cpu, 1 not n."


def probed(register: Callable[[Session], None], probe: AddProbe) -> Session:
    """Return a session in which only the probe has a say."""
    probe(register)
    flags = sorted(ALL_FLAGS)
    cluster = a_cluster(nodes(n="4", m="4"), a_job("a", created=1), a_job("b", created=2))
    return a_session(a_conf("allocate", [a_plugin("probe", *flags)]), cluster)


@dataclass(frozen=True)
class Say:
    """What a probe registers, and what the session makes of it (and without it)."""

    register: Callable[[Session], None]
    ask: Callable[[Session], object]
    want: object
    without: object


def put(point: str, function: object) -> Callable[[Session], None]:
    return lambda ssn: getattr(ssn.points, point).__setitem__("probe", function)


SAYS = {
    "overused": Say(
        put("overused", lambda queue: True),
        lambda ssn: ssn.is_overused(ssn.queues["default"]),
        True,
        False,
    ),
    "preemptive": Say(
        put("preemptive", lambda queue, tasks: False),
        lambda ssn: ssn.is_preemptive(ssn.queues["default"], []),
        False,
        True,
    ),
    "allocatable": Say(
        put("allocatable", lambda queue, cls, n: n - 1),
        lambda ssn: ssn.allocatable(ssn.queues["default"], task_of(ssn).cls, 5),
        4,
        5,
    ),
    "simulated allocatable": Say(
        put("simulate_allocatable", lambda queue, cls, n: n - 2),
        lambda ssn: ssn.simulate_allocatable(ssn.queues["default"], task_of(ssn).cls, 5),
        3,
        5,
    ),
    "job ready": Say(
        put("job_ready", lambda job: False), lambda ssn: ssn.is_ready(ssn.active[0]), False, True
    ),
    "job pipelined": Say(
        put("job_pipelined", lambda job: Vote.REJECT),
        lambda ssn: ssn.is_pipelined(ssn.active[0]),
        False,
        True,
    ),
    "sub-job ready is job ready where there are no parts": Say(
        put("job_ready", lambda job: False),
        lambda ssn: ssn.is_sub_job_ready(ssn.active[0], None),
        False,
        True,
    ),
    "sub-job ready": Say(
        put("sub_job_ready", lambda job, part: False),
        lambda ssn: ssn.is_sub_job_ready(ssn.active[0], SubJob("s", "p", 1, 0)),
        False,
        True,
    ),
    "sub-job pipelined": Say(
        put("sub_job_pipelined", lambda job, part: Vote.REJECT),
        lambda ssn: ssn.is_sub_job_pipelined(ssn.active[0], SubJob("s", "p", 1, 0)),
        False,
        True,
    ),
    "starving": Say(
        put("job_starving", lambda job: True),
        lambda ssn: ssn.is_starving(ssn.active[0]),
        True,
        False,
    ),
    "victims of shuffle": Say(
        put("victim_tasks", lambda tasks: tasks[:1]),
        lambda ssn: [t.name for t in ssn.victim_tasks([task_of(ssn), task_of(ssn, 1)])],
        ["a-0"],
        [],
    ),
    "target job": Say(
        put("target_job", lambda jobs: jobs[-1]),
        lambda ssn: getattr(ssn.target_job(ssn.active), "name", None),
        "b",
        None,
    ),
    "gradients of a job": Say(
        put("hyper_node_gradient_for_job", lambda job, within, purpose: [["s0"], ["s1"]]),
        lambda ssn: ssn.gradients(ssn.active[0], "top", "allocate"),
        [["s0"], ["s1"]],
        [["top"]],
    ),
    "gradients of a sub-job": Say(
        put("hyper_node_gradient_for_sub_job", lambda job, part, within, purpose: [["s0"]]),
        lambda ssn: ssn.sub_job_gradients(ssn.active[0], SubJob("s", "p", 1, 0), "top", "allocate"),
        [["s0"]],
        [["top"]],
    ),
    "scores of hypernodes": Say(
        put("hyper_node_order", lambda job, part, names: [1.0, 2.0]),
        lambda ssn: ssn.hyper_node_scores(ssn.active[0], None, ["s0", "s1"]),
        [1.0, 2.0],
        [0.0, 0.0],
    ),
    "order of jobs": Say(
        put("job_order", lambda job: job.name != "b"),
        lambda ssn: [job.name for job in sorted(ssn.active, key=ssn.job_key)],
        ["b", "a"],
        ["a", "b"],
    ),
    "order of clusters": Say(
        put("cluster_order", lambda name: name != "y"),
        lambda ssn: sorted(["x", "y"], key=ssn.cluster_key),
        ["y", "x"],
        ["x", "y"],
    ),
}


def task_of(ssn: Session, job: int = 0) -> Task:
    return next(iter(ssn.active[job].tasks.values()))


@pytest.mark.parametrize("case", SAYS.values(), ids=SAYS.keys())
def test_what_plugins_say(case: Say, probe: AddProbe) -> None:
    assert case.ask(probed(lambda ssn: None, probe)) == case.without
    assert case.ask(probed(case.register, probe)) == case.want


def test_reserving_nodes_runs_every_plugin(probe: AddProbe) -> None:
    called: list[str] = []
    probed(put("reserved_nodes", lambda: called.append("probe")), probe).reserve_nodes()
    assert called == ["probe"]


def ones(cls: object, at: Ints) -> Floats:
    return np.where(at == 1, 1.9, 1.0)


PICKS: dict[str, tuple[Callable[[Session], None], str]] = {
    "the lowest index": (lambda ssn: None, "n"),
    "a score over the candidates": (
        put("batch_node_order", BatchNodeOrder(lambda cls: True, ones)),
        "m",
    ),
    "a mapped score is rounded down": (
        put("node_map", BatchNodeOrder(lambda cls: True, ones)),
        "n",
    ),
    "who picks the best node": (put("best_node", lambda cls, at, scores: int(at[-1])), "m"),
    "who leaves it to the score": (put("best_node", lambda cls, at, scores: None), "n"),
    "a node without room for a copy": (
        put("room", Room(Code.UNSCHEDULABLE, "full", lambda cls, at: np.where(at == 0, 0.0, 9.0))),
        "m",
    ),
    "no node for the class at all": (put("pre_predicate", lambda cls: "never"), ""),
}


@pytest.mark.parametrize(("register", "want"), PICKS.values(), ids=PICKS.keys())
def test_who_picks_the_node(
    register: Callable[[Session], None], want: str, probe: AddProbe
) -> None:
    ssn = probed(register, probe)
    picks = ssn.views.of(task_of(ssn).cls, None).picks(1)
    assert "".join(ssn.nodes.names[i] for i in picks) == want


def test_plugins_get_their_arguments(probe: AddProbe) -> None:
    built = probe(lambda ssn: None)
    run_session(a_cluster().snapshot(), a_conf("allocate", [a_plugin("probe", a=1)]), 0.0, "s")
    assert built == [Arguments({"a": 1})]
