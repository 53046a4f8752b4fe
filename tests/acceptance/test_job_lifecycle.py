"""A Job's life on the real control plane: policies, orders, scaling, ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from pumice.local.install import path_of
from pumice.local.watching import Watched
from tests.acceptance.bed import Bed, label, pod_path
from tests.acceptance.lives import PATIENCE_S, command, commands, phases, wait_phases
from tests.acceptance.objects import Object, a_job, a_pod_group, a_task

pytestmark = pytest.mark.cluster

EVENTS = "/api/v1/namespaces/{}/events"


@pytest.fixture
def events(bed: Bed) -> Iterator[Watched]:
    """What is told in the test's namespace."""
    watched = Watched(bed.api, EVENTS.format(bed.namespace), changed=bed.changed).start()
    yield watched
    watched.stop()


def policy(action: str, *events: str, **more: object) -> Object:
    return {"action": action, **({"events": list(events)} if events else {}), **more}


def fail(bed: Bed) -> None:
    """End the pods of task `other` as a program that fails does."""
    bed.end(*task(bed, "other"), code=3)


def succeed(bed: Bed) -> None:
    bed.end(*task(bed, "other"))


def end_all(bed: Bed) -> None:
    bed.end(*bed.running("job"))


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
ABORTED = ("Aborting", "Aborted")
TERMINATED = ("Terminating", "Terminated")
CASES = {
    "a failed pod restarts the job": Case(fail, AGAIN, [policy("RestartJob", "PodFailed")]),
    "a failed pod terminates the job": Case(
        fail, TERMINATED, [policy("TerminateJob", "PodFailed")]
    ),
    "a failed pod aborts the job": Case(fail, ABORTED, [policy("AbortJob", "PodFailed")]),
    "a deleted pod restarts the job": Case(delete, AGAIN, [policy("RestartJob", "PodEvicted")]),
    "a deleted pod terminates the job": Case(
        delete, TERMINATED, [policy("TerminateJob", "PodEvicted", "PodFailed")]
    ),
    "a deleted pod aborts the job": Case(delete, ABORTED, [policy("AbortJob", "PodEvicted")]),
    "an event that is listed twice counts once": Case(
        delete,
        TERMINATED,
        [policy("TerminateJob", "PodEvicted", "PodEvicted", "PodFailed")],
    ),
    "a deleted pod is any event": Case(delete, AGAIN, [policy("RestartJob", "*")]),
    "an exit code restarts the job": Case(fail, AGAIN, [policy("RestartJob", exitCode=3)]),
    "a completed task completes the job": Case(
        succeed, ("Completing", "Completed"), [policy("CompleteJob", "TaskCompleted")]
    ),
    "a task that is restarted in place too often terminates the job": Case(
        restart_in_place,
        TERMINATED,
        [policy("TerminateJob", "TaskFailed")],
        more={"maxRetry": 3},
    ),
    "a failed pod of a task restarts the job": Case(
        fail, AGAIN, of_task=[policy("RestartJob", "PodFailed")]
    ),
    "a deleted pod of a task restarts the job": Case(
        delete, AGAIN, of_task=[policy("RestartJob", "PodEvicted")]
    ),
    "a deleted pod of a task terminates the job": Case(
        delete, TERMINATED, of_task=[policy("TerminateJob", "PodEvicted")]
    ),
    "a task that is completed completes its job": Case(
        succeed, ("Completing", "Completed"), of_task=[policy("CompleteJob", "TaskCompleted")]
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
    mine = bed.api.get(f"/api/v1/namespaces/{bed.namespace}/pods")["items"]
    assert mine == [], "gone, not only going"

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
    bed.wait_for(lambda: len(bed.pods_of("job")) == 2, PATIENCE_S, "the others go")
    assert [pod["status"]["phase"] for pod in bed.pods_of("job")] == ["Succeeded"] * 2


def test_a_job_that_is_complete_keeps_what_succeeded(bed: Bed) -> None:
    bed.nodes(2, cpu=8)
    other = a_task("other", policies=[policy("CompleteJob", "TaskCompleted")])
    bed.create(a_job("job", a_task("steady"), other, max_retry=1))
    wait_phases(bed, "job", "Pending", "Running")
    succeed(bed)
    wait_phases(bed, "job", "Running", "Completing", "Completed")
    bed.wait_for(lambda: len(bed.pods_of("job")) == 1, PATIENCE_S, "one pod is kept")
    assert bed.pods_of("job")[0]["status"]["phase"] == "Succeeded"
    assert not bed.job("job")["status"].get("retryCount")  # type: ignore[index]


@pytest.mark.parametrize(
    ("action", "shown"), [("RestartJob", ("Restarting", "Pending")), ("AbortJob", ABORTED)]
)
def test_a_job_that_cannot_be_placed_any_more(bed: Bed, action: str, shown: Sequence[str]) -> None:
    (node,) = bed.nodes(1, cpu=8)
    bed.create(a_job("job", replicas=2, min_available=2, policies=[policy(action, "Unknown")]))
    wait_phases(bed, "job", "Pending", "Running")
    bed.cordon(node)
    bed.delete(bed.running("job")[0])
    wait_phases(bed, "job", "Running", *shown)
    bed.cordon(node, on=False)
    if action == "RestartJob":
        wait_phases(bed, "job", "Restarting", "Pending", "Running")


def stays(bed: Bed) -> None:
    """Let nothing happen."""


#: what the pods of a Job ask for, the action of its policy, what happens, and how far it comes
DELETED: dict[str, tuple[str, str, Callable[[Bed], None], Sequence[str]]] = {
    "a job that waits": ("10k", "RestartJob", stays, ("Pending",)),
    "a job that runs": ("1", "RestartJob", stays, ("Pending", "Running")),
    "a job that is complete": ("1", "CompleteJob", end_all, ("Running", "Completed")),
    "a job that is aborted": ("1", "AbortJob", fail, ("Running", *ABORTED)),
    "a job that is terminated": ("1", "TerminateJob", fail, ("Running", *TERMINATED)),
}


@pytest.mark.parametrize(
    ("cpu", "action", "happens", "shown"), DELETED.values(), ids=DELETED.keys()
)
def test_nothing_is_left_of_a_deleted_job(
    bed: Bed, cpu: str, action: str, happens: Callable[[Bed], None], shown: Sequence[str]
) -> None:
    bed.nodes(2, cpu=8)
    tasks = a_task("steady", cpu=cpu), a_task("other", cpu=cpu)
    job = a_job("job", *tasks, policies=[policy(action, "PodFailed")])
    bed.create(job)
    if happens is not stays:
        wait_phases(bed, "job", "Pending", "Running")
    happens(bed)
    wait_phases(bed, "job", *shown)

    bed.delete(job)

    bed.wait_for(
        lambda: bed.job("job") is None and not bed.pods_of("job") and not bed.pod_groups,
        PATIENCE_S,
        "Job, pods and group are gone",
    )


def test_the_events_of_a_job_tell_what_is_done_to_it(bed: Bed, events: Watched) -> None:
    bed.nodes(1, cpu=4)
    tasks = a_task("steady"), a_task("other")
    bed.create(a_job("job", *tasks, policies=[policy("TerminateJob", "PodFailed")]))
    wait_phases(bed, "job", "Pending", "Running")
    fail(bed)
    wait_phases(bed, "job", "Running", *TERMINATED)
    wait_told(bed, events, "job", "ExecuteAction", "TerminateJob")

    bed.create(a_job("wide", replicas=5))
    bed.wait_phase("wide", "Pending", PATIENCE_S)
    wait_told(bed, events, group_of(bed, "wide")["metadata"]["name"], "Unschedulable")


def group_of(bed: Bed, job: str) -> Object:
    """Ask the server for the PodGroup: whoever sees the phase of a Job finds it."""
    found = bed.job(job)
    assert found is not None
    name = f"{job}-{found['metadata']['uid']}"
    group: Object = bed.api.get(path_of(a_pod_group(name, min_member=1), bed.namespace))
    return group


def wait_told(bed: Bed, events: Watched, name: str, reason: str, text: str = "") -> None:
    """Wait for an event about an object."""

    def is_told(event: Object) -> bool:
        about = (event["involvedObject"]["name"], event["reason"])
        return about == (name, reason) and text in event["message"] and event["lastTimestamp"]

    bed.wait_for(lambda: any(map(is_told, events.values())), PATIENCE_S, f"{name} is told {reason}")


def test_the_task_of_higher_priority_comes_first(bed: Bed) -> None:
    classes = {"later": 10, "earlier": 1000}
    for name, value in classes.items():
        bed.create(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": f"{bed.namespace}-{name}"},
                "value": value,
            }
        )
    tasks = [a_task(n, 3, cpu=3, priorityClassName=f"{bed.namespace}-{n}") for n in classes]
    bed.create(a_job("job", *tasks, min_available=3))

    def all_wait() -> bool:
        # The extender says otherwise: there is no room.
        bed.admit()
        return len(bed.pods_of("job")) == 6

    bed.wait_for(all_wait, PATIENCE_S, "all wait to be chosen")
    bed.nodes(3, cpu=4)
    wait_phases(bed, "job", "Pending", "Running")
    placed = [label(pod, "volcano.sh/task-spec") for pod in bed.running("job")]
    assert placed == ["earlier"] * 3


def test_the_group_says_what_the_job_takes(bed: Bed) -> None:
    amounts = {"cpu": "1", "memory": "1000Mi", "nvidia.com/gpu": "1"}
    tasks = [a_task(name) for name in ("one", "two")]
    for spec in tasks:
        (container,) = spec["template"]["spec"]["containers"]
        container["resources"] = {"requests": amounts, "limits": amounts}
    bed.create(a_job("job", *tasks))
    bed.wait_phase("job", "Pending", PATIENCE_S)

    group = group_of(bed, "job")
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
