"""How far a job has got, who holds what it waits for, and the list of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pytest

from pumice.core.conf import Configuration
from pumice.core.explain.answers import Holder, Members, Nack, Refused, State
from pumice.core.explain.groups import list_groups
from pumice.core.explain.holders import LISTED, veil
from pumice.core.explain.picture import Progress
from tests.builders import (
    Thing,
    a_conf,
    a_group,
    a_job,
    a_node,
    a_pod,
    a_queue,
    nodes,
)
from tests.unit.explain.builders import ROOM, SHARES, a_picture, explained

World = Sequence[Thing | Iterable[Thing]]


@dataclass(frozen=True)
class Case:
    world: World
    state: State
    sentence: str
    progress: Progress = field(default_factory=Progress)
    conf: Configuration = ROOM


CASES = {
    "it waits": Case(
        [nodes(n="1 8Gi"), a_job("j", asks="2")],
        "waiting",
        "The pod finds no node (1 node: not enough cpu for a pod that asks for 2).",
    ),
    "it was let in and has no pods yet": Case(
        [nodes(n="1 8Gi"), a_group("j")],
        "waiting",
        "The job was let in, and its pods have not been made yet.",
    ),
    "nobody has looked at it": Case(
        [nodes(n="1 8Gi"), a_group("j", phase="Pending")],
        "waiting",
        "No session has looked at the job yet.",
        conf=a_conf("allocate"),
    ),
    "its pods wait for their turn": Case(
        [nodes(n="4 8Gi"), a_job("j", 2)],
        "starting",
        "The pods have nodes, and wait for their turn to be let go to kube-scheduler.",
        Progress({"Held": 2}, planned=2),
    ),
    "some have arrived": Case(
        [nodes(n="4 8Gi"), a_job("j", 3)],
        "starting",
        "The pods were given nodes: kube-scheduler has confirmed 2 of the 3 that the gang needs,"
        " and has still to look at 1.",
        Progress({"Released": 1, "Arrived": 2}),
    ),
    "it runs": Case(
        [nodes(n="4 8Gi"), a_job("j", 2, on=["n", "n"])],
        "running",
        "The job runs: 2 of its 2 pods have a node.",
        Progress({"Bound": 2}),
    ),
    "it runs, and more of it waits": Case(
        [nodes(n="2 8Gi"), a_job("j", 3, gang=2, on=["n", "n"])],
        "running",
        "The job has the pods that it needs; 1 more finds no node (1 node: not enough cpu for a pod"
        " that asks for 1).",
        Progress({"Bound": 2, "Held": 1}),
    ),
    "it has finished": Case(
        [
            nodes(n="4 8Gi"),
            a_group("j", least=2, phase="Running"),
            [a_pod(f"j-{i}", job="j", node="n", phase="Succeeded") for i in range(2)],
        ],
        "finished",
        "All of the job's pods have finished: 2 pods.",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_how_far_a_job_has_got(case: Case) -> None:
    found = explained(a_picture(*case.world, conf=case.conf), progress=case.progress)
    assert (found.state, found.sentence) == (case.state, case.sentence)


def test_all_that_is_said_of_a_gang_one_short() -> None:
    nack = Nack("j-0", "n", "2026-01-01T00:00:00Z", "Unschedulable", "no")
    progress = Progress({"Held": 3}, nack=nack)
    found = explained(a_picture(nodes(n="2 8Gi"), a_job("j", 3)), progress=progress)
    assert (found.pod_group, found.queue, found.phase) == ("j", "default", "Inqueue")
    assert found.members == Members(minimum=3, total=3, waiting=3, found=2, ledger={"Held": 3})
    assert found.refused == (
        Refused(1, "Insufficient cpu", "not enough cpu for a pod that asks for 1"),
    )
    assert (found.nodes, found.nack) == (1, nack)
    assert found.decision is not None
    assert (found.decision.session, found.decision.action) == ("s1", "allocate")
    assert found.condition.startswith("1/3 tasks in gang unschedulable: ")
    assert found.condition.endswith(found.sentence)


# Holders.


def cpu(amount: str) -> dict[str, str]:
    return {"cpu": amount}


def test_who_holds_the_room_that_is_short_those_with_most_first() -> None:
    picture = a_picture(
        [a_node("n", "8 64Gi"), a_node("m", "4 64Gi")],
        [a_queue("a"), a_queue("b")],
        a_job("small", asks="1 9Gi", queue="a", on=["n"]),
        a_job("large", 2, "2", queue="b", on=["n", "m"]),
        a_pod("stranger", "3", node="n", scheduler="other"),
        a_pod("going", "2", node="m", deleting=True, scheduler="other"),
        a_job("idle", asks="0 1Gi", queue="a", on=["n"]),
        a_job("j", asks="9", queue="a"),
    )
    assert explained(picture).holders == (
        Holder("queue", cpu("4"), name="b"),
        Holder("queue", cpu("1"), name="a"),
        Holder("job", cpu("4"), "ns", "large", "b"),
        Holder("job", cpu("1"), "ns", "small", "a"),
        Holder("ending", cpu("2")),
        Holder("outside", cpu("3")),
    )


def test_what_a_queue_has_no_more_of_is_held_by_its_own_jobs() -> None:
    picture = a_picture(
        [a_node("n", "8 64Gi")],
        [a_queue("q", capability="2"), a_queue("r")],
        a_job("mine", asks="1", queue="q", on=["n"]),
        a_job("theirs", asks="4", queue="r", on=["n"]),
        a_job("j", 2, queue="q"),
        conf=SHARES,
    )
    assert explained(picture).holders == (Holder("job", cpu("1"), "ns", "mine", "q"),)


def test_those_that_are_too_many_are_summed_up() -> None:
    many = LISTED + 3
    jobs = [a_job(f"r{i:02}", asks="1", on=["n"]) for i in range(many)]
    picture = a_picture(a_node("n", f"{many} 64Gi"), *jobs, a_job("j"))
    found = explained(picture).holders
    assert [h.kind for h in found] == ["queue", *["job"] * LISTED, "others"]
    assert found[-1] == Holder("others", cpu("3"), jobs=3)


def test_what_runs_is_told_of_nobody() -> None:
    picture = a_picture(a_node("n", "8 64Gi"), a_job("r", on=["n"]), a_job("j", on=["n"]))
    assert explained(picture).holders == ()


def test_those_whom_a_reader_must_not_know_of_are_others() -> None:
    def theirs(name: str, asks: str) -> list[Thing]:
        pod = a_pod(f"{name}-0", asks, job=name, node="n", namespace="theirs")
        return [a_group(name, namespace="theirs", queue="b"), pod]

    picture = a_picture(
        a_node("n", "8 64Gi"),
        [a_queue("default"), a_queue("b")],
        theirs("x", "3 1Gi"),
        theirs("y", "1500m 2Gi"),
        a_job("mine", asks="2", queue="b", on=["n"]),
        a_job("j", asks="9 99Gi"),
    )
    whole = explained(picture)
    mine = veil(whole, {"ns"}.__contains__, sees_queues=False)
    assert mine.holders == (
        Holder("job", cpu("2"), "ns", "mine"),
        Holder("others", {"cpu": "4500m"}, jobs=2),
    )
    assert "theirs" not in str(mine)
    assert veil(whole, lambda _: True, sees_queues=True) == whole


# The list.


def the_list(count: int, **chosen: str) -> list[tuple[list[str], str]]:
    """Return the names on each page, and what the page says of the next one."""
    picture = a_picture(
        nodes(n="2 8Gi"),
        [a_queue("default"), a_queue("q")],
        [a_group(f"g{i}", queue="q" if i % 2 else "default") for i in range(5)],
    )
    pages, after = [], ""
    while True:
        page = list_groups(
            picture,
            lambda job: job.queue == chosen.get("queue", job.queue),
            after=after,
            limit=count,
        )
        pages.append(([group.name for group in page.items], page.next_page))
        after = page.next_page
        if not after:
            return pages


def test_a_list_in_pages() -> None:
    assert the_list(2) == [
        (["g0", "g1"], "ns/g1"),
        (["g2", "g3"], "ns/g3"),
        (["g4"], ""),
    ]
    assert the_list(5) == [(["g0", "g1", "g2", "g3", "g4"], "")]
    assert the_list(5, queue="q") == [(["g1", "g3"], "")]
    assert the_list(5, queue="none") == [([], "")]


def test_a_job_that_the_session_has_just_placed_is_on_its_way() -> None:
    picture = a_picture(nodes(n="2 8Gi"), a_job("j", 2), a_job("k", 2))
    (j, k) = list_groups(picture, lambda _: True, after="", limit=9).items
    assert (j.state, j.total, k.state, k.waiting) == ("starting", 2, "waiting", 2)
    assert k.sentence.startswith("The gang needs 2 pods at the same time, but none of them")
