"""A Job's life on the real control plane: policies, orders, scaling, ends; and its controller's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from tests.acceptance.bed import Bed, label, pod_path
from tests.acceptance.lives import PATIENCE_S, command, commands, phases, wait_phases
from tests.acceptance.objects import Object, a_job, a_task

pytestmark = pytest.mark.cluster

EVENTS = "/api/v1/namespaces/{}/events"


def policy(action: str, *events: str, **more: object) -> Object:
    return {"action": action, **({"events": list(events)} if events else {}), **more}


def fail(bed: Bed) -> None:
    """End the pods of task `other` as a program that fails does."""
    bed.end(*task(bed, "other"), code=3)


def succeed(bed: Bed) -> None:
    bed.end(*task(bed, "other"))


def delete(bed: Bed) -> None:
    """Delete a pod, as a user or a drain does."""
    bed.delete(task(bed, "other")[0])


def restart_in_place(bed: Bed) -> None:
    """Tell of a pod what its kubelet would after restarting its container four times."""
    pod = task(bed, "other")[0]
    statuses = [{**status, "restartCount": 4} for status in pod["status"]["containerStatuses"]]
    bed.api.patch(f"{pod_path(pod)}/status", {"status": {"containerStatuses": statuses}})


def task(bed: Bed, name: str, job: str = "job") -> list[Object]:
    """Return the running pods of a task."""
    return [pod for pod in bed.running(job) if label(pod, "volcano.sh/task-spec") == name]


@dataclass(frozen=True)
class Case:
    happens: Callable[[Bed], None]
    phases: Sequence[str]
    policies: Sequence[Object] = ()
    of_task: Sequence[Object] = ()
    more: Object = field(default_factory=dict)


AGAIN = ("Restarting", "Pending", "Running")
CASES = {
    "a failed pod restarts the job": Case(fail, AGAIN, [policy("RestartJob", "PodFailed")]),
    "a failed pod terminates the job": Case(
        fail, ("Terminating", "Terminated"), [policy("TerminateJob", "PodFailed")]
    ),
    "a failed pod aborts the job": Case(
        fail, ("Aborting", "Aborted"), [policy("AbortJob", "PodFailed")]
    ),
    "a deleted pod restarts the job": Case(delete, AGAIN, [policy("RestartJob", "PodEvicted")]),
    "a deleted pod terminates the job": Case(
        delete, ("Terminating", "Terminated"), [policy("TerminateJob", "PodEvicted", "PodFailed")]
    ),
    "a deleted pod is any event": Case(delete, AGAIN, [policy("RestartJob", "*")]),
    "an exit code restarts the job": Case(fail, AGAIN, [policy("RestartJob", exitCode=3)]),
    "a completed task completes the job": Case(
        succeed, ("Completing", "Completed"), [policy("CompleteJob", "TaskCompleted")]
    ),
    "a task that is restarted in place too often terminates the job": Case(
        restart_in_place,
        ("Terminating", "Terminated"),
        [policy("TerminateJob", "TaskFailed")],
        more={"maxRetry": 3},
    ),
    "the task's policy goes before the job's": Case(
        fail,
        AGAIN,
        [policy("AbortJob", "PodFailed")],
        [policy("RestartJob", "PodFailed")],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_happens_to_a_pod_decides_about_its_job(bed: Bed, case: Case) -> None:
    bed.nodes(2, cpu=8)
    other = a_task("other", 2, policies=case.of_task) | case.more
    bed.create(a_job("job", a_task("steady", 2), other, policies=case.policies, min_available=4))
    wait_phases(bed, "job", "Pending", "Running")

    case.happens(bed)

    wait_phases(bed, "job", "Running", *case.phases)
    if case.phases[-1] != "Running":
        bed.wait_for(lambda: bed.pod_group("job") is None, PATIENCE_S, "the group is gone")
        assert task(bed, "steady") == []
    else:
        assert bed.job("job")["status"]["retryCount"] == 1  # type: ignore[index]


def test_a_pod_is_restarted_alone_and_that_is_no_eviction(bed: Bed) -> None:
    bed.nodes(2, cpu=8)
    policies = [
        policy("RestartPod", "PodFailed"),
        policy("TerminateJob", "PodEvicted", timeout="2s"),
    ]
    bed.create(a_job("job", a_task("steady", 2), a_task("other"), policies=policies))
    wait_phases(bed, "job", "Pending", "Running")
    group = bed.pod_group("job")
    before = {pod["metadata"]["uid"] for pod in task(bed, "steady")}

    fail(bed)
    wait_phases(bed, "job", "Running", "Restarting", "Running")
    bed.wait_for(lambda: len(bed.running("job")) == 3, PATIENCE_S, "all run")
    with pytest.raises(TimeoutError):
        bed.wait_for(lambda: "Terminating" in phases(bed, "job"), 4)

    now = bed.pod_group("job")
    assert group is not None
    assert now is not None
    assert now["metadata"]["uid"] == group["metadata"]["uid"]
    assert {pod["metadata"]["uid"] for pod in task(bed, "steady")} == before


def test_a_job_is_suspended_and_resumed(bed: Bed) -> None:
    bed.nodes(2, cpu=8)
    bed.create(a_job("job", replicas=3))
    wait_phases(bed, "job", "Pending", "Running")

    command(bed, "job", "AbortJob")
    wait_phases(bed, "job", "Running", "Aborting", "Aborted")
    assert bed.pods_of("job") == [], "gone, not only going"

    command(bed, "job", "ResumeJob")
    # Restarting in between has no pods that go, and counts for nobody who waits for them.
    wait_phases(bed, "job", "Aborted", "Pending", "Running")
    assert len(bed.running("job")) == 3
    assert commands(bed) == []


def test_the_last_retry_keeps_what_failed(bed: Bed) -> None:
    bed.nodes(2, cpu=8)
    policies = [policy("RestartJob", "PodEvicted", "PodFailed")]
    bed.create(a_job("job", a_task("steady"), a_task("other"), policies=policies, max_retry=2))
    for _ in range(2):
        bed.wait_for(lambda: len(bed.running("job")) == 2, PATIENCE_S, "both run")
        bed.wait_phase("job", "Running", PATIENCE_S)
        uid = task(bed, "other")[0]["metadata"]["uid"]
        fail(bed)
        bed.wait_for(
            lambda: uid not in {pod["metadata"]["uid"] for pod in task(bed, "other")},  # noqa: B023
            PATIENCE_S,
            "it fails",
        )
    bed.wait_phase("job", "Failed", PATIENCE_S)
    bed.wait_for(lambda: not bed.running("job"), PATIENCE_S, "the running pod goes")
    bed.wait_for(lambda: len(bed.pods_of("job")) == 1, PATIENCE_S, "one pod is kept")
    (kept,) = bed.pods_of("job")
    assert (label(kept, "volcano.sh/task-spec"), kept["status"]["phase"]) == ("other", "Failed")
    assert bed.job("job")["status"]["retryCount"] == 2  # type: ignore[index]


def test_enough_successes_complete_a_job(bed: Bed) -> None:
    bed.nodes(2, cpu=8)
    job = a_job("job", a_task("steady", 2), a_task("other", 2), min_available=4)
    job["spec"]["minSuccess"] = 2
    bed.create(job)
    wait_phases(bed, "job", "Pending", "Running")
    succeed(bed)
    wait_phases(bed, "job", "Running", "Completed")
    bed.wait_for(lambda: not bed.running("job"), PATIENCE_S, "the others go")
    assert [pod["status"]["phase"] for pod in bed.pods_of("job")] == ["Succeeded"] * 2


def test_a_job_that_cannot_be_placed_any_more_starts_anew(bed: Bed) -> None:
    (node,) = bed.nodes(1, cpu=8)
    bed.create(
        a_job("job", replicas=2, min_available=2, policies=[policy("RestartJob", "Unknown")])
    )
    wait_phases(bed, "job", "Pending", "Running")
    bed.cordon(node)
    bed.delete(bed.running("job")[0])
    wait_phases(bed, "job", "Running", "Restarting", "Pending")
    bed.cordon(node, on=False)
    wait_phases(bed, "job", "Restarting", "Pending", "Running")


def test_the_group_says_what_the_job_takes(bed: Bed) -> None:
    amounts = {"cpu": "1", "memory": "1000Mi", "nvidia.com/gpu": "1"}
    tasks = [a_task(name) for name in ("one", "two")]
    for spec in tasks:
        (container,) = spec["template"]["spec"]["containers"]
        container["resources"] = {"requests": amounts, "limits": amounts}
    bed.create(a_job("job", *tasks))
    bed.wait_phase("job", "Pending", PATIENCE_S)

    group = bed.pod_group("job")
    assert group is not None, "whoever sees the phase finds the group"
    twice = {"cpu": "2", "memory": "2000Mi", "nvidia.com/gpu": "2"}
    kinds = {f"requests.{key}": value for key, value in twice.items()}
    limits = {"limits.cpu": "2", "limits.memory": "2000Mi"}
    wanted = {**twice, **kinds, **limits, "pods": "2", "count/pods": "2"}
    assert wanted.items() <= group["spec"]["minResources"].items()


async def test_partitions_cost_no_writes_once_they_run(bed: Bed) -> None:
    bed.nodes(4, cpu=8)
    parts = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1}
    split = a_task("w", 4, partition=parts, policies=[policy("RestartPartition", "PodFailed")])
    async with bed.auditor() as auditor:
        bed.create(a_job("job", split))
        await bed.until(lambda: len(bed.running("job")) == 4, PATIENCE_S, "all run")
        await bed.aside(bed.wait_phase, "job", "Running", PATIENCE_S)
        before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in bed.pods_of("job")}
        await bed.aside(bed.end, bed.running("job")[2], code=1)
        await bed.until(
            lambda: (bed.job("job") or {}).get("status", {}).get("retryCount") == 1,
            PATIENCE_S,
            "the partition is restarted",
        )
        await bed.until(lambda: len(bed.running("job")) == 4, PATIENCE_S, "all run again")
        await auditor.finish()
    now = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in bed.pods_of("job")}
    assert {name for name in now if now[name] != before[name]} == {"job-w-2", "job-w-3"}


PLUGINS = {
    "svc": [],
    "ssh": [],
    "env": [],
    "mpi": [],
    "pytorch": ["--wait-master-enabled"],
    "tensorflow": ["--chief=master"],
    "ray": ["--head=master", "--headContainer=main", "--workerContainer=main"],
    "hcclrank": [],
}


def test_the_api_server_takes_what_all_plugins_make(bed: Bed) -> None:
    bed.nodes(2, cpu=8)
    job = a_job("job", a_task("master"), a_task("worker", 2))
    job["spec"]["plugins"] = PLUGINS
    bed.create(job)
    wait_phases(bed, "job", "Pending", "Running")

    worker = bed.pod("job-worker-1")
    assert worker is not None
    (container,) = worker["spec"]["containers"]
    env = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert (env["MASTER_ADDR"], env["RANK"], env["WORLD_SIZE"]) == ("job-master-0.job", "2", "3")
    assert '"task":{"type":"worker","index":1}' in env["TF_CONFIG"]
    assert container["command"][-1] == "ray start --block --address=job-master-0.job:6379"
    assert worker["metadata"]["annotations"]["hccl/rankIndex"] == "2"
    assert [box["name"] for box in worker["spec"]["initContainers"]] == ["wait-for-master"]
    listed = bed.job("job")["status"]["controlledResources"]  # type: ignore[index]
    assert listed == {f"plugin-{name}": name for name in PLUGINS if name != "hcclrank"}

    names = made(bed)
    assert names == {"job-svc", "job-ssh", "job", "job-head-svc"}
    bed.end(*bed.running("job"))
    bed.wait_phase("job", "Completed", PATIENCE_S)
    bed.wait_for(lambda: bed.pod_group("job") is None, PATIENCE_S, "all has gone that goes")
    assert made(bed) == set()


def made(bed: Bed) -> set[str]:
    """Return the names of what plugins have made."""
    home = f"/api/v1/namespaces/{bed.namespace}"
    found = (
        bed.api.get(f"{home}/{kind}")["items"] for kind in ("configmaps", "secrets", "services")
    )
    return {
        item["metadata"]["name"]
        for items in found
        for item in items
        if label(item, "volcano.sh/job-name") == "job"
    }


JOBS = 10


def test_controllers_that_are_killed_again_and_again_lose_nothing(bed: Bed) -> None:
    bed.nodes(4, cpu=16)
    names = [f"job-{number}" for number in range(JOBS)]
    bed.create_many([a_job(name, replicas=3) for name in names])
    kill(bed)
    bed.wait_for(lambda: all(len(bed.running(name)) == 3 for name in names), 60, "all run")
    obey(bed, names, "AbortJob", lambda name: bed.job_phase(name) == "Aborted")
    assert bed.pods.keys() == []
    obey(bed, names, "ResumeJob", lambda name: bed.job_phase(name) == "Running")
    bed.wait_for(lambda: all(len(bed.running(name)) == 3 for name in names), 60, "all run")
    bed.end(*(pod for name in names for pod in bed.running(name)))
    kill(bed)
    bed.wait_for(
        lambda: all(bed.job_phase(name) == "Completed" for name in names), 60, "all complete"
    )
    bed.wait_for(lambda: not bed.pod_groups, PATIENCE_S, "no group is left")
    statuses = [(bed.job(name) or {})["status"] for name in names]
    assert [(s["retryCount"], s["succeeded"]) for s in statuses] == [(1, 3)] * JOBS


def kill(bed: Bed) -> None:
    bed.kill("controllers")
    bed.restart("controllers")


def obey(bed: Bed, jobs: Sequence[str], action: str, done: Callable[[str], bool]) -> None:
    """Give an order to all, killing the controllers meanwhile; once more where it was lost."""
    for name in jobs:
        command(bed, name, action)
    kill(bed)
    try:
        bed.wait_for(lambda: all(done(name) for name in jobs), 15)
    except TimeoutError:
        assert commands(bed) == []
        for name in jobs:
            if not done(name):
                command(bed, name, action)
    bed.wait_for(lambda: all(done(name) for name in jobs), 60, f"all obey {action}")
