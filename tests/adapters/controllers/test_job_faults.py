"""The Job controller when things go wrong: refusals, outages, races, bad objects."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from controllers.job_desk import Desk
from pumice.core import names
from pumice.core.api.meta import ObjectMeta
from pumice.core.api.scheduling import Queue
from pumice.core.jobs.delays import Delayed
from pumice.core.jobs.reconcile import SYNCHRONISE
from pumice.core.jobs.types import Request
from pumice.kube.resources import CLAIMS, EVENTS, JOBS, POD_GROUPS, PODS, QUEUES
from tests.adapters.controllers.job_world import RESTART, JobWorld, order
from tests.adapters.controllers.world import Json
from tests.fakeapi.clock import settle
from tests.fakeapi.faults import Call, Fault, Faults
from tests.fakeapi.refusals import Refusal
from tests.unit.jobs.builders import template


@pytest.fixture
def world() -> JobWorld:
    return JobWorld()


async def test_an_order_that_fails_halfway_is_carried_out_later(world: JobWorld) -> None:
    job = world.submit()
    async with world.running(max_requeues=0):
        await world.until_running()
        world.api.fail(503, times=3, method="DELETE", path="/pods/")
        order(world, "AbortJob", job)
        await world.until(lambda: world.phase == "Aborting")
        assert world.status["terminating"] == 2
        assert world.status["version"] == 1


async def test_two_pods_are_restarted_though_one_makes_trouble(world: JobWorld) -> None:
    world.submit(replicas=3, policies=[{"event": "PodFailed", "action": "RestartPod"}])
    async with world.running():
        await world.until_running(pods=3)
        before = world.uids
        world.api.fail(503, times=9, method="PATCH", path="/pods/j-w-0")
        world.set_phase("Failed", "j-w-0")
        await settle()
        world.set_phase("Failed", "j-w-1")
        await world.until(lambda: world.uids.get("j-w-1", before["j-w-1"]) != before["j-w-1"])
        await world.until(lambda: world.uids.get("j-w-0", before["j-w-0"]) != before["j-w-0"])
        assert world.uids["j-w-2"] == before["j-w-2"]


async def test_a_resume_that_fails_halfway_keeps_what_the_job_has_kept(world: JobWorld) -> None:
    job = world.submit()
    async with world.running():
        await world.until_running()
        (group,) = world.groups
        world.set_phase("Succeeded", "j-w-0")
        order(world, "AbortJob", job)
        await world.until(lambda: world.phase == "Aborting")
        await world.finish()
        await world.until(lambda: world.phase == "Aborted")
        kept = world.uids

        world.api.fail(503, times=20, method="DELETE", path="/podgroups/")
        again = {key: group["metadata"][key] for key in ("name", "ownerReferences")}
        world.api.add(POD_GROUPS, {"metadata": again}, "ns")
        order(world, "ResumeJob", job)
        await world.until(lambda: world.phase == "Restarting")
        await settle()
        world.api.faults = Faults()
        await world.clock.advance(5)
        world.enqueue()
        await world.until(lambda: len(world.pods) == 2)
        assert world.uids["j-w-0"] == kept["j-w-0"]


async def test_what_is_gone_when_it_is_to_be_deleted_is_as_good_as_deleted(world: JobWorld) -> None:
    job = world.submit()
    async with world.running(max_requeues=0):
        await world.until_running()
        world.api.fail(404, method="DELETE", path="/podgroups/")
        order(world, "AbortJob", job)
        await world.until(lambda: world.phase == "Aborting")
        await world.finish()
        await world.until(lambda: world.phase == "Aborted")
        assert world.told("ExecuteAction") == ["Start to execute action AbortJob "]


async def test_a_controller_that_dies_between_two_pods_is_replaced(world: JobWorld) -> None:
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


async def test_what_failed_while_no_controller_ran_is_found_at_the_start(world: JobWorld) -> None:
    world.submit(policies=[{"event": "PodFailed", "action": "AbortJob"}])
    async with world.running():
        await world.until_running()
    world.set_phase("Failed", "j-w-0")

    async with world.running():
        await world.until(lambda: world.phase == "Aborting")


async def test_a_kill_cut_short_ends_with_all_pods_replaced(world: JobWorld) -> None:
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
        await world.finish()
        world.enqueue()
        await world.until(lambda: len(world.pods) == 3)
        assert not set(world.uids.values()) & set(before.values())
        assert world.status["retryCount"] == 1


async def test_a_quota_that_is_full_is_told_and_waited_for(world: JobWorld) -> None:
    world.submit()
    async with world.running():
        await world.until(lambda: world.phase == "Pending")
        world.api.fail(403, times=6, method="POST", path="/ns/pods", reason="Forbidden")
        world.enqueue()
        await world.until(lambda: len(world.pods) == 2)
        await world.until(lambda: world.told("FailedCreate"))

        await world.quiet()
        (event,) = (e for e in world.api.all(EVENTS) if e["reason"] == "FailedCreate")
        assert event["message"] == "Error creating pods: 403 was ordered"
        assert event["count"] == 1, "what has been said is not said again"


async def test_pods_that_a_quota_lets_through_run_and_the_rest_follows(world: JobWorld) -> None:
    world.submit(replicas=4, minAvailable=2)
    async with world.running():
        await world.until(lambda: world.phase == "Pending")
        full = quota(world, lambda name: name in ("j-w-2", "j-w-3"))
        world.enqueue()
        await world.until(lambda: world.told("FailedCreate"))
        await world.until(lambda: world.status.get("pending") == 2)
        world.set_phase("Running")
        await world.until(lambda: world.phase == "Running")
        assert world.status["running"] == 2, "pods that were not made are not counted"

        await world.clock.advance(600)
        assert world.phase == "Running", "it has its minimum"
        world.writes()
        await world.clock.advance(600)
        assert len(world.writes()) < 50, "tried now and then"
        assert sorted(world.pods) == ["j-w-0", "j-w-1"]

        full.times = 0
        await world.clock.advance(60)
        assert len(world.pods) == 4


async def test_a_job_that_is_refused_its_minimum_ends(world: JobWorld) -> None:
    world.submit(replicas=3)
    async with world.running(max_requeues=3):
        await world.until(lambda: world.phase == "Pending")
        quota(world, lambda name: name == "j-w-2")
        world.enqueue()
        await world.until(lambda: world.phase == "Terminated")
        assert world.pods == {}


async def test_a_task_that_is_refused_does_not_keep_another_from_its_pods(world: JobWorld) -> None:
    world.submit(replicas=200)
    job = world.job
    small = {"name": "s", "replicas": 3, "template": template()}
    tasks = [*job["spec"]["tasks"], small]
    world.api.put(JOBS, {**job, "spec": {**job["spec"], "tasks": tasks}})
    async with world.running():
        await world.until(lambda: world.phase == "Pending")
        quota(world, lambda name: name.startswith("j-w-"))
        world.writes()
        world.enqueue()
        await world.until(lambda: sorted(world.pods) == ["j-s-0", "j-s-1", "j-s-2"])
        assert world.writes().count("POST pods") < 100, "pods of one task are alike"


async def test_many_pods_are_made_at_once_but_not_all(world: JobWorld) -> None:
    world.submit(replicas=120)
    async with world.running():
        await world.until(lambda: world.phase == "Pending")
        world.writes()
        world.api.delay(1.0, times=120, method="POST", path="/ns/pods")
        world.enqueue()
        await settle()
        assert world.writes() == ["POST pods"] * 50
        await world.clock.advance(3.5)
        assert len(world.pods) == 120


async def test_a_webhook_that_does_not_answer_is_told_and_waited_for(world: JobWorld) -> None:
    world.submit()
    world.api.fail(500, times=6, method="POST", path="/podgroups")
    world.api.fail(500, times=12, method="POST", path="/ns/pods")
    async with world.running(max_requeues=0):
        await world.until(lambda: world.told("PodGroupError"))
        assert world.told("PodGroupError") == ["Failed to create PodGroup, err: 500 was ordered"]
        await world.until(lambda: world.phase == "Pending")
        world.enqueue()
        await world.until(lambda: world.told("FailedCreate"))
        assert world.told("FailedCreate") == ["Error creating pods: 500 was ordered"]
        await world.until_running()
        assert world.told("ExecuteAction") == []


async def test_a_webhook_that_says_no_is_told_with_its_words(world: JobWorld) -> None:
    world.submit(replicas=1)
    async with world.running(max_requeues=2):
        await world.until(lambda: world.phase == "Pending")
        world.api.fail(400, times=1000, method="POST", path="/ns/pods", reason="BadRequest")
        world.enqueue()
        await world.until(lambda: world.phase == "Terminated")
        assert world.told("FailedCreate") == ["Error creating pods: 400 was ordered"]


async def test_a_group_that_somebody_deletes_is_made_again_and_the_pods_run_on(
    world: JobWorld,
) -> None:
    world.submit(policies=[{"event": "*", "action": "AbortJob"}])
    async with world.running():
        await world.until_running()
        before, (group,) = world.uids, world.groups
        world.api.objects.delete(POD_GROUPS, group, {})
        await world.until(lambda: world.groups)
        (again,) = world.groups
        assert again["metadata"]["uid"] != group["metadata"]["uid"]
        assert {**again["spec"]} == {**group["spec"]}
        await world.quiet()
        assert (world.uids, world.phase) == (before, "Running")


async def test_orders_to_a_job_do_not_reach_its_namesake(world: JobWorld) -> None:
    old = world.submit()
    async with world.running():
        await world.until_running()
        world.api.delay(5.0, method="PATCH", path="/pods/")
        order(world, "RestartJob", old)
        order(world, "TerminateJob", old)
        await settle()
        world.api.objects.delete(JOBS, world.job, {})
        await world.finish()
        world.submit()
        await world.clock.advance(10)
        await world.until_running()
        await world.clock.advance(10)
        assert world.phase == "Running"
        assert world.status.get("version", 0) == 0


def quota(world: JobWorld, when: Callable[[str], bool]) -> Fault:
    """Refuse pods by their names until `times` of what is returned is 0."""

    def refuses(call: Call) -> bool:
        if call.method != "POST" or not call.path.endswith("/ns/pods"):
            return False
        return when(msgspec.json.decode(call.body)["metadata"]["name"])

    fault = Fault(refuses, 1_000_000, Refusal(403, "Forbidden", "exceeded quota: small"))
    world.api.faults.add(fault)
    return fault


async def test_a_refusal_that_ends_is_forgotten(world: JobWorld) -> None:
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


async def test_a_refusal_that_stays_terminates_the_job(world: JobWorld) -> None:
    world.submit()
    async with world.running(max_requeues=3):
        await world.until(lambda: world.phase == "Pending")
        world.api.fail(403, times=1000, method="POST", path="/ns/pods", reason="Forbidden")
        world.enqueue()
        await world.until(lambda: world.phase == "Terminated")

        assert world.told("ExecuteAction") == [
            "Job failed on action SyncJob for retry limit reached",
            "Start to execute action TerminateJob ",
        ]


async def test_an_api_server_that_is_away_costs_no_try(world: JobWorld) -> None:
    world.submit()
    async with world.running(max_requeues=0):
        await world.until(lambda: world.phase == "Pending")
        world.api.fail(503, times=12, method="POST", path="/ns/pods")
        world.api.lose(times=5, method="PATCH", path="/status")
        world.enqueue()
        await world.until_running()


async def test_what_fails_is_tried_less_and_less_often(world: JobWorld) -> None:
    world.submit(replicas=1)
    async with world.running():
        await world.until(lambda: world.phase == "Pending")
        world.api.fail(503, times=10_000, method="POST", path="/ns/pods")
        world.enqueue()
        await world.clock.advance(30)
        assert 5 < world.writes().count("POST pods") < 20


DESKS = {
    "nothing is in progress": (Desk(), None),
    "a sync that failed waits for its rest": (Desk(unsynced=True, rest_until=9.0), 9.0),
    "an order that failed waits for its rest": (
        Desk(again={SYNCHRONISE: None}, rest_until=9.0), 9.0),
    "counters wait for their time": (Desk(write_by=9.0, rest_until=1.0), 9.0),
    "counters that are due wait for the rest": (Desk(write_by=1.0, rest_until=9.0), 9.0),
    "pods that were refused are tried again": (Desk(refused_until=6.0, look_at=7.0), 6.0),
    "names are looked at again": (Desk(look_at=7.0, write_by=8.0), 7.0),
    "a delayed action does not wait": (
        Desk(unsynced=True, rest_until=9.0, delayed={"": Delayed(Request(), 5.0)}), 5.0),
}  # fmt: skip


@pytest.mark.parametrize(("desk", "want"), DESKS.values(), ids=DESKS.keys())
def test_when_there_is_something_to_do_again(desk: Desk, want: float | None) -> None:
    assert desk.next_due() == want


async def test_an_answer_that_was_lost_makes_no_second_pod(world: JobWorld) -> None:
    world.submit()
    async with world.running(max_requeues=0):
        await world.until(lambda: world.phase == "Pending")
        world.api.lose(times=2, method="POST", path="/ns/pods", applied=True)
        await world.until_running()
        assert sorted(world.pods) == ["j-w-0", "j-w-1"]


async def test_pods_of_a_deleted_namesake_hold_their_names_until_they_are_gone(
    world: JobWorld,
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

        await world.finish()
        await world.until(lambda: len(world.pods) == 2)
        world.set_phase("Running")
        await world.until(lambda: world.phase == "Running")
        owners = {pod["metadata"]["ownerReferences"][0]["uid"] for pod in world.pods.values()}
        assert owners == {new["metadata"]["uid"]} != {old["metadata"]["uid"]}


async def test_a_missing_claim_is_told_and_a_described_one_is_made(world: JobWorld) -> None:
    world.submit(volumes=[{"mountPath": "/data", "volumeClaimName": "data"},
                          {"mountPath": "/out", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}},
                          ])  # fmt: skip
    async with world.running():
        await world.until(lambda: world.told("PVCError"))
        (text,) = world.told("PVCError")
        assert "pvc data is not found" in text
        assert world.groups == []

        world.api.add(CLAIMS, {"metadata": {"name": "data"}}, "ns")
        await world.until_running()
        made = [c["metadata"]["name"] for c in world.api.all(CLAIMS)]
        mounts = world.pods["j-w-0"]["spec"]["containers"][0]["volumeMounts"]
        claims = [v["persistentVolumeClaim"]["claimName"]
                  for v in world.pods["j-w-0"]["spec"]["volumes"]]  # fmt: skip
        assert sorted(claims) == sorted(made)
        assert world.told("PVCError") == [text]
        assert [mount["mountPath"] for mount in mounts] == ["/data", "/out"]
        assert world.job["spec"]["volumes"][1]["volumeClaimName"] in made


async def test_an_unknown_queue_is_told_and_other_jobs_go_on(world: JobWorld) -> None:
    world.submit(queue="nowhere")
    world.api.add(JOBS, {"metadata": {"name": "good"}, "spec": {"tasks": [
        {"name": "w", "replicas": 1, "template": template()}]}}, "ns")  # fmt: skip
    async with world.running():
        await world.until(lambda: world.told("QueueError"))
        await world.until(lambda: len(world.groups) == 1)
        assert world.told("QueueError") == ["queue nowhere is not found"]
        assert world.phase == ""

        world.api.add(QUEUES, Queue(metadata=ObjectMeta(name="nowhere")))
        await world.until(lambda: world.phase == "Pending")


async def test_an_api_server_that_was_away_altogether_loses_nothing(world: JobWorld) -> None:
    world.submit(policies=RESTART)
    async with world.running(max_requeues=0):
        await world.until_running()
        before = world.uids
        world.api.lose(times=60)
        world.api.drop_watches()
        world.annotate("j-w-0", **{names.OUT_OF_SYNC: "true"})
        await world.clock.advance(30)
        await world.until(lambda: world.pods["j-w-0"]["metadata"].get("deletionTimestamp"))
        await world.finish()
        await world.until(lambda: len(world.pods) == 2)

        assert world.uids["j-w-0"] != before["j-w-0"]
        assert world.status.get("retryCount", 0) == 0


async def test_a_name_that_a_foreign_pod_holds_is_waited_for(world: JobWorld) -> None:
    world.submit()
    foreign = {"metadata": {"name": "j-w-1"}, "spec": template()["spec"]}
    world.api.add(PODS, foreign, "ns")
    async with world.running(max_requeues=0):
        await world.until(lambda: world.phase == "Pending")
        world.enqueue()
        await world.until(lambda: world.told("FailedCreate"))
        assert world.told("FailedCreate") == [
            "Error creating pods: 1 of their names belong to pods of others"
        ]
        world.delete("j-w-1")
        await world.until(lambda: "ownerReferences" in world.pods.get("j-w-1", FOREIGN)["metadata"])


FOREIGN: Json = {"metadata": {}}


async def test_a_status_that_somebody_else_touched_is_written_on_a_fresh_look(
    world: JobWorld,
) -> None:
    world.submit()
    world.api.fail(409, times=2, method="PATCH", path="/status", reason="Conflict")
    async with world.running(max_requeues=0):
        await world.until_running()


async def test_a_job_of_too_many_pods_is_refused_and_others_go_on(world: JobWorld) -> None:
    world.submit(replicas=2_000_000_000)
    world.api.add(JOBS, {"metadata": {"name": "good"}, "spec": {"tasks": [
        {"name": "w", "replicas": 1, "template": template()}]}}, "ns")  # fmt: skip
    async with world.running():
        await world.until(lambda: world.told("InvalidJob"))
        await world.until(lambda: len(world.groups) == 1)
        assert world.groups[0]["metadata"]["name"].startswith("good-")


async def test_a_template_that_the_api_server_refuses_is_told(world: JobWorld) -> None:
    world.submit()
    job = world.job
    task = {**job["spec"]["tasks"][0], "template": {"spec": {"containers": []}}}
    world.api.put(JOBS, {**job, "spec": {**job["spec"], "tasks": [task]}})
    async with world.running():
        await world.until(lambda: len(world.groups) == 1)
        world.enqueue()
        await world.until(lambda: world.told("FailedCreate"))
        assert "spec.containers: Required value" in world.told("FailedCreate")[0]


async def test_a_command_that_cannot_be_deleted_yet_is_obeyed_once(world: JobWorld) -> None:
    job = world.submit()
    async with world.running():
        await world.until_running()
        world.api.fail(503, times=3, method="DELETE", path="/commands/")
        order(world, "AbortJob", job)
        await world.until(lambda: world.phase == "Aborting")
        await world.quiet()

        assert len(world.told("CommandIssued")) == 1
