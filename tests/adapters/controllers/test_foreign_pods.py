"""Jobs whose templates name another scheduler: their pods are the Job controller's all the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from controllers.podgroup import PodGroupController
from pumice.core import names
from pumice.kube.resources import JOBS, PODS
from tests.adapters.controllers.job_world import JobWorld
from tests.adapters.controllers.world import Json, World
from tests.fakeapi.clock import settle
from tests.unit.jobs.builders import template

SCHEDULERS = {
    "one of ours, the default scheduler's pods": (["volcano"], "default-scheduler"),
    "one of ours, pods of a third": (["volcano"], "third"),
    "two of ours, the default scheduler's pods": (["volcano", "vc-2"], "default-scheduler"),
    "two of ours, pods of a third": (["volcano", "vc-2"], "third"),
    "two of ours, pods of the second": (["volcano", "vc-2"], "vc-2"),
}


def submit(world: JobWorld, scheduler: str, **spec: Any) -> Json:
    """Submit a Job of a task of ours and a task of another scheduler."""
    tasks = [
        {"name": "w", "replicas": 1, "template": template()},
        {"name": "x", "replicas": 1, "template": template(schedulerName=scheduler)},
    ]
    return world.api.add(JOBS, {"metadata": {"name": "j"}, "spec": {"tasks": tasks, **spec}}, "ns")


@pytest.mark.parametrize(("ours", "theirs"), SCHEDULERS.values(), ids=SCHEDULERS.keys())
async def test_a_job_of_two_schedulers_lives_as_one(ours: Sequence[str], theirs: str) -> None:
    world = JobWorld()
    submit(world, theirs)
    async with world.running(ours):
        await world.until_running()
        await world.quiet()
        assert world.status["running"] == 2
        assert world.pods["j-x-0"]["spec"]["schedulerName"] == theirs
        assert world.told("FailedCreate") == []

        before = world.uids
        world.delete("j-x-0")
        await world.until(lambda: world.uids.get("j-x-0", before["j-x-0"]) != before["j-x-0"])
        assert world.uids["j-w-0"] == before["j-w-0"]

        world.set_phase("Succeeded")
        await world.until(lambda: world.phase == "Completed")


async def test_their_failures_raise_policies() -> None:
    world = JobWorld()
    submit(world, "third", policies=[{"event": "PodFailed", "action": "AbortJob"}])
    async with world.running():
        await world.until_running()
        world.set_phase("Failed", "j-x-0")
        await world.until(lambda: world.phase == "Aborting")
        await world.finish()
        await world.until(lambda: world.phase == "Aborted")
        assert sorted(world.pods) == ["j-x-0"], "what failed is kept"


async def test_what_failed_while_no_controller_ran_is_found_at_the_start() -> None:
    world = JobWorld()
    submit(world, "third", policies=[{"event": "PodFailed", "action": "AbortJob"}])
    async with world.running():
        await world.until_running()
    world.set_phase("Failed", "j-x-0")

    async with world.running():
        await world.until(lambda: world.phase == "Aborting")


async def test_pods_of_a_namesake_hold_their_names_whoever_schedules_them() -> None:
    world = JobWorld()
    submit(world, "third")
    async with world.running():
        await world.until_running()
        before = world.uids
        world.api.objects.delete(JOBS, world.job, {})
        submit(world, "volcano")
        await world.until(lambda: world.phase == "Pending")
        world.enqueue()
        await world.quiet()
        assert world.uids == before

        await world.finish()
        await world.until_running()
        await world.quiet()
        assert (world.status["running"], world.status.get("pending", 0)) == (2, 0)
        world.delete("j-x-0")
        await world.until(lambda: len(world.pods) == 2)


async def test_the_podgroup_controller_never_sees_them() -> None:
    world = World(
        lambda made: PodGroupController(made.client, made.caches, made.events, clock=made.clock)
    )
    spec = {**template()["spec"], "schedulerName": "third"}
    meta = {"name": "p", "labels": {names.JOB_NAME: "j"}}
    world.api.add(PODS, {"metadata": meta, "spec": spec}, "ns")
    async with world.running():
        await world.clock.advance(5)
        await settle()
        assert world.writes() == []
