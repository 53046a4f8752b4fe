"""Pods that kubelets refuse at the door: made again, but not in a circle without rest."""

from __future__ import annotations

import pytest

from tests.adapters.controllers.job_world import JobWorld

LOOK_S = 0.25


@pytest.fixture
def world() -> JobWorld:
    return JobWorld()


async def refused(world: JobWorld, name: str) -> float:
    """Have a kubelet refuse a pod; return how long it takes until there is another one."""
    old, began = world.uids[name], world.clock.monotonic()
    world.set_phase("Failed", name, reason="OutOfcpu")
    await world.until(lambda: name not in world.uids or world.uids[name] != old)
    while name not in world.uids:
        await world.clock.advance(LOOK_S)
    return world.clock.monotonic() - began


async def test_a_pod_that_is_refused_in_a_row_waits_longer_and_longer(world: JobWorld) -> None:
    world.submit(
        replicas=2, minAvailable=2, policies=[{"event": "PodFailed", "action": "AbortJob"}]
    )
    async with world.running():
        await world.until(lambda: len(world.groups) == 1)
        world.enqueue()
        await world.until(lambda: len(world.pods) == 2)
        await world.quiet()
        waits = [await refused(world, "j-w-0") for _ in range(12)]
        wanted = [0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]
        assert waits == pytest.approx(wanted, abs=2 * LOOK_S)
        (told,) = {text for text in world.told("FailedCreate") if " 4 times " in text}
        assert told == (
            "Pod j-w-0 was refused by its node 4 times in a row: OutOfcpu; "
            "another one is made after 1s"
        )
        assert world.phase == "Pending"

        world.set_phase("Running", "j-w-0", reason="")
        await world.quiet()
        assert await refused(world, "j-w-0") <= 2 * LOOK_S


async def test_others_are_made_meanwhile(world: JobWorld) -> None:
    world.submit(replicas=2, minAvailable=1)
    async with world.running():
        await world.until(lambda: len(world.groups) == 1)
        world.enqueue()
        await world.until(lambda: len(world.pods) == 2)
        for _ in range(6):
            await refused(world, "j-w-0")
        old = world.uids["j-w-1"]
        world.set_phase("Failed", "j-w-0", reason="OutOfcpu")
        world.set_phase("Failed", "j-w-1", reason="OutOfcpu")
        await world.until(lambda: world.uids.get("j-w-1", old) != old)
