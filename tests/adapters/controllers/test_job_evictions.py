"""Pods that go while, or because, a policy restarts a part of their Job: one policy for each."""

from __future__ import annotations

import pytest

from pumice.kube.resources import PODS
from tests.adapters.controllers.job_world import JobWorld


@pytest.fixture
def world() -> JobWorld:
    return JobWorld()


def evict(world: JobWorld, *names: str) -> None:
    """Delete pods as an eviction does: they show it, and go when their kubelet has ended them."""
    for name in names:
        world.api.objects.delete(PODS, world.pods[name], {})


async def evicted_and_failed(world: JobWorld, name: str) -> None:
    """Have a pod evicted; its kubelet reports it as Failed before it is gone."""
    evict(world, name)
    await world.quiet()
    world.set_phase("Failed", name)
    await world.quiet()
    await world.finish()
    await world.quiet()


async def test_an_eviction_that_shows_as_a_failure_first_is_one_retry(world: JobWorld) -> None:
    policy = {"events": ["PodEvicted", "PodFailed"], "action": "RestartPod"}
    world.submit(replicas=3, minAvailable=1, policies=[policy])
    async with world.running():
        await world.until_running(pods=3)
        for retries in (1, 2):
            await evicted_and_failed(world, "j-w-0")
            world.set_phase("Running", "j-w-0")
            await world.quiet()
            assert (world.phase, world.status["retryCount"]) == ("Running", retries)


async def test_it_restarts_the_pod_alone_where_evictions_would_restart_the_job(
    world: JobWorld,
) -> None:
    policies = [
        {"event": "PodFailed", "action": "RestartPod"},
        {"event": "PodEvicted", "action": "RestartJob"},
    ]
    world.submit(replicas=3, minAvailable=3, maxRetry=10, policies=policies)
    async with world.running():
        await world.until_running(pods=3)
        before = world.uids
        await evicted_and_failed(world, "j-w-0")
        await world.finish()
        await world.quiet()
        assert {name for name, uid in world.uids.items() if uid != before[name]} == {"j-w-0"}


async def test_of_two_evicted_pods_of_a_task_the_second_does_not_restart_it_again(
    world: JobWorld,
) -> None:
    policies = [{"event": "PodEvicted", "action": "RestartTask"}]
    world.submit(replicas=3, minAvailable=1, maxRetry=10, policies=policies)
    async with world.running():
        await world.until_running(pods=3)
        evict(world, "j-w-0", "j-w-1")
        await world.quiet()
        world.delete("j-w-0")
        await world.quiet()
        fresh = world.uids["j-w-0"]
        world.set_phase("Running", "j-w-0")
        await world.quiet()
        world.delete("j-w-1")
        await world.quiet()
        assert world.uids["j-w-0"] == fresh
        assert "deletionTimestamp" not in world.pods["j-w-0"]["metadata"]
        assert world.status["retryCount"] == 1
