"""The Job controller against the in-memory API server: the life of a Job."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core import names
from pumice.core.api.meta import ObjectMeta
from pumice.core.api.scheduling import ExtendCluster, Queue, QueueSpec
from pumice.kube.events import Recorder
from pumice.kube.resources import COMMANDS, JOBS, QUEUES
from tests.adapters.controllers.job_world import RESTART, JobWorld, order
from tests.fakeapi.clock import settle
from tests.unit.jobs.builders import template


@pytest.fixture
def world() -> JobWorld:
    return JobWorld()


async def test_a_job_lives_from_creation_to_its_end(world: JobWorld) -> None:
    job = world.submit()
    async with world.running():
        await world.until(lambda: world.phase == "Pending")
        (group,) = world.groups
        assert group["metadata"]["name"] == f"j-{job['metadata']['uid']}"
        assert group["spec"]["minMember"] == 2
        await world.quiet()
        assert world.pods == {}, "pods wait for the group to be enqueued"

        world.enqueue()
        await world.until(lambda: len(world.pods) == 2)
        await world.quiet()
        assert world.status["pending"] == 2

        world.set_phase("Running")
        await world.until(lambda: world.phase == "Running")
        assert world.status["running"] == 2

        world.set_phase("Succeeded")
        await world.until(lambda: world.phase == "Completed")
        await world.until(lambda: world.groups == [])
        await world.quiet()
        assert world.status["succeeded"] == 2
        assert len(world.pods) == 2, "pods that succeeded are kept"


async def test_a_job_costs_one_write_a_pod_and_few_of_its_own(world: JobWorld) -> None:
    world.submit(replicas=8)
    async with world.running():
        await world.until(lambda: world.phase == "Pending")
        assert world.writes() == ["POST podgroups", "PATCH jobs/j/status"]

        world.enqueue()
        await world.until(lambda: len(world.pods) == 8)
        assert world.writes() == ["POST pods"] * 8

        await world.quiet()
        assert world.writes() == ["PATCH jobs/j/status"]
        await world.clock.advance(30)
        assert world.writes() == [], "nothing changed, nothing is written"


async def test_a_pod_out_of_sync_is_replaced_alone(world: JobWorld) -> None:
    world.submit(policies=RESTART)
    async with world.running():
        await world.until_running()
        before = world.uids

        world.annotate("j-w-1", **{names.OUT_OF_SYNC: "true"})
        await world.until(lambda: world.pods["j-w-1"]["metadata"].get("deletionTimestamp"))
        await world.finish()
        await world.until(lambda: len(world.pods) == 2)
        await world.quiet()

        assert world.uids["j-w-0"] == before["j-w-0"]
        assert world.uids["j-w-1"] != before["j-w-1"]
        assert world.status.get("version", 0) == world.status.get("retryCount", 0) == 0
        assert world.told("ExecuteAction") == []


async def test_a_pod_that_a_kubelet_refused_is_replaced_and_fails_nothing(world: JobWorld) -> None:
    world.submit(policies=[{"event": "*", "action": "AbortJob"}])
    async with world.running():
        await world.until_running()
        before = world.uids

        world.set_phase("Failed", "j-w-1", reason="OutOfcpu")
        await world.until(lambda: world.uids.get("j-w-1", before["j-w-1"]) != before["j-w-1"])

        assert world.uids["j-w-0"] == before["j-w-0"]
        assert world.told("ExecuteAction") == []


async def test_an_evicted_pod_restarts_the_job(world: JobWorld) -> None:
    world.submit(policies=RESTART)
    async with world.running():
        await world.until_running()
        before = world.uids
        (group,) = world.groups

        world.delete("j-w-0")
        await world.until(lambda: world.phase == "Restarting")
        assert world.status["terminating"] == 1
        assert (world.status["version"], world.status["retryCount"]) == (1, 1)
        assert world.pods["j-w-1"]["metadata"]["annotations"][names.OUT_OF_SYNC] == "true"

        await world.until(lambda: [g["metadata"]["uid"] for g in world.groups]
                          not in ([], [group["metadata"]["uid"]]))  # fmt: skip
        await world.finish()
        await world.until_running()
        assert not set(world.uids.values()) & set(before.values())
        assert world.pods["j-w-0"]["metadata"]["annotations"][names.JOB_VERSION] == "1"
        assert (world.status["version"], world.status["retryCount"]) == (1, 1)
        assert world.told("ExecuteAction") == ["Start to execute action RestartJob "]


async def test_a_task_that_completed_completes_the_job(world: JobWorld) -> None:
    task = {
        "name": "m",
        "replicas": 1,
        "template": template(),
        "policies": [{"event": "TaskCompleted", "action": "CompleteJob"}],
    }
    world.submit()
    job = world.job
    spec = {**job["spec"], "tasks": [task, *job["spec"]["tasks"]]}
    world.api.put(JOBS, {**job, "spec": spec})
    async with world.running():
        await world.until_running(pods=3)

        world.set_phase("Succeeded", "j-m-0")
        await world.until(lambda: world.phase == "Completing")
        await world.finish()
        await world.until(lambda: world.phase == "Completed")
        assert sorted(world.pods) == ["j-m-0"]


async def test_a_command_suspends_and_another_resumes(world: JobWorld) -> None:
    job = world.submit()
    async with world.running():
        await world.until_running()
        order(world, "AbortJob", job)
        await world.until(lambda: world.phase == "Aborting")
        await world.finish()
        await world.until(lambda: world.phase == "Aborted")
        assert world.pods == {}
        assert world.api.all(COMMANDS) == []

        order(world, "ResumeJob", job)
        await world.until_running()
        assert world.status["retryCount"] == 1
        assert len(world.told("CommandIssued")) == 2


async def test_counters_that_move_one_by_one_are_written_together(world: JobWorld) -> None:
    world.submit(replicas=8, minAvailable=1)
    async with world.running():
        await world.until_running(pods=8)
        await world.quiet()
        world.writes()
        for name in sorted(world.pods)[:6]:
            world.set_phase("Succeeded", name)
            await settle()
        assert world.writes() == []
        await world.quiet()
        assert world.writes() == ["PATCH jobs/j/status"]
        assert (world.status["running"], world.status["succeeded"]) == (2, 6)


async def test_a_queue_of_other_clusters_is_told_to_the_job(world: JobWorld) -> None:
    lent = QueueSpec(extend_clusters=[ExtendCluster(name="b")])
    world.api.add(QUEUES, Queue(metadata=ObjectMeta(name="lent"), spec=lent))
    world.submit(queue="lent")
    async with world.running():
        await world.until(lambda: world.phase == "Pending")
        assert world.job["metadata"]["annotations"] == {names.JOB_FORWARDING: "true"}


async def test_a_plugin_that_there_is_not_stops_the_job_and_is_told(world: JobWorld) -> None:
    world.submit(plugins={"own": []})
    async with world.running(max_requeues=3):
        await world.until(lambda: world.phase == "Terminated")
        assert world.pods == {}
        assert world.told("PluginError") == [
            "Execute plugin when job add failed, err: failed to get plugin own"
        ]


async def test_a_task_waits_for_another_to_be_ready(world: JobWorld) -> None:
    world.submit(replicas=1, minAvailable=1)
    job = world.job
    waits = {"name": "b", "replicas": 2, "template": template(), "dependsOn": {"name": ["w"]}}
    tasks = [*job["spec"]["tasks"], waits]
    world.api.put(JOBS, {**job, "spec": {**job["spec"], "tasks": tasks}})
    async with world.running():
        await world.until(lambda: len(world.groups) == 1)
        world.enqueue()
        await world.until(lambda: sorted(world.pods) == ["j-w-0"])
        container = {"name": "main", "image": "pause", "imageID": "", "restartCount": 0}
        world.set_phase("Running", containerStatuses=[{**container, "ready": False}])
        await world.until(lambda: world.phase == "Running")
        await world.quiet()
        assert sorted(world.pods) == ["j-w-0"]

        world.set_phase("Running", containerStatuses=[{**container, "ready": True}])
        await world.until(lambda: sorted(world.pods) == ["j-b-0", "j-b-1", "j-w-0"])


async def test_ends_are_counted_by_queue(world: JobWorld) -> None:
    world.submit()
    async with world.running():
        await world.until_running()
        world.set_phase("Succeeded")
        await world.until(lambda: world.phase == "Completed")
        await world.quiet()

        text = (await world.metrics.render()).decode()
        assert 'volcano_job_completed_phase_count_total{queue_name="default"} 1.0' in text
        assert 'volcano_job_failed_phase_count_total{queue_name="default"}' not in text
        latency = "volcano_controller_job_to_pod_creation_latency_milliseconds_count"
        assert f"{latency} 1.0" in text


class ClumsyRecorder(Recorder):
    """Fails on the first event."""

    slips = 1

    def record(self, *event: Any) -> None:
        if self.slips:
            self.slips -= 1
            raise RuntimeError("a slip")
        super().record(*event)


async def test_a_sync_that_ended_by_a_mistake_of_ours_is_made_again(
    world: JobWorld, caplog: pytest.LogCaptureFixture
) -> None:
    async with world.running() as controller, world.api.client() as client:
        controller._recorder = ClumsyRecorder(client, "test", clock=world.clock)
        world.submit(queue="later")
        await world.clock.advance(1)
        assert "a slip" in caplog.text

        world.api.add(QUEUES, Queue(metadata=ObjectMeta(name="later")))
        await world.clock.advance(5)
        assert world.phase == "Pending"


async def test_scaling_down_raises_no_policy(world: JobWorld) -> None:
    world.submit(replicas=3, policies=RESTART, minAvailable=1)
    async with world.running():
        await world.until_running(pods=3)
        job = world.job
        task = {**job["spec"]["tasks"][0], "replicas": 1}
        world.api.put(JOBS, {**job, "spec": {**job["spec"], "tasks": [task]}})
        await world.until(lambda: sum("deletionTimestamp" in p["metadata"]
                                      for p in world.pods.values()) == 2)  # fmt: skip
        await world.finish()
        await world.quiet()

        assert sorted(world.pods) == ["j-w-0"]
        assert world.phase == "Running"
        assert world.told("ExecuteAction") == []


async def test_a_delayed_action_runs_at_its_time(world: JobWorld) -> None:
    world.submit(policies=[{"event": "PodEvicted", "action": "AbortJob", "timeout": "1m"}])
    async with world.running():
        await world.until_running()
        world.delete("j-w-0")
        await world.until(lambda: world.told("ExecuteAction"))
        await world.until(lambda: len(world.pods) == 2)
        await world.clock.advance(50)
        assert world.phase != "Aborting"
        await world.clock.advance(15)
        await world.until(lambda: world.phase == "Aborting")

        assert world.told("ExecuteAction") == [
            "Execute action AbortJob after 1m0s",
            "Start to execute action AbortJob ",
        ]


async def test_a_delayed_action_is_called_off_when_a_new_pod_runs(world: JobWorld) -> None:
    world.submit(policies=[{"event": "PodEvicted", "action": "AbortJob", "timeout": "1m"}])
    async with world.running():
        await world.until_running()
        world.delete("j-w-0")
        await world.until(lambda: len(world.pods) == 2)
        world.set_phase("Running")
        await world.clock.advance(120)

        assert world.phase == "Running"
        assert world.told("ExecuteAction") == ["Execute action AbortJob after 1m0s"]


async def test_a_deleted_job_leaves_nothing_behind_in_the_process(world: JobWorld) -> None:
    world.submit()
    async with world.running() as controller:
        await world.until_running()
        world.api.objects.delete(JOBS, world.job, {})
        await world.finish()
        await world.until(lambda: not world.pods)
        await world.quiet()

        assert controller.desks == {}
        assert controller.view.gone == set()
