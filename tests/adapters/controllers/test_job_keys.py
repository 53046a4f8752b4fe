"""The keys of a Job whose pods log in to each other, against the in-memory API server."""

from __future__ import annotations

import asyncio
import base64
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from controllers import job_keys
from pumice.kube.resources import JOBS, SECRETS
from tests.adapters.controllers.job_world import JobWorld, order
from tests.adapters.controllers.world import Json


class KeyWorld(JobWorld):
    """A world with a Job whose plugin is `ssh`."""

    def submit(self, replicas: int = 2, **spec: Any) -> Json:
        return super().submit(replicas, plugins={"ssh": []}, **spec)

    @property
    def secret(self) -> Json:
        return self.api.get(SECRETS, "ns", "j-ssh") or {}

    @property
    def files(self) -> dict[str, str]:
        """What the Secret holds, decoded."""
        return decoded(self.secret.get("data", {}))

    async def until_keys(self) -> None:
        """Wait for the thread that draws keys, which no manual clock knows."""
        async with asyncio.timeout(20):
            while not self.secret:  # noqa: ASYNC110 - a thread is at work, not the loop
                await asyncio.sleep(0.002)

    async def until_running(self, pods: int = 2) -> None:
        await self.until_keys()
        await super().until_running(pods)


def decoded(data: dict[str, str]) -> dict[str, str]:
    return {key: base64.b64decode(text).decode() for key, text in data.items()}


@pytest.fixture
def world() -> KeyWorld:
    return KeyWorld()


async def test_keys_are_a_pair_that_openssh_reads(tmp_path: Path) -> None:
    files = decoded(await job_keys.draw())

    key = serialization.load_pem_private_key(files["id_rsa"].encode(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    assert key.key_size == 2048
    assert files["id_rsa"].startswith("-----BEGIN RSA PRIVATE KEY-----\n")
    assert files["id_rsa.pub"] == files["authorized_keys"]
    assert files["id_rsa.pub"].endswith("\n")
    public = serialization.load_ssh_public_key(files["id_rsa.pub"].encode())
    assert isinstance(public, rsa.RSAPublicKey)
    assert public.public_numbers() == key.public_key().public_numbers()

    if keygen := shutil.which("ssh-keygen"):
        path = tmp_path / "id_rsa"
        path.write_text(files["id_rsa"])
        path.chmod(0o600)
        command = [keygen, "-y", "-f", str(path)]
        derived = await asyncio.to_thread(
            subprocess.run, command, check=True, capture_output=True, text=True
        )
        assert derived.stdout.split()[:2] == files["id_rsa.pub"].split()


async def test_the_secret_comes_first_and_goes_at_the_end(world: KeyWorld) -> None:
    job = world.submit()
    async with world.running():
        await world.until_running()
        writes = world.writes()
        assert writes[:2] == ["POST secrets", "POST podgroups"]
        assert writes.count("POST secrets") == 1
        assert set(world.files) == {"id_rsa", "id_rsa.pub", "authorized_keys", "config"}
        (owner,) = world.secret["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (job["metadata"]["uid"], True)
        assert world.status["controlledResources"] == {"plugin-ssh": "ssh"}

        world.set_phase("Succeeded")
        await world.until(lambda: world.phase == "Completed")
        await world.until(lambda: not world.secret)


async def test_the_config_follows_a_scaled_job_and_the_keys_stay(world: KeyWorld) -> None:
    world.submit(minAvailable=1)
    async with world.running():
        await world.until_running()
        await world.quiet()
        before = world.files
        world.writes()
        job = world.job
        tasks = [{**job["spec"]["tasks"][0], "replicas": 3}]
        world.api.put(JOBS, {**job, "spec": {**job["spec"], "tasks": tasks}})
        await world.clock.advance(0.08)

        assert world.writes()[0] == "PATCH secrets/j-ssh", "before any pod comes"
        assert "Host j-w-2\n  HostName j-w-2.j\n" in world.files["config"]
        assert {**world.files, "config": ""} == {**before, "config": ""}


async def test_a_new_pod_gets_the_old_keys_and_a_new_start_new_ones(world: KeyWorld) -> None:
    job = world.submit(policies=[{"event": "PodFailed", "action": "RestartPod"}])
    async with world.running():
        await world.until_running()
        before = world.files
        world.set_phase("Failed", "j-w-1")
        await world.until(lambda: world.phase == "Restarting")
        await world.finish()
        await world.until(lambda: len(world.pods) == 2)
        assert world.files == before

        order(world, "RestartJob", job)
        await world.until(lambda: not world.secret or world.files != before)
        await world.finish()
        await world.until_running()
        assert world.files["config"] == before["config"]
        assert world.files["id_rsa"] != before["id_rsa"]


async def test_keys_whose_answer_was_lost_are_kept(world: KeyWorld) -> None:
    world.submit()
    world.api.lose(method="POST", path="/secrets", applied=True)
    async with world.running(max_requeues=0):
        await world.until_keys()
        before = world.files
        await world.until_running()
        assert world.files == before


async def test_a_secret_of_others_stops_the_job_and_is_told(world: KeyWorld) -> None:
    world.submit()
    world.api.add(SECRETS, {"metadata": {"name": "j-ssh"}, "data": {"mine": "eA=="}}, "ns")
    async with world.running():
        async with asyncio.timeout(20):
            while not world.told("PluginError"):
                await asyncio.sleep(0.002)
                await world.clock.advance(0.1)
        assert world.told("PluginError") == ["Secret j-ssh exists already and is not this Job's"]
        assert (world.groups, world.files) == ([], {"mine": "x"})
