"""Secrets of Jobs: read by name, never listed; made, kept, and removed like other objects."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.job_secrets import KEPT_S
from pumice.core import names
from pumice.kube.resources import SECRETS
from tests.adapters.controllers.job_world import JobWorld, order
from tests.adapters.controllers.world import Json

NAME = "j-ssh"
#: Nothing is drawn then, which would take a while.
KEYS = ["--ssh-private-key=private", "--ssh-public-key=public"]


class SshWorld(JobWorld):
    """A world with a Job whose plugin is `ssh`."""

    def submit(self, replicas: int = 2, **spec: Any) -> Json:
        return super().submit(replicas, plugins={"ssh": KEYS}, **spec)

    @property
    def secret(self) -> Json | None:
        return self.api.get(SECRETS, "ns", NAME)

    def reads(self) -> list[str]:
        """Return the reads of Secrets."""
        found = (call for call in self.api.calls if "/secrets" in call.path)
        return [call.path for call in found if call.method == "GET"]


@pytest.fixture
def world() -> SshWorld:
    return SshWorld()


async def test_secrets_are_read_by_name_and_seldom(world: SshWorld) -> None:
    world.submit()
    async with world.running():
        await world.until_running()
        assert world.secret
        for i in range(10):
            world.annotate("j-w-0", note=str(i))
            await world.clock.advance(5)

    assert world.reads() == ["/api/v1/namespaces/ns/secrets/j-ssh"]


async def test_the_next_controller_finds_it_and_writes_nothing(world: SshWorld) -> None:
    world.submit()
    async with world.running():
        await world.until_running()
        await world.quiet()
    before = world.secret
    world.writes()

    async with world.running():
        await world.clock.advance(60)
        assert world.writes() == []
        assert world.secret == before

        world.set_phase("Succeeded")
        await world.until(lambda: world.secret is None)


async def test_it_goes_with_an_abort_and_comes_back_when_the_job_is_resumed(
    world: SshWorld,
) -> None:
    job = world.submit()
    async with world.running():
        await world.until_running()
        order(world, "AbortJob", job)
        await world.until(lambda: world.secret is None)
        await world.finish()
        await world.until(lambda: world.phase == "Aborted")
        order(world, "ResumeJob", job)
        await world.until(lambda: world.secret is not None)


async def test_one_that_somebody_deletes_is_made_again_after_a_while(world: SshWorld) -> None:
    world.submit()
    async with world.running():
        await world.until_running()
        secret = world.secret
        assert secret is not None
        world.api.objects.delete(SECRETS, secret, {})
        await world.clock.advance(KEPT_S)
        world.delete("j-w-0")
        await world.until(lambda: world.secret is not None)


async def test_one_of_others_stops_the_job_and_is_told(world: SshWorld) -> None:
    world.submit()
    world.api.add(SECRETS, {"metadata": {"name": NAME}, "data": {"theirs": "eA=="}}, "ns")
    async with world.running():
        await world.until(lambda: world.told("PluginError"))
        assert world.told("PluginError") == ["Secret j-ssh exists already and is not this Job's"]
        assert (world.secret or {})["data"] == {"theirs": "eA=="}


async def test_an_outage_is_waited_out(world: SshWorld) -> None:
    world.api.fail(503, method="GET", path="/secrets/", times=3)
    world.api.lose(method="POST", path="/secrets", applied=True)
    job = world.submit()
    async with world.running(max_requeues=0):
        await world.until_running()
        secret = world.secret
        assert secret is not None
        (owner,) = secret["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["apiVersion"]) == (job["metadata"]["uid"], names.BATCH_API)
