"""A controller killed between any two writes: the next one ends up where it would have been."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.adapters.controllers.mortal import MortalWorld
from tests.adapters.controllers.world import Json
from tests.effort import stride


async def start(world: MortalWorld) -> None:
    await world.goes_on_to(lambda: world.is_running(3))


async def restart(world: MortalWorld) -> None:
    await start(world)
    await world.obeys("RestartJob", lambda: world.is_running(3, retries=1))
    assert world.versions() == {str(world.status["version"])}


async def lose_one(world: MortalWorld) -> None:
    await start(world)
    world.set_phase("Failed", "j-w-1")
    await world.goes_on_to(lambda: world.is_running(3, retries=1))


async def lose_one_and_start_anew(world: MortalWorld) -> None:
    await start(world)
    before = set(world.uids.values())
    world.set_phase("Failed", "j-w-1")
    await world.goes_on_to(lambda: world.is_running(3, retries=1))
    assert before.isdisjoint(world.uids.values())


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
#: each with what the Job does about a pod that fails
LIVES: dict[str, tuple[Life, str]] = {
    "a job starts": (start, "RestartPod"),
    "a job is restarted": (restart, "RestartPod"),
    "a pod is replaced": (lose_one, "RestartPod"),
    "a pod that fails restarts its task": (lose_one_and_start_anew, "RestartTask"),
    "a pod that fails restarts the job": (lose_one_and_start_anew, "RestartJob"),
    "a job is suspended": (suspend, "RestartPod"),
    "a job is suspended and resumed": (suspend_and_resume, "RestartPod"),
    "a job is scaled down and up": (scale, "RestartPod"),
    "a job ends": (end, "RestartPod"),
    "a job is terminated": (terminate, "RestartPod"),
}
NEVER = 1_000_000


async def lived(life: Life, action: str, writes: int) -> tuple[bool, Json]:
    """Live a Job's life with a controller that dies; return whether it did, and what is left."""
    world = MortalWorld()
    policies = [{"event": "PodFailed", "action": action}]
    world.submit(replicas=3, minAvailable=1, policies=policies, plugins={"svc": [], "env": []})
    async with world.dying_after(writes) as death:
        await life(world)
        await world.clock.advance(3.0)
    return death.come.is_set(), world.picture()


@pytest.mark.parametrize(("life", "action"), LIVES.values(), ids=LIVES.keys())
async def test_a_death_at_any_step_makes_no_difference(life: Life, action: str) -> None:
    _, want = await lived(life, action, NEVER)
    writes = 0
    died = True
    while died:
        died, got = await lived(life, action, writes)
        assert got == want, f"after {writes} writes"
        writes += stride(12)

    assert writes > 8, "the life has steps to die at"
