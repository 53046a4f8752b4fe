"""Every event, action and phase: what docs/job-states.md says is what is done."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from pumice.core.api.batch import Job, JobStatus, LifecyclePolicy, PartitionPolicy
from pumice.core.jobs import event_table, policies, state, state_page
from pumice.core.jobs import types as t
from pumice.core.jobs.reconcile import reconcile
from tests.unit.jobs import state_tables
from tests.unit.jobs.builders import NOW, a_job, a_pod, a_task, observed
from tests.unit.jobs.state_tables import Cell

CELLS = state_tables.cells()
OUTCOMES = state_tables.outcomes()
EVENTS = {row["Event"]: row for row in state_tables.rows("Events")}
#: of task b, pod 2 is missing
PODS = [
    a_pod("j-a-0", partition="0"),
    a_pod("j-a-1", "Failed", partition="1"),
    a_pod("j-b-0", "Succeeded"),
    a_pod("j-b-1", "Pending"),
]
ALL = {pod.metadata.name for pod in PODS}
TARGETS = {
    t.RESTART_TASK: {"j-a-0", "j-a-1"},
    t.RESTART_POD: {"j-a-0"},
    t.RESTART_PARTITION: {"j-a-0"},
}
ORDERS = (t.RESTART, *TARGETS, t.ABORT, t.COMPLETE, t.TERMINATE, t.RESUME, t.SYNC)
#: action -> its column
ACTIONS = {order: order for order in ORDERS} | {"Whatever": "anything else"}


def the_job(phase: str, *asked: LifecyclePolicy) -> Job:
    parts = PartitionPolicy(total_partitions=2, partition_size=1)
    tasks = a_task("a", 2, partition_policy=parts), a_task("b", 3)
    return a_job(*tasks, phase=phase, max_retry=5, min_available=3, policies=list(asked))


def the_request(event: str, action: str) -> t.Request:
    """Return what the event leads to: about pod a-0 where it is about a pod."""
    if event == "CommandIssued":
        return t.Request(event="CommandIssued", action=action)
    plain = t.Request(event=event, job_uid="u1", version=0)  # type: ignore[arg-type]
    if EVENTS[event]["Target"] == "none":
        return plain
    return replace(plain, task="a", pod="j-a-0", pod_uid="uid-j-a-0", partition="0")


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("phase", state.TABLE)
@pytest.mark.parametrize("event", event_table.TABLE)
def test_a_cell(event: str, phase: str, action: str) -> None:
    row = EVENTS[event]
    timeout = "1s" if "with a timeout" in row["Policies"] else None
    policy = LifecyclePolicy(action=action, events=[event], timeout=timeout)  # type: ignore[list-item]
    job = the_job(phase, policy)
    request = the_request(event, action)

    decision = policies.decide(request, job)
    effects = reconcile(observed(job, *PODS), decision, NOW)

    run = action if row["Policies"] != "none" or event == "CommandIssued" else t.SYNC
    assert decision.action == run
    assert decision.after_s == (1 if timeout and run != t.SYNC else 0)
    check(job, effects, CELLS[phase, ACTIONS[run]], killed(run, request))


def killed(action: str, request: t.Request) -> set[str]:
    """Return which pods are the action's target."""
    return TARGETS.get(action, set()) if request.task else set()


def check(job: Job, effects: list[t.Effect], cell: Cell, target: set[str]) -> None:
    """See that the effects are what the cell says."""
    going = {
        "sync": set(),
        "kill all": ALL,
        "kill unfinished": {"j-a-0", "j-b-1"},
        "kill target": target,
    }[cell.does]
    assert {e.name for e in effects if isinstance(e, t.DeletePod)} == going
    assert {e.name for e in effects if isinstance(e, t.MarkOutOfSync)} == going
    made = {e.name for e in effects if isinstance(e, t.CreatePod)}
    assert made == ({"j-b-2"} if cell.does == "sync" else set())
    is_whole = cell.does in ("kill all", "kill unfinished")
    assert any(isinstance(e, t.DeletePodGroup) for e in effects) == is_whole

    status = next((e.status for e in effects if isinstance(e, t.PatchStatus)), job.status)
    if cell.does == "kill target" and not target and status is job.status:
        return  # Nothing of that name is there: RestartPartition then changes nothing at all.
    before = job.status.state.phase
    assert status.version == int(is_whole)
    assert status.retry_count == cell.retries
    if cell.goto:
        assert status.state.phase == cell.goto
    else:
        assert status.state.phase in {before} | OUTCOMES.get(cell.rule, set())


def test_the_page_is_that_of_the_tables() -> None:
    assert state_tables.PAGE.read_text() == state_page.page(), "run `make generate`"


def test_the_diagram_has_an_arrow_for_each_way_out_and_no_other() -> None:
    ways = {(phase, cell.goto) for (phase, _), cell in CELLS.items() if cell.goto}
    ways |= {
        (phase, after)
        for (phase, _), cell in CELLS.items()
        for after in OUTCOMES.get(cell.rule, ())
    }
    assert state_tables.arrows() == ways


RULES = {
    step.settle.letter: (phase, step.settle)
    for phase, row in state.TABLE.items()
    for step in row.values()
    if step.settle
}


@pytest.mark.parametrize(("phase", "rule"), RULES.values(), ids=RULES)
def test_a_rule_leaves_for_each_of_its_phases_and_for_no_other(
    phase: str, rule: state.Rule
) -> None:
    reached = set()
    counts = product(range(3), repeat=5)
    for (pending, alive, good, bad, going), retries, enough in product(counts, (0, 3), (None, 1)):
        job = a_job(a_task("w", 2), phase=phase, min_success=enough)
        status = JobStatus(
            min_available=2,
            pending=pending,
            running=alive,
            succeeded=good,
            failed=bad,
            terminating=going,
            retry_count=retries,
        )
        reached.add(rule.phase_of(job.spec, status))

    assert reached == {phase} | OUTCOMES[rule.letter]
