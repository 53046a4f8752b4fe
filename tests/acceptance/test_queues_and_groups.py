"""Queues and PodGroups as clients use them: states, the tree, groups by hand, many at once."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from pumice.core import names
from pumice.local.watching import Watched
from tests.acceptance.bed import PATHS, Bed
from tests.acceptance.objects import Object, a_job, a_pod, a_pod_group, a_queue

pytestmark = pytest.mark.cluster

COMMANDS = "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands"
NOTE = "scheduling.k8s.io/group-name"
MANY = 10


def state(bed: Bed, queue: str) -> str:
    return str(bed.queues.get(queue, {}).get("status", {}).get("state", ""))


def are(bed: Bed, **states: str) -> bool:
    return all(state(bed, queue) == wanted for queue, wanted in states.items())


def order(bed: Bed, action: str, queue: str) -> None:
    """Create a Command; its name is free again as soon as it is obeyed."""
    target = {"apiVersion": names.SCHEDULING_API, "kind": "Queue", "name": queue, "uid": "any"}
    body: Object = {"apiVersion": names.BUS_API, "kind": "Command", "action": action}
    meta = {"generateName": f"{queue}-"}
    bed.api.post(COMMANDS, {**body, "metadata": meta, "target": target})


def open_queues(bed: Bed, *queues: Object) -> None:
    bed.create(*queues)
    wanted = {queue["metadata"]["name"]: "Open" for queue in queues}
    bed.wait_for(lambda: are(bed, **wanted), 10, "the queues are open")


def phase(bed: Bed, group: str) -> str:
    found = bed.pod_groups.get(f"{bed.namespace}/{group}", {})
    return str(found.get("status", {}).get("phase", ""))


def phases(bed: Bed, queue: str) -> list[str]:
    """Return the phases of a queue's groups in the test's namespace."""
    groups = (g for g in bed.pod_groups.values() if g["metadata"]["namespace"] == bed.namespace)
    return sorted(g["status"].get("phase", "") for g in groups if g["spec"]["queue"] == queue)


def is_running(bed: Bed, pod: str) -> bool:
    return bool((bed.pod(pod) or {}).get("status", {}).get("phase") == "Running")


# Queues.


def test_the_queues_below_close_and_open_with_theirs(bed: Bed) -> None:
    open_queues(bed, a_queue("q1"), a_queue("q2"), a_queue("q11", parent="q1"))
    commands = Watched(bed.api, COMMANDS, changed=bed.changed).start()
    try:
        order(bed, "CloseQueue", "q1")
        bed.wait_for(lambda: are(bed, q1="Closed", q11="Closed", q2="Open"), 10, "both are closed")
        order(bed, "OpenQueue", "q11")
        commands.wait(lambda left: not left, 10, "the order is taken")
        assert state(bed, "q11") == "Closed"
        order(bed, "OpenQueue", "q1")
        bed.wait_for(lambda: are(bed, q1="Open", q11="Open"), 10, "both are open")
    finally:
        commands.stop()


def test_a_client_cleans_up_by_writing_the_state_and_deleting(bed: Bed) -> None:
    open_queues(bed, a_queue("top"), a_queue("leaf", parent="top"))
    for queue in ("leaf", "top"):
        bed.api.patch(f"{PATHS['queues']}/{queue}/status", {"status": {"state": "Closed"}})
        bed.wait_for(partial(are, bed, **{queue: "Closed"}), 10, f"{queue} is closed")
        bed.api.delete(f"{PATHS['queues']}/{queue}")
        bed.wait_for(partial(are, bed, **{queue: ""}), 20, f"{queue} is gone")


def test_the_counts_of_a_queue_are_those_of_its_groups(bed: Bed) -> None:
    bed.nodes(1, cpu=4)
    open_queues(bed, a_queue("q"))
    bed.create(a_job("runs", replicas=2, min_available=2, queue="q"))
    bed.wait_phase("runs", "Running", 20)
    bed.create(a_job("waits", replicas=8, min_available=8, queue="q"))

    def counts() -> dict[str, int]:
        status = bed.queues.get("q", {}).get("status", {})
        return {k: status.get(k, 0) for k in ("pending", "inqueue", "running")}

    def waiting() -> int:
        return counts()["pending"] + counts()["inqueue"]

    bed.wait_for(lambda: (counts()["running"], waiting()) == (1, 1), 10, "one runs, one waits")
    bed.end(*bed.pods_of("runs"))
    bed.wait_for(
        lambda: (counts()["running"], waiting()) == (0, 1), 20, "the one that waits is left"
    )


# Groups by hand.


def test_a_group_is_let_in_before_it_has_a_pod(bed: Bed) -> None:
    bed.nodes(1, cpu=4)
    bed.create(a_pod_group("g", min_member=1, minResources={"cpu": "1"}))
    bed.wait_for(lambda: phase(bed, "g") == "Inqueue", 10, "it is Inqueue")
    bed.create(a_pod("p", cpu="500m", annotations={NOTE: "g"}))
    bed.wait_for(lambda: is_running(bed, "p"), 20, "its pod runs")


def test_a_pod_of_a_group_that_waits_is_accepted_and_waits(bed: Bed) -> None:
    bed.nodes(1, cpu=4)
    bed.create(a_pod_group("g", min_member=1, minResources={"cpu": "30"}))
    bed.wait_for(lambda: phase(bed, "g") == "Pending", 10, "it is Pending")
    bed.create(a_pod("p", annotations={NOTE: "g"}))
    bed.create(a_pod("other"))
    bed.wait_for(lambda: is_running(bed, "other"), 20, "another pod runs")
    assert not is_running(bed, "p")
    assert phase(bed, "g") == "Pending"


def test_a_group_that_loses_a_member_by_force_is_unknown(bed: Bed) -> None:
    bed.nodes(2, cpu=2)
    bed.create(a_pod_group("g", min_member=2))
    pods = [a_pod(f"p{i}", annotations={NOTE: "g"}) for i in range(2)]
    bed.create(*pods)
    bed.wait_for(lambda: phase(bed, "g") == "Running", 20, "both run")
    bed.delete(pods[0], grace_s=0)
    bed.wait_for(lambda: phase(bed, "g") == "Unknown", 20, "it is Unknown")


@pytest.mark.parametrize("members", [1, 2])
async def test_a_group_stays_running_while_members_take_their_time_to_go(
    bed: Bed, members: int
) -> None:
    bed.nodes(2, cpu=2)
    bed.create(a_pod_group("g", min_member=members))
    notes = {NOTE: "g", "pumice.dev/ignore-sigterm": "true"}
    pods = [a_pod(f"p{i}", annotations=notes, grace_s=300) for i in range(members)]
    bed.create(*pods)
    await bed.until(lambda: phase(bed, "g") == "Running", 20, "it runs")
    bed.delete(pods[0])
    await bed.until(
        lambda: "deletionTimestamp" in (bed.pod("p0") or {}).get("metadata", {}), 10, "it is going"
    )

    def is_unsettled() -> bool:
        status = bed.pod_groups.get(f"{bed.namespace}/g", {}).get("status", {})
        missing = [c for c in status["conditions"] if c.get("reason") == "NotEnoughResources"]
        return status["phase"] != "Running" or any(c["status"] == "True" for c in missing)

    await bed.never(is_unsettled, 5, "the group is no longer Running")
    bed.delete(pods[0], grace_s=0)


def test_a_group_whose_pods_go_gives_way_to_one_that_waits(bed: Bed) -> None:
    bed.nodes(1, cpu=4)
    open_queues(bed, a_queue("q"))
    job: dict[str, Any] = {"replicas": 8, "cpu": "500m", "min_available": 8, "queue": "q"}
    bed.create(a_job("first", **job))
    bed.wait_phase("first", "Running", 20)
    bed.create(a_job("second", **job))
    bed.wait_for(
        lambda: len(phases(bed, "q")) == 2 and "Running" in phases(bed, "q"), 10, "two groups"
    )
    for pod in bed.pods_of("first"):
        bed.delete(pod, grace_s=0)
    bed.wait_for(
        lambda: "Running" in phases(bed, "q") and {"Pending", "Inqueue"} & set(phases(bed, "q")),
        30,
        "one runs and one waits",
    )


# Many at once.


def test_many_jobs_groups_and_queues(bed: Bed) -> None:
    bed.nodes(4, cpu=4)
    queues = [f"queue-{i}" for i in range(MANY)]
    groups = [f"pod-group-{i}" for i in range(MANY)]
    jobs = [f"job-{i}" for i in range(MANY)]
    bed.create_many(
        [
            *(a_queue(name) for name in queues),
            *(a_pod_group(name, min_member=0, minResources={}) for name in groups),
            *(a_job(name, cpu="500m") for name in jobs),
        ]
    )
    bed.wait_for(lambda: are(bed, **dict.fromkeys(queues, "Open")), 20, "the queues are open")
    bed.wait_for(lambda: {phase(bed, g) for g in groups} == {"Running"}, 20, "the groups run")
    bed.wait_for(lambda: all(len(bed.running(j)) == 1 for j in jobs), 30, "the Jobs run")

    for name in queues:
        bed.api.delete(f"{PATHS['queues']}/{name}")
    for name in groups:
        bed.delete(a_pod_group(name, min_member=0))
    bed.wait_for(lambda: not set(queues) & set(bed.queues), 20, "the queues are gone")
    bed.wait_for(lambda: not any(phase(bed, g) for g in groups), 20, "and the groups")
