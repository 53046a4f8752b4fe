"""A pod that does not start in time: what became of it since then counts, however it came about."""

from __future__ import annotations

import pytest

from pumice.kube.resources import JOBS
from tests.adapters.controllers.job_world import JobWorld

POLICIES = [{"event": "PodPending", "action": "AbortJob", "timeout": "1m"}]


@pytest.fixture
def world() -> JobWorld:
    return JobWorld()


async def made(world: JobWorld, pods: int) -> None:
    await world.until(lambda: len(world.groups) == 1)
    world.enqueue()
    await world.until(lambda: len(world.pods) == pods)
    await world.quiet()


async def goes_on(world: JobWorld) -> None:
    await world.until(lambda: world.phase == "Running")
    await world.clock.advance(120)
    assert world.phase == "Running"


async def test_one_that_does_not_start_aborts_the_job(world: JobWorld) -> None:
    world.submit(replicas=2, minAvailable=1, policies=POLICIES)
    async with world.running():
        await made(world, 2)
        world.set_phase("Running", "j-w-0")
        await world.clock.advance(61)
        await world.until(lambda: world.phase in ("Aborting", "Aborted"))


async def test_one_that_is_scaled_away(world: JobWorld) -> None:
    world.submit(replicas=3, minAvailable=2, policies=POLICIES)
    async with world.running():
        await made(world, 3)
        world.set_phase("Running", "j-w-0", "j-w-1")
        await world.until(lambda: world.phase == "Running")
        job = world.job
        task = {**job["spec"]["tasks"][0], "replicas": 2, "minAvailable": 2}
        world.api.put(JOBS, {**job, "spec": {**job["spec"], "tasks": [task]}})
        await world.until(lambda: len(world.pods) == 2)
        await goes_on(world)


async def test_one_that_its_kubelet_refuses(world: JobWorld) -> None:
    world.submit(replicas=2, policies=POLICIES)
    async with world.running():
        await made(world, 2)
        old = world.uids["j-w-1"]
        world.set_phase("Running", "j-w-0")
        world.set_phase("Failed", "j-w-1", reason="OutOfcpu")
        await world.until(lambda: world.uids.get("j-w-1", old) != old)
        await world.quiet()
        world.set_phase("Running", "j-w-1", reason="")
        await goes_on(world)


async def test_the_one_in_its_place_has_a_time_of_its_own(world: JobWorld) -> None:
    world.submit(replicas=2, minAvailable=1, policies=POLICIES)
    async with world.running():
        await made(world, 2)
        world.set_phase("Running", "j-w-0")
        await world.until(lambda: world.phase == "Running")
        await world.clock.advance(40)
        old = world.uids["j-w-1"]
        world.set_phase("Failed", "j-w-1", reason="OutOfcpu")
        await world.until(lambda: world.uids.get("j-w-1", old) != old)
        await world.clock.advance(40)
        assert world.phase == "Running"
        await world.clock.advance(30)
        await world.until(lambda: world.phase in ("Aborting", "Aborted"))


async def test_one_that_is_done_when_it_is_looked_at_again(world: JobWorld) -> None:
    world.submit(replicas=2, policies=POLICIES)
    async with world.running():
        await made(world, 2)
        world.set_phase("Running", "j-w-0")
        world.set_phase("Succeeded", "j-w-1")
        await goes_on(world)


async def test_one_that_runs_before_its_pending_was_looked_at(world: JobWorld) -> None:
    world.submit(replicas=2, minAvailable=1, policies=POLICIES)
    async with world.running():
        await world.until(lambda: world.phase == "Pending")
        world.api.delay(5.0, times=1, method="POST", path="/ns/pods")
        world.enqueue()
        await world.until(lambda: len(world.pods) >= 1)
        world.set_phase("Running")
        await world.clock.advance(6)
        await world.quiet()
        world.set_phase("Running")
        await goes_on(world)
