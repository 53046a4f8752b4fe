"""extender: what a policy server is asked, and what its answers do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from pumice.core.actions.allocate import Allocate
from pumice.core.extension import Code
from pumice.core.outside import Json, Question
from pumice.core.plugins.extender import NO_ANSWER
from pumice.core.session import Session
from tests.builders import (
    a_cluster,
    a_conf,
    a_job,
    a_plugin,
    a_session,
    nodes,
    placements,
)
from tests.unit.oracles.views import refused, scores, task

Answer = Callable[[Json], Json | None]


@dataclass
class Server:
    """Answers by verb, and remembers what it was asked."""

    answers: Mapping[str, Answer]
    asked: list[str] = field(default_factory=list)
    last: Question | None = None

    def __call__(self, question: Question, /) -> Sequence[Json | None]:
        verb = question.url.rpartition("/")[2]
        self.asked.append(verb)
        self.last = question
        answer = self.answers.get(verb)
        return [answer(body) if answer else None for body in question.bodies]


def a_world(server: Server, *points: str, **more: object) -> Session:
    arguments: dict[str, object] = {f"extender.{point}Verb": point for point in points}
    arguments |= {"extender.urlPrefix": "http://policy/v1/"}
    arguments |= {f"extender.{key}": value for key, value in more.items()}
    cluster = a_cluster(
        nodes(n1="4 4Gi a.b/gpu=4", n2="4 4Gi a.b/gpu=4"),
        a_job("p"),
        a_job("q", asks="1 0 a.b/gpu=1"),
        a_job("old", 2, on=["n1", "n1"]),
    )
    return a_session(a_conf("allocate", [a_plugin("extender", **arguments)]), cluster, ask=server)


def name_of(body: Json, key: str) -> object:
    found = body[key]
    assert isinstance(found, Mapping)
    return found["name"]


def only_n2(body: Json) -> Json:
    return {} if name_of(body, "node") == "n2" else {"status": "no pods here", "code": 3}


def test_nodes_are_refused_for_the_reason_given() -> None:
    server = Server({"predicate": only_n2})
    assert refused(a_world(server, "predicate"), "p-0") == {
        "n1": (Code.UNRESOLVABLE, "no pods here")
    }
    assert server.last is not None
    assert (server.last.url, server.last.timeout_s) == ("http://policy/v1/predicate", 1.0)


def test_a_text_without_a_code_is_an_error() -> None:
    ssn = a_world(Server({"predicate": lambda _: {"status": "no"}}), "predicate")
    assert set(refused(ssn, "p-0").values()) == {(Code.ERROR, "no")}


def test_nodes_score_what_the_server_says() -> None:
    server = Server({"prioritize": lambda _: {"nodeScore": {"n2": 7.5}}})
    ssn = a_world(server, "prioritize")
    assert scores(ssn, "p-0") == {"n1": 0.0, "n2": 7.5}
    Allocate().execute(ssn)
    assert placements(ssn.close()) == {"p-0": "n2", "q-0": "n2"}


def test_only_tasks_that_ask_for_a_managed_resource_concern_the_server() -> None:
    server = Server({"predicate": only_n2})
    ssn = a_world(server, "predicate", managedResources=["a.b/gpu"])
    assert refused(ssn, "p-0") == {}
    assert set(refused(ssn, "q-0")) == {"n1"}


@pytest.mark.parametrize("ignorable", [False, True])
def test_without_an_answer_everything_is_refused_or_nothing(ignorable: bool) -> None:
    points = (
        "predicate",
        "prioritize",
        "reclaimable",
        "queueOverused",
        "jobEnqueueable",
        "jobReady",
    )
    ssn = a_world(Server({}), *points, ignorable=ignorable)
    job = ssn.active[0]
    reasons = {} if ignorable else dict.fromkeys(("n1", "n2"), (Code.ERROR, NO_ANSWER))
    assert refused(ssn, "p-0") == reasons
    assert set(scores(ssn, "p-0").values()) == {0.0}
    assert ssn.is_overused(ssn.queues["default"]) is not ignorable
    assert ssn.is_enqueueable(job) is ignorable
    assert ssn.is_ready(job) is ignorable
    candidates = [task(ssn, "old-0"), task(ssn, "old-1")]
    got = ssn.reclaimable(task(ssn, "p-0"), candidates)
    assert got == (candidates if ignorable else [])


def test_the_server_chooses_victims() -> None:
    answer = {"status": 1, "victims": ["old-1", "stranger"]}
    ssn = a_world(Server({"preemptable": lambda _: answer}), "preemptable")
    candidates = [task(ssn, "old-0"), task(ssn, "old-1")]
    assert ssn.preemptable(task(ssn, "p-0"), candidates) == candidates[1:]


@pytest.mark.parametrize(("status", "entered"), [(1, True), (0, True), (-1, False)])
def test_the_server_votes_on_groups(status: int, entered: bool) -> None:
    ssn = a_world(Server({"jobEnqueueable": lambda _: {"status": status}}), "jobEnqueueable")
    assert ssn.is_enqueueable(ssn.active[0]) is entered


def test_a_server_that_is_away_when_the_session_opens_has_no_say_in_it() -> None:
    server = Server({})
    ssn = a_world(server, "onSessionOpen", "queueOverused", "onSessionClose")
    assert not ssn.is_overused(ssn.queues["default"])
    ssn.close()
    assert server.asked == ["onSessionOpen"]
    assert ssn.findings.warnings == [f"plugin extender: {NO_ANSWER} at onSessionOpen"]


def test_the_server_hears_of_the_session_and_of_what_it_does() -> None:
    points = ("onSessionOpen", "allocateFunc", "deallocateFunc", "jobEnqueued", "onSessionClose")
    server = Server({"onSessionOpen": lambda _: {}})
    ssn = a_world(server, *points)
    statement = ssn.statement()
    statement.allocate([task(ssn, "p-0")], [0])
    statement.discard()
    for told in ssn.points.job_enqueued:
        told(ssn.active[0])
    ssn.close()
    assert server.asked == [*points]


def test_the_world_is_told_in_full() -> None:
    server = Server({"onSessionOpen": lambda _: {}})
    a_world(server, "onSessionOpen")
    assert server.last is not None
    (world,) = server.last.bodies
    assert isinstance(world["nodes"], list)
    assert world["nodes"][0]["used"] == {"cpu": "2", "pods": "2"}
    assert world["queues"] == [{"name": "default", "weight": 1}]


def test_scores_are_for_the_candidates_alone() -> None:
    server = Server({"prioritize": lambda body: {"nodeScore": {"n1": 1, "n2": 2}}})
    ssn = a_world(server, "prioritize")
    view = ssn.views.of_task(task(ssn, "p-0"))
    assert view.scores(np.array([1])).tolist() == [2.0]
    assert server.last is not None
    assert [n["name"] for n in server.last.bodies[0]["nodes"]] == ["n2"]  # type: ignore[attr-defined]
