"""One pass over a JobFlow: which Jobs are created, what is asked, what its owner is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from pumice.core import names
from pumice.core.api.batch import Job
from pumice.core.api.flow import JobFlow, JobTemplate
from pumice.core.flows.reconcile import reconcile, template_status
from pumice.core.flows.types import (
    Ask,
    Check,
    CreateJob,
    DeleteJob,
    Effect,
    LookAgain,
    Observed,
    PatchStatus,
    RecordEvent,
)
from tests.unit.flows.builders import a_flow, a_made_job, a_probe, a_step, a_template

NOW = 1767225660.0
HEADER = ("Accept", "text/plain")


@dataclass(frozen=True)
class Case:
    """A JobFlow at a moment, and what is done; creations are told by the Job's name."""

    flow: JobFlow
    jobs: Sequence[Job] = ()
    want: Sequence[object] = ()
    others: Sequence[Job] = ()
    answers: Mapping[Check, int] = field(default_factory=dict)
    templates: Sequence[JobTemplate] = tuple(a_template(name) for name in "abcde")


def effects(case: Case) -> list[Effect]:
    named = {job.metadata.name: job for job in (*case.jobs, *case.others)}
    templates = {template.metadata.name: template for template in case.templates}
    seen = Observed(case.flow, case.jobs, templates.get, named.get, case.answers)
    return reconcile(seen, NOW)


def told(effect: Effect) -> object:
    return effect.job.metadata.name if isinstance(effect, CreateJob) else effect


def check(case: Case) -> None:
    found = [told(effect) for effect in effects(case) if not isinstance(effect, PatchStatus)]
    assert found == [*case.want]


def failed(why: str) -> RecordEvent:
    return RecordEvent("Warning", "SyncJobFlow", f"SyncJobFlow JobFlow failed for {why}")


DIAMOND = (a_step("a"), a_step("b", "a"), a_step("c", "a"), a_step("d", "b", "c"))
DONE_A = a_made_job("a", "Completed")
ORDER = {
    "what depends on nothing comes first": Case(a_flow(*DIAMOND), want=["f-a"]),
    "nothing comes while its target runs": Case(a_flow(*DIAMOND), [a_made_job("a")]),
    "what depends on it comes when it is Completed": Case(
        a_flow(*DIAMOND), [DONE_A], ["f-b", "f-c"]
    ),
    "not before all targets are": Case(
        a_flow(*DIAMOND), [DONE_A, a_made_job("b", "Completed"), a_made_job("c")]
    ),
    "all of them are": Case(
        a_flow(*DIAMOND),
        [DONE_A, a_made_job("b", "Completed"), a_made_job("c", "Completed")],
        ["f-d"],
    ),
    "a Job that is Completing is not yet Completed": Case(
        a_flow(*DIAMOND), [a_made_job("a", "Completing")]
    ),
    "targets that are an empty list are none": Case(
        a_flow(a_step("a"), a_step("b")), want=["f-a", "f-b"]
    ),
    "of two steps of one name the later counts": Case(
        a_flow(a_step("a"), a_step("b", "a"), a_step("b")), want=["f-a", "f-b"]
    ),
    "a Job that went is made again": Case(a_flow(*DIAMOND, phase="Running"), [], ["f-a"]),
    "a flow that failed creates nothing": Case(
        a_flow(*DIAMOND, phase="Running"), [DONE_A, a_made_job("b", "Failed")]
    ),
    "a flow that had failed creates nothing": Case(a_flow(*DIAMOND, phase="Failed"), [DONE_A]),
    "a flow that succeeded creates nothing": Case(a_flow(a_step("a"), phase="Succeed")),
    "a flow without steps does nothing": Case(a_flow()),
    "a flow that is deleted does nothing": Case(a_flow(*DIAMOND, deleting=True)),
    "a circle is refused as a whole": Case(
        a_flow(a_step("a"), a_step("b", "c"), a_step("c", "b")),
        want=[failed("jobflow Flow is not DAG")],
    ),
    "a target that there is not is refused": Case(
        a_flow(a_step("a"), a_step("b", "x")),
        want=[failed("jobflow Flow is not DAG: vertex is not defined: x")],
    ),
    "a template that is missing holds up its step alone": Case(
        a_flow(a_step("x"), a_step("a")),
        want=[failed("there is no JobTemplate x"), "f-a"],
    ),
    "a name that somebody else has is told and looked at again": Case(
        a_flow(a_step("a"), a_step("b")),
        want=[failed("job f-a exists already and is not this JobFlow's"), LookAgain(30), "f-b"],
        others=[a_made_job("a", owner="one of before")],
    ),
}

CLEANING = {
    "a flow that succeeded removes its Jobs": Case(
        a_flow(a_step("a"), a_step("b"), phase="Succeed", retain="delete"),
        [DONE_A, a_made_job("b", "Completed", deleting=True)],
        [DeleteJob("f-a", "uid-a")],
    ),
    "not before that is written down": Case(
        a_flow(a_step("a"), phase="Running", retain="delete"), [DONE_A]
    ),
    "it keeps them where nothing else is said": Case(
        a_flow(a_step("a"), phase="Succeed"), [DONE_A]
    ),
    "it keeps them where that is said": Case(
        a_flow(a_step("a"), phase="Succeed", retain="retain"), [DONE_A]
    ),
    "a flow that failed keeps them": Case(
        a_flow(a_step("a"), phase="Failed", retain="delete"), [a_made_job("a", "Failed")]
    ),
}

RUNS = a_made_job("a", pods={"Running": 2})
STARTS = a_made_job("a", pods={"Running": 1, "Pending": 1})
TCP = Check("f-a", "uid-a", "w", 5432)
HTTP = Check("f-a", "uid-a", "w", 80, "/ready", HEADER)


def probing(**probe: Mapping[str, object]) -> JobFlow:
    return a_flow(a_step("a"), a_step("b", "a", probe=a_probe(**probe)))  # type: ignore[arg-type]


PROBES = {
    "a task that is in its phase is ready": Case(probing(status={"w": "Running"}), [RUNS], ["f-b"]),
    "one of which too few pods are is not": Case(probing(status={"w": "Running"}), [STARTS]),
    "one that has succeeded has been running": Case(
        probing(status={"w": "Running"}),
        [a_made_job("a", pods={"Running": 1, "Succeeded": 1})],
        ["f-b"],
    ),
    "one that is to be completed has succeeded": Case(
        probing(status={"w": "completed"}), [a_made_job("a", pods={"Succeeded": 2})], ["f-b"]
    ),
    "without a name all tasks are meant": Case(probing(status={"": "Running"}), [RUNS], ["f-b"]),
    "a target that is Completed is ready whatever is asked": Case(
        probing(tcp={"w": 5432}), [DONE_A], ["f-b"]
    ),
    "a port is asked for": Case(probing(tcp={"w": 5432}), [RUNS], [Ask((TCP,))]),
    "not before the pods run": Case(probing(tcp={"w": 5432}), [STARTS]),
    "a port that enough pods have open is ready": Case(
        probing(tcp={"w": 5432}), [RUNS], ["f-b"], answers={TCP: 2}
    ),
    "one that too few have is asked for again": Case(
        probing(tcp={"w": 5432}), [RUNS], [Ask((TCP,))], answers={TCP: 1}
    ),
    "HTTP is asked for with its header": Case(
        probing(http={"w": "/ready"}), [RUNS], [Ask((HTTP,))]
    ),
    "everything asked must hold": Case(
        probing(http={"w": "/ready"}, tcp={"w": 5432}), [RUNS], [Ask((HTTP,))], answers={TCP: 2}
    ),
    "a target with none of the tasks must be completed": Case(
        a_flow(
            a_step("a"),
            a_step("c"),
            a_step("b", "a", "c", probe=a_probe(status={"w": "Running"})),
        ),
        [RUNS, a_made_job("c", "Running", pods={"Running": 1})],
    ),
    "a probe that asks nothing is none": Case(
        a_flow(a_step("a"), a_step("b", "a", probe=a_probe())), [RUNS]
    ),
    "a task that no target has is told": Case(
        probing(status={"x": "Running"}),
        [RUNS],
        [failed("flow b asks for task x, which none of its targets has")],
    ),
}


@pytest.mark.parametrize("case", ORDER.values(), ids=ORDER.keys())
def test_order(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", CLEANING.values(), ids=CLEANING.keys())
def test_what_remains(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", PROBES.values(), ids=PROBES.keys())
def test_probes(case: Case) -> None:
    check(case)


def made(case: Case) -> Job:
    (job,) = [effect.job for effect in effects(case) if isinstance(effect, CreateJob)]
    return job


def test_the_job_is_that_of_the_template() -> None:
    job = made(Case(a_flow(a_step("a"))))
    origin = {names.CREATED_BY_TEMPLATE: "ns.a", names.CREATED_BY_FLOW: "ns.f"}
    assert job.spec == a_template("a").spec
    assert job.metadata.labels == job.metadata.annotations == origin
    owner = job.metadata.controller
    assert owner
    assert (owner.api_version, owner.kind, owner.name, owner.uid, owner.block_owner_deletion) == (
        "flow.volcano.sh/v1alpha1",
        "JobFlow",
        "f",
        "flow",
        True,
    )


def test_an_origin_too_long_for_a_label_is_an_annotation() -> None:
    name = "a" * 61
    job = made(Case(a_flow(a_step(name)), templates=[a_template(name)]))
    assert job.metadata.labels == {names.CREATED_BY_FLOW: "ns.f"}
    assert (job.metadata.annotations or {})[names.CREATED_BY_TEMPLATE] == f"ns.{name}"


def test_the_patch_goes_over_the_template() -> None:
    change = {"queue": "fast", "tasks": [{"name": "w", "replicas": 5}]}
    job = made(Case(a_flow(a_step("a", patch=change))))
    tasks, old = job.spec.tasks, a_template("a").spec.tasks
    assert tasks
    assert old
    assert (job.spec.queue, tasks[0].replicas, len(tasks)) == ("fast", 5, 1)
    assert tasks[0].template == old[0].template


def test_a_patch_that_does_not_fit_is_told() -> None:
    change = {"tasks": [{"name": "w", "replicas": -1}]}
    check(
        Case(
            a_flow(a_step("a", patch=change)),
            want=[
                failed(
                    "the patch of flow a does not fit: Expected `int` >= 0"
                    " - at `$.tasks[0].replicas`"
                )
            ],
        )
    )


def test_a_template_lists_its_jobs() -> None:
    jobs = [a_made_job("b"), a_made_job("a")]
    assert template_status(jobs).job_depends_on_list == ["f-a", "f-b"]
    assert template_status([]).job_depends_on_list is None
