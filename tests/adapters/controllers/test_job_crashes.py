"""A controller killed between any two writes: the next one ends up where it would have been."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.adapters.controllers.mortal import MortalWorld
from tests.adapters.controllers.world import Json
from tests.effort import stride

ON_FAILURE = [{"event": "PodFailed", "action": "RestartPod"}]


async def start(world: MortalWorld) -> None:
    await world.goes_on_to(lambda: world.is_running(3))


async def restart(world: MortalWorld) -> None:
    await start(world)
    await world.obeys("RestartJob", lambda: world.is_running(3, retries=1))
    assert world.versions() == {str(world.status["version"])}


async def replace_one(world: MortalWorld) -> None:
    await start(world)
    world.set_phase("Failed", "j-w-1")
    await world.goes_on_to(lambda: world.is_running(3))


async def suspend(world: MortalWorld) -> None:
    await start(world)
    await world.obeys("AbortJob", lambda: world.phase == "Aborted" and not world.groups)


async def suspend_and_resume(world: MortalWorld) -> None:
    await suspend(world)
    await world.obeys("ResumeJob", lambda: world.is_running(3, retries=1))
    assert world.versions() == {str(world.status["version"])}


async def scale(world: MortalWorld) -> None:
    await start(world)
    world.scale(1)
    await world.goes_on_to(lambda: world.is_running(1))
    world.scale(4)
    await world.goes_on_to(lambda: world.is_running(4))


async def end(world: MortalWorld) -> None:
    await start(world)
    world.set_phase("Succeeded", "j-w-0", "j-w-1", "j-w-2")
    await world.goes_on_to(lambda: world.phase == "Completed" and not world.groups)


async def terminate(world: MortalWorld) -> None:
    await start(world)
    world.set_phase("Succeeded", "j-w-1")
    await world.obeys("TerminateJob", lambda: world.phase == "Terminated" and not world.groups)


Life = Callable[[MortalWorld], Awaitable[None]]
LIVES: dict[str, Life] = {
    "a job starts": start,
    "a job is restarted": restart,
    "a pod is replaced": replace_one,
    "a job is suspended": suspend,
    "a job is suspended and resumed": suspend_and_resume,
    "a job is scaled down and up": scale,
    "a job ends": end,
    "a job is terminated": terminate,
}
NEVER = 1_000_000


async def lived(life: Life, writes: int) -> tuple[bool, Json]:
    """Live a Job's life with a controller that dies; return whether it did, and what is left."""
    world = MortalWorld()
    world.submit(replicas=3, minAvailable=1, policies=ON_FAILURE, plugins={"svc": [], "env": []})
    async with world.dying_after(writes) as death:
        await life(world)
        await world.clock.advance(3.0)
    return death.come.is_set(), world.picture()


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES.keys())
async def test_a_death_at_any_step_makes_no_difference(life: Life) -> None:
    _, want = await lived(life, NEVER)
    writes = 0
    died = True
    while died:
        died, got = await lived(life, writes)
        if life is replace_one:
            # A pod that is marked is replaced without spending a retry.
            got["status"]["retryCount"] = want["status"]["retryCount"]
            got["status"]["conditions"] = want["status"]["conditions"]
        assert got == want, f"after {writes} writes"
        writes += stride(6)

    assert writes > 8, "the life has steps to die at"
