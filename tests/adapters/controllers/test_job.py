"""The Job controller against the in-memory API server; the tests play extender and kubelets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from controllers.caches import Caches
from controllers.job import JobController
from pumice.core import names
from pumice.core.api.meta import ObjectMeta
from pumice.core.api.scheduling import Queue
from pumice.kube.client import Client
from pumice.kube.events import Recorder
from pumice.kube.resources import CLAIMS, COMMANDS, EVENTS, JOBS, POD_GROUPS, PODS, QUEUES
from tests.fakeapi.app import FakeApi
from tests.fakeapi.clock import ManualClock, settle, until
from tests.fakeapi.faults import Faults
from tests.unit.jobs.builders import template

Json = dict[str, Any]
RESTART = [{"event": "PodEvicted", "action": "RestartJob"}]


@dataclass
class World:
    """A cluster with one controller, or with none between two `running`."""

    clock: ManualClock = field(default_factory=ManualClock)

    def __post_init__(self) -> None:
        self.api = FakeApi(self.clock, namespaces=("ns",))
        self.api.add(QUEUES, Queue(metadata=ObjectMeta(name="default")))
        self.mark = 0

    @asynccontextmanager
    async def running(self, **options: Any) -> AsyncIterator[JobController]:
        """Run a controller, as one process would, and kill it at the end."""
        client: Client = self.api.client()
        caches = Caches(client, ["volcano"], clock=self.clock)
        recorder = Recorder(client, "vc-controller-manager", clock=self.clock)
        controller = JobController(client, caches, recorder, clock=self.clock, **options)
        tasks = [
            asyncio.create_task(work.run(), name=type(work).__name__)
            for work in (caches, controller, recorder)
        ]
        try:
            yield controller
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            await client.close()
        failed = [e for e in ended if e and not isinstance(e, asyncio.CancelledError)]
        assert failed == []

    def submit(self, replicas: int = 2, **spec: Any) -> Json:
        """Create Job `j` with one task `w`."""
        task = {"name": "w", "replicas": replicas, "template": template("1")}
        body = {"metadata": {"name": "j"}, "spec": {"tasks": [task], **spec}}
        return self.api.add(JOBS, body, "ns")

    @property
    def job(self) -> Json:
        job = self.api.get(JOBS, "ns", "j")
        assert job is not None
        return job

    @property
    def status(self) -> Json:
        got: Json = self.job.get("status", {})
        return got

    @property
    def phase(self) -> str:
        return str(self.status.get("state", {}).get("phase", ""))

    @property
    def groups(self) -> list[Json]:
        return self.api.all(POD_GROUPS)

    @property
    def pods(self) -> dict[str, Json]:
        return {pod["metadata"]["name"]: pod for pod in self.api.all(PODS)}

    @property
    def uids(self) -> dict[str, str]:
        return {name: pod["metadata"]["uid"] for name, pod in self.pods.items()}

    def events(self, reason: str) -> list[str]:
        found = self.api.all(EVENTS)
        return [event["message"] for event in found if event["reason"] == reason]

    def enqueue(self) -> None:
        """Play the extender: let the pods of every group be made."""
        for group in self.groups:
            self.api.put(POD_GROUPS, {**group, "status": {"phase": "Inqueue"}})

    def set_phase(self, phase: str, *which: str, **status: Any) -> None:
        """Play the kubelets: give pods (all where none are named) a phase, on a node."""
        for name, pod in self.pods.items():
            if not which or name in which:
                spec = {**pod["spec"], "nodeName": "n1"}
                state = {**pod["status"], "phase": phase, **status}
                self.api.put(PODS, {**pod, "spec": spec, "status": state})

    def annotate(self, name: str, **notes: str) -> None:
        pod = self.pods[name]
        meta = pod["metadata"]
        merged = {**meta, "annotations": {**meta["annotations"], **notes}}
        self.api.put(PODS, {**pod, "metadata": merged})

    def delete(self, name: str) -> None:
        pod = self.pods[name]
        self.api.objects.delete(PODS, pod, {"gracePeriodSeconds": 0})

    def writes(self, path: str = "") -> list[str]:
        """Return what was written since the last time, events apart."""
        calls = self.api.calls[self.mark :]
        self.mark = len(self.api.calls)
        return [
            f"{call.method} {call.path.rpartition('/ns/')[2]}"
            for call in calls
            if call.method != "GET" and "/events" not in call.path and path in call.path
        ]

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for the condition, letting a little time pass where nothing else moves."""
        for _ in range(100):
            try:
                await until(condition)
            except AssertionError:
                await self.clock.advance(0.5)
            else:
                return
        raise AssertionError(f"phase {self.phase}, pods {sorted(self.pods)}: never came true")

    async def quiet(self) -> None:
        """Wait until counters that wait are written."""
        await settle()
        await self.clock.advance(1.0)

    async def until_running(self, pods: int = 2) -> None:
        await self.until(lambda: len(self.groups) == 1)
        self.enqueue()
        await self.until(lambda: len(self.pods) == pods)
        self.set_phase("Running")
        await self.until(lambda: self.phase == "Running")


@pytest.fixture
def world() -> World:
    return World()


async def test_a_job_lives_from_creation_to_its_end(world: World) -> None:
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


async def test_a_job_costs_one_write_a_pod_and_few_of_its_own(world: World) -> None:
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


async def test_a_pod_out_of_sync_is_replaced_alone(world: World) -> None:
    world.submit(policies=RESTART)
    async with world.running():
        await world.until_running()
        before = world.uids

        world.annotate("j-w-1", **{names.OUT_OF_SYNC: "true"})
        await world.until(lambda: world.pods["j-w-1"]["metadata"].get("deletionTimestamp"))
        world.api.finish_pods()
        await world.until(lambda: len(world.pods) == 2)
        await world.quiet()

        assert world.uids["j-w-0"] == before["j-w-0"]
        assert world.uids["j-w-1"] != before["j-w-1"]
        assert world.status.get("version", 0) == world.status.get("retryCount", 0) == 0
        assert world.events("ExecuteAction") == []


async def test_a_pod_that_a_kubelet_refused_is_replaced_and_fails_nothing(world: World) -> None:
    world.submit(policies=[{"event": "*", "action": "AbortJob"}])
    async with world.running():
        await world.until_running()
        before = world.uids

        world.set_phase("Failed", "j-w-1", reason="OutOfcpu")
        await world.until(lambda: world.uids.get("j-w-1", before["j-w-1"]) != before["j-w-1"])

        assert world.uids["j-w-0"] == before["j-w-0"]
        assert world.events("ExecuteAction") == []


async def test_an_evicted_pod_restarts_the_job(world: World) -> None:
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
        world.api.finish_pods()
        await world.until_running()
        assert not set(world.uids.values()) & set(before.values())
        assert world.pods["j-w-0"]["metadata"]["annotations"][names.JOB_VERSION] == "1"
        assert (world.status["version"], world.status["retryCount"]) == (1, 1)
        assert world.events("ExecuteAction") == ["Start to execute action RestartJob "]


async def test_a_task_that_completed_completes_the_job(world: World) -> None:
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
        world.api.finish_pods()
        await world.until(lambda: world.phase == "Completed")
        assert sorted(world.pods) == ["j-m-0"]


async def test_a_command_suspends_and_another_resumes(world: World) -> None:
    job = world.submit()
    async with world.running():
        await world.until_running()
        order(world, "AbortJob", job)
        await world.until(lambda: world.phase == "Aborting")
        world.api.finish_pods()
        await world.until(lambda: world.phase == "Aborted")
        assert world.pods == {}
        assert world.api.all(COMMANDS) == []

        order(world, "ResumeJob", job)
        await world.until_running()
        assert world.status["retryCount"] == 1
        assert len(world.events("CommandIssued")) == 2


async def test_an_order_that_fails_halfway_is_carried_out_later(world: World) -> None:
    job = world.submit()
    async with world.running(max_requeues=0):
        await world.until_running()
        world.api.fail(503, times=3, method="DELETE", path="/pods/")
        order(world, "AbortJob", job)
        await world.until(lambda: world.phase == "Aborting")
        assert world.status["terminating"] == 2
        assert world.status["version"] == 1


async def test_what_is_gone_when_it_is_to_be_deleted_is_as_good_as_deleted(world: World) -> None:
    job = world.submit()
    async with world.running(max_requeues=0):
        await world.until_running()
        world.api.fail(404, method="DELETE", path="/podgroups/")
        order(world, "AbortJob", job)
        await world.until(lambda: world.phase == "Aborting")
        world.api.finish_pods()
        await world.until(lambda: world.phase == "Aborted")


def order(world: World, action: str, job: Json) -> None:
    target = {
        "apiVersion": names.BATCH_API,
        "kind": "Job",
        "name": "j",
        "uid": job["metadata"]["uid"],
    }
    body = {"metadata": {"name": action.lower()}, "action": action, "target": target}
    world.api.add(COMMANDS, body, "ns")


async def test_a_controller_that_dies_between_two_pods_is_replaced(world: World) -> None:
    world.submit(replicas=6)
    async with world.running():
        await world.until(lambda: world.phase == "Pending")
        world.api.fail(503, times=1000, when=lambda call: call.method == "POST"
                       and any(f"j-w-{i}".encode() in call.body for i in (2, 3, 5)))  # fmt: skip
        world.enqueue()
        await world.until(lambda: len(world.pods) == 3)
    world.api.faults = Faults()

    async with world.running():
        await world.until(lambda: len(world.pods) == 6)
        world.set_phase("Running")
        await world.until(lambda: world.phase == "Running")
        await world.quiet()
        assert world.status["running"] == 6
        assert world.status.get("retryCount", 0) == 0


async def test_what_failed_while_no_controller_ran_is_found_at_the_start(world: World) -> None:
    world.submit(policies=[{"event": "PodFailed", "action": "AbortJob"}])
    async with world.running():
        await world.until_running()
    world.set_phase("Failed", "j-w-0")

    async with world.running():
        await world.until(lambda: world.phase == "Aborting")


async def test_a_kill_cut_short_ends_with_all_pods_replaced(world: World) -> None:
    world.submit(policies=RESTART, replicas=3)
    async with world.running():
        await world.until_running(pods=3)
        before = world.uids
        world.api.lose(method="DELETE", path="/pods/", times=1000)
        world.delete("j-w-0")
        await world.until(lambda: str(world.pods).count(names.OUT_OF_SYNC) == 2)
    world.api.faults = Faults()

    async with world.running():
        await world.until(lambda: [p for p in world.pods.values()
                                   if p["metadata"].get("deletionTimestamp")])  # fmt: skip
        world.api.finish_pods()
        await world.until(lambda: len(world.pods) == 3)
        assert not set(world.uids.values()) & set(before.values())


async def test_a_quota_that_is_full_is_told_and_waited_for(world: World) -> None:
    world.submit()
    async with world.running():
        await world.until(lambda: world.phase == "Pending")
        world.api.fail(403, times=6, method="POST", path="/ns/pods", reason="Forbidden")
        world.enqueue()
        await world.until(lambda: len(world.pods) == 2)
        await world.until(lambda: world.events("FailedCreate"))

        await world.quiet()
        (event,) = (e for e in world.api.all(EVENTS) if e["reason"] == "FailedCreate")
        assert event["message"] == "Error creating pods: 403 was ordered"
        assert event["count"] == 1, "what has been said is not said again"


async def test_a_refusal_that_ends_is_forgotten(world: World) -> None:
    world.submit(replicas=1)
    async with world.running(max_requeues=4):
        await world.until(lambda: world.phase == "Pending")
        world.enqueue()
        for _ in range(3):
            world.api.fail(403, times=3, method="POST", path="/ns/pods", reason="Forbidden")
            await world.until(lambda: world.pods)
            world.delete("j-w-0")
        await world.until(lambda: world.pods)
        assert world.phase != "Terminated"


async def test_counters_that_move_one_by_one_are_written_together(world: World) -> None:
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


async def test_a_refusal_that_stays_terminates_the_job(world: World) -> None:
    world.submit()
    async with world.running(max_requeues=3):
        await world.until(lambda: world.phase == "Pending")
        world.api.fail(403, times=1000, method="POST", path="/ns/pods", reason="Forbidden")
        world.enqueue()
        await world.until(lambda: world.phase == "Terminated")

        assert world.events("ExecuteAction") == [
            "Job failed on action SyncJob for retry limit reached",
            "Start to execute action TerminateJob ",
        ]


async def test_an_api_server_that_is_away_costs_no_try(world: World) -> None:
    world.submit()
    async with world.running(max_requeues=0):
        await world.until(lambda: world.phase == "Pending")
        world.api.fail(503, times=12, method="POST", path="/ns/pods")
        world.api.lose(times=5, method="PATCH", path="/status")
        world.enqueue()
        await world.until_running()


async def test_an_answer_that_was_lost_makes_no_second_pod(world: World) -> None:
    world.submit()
    async with world.running(max_requeues=0):
        await world.until(lambda: world.phase == "Pending")
        world.api.lose(times=2, method="POST", path="/ns/pods", applied=True)
        await world.until_running()
        assert sorted(world.pods) == ["j-w-0", "j-w-1"]


async def test_pods_of_a_deleted_namesake_hold_their_names_until_they_are_gone(
    world: World,
) -> None:
    old = world.submit()
    async with world.running():
        await world.until_running()
        before = world.uids
        world.api.objects.delete(JOBS, world.job, {})
        new = world.submit()
        name = f"j-{new['metadata']['uid']}"
        await world.until(lambda: world.api.get(POD_GROUPS, "ns", name))
        world.enqueue()
        await world.quiet()
        assert world.uids == before
        assert world.status.get("terminating", 0) == world.status.get("running", 0) == 0

        world.api.finish_pods()
        await world.until(lambda: len(world.pods) == 2)
        world.set_phase("Running")
        await world.until(lambda: world.phase == "Running")
        owners = {pod["metadata"]["ownerReferences"][0]["uid"] for pod in world.pods.values()}
        assert owners == {new["metadata"]["uid"]} != {old["metadata"]["uid"]}


async def test_a_missing_claim_is_told_and_a_described_one_is_made(world: World) -> None:
    world.submit(volumes=[{"mountPath": "/data", "volumeClaimName": "data"},
                          {"mountPath": "/out", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}},
                          ])  # fmt: skip
    async with world.running():
        await world.until(lambda: world.events("PVCError"))
        (text,) = world.events("PVCError")
        assert "pvc data is not found" in text
        assert world.groups == []

        world.api.add(CLAIMS, {"metadata": {"name": "data"}}, "ns")
        await world.until_running()
        made = [c["metadata"]["name"] for c in world.api.all(CLAIMS)]
        mounts = world.pods["j-w-0"]["spec"]["containers"][0]["volumeMounts"]
        claims = [v["persistentVolumeClaim"]["claimName"]
                  for v in world.pods["j-w-0"]["spec"]["volumes"]]  # fmt: skip
        assert sorted(claims) == sorted(made)
        assert world.events("PVCError") == [text]
        assert [mount["mountPath"] for mount in mounts] == ["/data", "/out"]
        assert world.job["spec"]["volumes"][1]["volumeClaimName"] in made


async def test_an_unknown_queue_is_told_and_other_jobs_go_on(world: World) -> None:
    world.submit(queue="nowhere")
    world.api.add(JOBS, {"metadata": {"name": "good"}, "spec": {"tasks": [
        {"name": "w", "replicas": 1, "template": template()}]}}, "ns")  # fmt: skip
    async with world.running():
        await world.until(lambda: world.events("QueueError"))
        await world.until(lambda: len(world.groups) == 1)
        assert world.events("QueueError") == ["queue nowhere is not found"]
        assert world.phase == ""

        world.api.add(QUEUES, Queue(metadata=ObjectMeta(name="nowhere")))
        await world.until(lambda: world.phase == "Pending")


async def test_a_plugin_that_is_not_there_is_told_once(world: World) -> None:
    world.submit(plugins={"svc": [], "env": []})
    async with world.running():
        await world.until_running()
        await world.until(lambda: len(world.events("PluginError")) == 2)
        assert sorted(world.events("PluginError")) == [
            "job plugin env is not available yet",
            "job plugin svc is not available yet",
        ]


async def test_scaling_down_raises_no_policy(world: World) -> None:
    world.submit(replicas=3, policies=RESTART, minAvailable=1)
    async with world.running():
        await world.until_running(pods=3)
        job = world.job
        task = {**job["spec"]["tasks"][0], "replicas": 1}
        world.api.put(JOBS, {**job, "spec": {**job["spec"], "tasks": [task]}})
        await world.until(lambda: sum("deletionTimestamp" in p["metadata"]
                                      for p in world.pods.values()) == 2)  # fmt: skip
        world.api.finish_pods()
        await world.quiet()

        assert sorted(world.pods) == ["j-w-0"]
        assert world.phase == "Running"
        assert world.events("ExecuteAction") == []


async def test_a_delayed_action_runs_at_its_time(world: World) -> None:
    world.submit(policies=[{"event": "PodEvicted", "action": "AbortJob", "timeout": "1m"}])
    async with world.running():
        await world.until_running()
        world.delete("j-w-0")
        await world.until(lambda: world.events("ExecuteAction"))
        await world.until(lambda: len(world.pods) == 2)
        await world.clock.advance(50)
        assert world.phase != "Aborting"
        await world.clock.advance(15)
        await world.until(lambda: world.phase == "Aborting")

        assert world.events("ExecuteAction") == [
            "Execute action AbortJob after 1m0s",
            "Start to execute action AbortJob ",
        ]


async def test_a_delayed_action_is_called_off_when_a_new_pod_runs(world: World) -> None:
    world.submit(policies=[{"event": "PodEvicted", "action": "AbortJob", "timeout": "1m"}])
    async with world.running():
        await world.until_running()
        world.delete("j-w-0")
        await world.until(lambda: len(world.pods) == 2)
        world.set_phase("Running")
        await world.clock.advance(120)

        assert world.phase == "Running"
        assert world.events("ExecuteAction") == ["Execute action AbortJob after 1m0s"]


async def test_an_api_server_that_was_away_altogether_loses_nothing(world: World) -> None:
    world.submit(policies=RESTART)
    async with world.running(max_requeues=0):
        await world.until_running()
        before = world.uids
        world.api.lose(times=60)
        world.api.drop_watches()
        world.annotate("j-w-0", **{names.OUT_OF_SYNC: "true"})
        await world.clock.advance(30)
        await world.until(lambda: world.pods["j-w-0"]["metadata"].get("deletionTimestamp"))
        world.api.finish_pods()
        await world.until(lambda: len(world.pods) == 2)

        assert world.uids["j-w-0"] != before["j-w-0"]
        assert world.status.get("retryCount", 0) == 0


async def test_a_name_that_a_foreign_pod_holds_is_waited_for(world: World) -> None:
    world.submit()
    foreign = {"metadata": {"name": "j-w-1"}, "spec": template()["spec"]}
    world.api.add(PODS, foreign, "ns")
    async with world.running(max_requeues=0):
        await world.until(lambda: world.phase == "Pending")
        world.enqueue()
        await world.until(lambda: world.events("FailedCreate"))
        assert world.events("FailedCreate") == [
            "Error creating pods: 1 of their names belong to pods of others"
        ]
        world.delete("j-w-1")
        await world.until(lambda: "ownerReferences" in world.pods.get("j-w-1", FOREIGN)["metadata"])


FOREIGN: Json = {"metadata": {}}


async def test_a_status_that_somebody_else_touched_is_written_on_a_fresh_look(
    world: World,
) -> None:
    world.submit()
    world.api.fail(409, times=2, method="PATCH", path="/status", reason="Conflict")
    async with world.running(max_requeues=0):
        await world.until_running()


async def test_a_job_of_too_many_pods_is_refused_and_others_go_on(world: World) -> None:
    world.submit(replicas=2_000_000_000)
    world.api.add(JOBS, {"metadata": {"name": "good"}, "spec": {"tasks": [
        {"name": "w", "replicas": 1, "template": template()}]}}, "ns")  # fmt: skip
    async with world.running():
        await world.until(lambda: world.events("InvalidJob"))
        await world.until(lambda: len(world.groups) == 1)
        assert world.groups[0]["metadata"]["name"].startswith("good-")


async def test_a_template_that_the_api_server_refuses_is_told(world: World) -> None:
    world.submit()
    job = world.job
    task = {**job["spec"]["tasks"][0], "template": {"spec": {"containers": []}}}
    world.api.put(JOBS, {**job, "spec": {**job["spec"], "tasks": [task]}})
    async with world.running():
        await world.until(lambda: len(world.groups) == 1)
        world.enqueue()
        await world.until(lambda: world.events("FailedCreate"))
        assert "spec.containers: Required value" in world.events("FailedCreate")[0]


async def test_a_command_that_cannot_be_deleted_yet_is_obeyed_once(world: World) -> None:
    job = world.submit()
    async with world.running():
        await world.until_running()
        world.api.fail(503, times=3, method="DELETE", path="/commands/")
        order(world, "AbortJob", job)
        await world.until(lambda: world.phase == "Aborting")
        await world.quiet()

        assert len(world.events("CommandIssued")) == 1


async def test_a_deleted_job_leaves_nothing_behind_in_the_process(world: World) -> None:
    world.submit()
    async with world.running() as controller:
        await world.until_running()
        world.api.objects.delete(JOBS, world.job, {})
        world.api.finish_pods()
        await world.until(lambda: not world.pods)
        await world.quiet()

        assert controller.desks == {}
        assert controller.view.gone == set()
