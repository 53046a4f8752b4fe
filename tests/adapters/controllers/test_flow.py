"""The controllers of JobFlows and JobTemplates against the in-memory API server."""

from __future__ import annotations

import pytest

from controllers.template import JobTemplateController
from pumice.core import names
from pumice.kube.resources import EVENTS, JOB_FLOWS, JOB_TEMPLATES, JOBS
from tests.adapters.controllers.flow_world import FlowWorld
from tests.adapters.controllers.world import Json, World
from tests.fakeapi.clock import settle, until

ADDRESS = "10.0.0.7"


@pytest.fixture
def world() -> FlowWorld:
    return FlowWorld()


async def test_jobs_come_in_their_order_and_the_flow_succeeds(world: FlowWorld) -> None:
    world.add_templates("a", "b", "c", "d")
    world.add_flow({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]})
    async with world.running():
        await until(lambda: list(world.jobs) == ["f-a"])
        await until(lambda: world.phase == "Pending")
        world.turn("f-a", "Running")
        await until(lambda: world.phase == "Running")
        assert list(world.jobs) == ["f-a"]
        world.turn("f-a", "Completed")
        await until(lambda: len(world.jobs) == 3)
        world.turn("f-b", "Completed")
        await settle()
        assert len(world.jobs) == 3
        world.turn("f-c", "Completed")
        await until(lambda: "f-d" in world.jobs)
        world.turn("f-d", "Completed")
        await until(lambda: world.phase == "Succeed")

        assert world.status["completedJobs"] == ["f-a", "f-b", "f-c", "f-d"]
        await until(lambda: "create a job named f-d!" in world.told("Created"))
        await settle()
        rendered = (await world.metrics.render()).decode()
        counted = 'volcano_jobflow_succeed_phase_count_total{jobflow_namespace="ns"} 1.0'
        assert counted in rendered


async def test_a_flow_that_has_ended_costs_nothing(world: FlowWorld) -> None:
    world.add_templates("a")
    world.add_flow({"a": []})
    async with world.running():
        await until(lambda: world.jobs)
        world.turn("f-a", "Completed")
        await until(lambda: world.phase == "Succeed")
    world.writes()
    async with world.running():
        await world.clock.advance(600)
    assert world.writes() == []


async def test_counts_alone_are_written_within_a_second(world: FlowWorld) -> None:
    world.add_templates("a")
    world.add_flow({"a": []})
    async with world.running():
        await until(lambda: world.jobs)
        world.turn("f-a", "Running")
        await until(lambda: world.phase == "Running")
        world.writes()
        for running in range(5):
            counts = {"w": {"phase": {"Running": running}}}
            world.turn("f-a", "Running", taskStatusCount=counts)
            await settle()
        assert world.writes() == []
        await world.clock.advance(1)
        assert world.writes() == ["PATCH jobflows/f/status"]
        assert world.status["conditions"]["f-a"]["taskStatusCount"] == counts


async def test_jobs_of_a_flow_that_succeeded_go_where_that_is_asked(world: FlowWorld) -> None:
    world.add_templates("a", "b")
    world.add_flow({"a": [], "b": ["a"]}, jobRetainPolicy="delete")
    async with world.running():
        for name in ("f-a", "f-b"):
            await until(lambda name=name: name in world.jobs)  # type: ignore[misc]
            world.turn(name, "Completed")
        await until(lambda: not world.jobs)
        await world.clock.advance(60)
        assert (world.jobs, world.phase) == ({}, "Succeed")
        assert world.status["completedJobs"] == ["f-a", "f-b"]


async def test_a_job_that_went_by_its_time_to_live_is_not_run_again(world: FlowWorld) -> None:
    world.add_templates("a", "b")
    world.add_flow({"a": [], "b": ["a"]})
    async with world.running():
        await until(lambda: world.jobs)
        world.turn("f-a", "Completed")
        await until(lambda: "f-b" in world.jobs)
        world.api.objects.delete(JOBS, world.jobs["f-a"], {})
        await world.clock.advance(5)
        assert list(world.jobs) == ["f-b"]
        world.turn("f-b", "Completed")
        await until(lambda: world.phase == "Succeed")


async def test_one_that_was_deleted_before_its_end_is_made_again(world: FlowWorld) -> None:
    world.add_templates("a")
    world.add_flow({"a": []})
    async with world.running():
        await until(lambda: world.jobs)
        uid = world.jobs["f-a"]["metadata"]["uid"]
        world.api.objects.delete(JOBS, world.jobs["f-a"], {})
        await until(lambda: world.jobs and world.jobs["f-a"]["metadata"]["uid"] != uid)


async def test_a_flow_that_fails_goes_no_further(world: FlowWorld) -> None:
    world.add_templates("a", "b", "c")
    world.add_flow({"a": [], "b": [], "c": ["b"]})
    async with world.running():
        await until(lambda: len(world.jobs) == 2)
        world.turn("f-a", "Failed")
        await until(lambda: world.phase == "Failed")
        world.turn("f-b", "Completed")
        await until(lambda: world.status.get("completedJobs") == ["f-b"])
        assert (world.phase, len(world.jobs)) == ("Failed", 2)


async def test_nothing_of_a_deleted_flow_remains(world: FlowWorld) -> None:
    world.add_templates("a", "b")
    world.add_flow({"a": [], "b": []})
    async with world.running() as controller:
        await until(lambda: len(world.jobs) == 2)
        world.api.objects.delete(JOB_FLOWS, world.flow, {})
        await world.clock.advance(60)
        teller = controller._teller
        assert (world.jobs, teller.warned, teller.before) == ({}, {}, {})


async def test_a_template_that_comes_later_is_waited_for(world: FlowWorld) -> None:
    world.add_flow({"a": []})
    text = "SyncJobFlow JobFlow failed for there is no JobTemplate a"
    async with world.running():
        await until(lambda: world.told("SyncJobFlow") == [text])
        await world.clock.advance(600)
        assert [event["count"] for event in world.api.all(EVENTS)] == [1]
        world.add_templates("a")
        await until(lambda: world.jobs)


async def test_a_circle_is_refused_and_can_be_mended(world: FlowWorld) -> None:
    world.add_templates("a", "b")
    world.add_flow({"a": ["b"], "b": ["a"]})
    async with world.running():
        text = "SyncJobFlow JobFlow failed for jobflow Flow is not DAG"
        await until(lambda: world.told("SyncJobFlow") == [text])
        assert (world.jobs, world.phase) == ({}, "Pending")
        world.api.put(JOB_FLOWS, {**world.flow, "spec": {"flows": [{"name": "a"}]}})
        await until(lambda: list(world.jobs) == ["f-a"])


async def test_a_job_that_is_refused_is_told_once_and_tried_again(world: FlowWorld) -> None:
    world.add_templates("a")
    world.add_flow({"a": []})
    world.api.fail(403, times=5, method="POST", path="/jobs", reason="Forbidden")
    async with world.running():
        await world.clock.advance(60)
        assert list(world.jobs) == ["f-a"]
        (event,) = [e for e in world.api.all(EVENTS) if e["reason"] == "SyncJobFlow"]
        assert event["count"] == 1
        assert event["message"] == "SyncJobFlow JobFlow failed for 403 was ordered"


async def test_the_job_of_a_flow_of_before_is_waited_for(world: FlowWorld) -> None:
    world.add_templates("a")
    old = world.add_flow({"a": []})
    async with world.running():
        await until(lambda: world.jobs)
    uid = world.jobs["f-a"]["metadata"]["uid"]
    world.api.put(JOB_FLOWS, {**old, "metadata": {**old["metadata"], "uid": "another"}})
    await world.clock.advance(1)
    async with world.running():
        text = "SyncJobFlow JobFlow failed for job f-a exists already and is not this JobFlow's"
        await until(lambda: text in world.told("SyncJobFlow"))
        world.api.objects.delete(JOBS, world.jobs["f-a"], {})
        await until(lambda: world.jobs and world.jobs["f-a"]["metadata"]["uid"] != uid)


async def test_a_step_that_asks_for_a_port_comes_when_it_is_open(world: FlowWorld) -> None:
    world.add_templates("a", "b")
    probe = {"tcpSocketList": [{"taskName": "w", "port": 5432}]}
    world.add_flow({"a": [], "b": {"targets": ["a"], "probe": probe}})
    async with world.running():
        await until(lambda: world.jobs)
        await world.clock.advance(20)
        assert world.asked == []
        world.add_pod("f-a", ADDRESS)
        await world.clock.advance(11)
        assert (set(world.asked), list(world.jobs)) == ({(ADDRESS, 5432)}, ["f-a"])
        assert len(world.asked) <= 4

        world.listening.add((ADDRESS, 5432))
        await world.clock.advance(5)
        assert list(world.jobs) == ["f-a", "f-b"]
        asked = len(world.asked)
        await world.clock.advance(60)
        assert len(world.asked) == asked


async def test_pods_that_only_look_like_the_jobs_are_not_asked(world: FlowWorld) -> None:
    world.add_templates("a", "b")
    probe = {"tcpSocketList": [{"taskName": "w", "port": 5432}]}
    world.add_flow({"a": [], "b": {"targets": ["a"], "probe": probe}})
    async with world.running():
        await until(lambda: world.jobs)
        world.add_pod("f-a", ADDRESS, uid="that of another Job")
        await world.clock.advance(20)
        assert world.asked == []


async def test_a_step_that_asks_for_a_phase_comes_with_it(world: FlowWorld) -> None:
    world.add_templates("a", "b")
    probe = {"taskStatusList": [{"taskName": "w", "phase": "Running"}]}
    world.add_flow({"a": [], "b": {"targets": ["a"], "probe": probe}})
    async with world.running():
        await until(lambda: world.jobs)
        world.turn("f-a", "Running", taskStatusCount={"w": {"phase": {"Running": 1}}})
        await until(lambda: "f-b" in world.jobs)


async def test_a_malformed_flow_is_reported_and_the_others_go_on(world: FlowWorld) -> None:
    world.add_templates("a")
    world.add_flow({"a": []})
    bad: Json = {"metadata": {"name": "bad"}, "spec": {"flows": [{"name": "a"}]}}
    stored = world.api.add(JOB_FLOWS, bad, "ns")
    world.api.put(JOB_FLOWS, {**stored, "spec": {"flows": 5}})
    async with world.running():
        await until(lambda: list(world.jobs) == ["f-a"])
        await until(lambda: world.told("Malformed"))


# JobTemplates.


class TemplateWorld(World[JobTemplateController]):
    """A world with the JobTemplate controller in it."""

    def __init__(self) -> None:
        super().__init__(
            lambda made: JobTemplateController(made.client, made.caches, clock=made.clock)
        )

    def add_job(self, name: str, origin: str) -> Json:
        labels = {names.CREATED_BY_TEMPLATE: origin}
        return self.api.add(JOBS, {"metadata": {"name": name, "labels": labels}}, "ns")

    def listed(self, name: str) -> list[str] | None:
        found = self.api.get(JOB_TEMPLATES, "ns", name) or {}
        got: list[str] | None = found.get("status", {}).get("jobDependsOnList")
        return got


async def test_a_template_lists_the_jobs_that_were_made_of_it() -> None:
    world = TemplateWorld()
    for name in ("t", "t.v2"):
        world.api.add(JOB_TEMPLATES, {"metadata": {"name": name}}, "ns")
    world.add_job("x", "elsewhere.t")
    async with world.running():
        await world.clock.advance(2)
        assert world.writes() == []
        jobs = [world.add_job(name, "ns.t") for name in ("c", "b", "a")]
        world.add_job("d", "ns.t.v2")
        await world.clock.advance(2)
        assert (world.listed("t"), world.listed("t.v2")) == (["a", "b", "c"], ["d"])
        assert len(world.writes()) == 2
        for job in jobs:
            world.api.objects.delete(JOBS, job, {})
        await world.clock.advance(2)
        assert world.listed("t") is None
