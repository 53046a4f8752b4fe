"""priority and drf: in which order jobs go, and who may be evicted by share."""

from __future__ import annotations

from collections.abc import Sequence

from pumice.core.api.scheduling import SubGroupPolicy
from pumice.core.model.jobs import JobInfo
from pumice.core.model.tasks import Task
from pumice.core.plugins import priority
from pumice.core.session import Session
from tests.builders import (
    Thing,
    a_cluster,
    a_conf,
    a_group,
    a_job,
    a_node,
    a_pod,
    a_priority_class,
    a_session,
)


def a_world(plugin: str, *things: Thing | Sequence[Thing]) -> Session:
    return a_session(a_conf("allocate", [plugin]), a_cluster(a_node("n", "10 20Gi"), *things))


def task(ssn: Session, name: str) -> Task:
    return next(t for job in ssn.space.jobs.values() for t in job.tasks.values() if t.name == name)


def job(ssn: Session, name: str) -> JobInfo:
    return next(job for job in ssn.space.jobs.values() if job.name == name)


def ranked() -> Session:
    """Return a session with jobs of priority 1000, 500 and 100."""
    return a_world(
        "priority",
        [a_priority_class(name, value) for name, value in (("h", 1000), ("m", 500), ("l", 100))],
        a_job("high", on=["n"], priority="h"),
        a_job("low", on=["n"], priority="l"),
        a_group("mine", priority="m", least=3),
        a_pod("wanting", job="mine", priority=5),
        a_pod("lesser", job="mine", priority=4, node="n"),
        a_pod("equal", job="mine", priority=5, node="n"),
    )


def test_orders_by_priority() -> None:
    ssn = ranked()
    jobs = sorted(ssn.space.jobs.values(), key=ssn.job_key)
    assert [j.name for j in jobs] == ["high", "mine", "low"]
    tasks = sorted(job(ssn, "mine").tasks.values(), key=ssn.task_key)
    assert [t.name for t in tasks] == ["equal", "wanting", "lesser"]


def test_the_part_with_the_highest_task_goes_first() -> None:
    policy = SubGroupPolicy(name="w", match_label_keys=["part"])
    pods = [
        a_pod(f"p{i}", job="j", priority=priority, labels={"part": part})
        for i, (part, priority) in enumerate([("0", 3), ("1", 9), ("1", 1), ("2", 5)])
    ]
    ssn = a_world("priority", a_group("j", policies=[policy]), pods)
    (parted,) = ssn.active
    order = sorted(parted.sub_jobs.values(), key=lambda part: ssn.sub_job_key(parted, part))
    assert [part.id for part in order] == ["ns/j/w-1", "ns/j/w-2", "ns/j/w-0"]


def test_a_job_starves_for_priority_while_any_task_waits() -> None:
    ssn = ranked()
    assert (priority.is_starving(job(ssn, "mine")), priority.is_starving(job(ssn, "high"))) == (
        True,
        False,
    )


def shares() -> Session:
    """Return jobs that hold a fifth (cpu), three tenths (memory) and nothing of the cluster."""
    return a_world(
        "drf",
        a_job("a", 2, "1 1Gi", on=["n", "n"], created=3),
        a_job("b", 1, "1 6Gi", on=["n"], created=2),
        a_job("c", 1, "1 1Gi", created=9),
    )


def test_the_job_with_the_smallest_dominant_share_goes_first() -> None:
    ssn = shares()
    assert [j.name for j in sorted(ssn.active, key=ssn.job_key)] == ["c", "a", "b"]


def test_a_job_gives_until_it_is_as_poor_as_the_other_becomes() -> None:
    ssn = shares()
    candidates = [task(ssn, name) for name in ("a-0", "a-1", "b-0")]
    victims = ssn.preemptable(task(ssn, "c-0"), candidates)
    assert [victim.name for victim in victims] == ["a-0"]


def test_shares_follow_the_session() -> None:
    ssn = shares()
    statement = ssn.statement()
    waiting = task(ssn, "c-0")
    before = ssn.job_key(job(ssn, "c"))
    statement.allocate([waiting], [0])
    assert before < ssn.job_key(job(ssn, "c"))
    statement.discard()
    assert ssn.job_key(job(ssn, "c")) == before


def test_what_is_promised_counts_as_held() -> None:
    ssn = shares()
    statement = ssn.statement()
    before = ssn.job_key(job(ssn, "c"))
    statement.pipeline([task(ssn, "c-0")], [0], evicted=False)
    assert before < ssn.job_key(job(ssn, "c"))
    statement.discard()
    assert ssn.job_key(job(ssn, "c")) == before
