"""Third-party plugins that raise, or answer nonsense: what stands still, and what goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from pumice.core.catalog import add_plugin, remove_plugin
from pumice.core.extension import (
    BatchNodeOrder,
    Code,
    CopyOrder,
    EventHandler,
    LivePredicate,
    NodeOrder,
    Points,
    PredicateResult,
    Room,
)
from pumice.core.guarding import GuardedKey
from pumice.core.plan import Plan
from pumice.core.session import Session
from tests.builders import (
    Thing,
    a_cluster,
    a_conf,
    a_group,
    a_job,
    a_node,
    a_plan,
    a_pod,
    a_queue,
    a_session,
    placements,
    waits,
)

NAME = "acme"
Register = Callable[[Session], None]


@dataclass
class Acme:
    """A plugin that somebody else has written."""

    register: Register
    at_close: Callable[[], object] = lambda: None
    name: str = NAME

    def on_session_open(self, ssn: Session) -> None:
        self.register(ssn)

    def on_session_close(self, ssn: Session) -> None:
        self.at_close()


@contextmanager
def installed(plugin: Acme) -> Iterator[None]:
    add_plugin(NAME, lambda args: plugin)
    try:
        yield
    finally:
        remove_plugin(NAME)


def plan_with(plugin: Acme, *things: Any, actions: str = "enqueue allocate backfill") -> Plan:
    with installed(plugin):
        conf = a_conf(actions, [NAME, "gang", "predicates", "nodeorder"])
        return a_plan(conf, *things)


def fails(*args: object) -> Any:
    raise KeyError("missing")


def fails_for(name: str, otherwise: Any) -> Callable[..., Any]:
    """Return a function that raises when it is asked about a job of this name."""

    def function(*args: Any) -> Any:
        job = next(a for a in args if hasattr(a, "name"))
        if job.name == name:
            raise KeyError("missing")
        return otherwise

    return function


def two_jobs() -> list[Thing]:
    return [a_node("n", "8 64Gi"), *a_job("a", created=1), *a_job("b", created=2)]


BOTH = {"a-0": "n", "b-0": "n"}
OTHERS = {"b-0": "n"}
ORDERS = ("job_order", "queue_order", "task_order", "sub_job_order", "victim_queue_order")


@pytest.mark.parametrize("point", ORDERS)
def test_an_order_that_fails_orders_nothing(point: str) -> None:
    def register(ssn: Session) -> None:
        getattr(ssn.points, point)[NAME] = fails

    assert placements(plan_with(Acme(register), two_jobs())) == BOTH


def test_what_an_order_fails_on_comes_last() -> None:
    def register(ssn: Session) -> None:
        ssn.points.job_order[NAME] = fails_for("a", 0)

    things = [a_node("n", "1 64Gi"), *a_job("a", created=1), *a_job("b", created=2)]
    assert placements(plan_with(Acme(register), things)) == OTHERS


def test_keys_that_do_not_compare_are_equal() -> None:
    told: list[Exception] = []
    keys = [GuardedKey(key, False, told.append) for key in (1, "1")]
    lost = GuardedKey(None, True, told.append)
    assert [keys[0] < keys[1], keys[1] < keys[0], lost < keys[0], keys[0] < lost] == [
        False,
        False,
        False,
        True,
    ]
    assert (keys[0] == lost, lost == GuardedKey(None, True, told.append)) == (False, True)
    assert told


SCORES: dict[str, Callable[[Session], None]] = {
    "a score": lambda ssn: ssn.points.node_order.__setitem__(NAME, NodeOrder(fails)),
    "a score of the wrong shape": lambda ssn: ssn.points.node_order.__setitem__(
        NAME, NodeOrder(lambda *_: np.zeros(17))
    ),
    "a score that is no number": lambda ssn: ssn.points.node_order.__setitem__(
        NAME, NodeOrder(lambda cls, at, alloc, used: np.full(used.shape[1:], np.nan))
    ),
    "a score over all nodes": lambda ssn: ssn.points.batch_node_order.__setitem__(
        NAME, BatchNodeOrder(lambda cls: True, fails)
    ),
    "whether there is a score": lambda ssn: ssn.points.batch_node_order.__setitem__(
        NAME, BatchNodeOrder(fails, fails)
    ),
    "the best node": lambda ssn: ssn.points.best_node.__setitem__(NAME, fails),
    "what tells tasks apart": lambda ssn: ssn.points.distinction.__setitem__(NAME, fails),
    "news": lambda ssn: ssn.listen(EventHandler(fails, fails)),
    "news of groups": lambda ssn: ssn.points.job_enqueued.__setitem__(NAME, fails),
}


@pytest.mark.parametrize("register", SCORES.values(), ids=SCORES.keys())
def test_a_preference_that_fails_counts_as_none(register: Register) -> None:
    nodes = [a_node("n", "8 64Gi"), a_node("m", "8 64Gi")]
    plan = plan_with(Acme(register), nodes, a_job("a", phase="Pending"), a_job("b"))
    assert placements(plan).keys() == BOTH.keys()
    assert set(plan.failures) == {NAME}
    assert len([w for w in plan.warnings if "acme failed in" in w]) == 1


ROOM = Room(Code.UNSCHEDULABLE, "no room by acme", fails, fails)
NOTHING: Any = dict[str, str]().get
REFUSALS: dict[str, Callable[[Session], None]] = {
    "may it go to a node": lambda ssn: ssn.points.predicate.__setitem__(NAME, fails),
    "may it go now": lambda ssn: ssn.points.live_predicate.__setitem__(
        NAME, LivePredicate(lambda cls: True, fails)
    ),
    "how many may go": lambda ssn: ssn.points.room.__setitem__(NAME, ROOM),
    "may it go anywhere": lambda ssn: ssn.points.pre_predicate.__setitem__(NAME, fails),
    "a mask of the wrong length": lambda ssn: ssn.points.predicate.__setitem__(
        NAME, lambda cls: PredicateResult(np.ones(17, bool))
    ),
    "no mask at all": lambda ssn: ssn.points.predicate.__setitem__(NAME, NOTHING),
    "may the queue have it": lambda ssn: ssn.points.allocatable.__setitem__(NAME, fails),
    "has the queue had enough": lambda ssn: ssn.points.overused.__setitem__(NAME, fails),
    "is it ready": lambda ssn: ssn.points.job_ready.__setitem__(NAME, fails),
    "is it valid": lambda ssn: ssn.points.job_valid.__setitem__(NAME, fails),
}


@pytest.mark.parametrize("register", REFUSALS.values(), ids=REFUSALS.keys())
def test_a_permission_that_fails_is_refused(register: Register) -> None:
    plan = plan_with(Acme(register), two_jobs())
    assert placements(plan) == {}
    assert set(plan.failures) == {NAME}


def test_it_is_refused_to_those_alone_who_were_asked_about() -> None:
    def register(ssn: Session) -> None:
        ssn.points.job_valid[NAME] = fails_for("a", None)
        ssn.points.job_ready[NAME] = fails_for("a", True)

    plan = plan_with(Acme(register), two_jobs())
    assert placements(plan) == OTHERS
    assert "plugin acme failed" in waits(plan)["a"]


def test_a_group_whose_admission_fails_waits() -> None:
    def register(ssn: Session) -> None:
        ssn.points.job_enqueueable[NAME] = fails_for("a", (1, None))

    jobs = [a_job(name, phase="Pending", resources="1 1Gi") for name in "ab"]
    plan = plan_with(Acme(register), a_node("n"), *jobs)
    assert [decision.job for decision in plan.enqueued] == ["ns/b"]
    assert "plugin acme failed" in waits(plan)["a"]


def test_nobody_is_evicted_on_the_word_of_a_plugin_that_fails() -> None:
    def register(ssn: Session) -> None:
        ssn.points.preemptable[NAME] = fails
        ssn.points.job_starving[NAME] = lambda job: True

    low = [a_group("low"), a_pod("low-0", job="low", node="n")]
    high = [a_group("high", priority=""), a_pod("high-0", job="high", priority=10)]
    plan = plan_with(Acme(register), a_node("n", "1 64Gi"), low, high, actions="allocate preempt")
    assert plan.evictions == ()


def test_a_plugin_that_does_not_open_takes_no_part() -> None:
    heard: list[object] = []

    def register(ssn: Session) -> None:
        ssn.points.overused[NAME] = lambda queue: True
        ssn.listen(EventHandler(heard.append, heard.append))
        assert ssn.peers is not None
        raise RuntimeError("no licence")

    plan = plan_with(Acme(register), two_jobs())
    assert (placements(plan), heard) == (BOTH, [])
    assert any("on_session_open: RuntimeError: no licence" in w for w in plan.warnings)


@pytest.mark.parametrize("opens", [True, False], ids=["it opens", "it does not open"])
def test_what_a_session_keeps_up_to_date_for_a_plugin_stays_its_own(opens: bool) -> None:
    kept: list[object] = []

    def register(ssn: Session) -> None:
        kept.extend([ssn.peers, ssn.domains, *ssn.space.handlers])
        ssn.listen(EventHandler(fails, fails))
        assert opens

    with installed(Acme(register)):
        ssn = a_session(a_conf("allocate", [NAME]), a_cluster(two_jobs()))
        assert [ssn.peers, ssn.domains, *ssn.space.handlers[:2]] == kept
        assert len(ssn.space.handlers) == 2 + opens


def test_a_plugin_that_does_not_close_loses_its_last_word_alone() -> None:
    plan = plan_with(Acme(lambda ssn: None, at_close=fails), two_jobs())
    assert placements(plan) == BOTH
    assert plan.failures == {NAME: 1}


@pytest.mark.parametrize("point", Points.__slots__)
def test_every_point_is_guarded(point: str) -> None:
    """Whatever a plugin registers, and however often it raises, the session comes to its end."""
    structured: dict[str, Any] = {
        "live_predicate": LivePredicate(fails, fails),
        "room": ROOM,
        "node_order": NodeOrder(fails),
        "copy_order": CopyOrder(fails, fails),
        "batch_node_order": BatchNodeOrder(fails, fails),
        "node_map": BatchNodeOrder(fails, fails),
    }

    def register(ssn: Session) -> None:
        getattr(ssn.points, point)[NAME] = structured.get(point, fails)

    low = [a_group("low", queue="poor"), a_pod("low-0", job="low", node="n")]
    high = [a_group("high"), a_pod("high-0", job="high", priority=10)]
    queues = [a_queue("default"), a_queue("poor")]
    plan = plan_with(
        Acme(register),
        [a_node("n", "2 64Gi"), *queues, *low, *high, *a_job("a", phase="Pending")],
        actions="enqueue allocate backfill preempt reclaim",
    )
    assert plan.session
