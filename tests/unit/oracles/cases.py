"""Rows of session tables: a world, and what one session makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pumice.core.api.core import Pod, PodSpec
from pumice.core.api.scheduling import PodGroup, PodGroupPhase
from pumice.core.conf import Configuration
from pumice.core.cycle import run_session
from pumice.core.ids import JobKey
from pumice.core.model.jobs import JobInfo
from pumice.core.model.tasks import Status
from tests.builders import Thing, a_cluster, a_group, a_pod, phases, placements
from tests.builders import a_job as a_job_of_age

World = Sequence[Thing | Iterable[Thing]]


@dataclass(frozen=True)
class Case:
    """What is there, and what is decided; of the phases those that the row is about."""

    world: World
    binds: Mapping[str, str] = field(default_factory=dict)
    phases: Mapping[str, PodGroupPhase] = field(default_factory=dict)
    #: pods whose node is decided and not seen yet
    decided: Mapping[str, str] = field(default_factory=dict)


def check(case: Case, conf: Configuration) -> None:
    """Run one session, and compare what it decides."""
    cluster = a_cluster(*case.world, assumed=case.decided)
    assert not cluster.faults
    plan = run_session(cluster.snapshot(), conf, 0.0, "session-1")
    assert placements(plan) == case.binds
    got = phases(plan)
    assert {name: got.get(name) for name in case.phases} == case.phases


def a_job(
    name: str,
    n: int = 1,
    asks: str = "1 1G",
    *,
    gang: int = 0,
    queue: str = "default",
    phase: PodGroupPhase = "Inqueue",
    least: str | None = None,
    on: Sequence[str] = (),
) -> list[PodGroup | Pod]:
    """Return a group that names `least` as its minimum, and its pods `<name>-0`..."""
    return a_job_of_age(
        name, n, asks, gang=gang, queue=queue, phase=phase, resources=least, on=on, created=0
    )


def members(job: str, role: str, n: int, asks: str = "1 1G", *, chosen: str = "") -> list[Pod]:
    """Return waiting pods `<role>-0`... of a role, which go to nodes of the label `chosen` only."""
    selector = {"for": chosen} if chosen else None
    return [
        a_pod(f"{role}-{i}", asks, job=job, role=role, spec=PodSpec(node_selector=selector))
        for i in range(n)
    ]


def job_of(tasks: str, *, least: int, phase: PodGroupPhase = "Running") -> JobInfo:
    """Return a job of tasks that are given as `status@node`."""
    words = [word.split("@") for word in tasks.split()]
    pods = [a_pod(f"p{i}", job="j") for i in range(len(words))]
    job = a_cluster(a_group("j", least=least, phase=phase), pods).jobs[JobKey("ns/j")].clone()
    for task, (status, node) in zip(list(job.tasks.values()), words, strict=True):
        job.put(task.at(Status[status.upper()], node))
    return job
