"""The garbage collector against the in-memory API server: finished Jobs go at their time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controllers.gc import GarbageCollector
from pumice.kube.clock import rfc3339
from pumice.kube.resources import JOBS
from tests.adapters.controllers.world import Json, World
from tests.unit.jobs.builders import template


class GarbageWorld(World[GarbageCollector]):
    """A world with the garbage collector in it."""

    def __init__(self) -> None:
        super().__init__(lambda made: GarbageCollector(made.client, made.caches, clock=made.clock))

    def add_job(self, name: str, phase: str, ttl: int | None = None, ended: float = 0.0) -> None:
        """Add a Job that has been in a phase for `ended` seconds."""
        since = rfc3339(self.clock.now() - ended)
        spec: Json = {"tasks": [{"name": "w", "replicas": 1, "template": template()}]}
        if ttl is not None:
            spec["ttlSecondsAfterFinished"] = ttl
        status = {"state": {"phase": phase, "lastTransitionTime": since}}
        self.api.add(JOBS, {"metadata": {"name": name}, "spec": spec, "status": status}, "ns")

    def change(self, name: str, **spec: Any) -> None:
        job = self.api.get(JOBS, "ns", name)
        assert job is not None
        self.api.put(JOBS, {**job, "spec": {**job["spec"], **spec}})

    @property
    def jobs(self) -> list[str]:
        return sorted(job["metadata"]["name"] for job in self.api.all(JOBS))


@pytest.fixture
def world() -> GarbageWorld:
    return GarbageWorld()


async def test_finished_jobs_go_at_their_time(world: GarbageWorld) -> None:
    world.add_job("at-once", "Completed", ttl=0)
    world.add_job("long-ago", "Failed", ttl=60, ended=7200)
    world.add_job("soon", "Terminated", ttl=60, ended=30)
    world.add_job("later", "Completed", ttl=900)
    world.add_job("kept", "Completed")
    world.add_job("runs", "Running", ttl=0)
    world.add_job("aborted", "Aborted", ttl=0)
    async with world.running():
        await world.clock.advance(1)
        assert world.jobs == ["aborted", "kept", "later", "runs", "soon"]
        await world.clock.advance(28)
        assert "soon" in world.jobs
        await world.clock.advance(2)
        assert world.jobs == ["aborted", "kept", "later", "runs"]

        await world.clock.advance(900)
        assert world.jobs == ["aborted", "kept", "runs"]


async def test_a_job_that_finishes_is_noticed(world: GarbageWorld) -> None:
    world.add_job("j", "Running", ttl=5)
    async with world.running():
        job = world.api.get(JOBS, "ns", "j")
        assert job is not None
        state = {"phase": "Completed", "lastTransitionTime": rfc3339(world.clock.now())}
        world.api.put(JOBS, {**job, "status": {"state": state}})
        await world.clock.advance(4)
        assert world.jobs == ["j"]
        await world.clock.advance(2)
        assert world.jobs == []


async def test_a_time_that_changed_counts(world: GarbageWorld) -> None:
    world.add_job("later", "Completed", ttl=10)
    world.add_job("sooner", "Completed", ttl=1000)
    async with world.running():
        world.change("later", ttlSecondsAfterFinished=50)
        world.change("sooner", ttlSecondsAfterFinished=5)
        await world.clock.advance(12)
        assert world.jobs == ["later"]
        await world.clock.advance(40)
        assert world.jobs == []


async def test_the_api_server_has_the_last_word(world: GarbageWorld) -> None:
    world.add_job("j", "Completed", ttl=10)
    async with world.running():
        # The cache does not hear of the change.
        world.api.silence_watches()
        world.change("j", ttlSecondsAfterFinished=30)
        await world.clock.advance(20)
        assert world.jobs == ["j"]
        await world.clock.advance(15)
        assert world.jobs == []


async def test_a_job_is_deleted_on_the_version_that_was_read_and_after_what_it_owns(
    world: GarbageWorld,
) -> None:
    world.add_job("j", "Completed", ttl=0)
    job = world.api.get(JOBS, "ns", "j")
    assert job is not None
    async with world.running():
        await world.clock.advance(1)
    (call,) = [call for call in world.api.calls if call.method == "DELETE"]
    options, meta = msgspec.json.decode(call.body), job["metadata"]

    assert options["propagationPolicy"] == "Foreground"
    assert options["preconditions"] == {
        "uid": meta["uid"], "resourceVersion": meta["resourceVersion"]
    }  # fmt: skip


async def test_an_outage_is_waited_out(world: GarbageWorld) -> None:
    world.add_job("j", "Completed", ttl=0)
    world.api.fail(503, times=3, method="DELETE")
    world.api.fail(409, times=2, method="DELETE", reason="Conflict")
    async with world.running():
        await world.clock.advance(10)
        assert world.jobs == []
