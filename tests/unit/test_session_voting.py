"""How the answers of plugins become one answer, and in which order they are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from pumice.core import catalog
from pumice.core.conf import Arguments
from pumice.core.extension import Code, Point, PredicateResult, Refusal, Victims, Vote
from pumice.core.ids import PodUid
from pumice.core.model.tasks import Task
from pumice.core.plan import Plan
from pumice.core.session import Session, run_session
from pumice.core.voting import accepted, first_tier, union_of_first, victims
from tests.builders import (
    a_cluster,
    a_conf,
    a_group,
    a_job,
    a_node,
    a_plugin,
    a_pod,
    a_queue,
    a_session,
    nodes,
    placements,
)

CLUSTER = a_cluster([a_pod(uid, node="n") for uid in "abc"])


def some(uids: str) -> list[Task]:
    found = (CLUSTER.task(PodUid(uid)) for uid in uids)
    return [task for task in found if task is not None]


def offers(text: str) -> Victims:
    """Return a plugin's answer: uids that it offers, or `-` where it abstains."""
    return ([], Vote.ABSTAIN) if text == "-" else (some(text), Vote.PERMIT)


VICTIMS = {
    "nobody has a say": ([], ""),
    "one plugin offers": ([["ab"]], "ab"),
    "plugins of a tier must agree": ([["ab", "bc"]], "b"),
    "the first plugin's order stands": ([["ba", "ab"]], "ba"),
    "a plugin that abstains is passed over": ([["-", "a"]], "a"),
    "a tier that all abstain from says nothing": ([["-"], ["a"]], "a"),
    "the first tier that offers anybody decides": ([["a"], ["ab"]], "a"),
    "who offers nobody ends its tier": ([["", "a"], ["b"]], "b"),
    "who offers nobody undoes what was agreed": ([["a", ""], ["b"]], "b"),
    "an empty agreement starts anew with the next plugin": ([["ab", "c", "bc"]], "bc"),
    "an empty agreement at the end leaves it to the next tier": ([["ab", "c"], ["a"]], "a"),
}


@pytest.mark.parametrize(("tiers", "want"), VICTIMS.values(), ids=VICTIMS.keys())
def test_victims(tiers: list[list[str]], want: str) -> None:
    assert "".join(task.uid for task in victims(tiers, offers)) == want


P, A, R = Vote.PERMIT, Vote.ABSTAIN, Vote.REJECT
ACCEPTED = {
    "nobody has a say": ([], True),
    "all abstain": ([[A, A], [A]], True),
    "one permits": ([[A, P]], True),
    "one rejects": ([[P, R]], False),
    "a rejection below a permission is not heard": ([[P], [R]], True),
    "a rejection below abstentions is": ([[A], [R]], False),
    "a permission below a rejection does not help": ([[R], [P]], False),
}


@pytest.mark.parametrize(("tiers", "want"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(tiers: list[list[Vote]], want: bool) -> None:
    assert accepted(tiers, lambda vote: vote) is want


STARVING = {
    "nobody has a say": ([], False),
    "all of the first tier say so": ([[True, True], [False]], True),
    "one of the first tier does not": ([[True, False], [True]], False),
    "an empty tier is passed over": ([[], [True]], True),
}


@pytest.mark.parametrize(("tiers", "want"), STARVING.values(), ids=STARVING.keys())
def test_the_first_tier_decides(tiers: list[list[bool]], want: bool) -> None:
    assert first_tier(tiers, lambda answer: answer) is want


UNIONS = {
    "plugins of a tier add up": ([["ab", "bc"]], "abc"),
    "the first tier with anybody wins": ([["", ""], ["b"], ["c"]], "b"),
    "nobody": ([[""], []], ""),
}


@pytest.mark.parametrize(("tiers", "want"), UNIONS.values(), ids=UNIONS.keys())
def test_union_of_the_first_tier(tiers: list[list[str]], want: str) -> None:
    assert "".join(task.uid for task in union_of_first(tiers, some)) == want


def test_functions_are_asked_in_the_order_of_the_tiers() -> None:
    point: Point[str] = Point("enableJobOrder", "enableTaskOrder")
    for name in ("late", "early", "off", "absent", "half"):
        point[name] = name
    both = ("enableJobOrder", "enableTaskOrder")
    point.arrange(
        [
            [a_plugin("unknown", *both), a_plugin("early", *both)],
            [a_plugin("off", "enableJobReady")],
            [a_plugin("half", "enableTaskOrder"), a_plugin("late", *both)],
        ]
    )
    assert (point.tiers, point.all) == ((("early",), ("half", "late")), ("early", "half", "late"))
    assert (bool(point), list(point)) == (True, ["early", "half", "late"])


def test_points_without_a_flag_are_always_on() -> None:
    point: Point[str] = Point()
    point["p"] = "p"
    point.arrange([[a_plugin("p", "enableJobReady")]])
    assert point.all == ("p",)


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
    conf = a_conf("allocate shuffle", ["gang", "elect"])
    plan = run_session(a_cluster().snapshot(), conf, 5.0, "s")
    assert plan == Plan(
        session="s",
        now=5.0,
        queues=plan.queues,
        warnings=(
            "plugin elect is not known, it is left out",
            "action shuffle is not available, it is left out",
        ),
    )


def test_arguments_of_the_wrong_type_are_told() -> None:
    conf = a_conf("enqueue", [a_plugin("overcommit", **{"overcommit-factor": "2"})])
    plan = run_session(a_cluster().snapshot(), conf, 0.0, "s")
    assert plan.warnings == ("argument overcommit-factor: '2' is not a number, ignored",)


def test_orders_fall_back_to_age_and_name() -> None:
    ssn = a_session(
        a_conf("allocate", []),
        a_cluster(
            [a_queue(name) for name in "zy"],
            a_job("old", created=1, queue="z"),
            a_job("b", created=5, queue="z"),
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


def test_a_rejected_group_reserves_nothing(
    probe: AddProbe,
) -> None:
    def register(ssn: Session) -> None:
        ssn.points.job_enqueueable["probe"] = lambda job: (
            Vote.REJECT if job.name == "a" else Vote.ABSTAIN,
            None,
        )

    probe(register)
    flags: Sequence[str] = ("enableJobEnqueued",)
    conf = a_conf("enqueue", [a_plugin("proportion", *flags), a_plugin("probe", *flags)])
    plan = run_session(
        a_cluster(
            a_node("n", "4 4G"),
            a_queue("default", capability="1 4G"),
            a_job("a", asks="1 1G", phase="Pending", resources="1 1G", created=1),
            a_job("b", asks="1 1G", phase="Pending", resources="1 1G", created=2),
        ).snapshot(),
        conf,
        0.0,
        "s",
    )
    assert [enqueue.job for enqueue in plan.enqueued] == ["ns/b"]


def test_plugins_get_their_arguments(probe: AddProbe) -> None:
    built = probe(lambda ssn: None)
    run_session(a_cluster().snapshot(), a_conf("allocate", [a_plugin("probe", a=1)]), 0.0, "s")
    assert built == [Arguments({"a": 1})]
