"""Two replicas of the controllers: the leader is killed, stopped, frozen; the other goes on."""

from __future__ import annotations

import signal

import pytest

from pumice.core import names
from tests.acceptance.bed import Bed
from tests.acceptance.length import Length
from tests.acceptance.objects import Object, a_job, a_queue
from tests.acceptance.replicas import DURATION_S, SECOND, TAKEOVER_S, Replicas

pytestmark = pytest.mark.cluster

COMMANDS = "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands"
JOBS_AT_A_TIME = 5


def test_work_goes_on_when_the_leader_is_killed(
    bed: Bed, replicas: Replicas, length: Length
) -> None:
    bed.nodes(10, cpu=64)
    bed.create(a_queue("q"))
    jobs: list[str] = []

    def submit() -> None:
        new = [f"j{len(jobs) + i}" for i in range(JOBS_AT_A_TIME)]
        bed.create(*(a_job(name, replicas=2, min_available=2, queue="q") for name in new))
        jobs.extend(new)

    def order(action: str, round_: int) -> None:
        target = {"apiVersion": names.SCHEDULING_API, "kind": "Queue", "name": "q", "uid": "any"}
        metadata = {"name": f"{action.lower()}-{round_}"}
        body: Object = {"apiVersion": names.BUS_API, "kind": "Command", "metadata": metadata}
        bed.api.post(COMMANDS, {**body, "action": action, "target": target})

    bed.wait_for(lambda: state(bed) == "Open", 10, "the queue is open")
    for round_ in range(length.leaders):
        submit()
        killed, _ = replicas.hand_over(signal.SIGKILL)
        submit()
        order("CloseQueue", round_)
        # Closed at once where the new leader comes to the order before it comes to the Jobs.
        bed.wait_for(lambda: state(bed) in ("Closing", "Closed"), TAKEOVER_S, "the queue closes")
        order("OpenQueue", round_)
        bed.wait_for(lambda: state(bed) == "Open", 10, "and opens")
        replicas.processes.restart(killed)
    bed.wait_for(lambda: all(bed.job_phase(name) == "Running" for name in jobs), 30, "all Jobs run")

    groups = [g for g in bed.pod_groups.values() if g["metadata"]["namespace"] == bed.namespace]
    assert len(groups) == len(jobs), "one PodGroup for each Job"
    made = [seen for seen in bed.pods.history if seen.kind == "ADDED"]
    assert len(made) == 2 * len(jobs), "no pod was made twice"
    assert bed.queues.get("q", {})["status"].get("running", 0) in range(len(jobs) + 1)
    bed.wait_for(
        lambda: bed.queues.get("q", {})["status"].get("running") == len(jobs), 10, "all are counted"
    )


def test_one_that_stops_in_order_is_followed_at_once(bed: Bed, replicas: Replicas) -> None:
    replicas.processes.wait_ready(SECOND, lambda: knows(bed, SECOND), 10)
    stopped, after_s = replicas.hand_over(signal.SIGTERM)
    assert after_s < DURATION_S
    bed.wait_for(lambda: replicas.processes.exit_code(stopped) == 0, 10, "it ended well")


def test_one_that_stood_still_ends_when_it_runs_again(bed: Bed, replicas: Replicas) -> None:
    frozen, _ = replicas.hand_over(signal.SIGSTOP)
    holder = replicas.holder
    replicas.processes.kill(frozen, signal.SIGCONT)
    bed.wait_for(lambda: ended(replicas, frozen), 10, "it ended")
    assert replicas.processes.exit_code(frozen) == 1
    assert replicas.holder == holder


def ended(replicas: Replicas, name: str) -> bool:
    return replicas.processes.exit_code(name) is not None


def knows(bed: Bed, name: str) -> bool:
    """Tell whether a replica has seen who leads."""
    return "leads; waiting" in bed.plane.processes.tail(name)


def state(bed: Bed) -> str:
    return str(bed.queues.get("q", {}).get("status", {}).get("state", ""))
