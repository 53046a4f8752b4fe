"""What Job plugins make beside pods, against the in-memory API server."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core import names
from pumice.kube.resources import (
    CONFIG_MAPS,
    JOBS,
    NETWORK_POLICIES,
    POD_GROUPS,
    SERVICES,
    AnyResource,
)
from tests.adapters.controllers.job_world import JobWorld, order
from tests.adapters.controllers.world import Json

KINDS: dict[str, AnyResource] = {
    "ConfigMap": CONFIG_MAPS,
    "NetworkPolicy": NETWORK_POLICIES,
    "Service": SERVICES,
}
NAMES = {"ConfigMap": "j-svc", "NetworkPolicy": "j", "Service": "j"}


class ObjectWorld(JobWorld):
    """A world with a Job whose plugins are `svc` and `env`."""

    def submit(self, replicas: int = 2, **spec: Any) -> Json:
        return super().submit(replicas, plugins={"svc": [], "env": []}, **spec)

    @property
    def objects(self) -> dict[str, str]:
        """The uids of the plugins' objects, by kind."""
        found = {kind: self.api.get(KINDS[kind], "ns", name) for kind, name in NAMES.items()}
        return {kind: obj["metadata"]["uid"] for kind, obj in found.items() if obj}

    @property
    def hosts(self) -> str:
        config = self.api.get(CONFIG_MAPS, "ns", "j-svc")
        return str(config and config["data"]["VC_W_HOSTS"])

    def scale(self, replicas: int) -> None:
        job = self.job
        tasks = [{**job["spec"]["tasks"][0], "replicas": replicas}]
        self.api.put(JOBS, {**job, "spec": {**job["spec"], "tasks": tasks}})

    def lose_object(self, kind: str) -> None:
        obj = self.api.get(KINDS[kind], "ns", NAMES[kind])
        assert obj is not None
        self.api.objects.delete(KINDS[kind], obj, {})

    def add_object(self, kind: str, owner: Json | None = None, **content: Any) -> Json:
        """Add an object under the name of one of the Job's."""
        meta: Json = {"name": NAMES[kind]}
        if owner:
            reference = {"apiVersion": names.BATCH_API, "kind": "Job", "controller": True}
            reference |= {"name": "j", "uid": owner["metadata"]["uid"]}
            meta["ownerReferences"] = [reference]
        return self.api.add(KINDS[kind], {"metadata": meta, **content}, "ns")


@pytest.fixture
def world() -> ObjectWorld:
    return ObjectWorld()


async def test_objects_come_before_the_group_and_go_when_the_job_ends(world: ObjectWorld) -> None:
    job = world.submit()
    async with world.running():
        await world.until(lambda: world.phase == "Pending")
        first, *rest = world.writes()
        assert first == "POST configmaps"
        assert rest == ["POST services", "POST networkpolicies", "POST podgroups",
                        "PATCH jobs/j/status"]  # fmt: skip
        assert world.status["controlledResources"] == {"plugin-svc": "svc", "plugin-env": "env"}
        owners = [world.api.all(r)[0]["metadata"]["ownerReferences"] for r in KINDS.values()]
        assert [owner["uid"] for (owner,) in owners] == [job["metadata"]["uid"]] * 3

        await world.until_running()
        env = world.pods["j-w-1"]["spec"]["containers"][0]["env"]
        assert [e["name"] for e in env] == [
            "VC_W_HOSTS", "VC_W_NUM", "VK_TASK_INDEX", "VC_TASK_INDEX"]  # fmt: skip

        world.set_phase("Succeeded")
        await world.until(lambda: world.phase == "Completed")
        await world.until(lambda: not world.objects)
        await world.quiet()
        assert "controlledResources" not in world.status
        world.writes()
        await world.clock.advance(60)
        assert world.writes() == [], "what is over is over"


async def test_hosts_follow_a_scaled_job_at_once(world: ObjectWorld) -> None:
    world.submit(minAvailable=1)
    async with world.running() as controller:
        await world.until_running()
        assert world.hosts == "j-w-0.j,j-w-1.j"
        await world.quiet()
        for replicas, hosts in ((1, "j-w-0.j"), (0, ""), (2, "j-w-0.j,j-w-1.j")):
            # A large Job would rest for a while after its last sync.
            controller.desks["ns/j"].rest_until = world.clock.monotonic() + 20
            world.writes()
            world.scale(replicas)
            await world.clock.advance(0.08)
            assert world.hosts == hosts
            assert world.writes()[0] == "PATCH configmaps/j-svc", "before any pod comes or goes"
            await world.quiet()


async def test_a_running_job_costs_no_writes(world: ObjectWorld) -> None:
    world.submit()
    async with world.running():
        await world.until_running()
        await world.quiet()
        world.writes()
        world.annotate("j-w-0", note="x")
        await world.clock.advance(60)
        assert world.writes() == []


@pytest.mark.parametrize("kind", NAMES)
async def test_what_somebody_deletes_is_made_again(world: ObjectWorld, kind: str) -> None:
    world.submit()
    async with world.running():
        await world.until_running()
        before = world.objects
        world.lose_object(kind)
        await world.until(lambda: len(world.objects) == 3)
        assert world.objects.items() ^ before.items() == {
            (kind, before[kind]), (kind, world.objects[kind])
        }  # fmt: skip


async def test_hosts_that_somebody_edited_are_set_right(world: ObjectWorld) -> None:
    world.submit()
    async with world.running():
        await world.until_running()
        config = world.api.get(CONFIG_MAPS, "ns", "j-svc")
        assert config is not None
        data = {**config["data"], "VC_W_HOSTS": "elsewhere", "more": "x"}
        world.api.put(CONFIG_MAPS, {**config, "data": data})
        await world.until(lambda: world.hosts != "elsewhere")

        (config,) = world.api.all(CONFIG_MAPS)
        assert config["data"] == {
            "w.host": "j-w-0.j\nj-w-1.j", "VC_W_HOSTS": "j-w-0.j,j-w-1.j", "VC_W_NUM": "2"
        }  # fmt: skip


async def test_a_restart_makes_all_anew_and_one_of_a_pod_nothing(world: ObjectWorld) -> None:
    job = world.submit(policies=[{"event": "PodFailed", "action": "RestartPod"}])
    async with world.running():
        await world.until_running()
        before = world.objects
        world.set_phase("Failed", "j-w-1")
        await world.until(lambda: world.phase == "Restarting")
        await world.finish()
        await world.until_running()
        assert world.objects == before

        groups = world.groups
        order(world, "RestartJob", job)
        await world.until(lambda: world.status.get("retryCount") == 2)
        await world.until(lambda: world.groups and world.groups[0]["metadata"]["uid"]
                          != groups[0]["metadata"]["uid"])  # fmt: skip
        await world.finish()
        await world.until_running()
        assert len(world.objects) == 3
        assert not world.objects.items() & before.items()
        assert world.status["controlledResources"] == {"plugin-svc": "svc", "plugin-env": "env"}


async def test_an_aborted_job_has_none_until_it_is_resumed(world: ObjectWorld) -> None:
    job = world.submit()
    async with world.running():
        await world.until_running()
        order(world, "AbortJob", job)
        await world.until(lambda: world.phase == "Aborting")
        await world.finish()
        await world.until(lambda: world.phase == "Aborted")
        assert world.objects == {}

        order(world, "ResumeJob", job)
        await world.until_running()
        assert len(world.objects) == 3


async def test_what_a_controller_before_this_one_made_is_taken_over(world: ObjectWorld) -> None:
    job = world.submit()
    for kind in NAMES:
        world.add_object(kind, owner=job)
    before = world.objects
    async with world.running():
        await world.until_running()
        assert world.objects == before
        assert world.hosts == "j-w-0.j,j-w-1.j"

        world.set_phase("Succeeded")
        await world.until(lambda: not world.objects)


async def test_answers_that_were_lost_make_no_difference(world: ObjectWorld) -> None:
    world.submit()
    for resource in KINDS.values():
        world.api.lose(method="POST", path=f"/{resource.plural}", applied=True)
    async with world.running(max_requeues=0):
        await world.until_running()
        assert len(world.objects) == 3


async def test_objects_of_a_namesake_are_waited_for(world: ObjectWorld) -> None:
    world.submit()
    async with world.running(max_requeues=0):
        await world.until_running()
        old = world.job
        world.api.objects.delete(JOBS, old, {})
        for kind in NAMES:
            world.add_object(kind, owner=old)
        left = world.objects
        new = world.submit()
        await world.clock.advance(20)
        assert world.objects == left
        assert world.api.get(POD_GROUPS, "ns", f"j-{new['metadata']['uid']}") is None

        await world.finish()  # All that is left of the old Job is collected with them.
        await world.until_running()
        assert not world.objects.items() & left.items()
        assert world.told("PluginError") == []


async def test_a_service_of_others_is_left_alone(world: ObjectWorld) -> None:
    job = world.submit()
    spec = {"ports": [{"port": 80}]}
    world.add_object("Service", spec=spec)
    async with world.running():
        await world.until_running()
        order(world, "AbortJob", job)
        await world.until(lambda: world.phase == "Aborting")
        await world.quiet()

        (service,) = world.api.all(SERVICES)
        assert service["spec"] == spec
        assert world.writes().count("POST services") == 1
        assert world.told("PluginError") == [
            "Service j exists already and is not this Job's: it is left as it is"
        ]


async def test_a_config_map_of_others_stops_the_job_and_is_told(world: ObjectWorld) -> None:
    world.submit()
    world.add_object("ConfigMap", data={"mine": "x"})
    async with world.running():
        await world.until(lambda: world.told("PluginError"))
        await world.clock.advance(1)
        assert world.told("PluginError") == ["ConfigMap j-svc exists already and is not this Job's"]
        assert world.groups == []
        (config,) = world.api.all(CONFIG_MAPS)
        assert config["data"] == {"mine": "x"}

        world.lose_object("ConfigMap")
        await world.clock.advance(5)
        await world.until_running()


async def test_what_the_api_server_refuses_is_told(world: ObjectWorld) -> None:
    world.submit()
    world.api.fail(403, times=2, method="POST", path="/networkpolicies", reason="Forbidden")
    async with world.running():
        await world.until_running()
        assert world.told("PluginError") == [
            "Execute plugin when job add failed, err: 403 was ordered"
        ]


async def test_objects_are_forgotten_with_the_job(world: ObjectWorld) -> None:
    world.submit()
    foreign = world.add_object("NetworkPolicy")
    async with world.running() as controller:
        await world.until_running()
        world.api.objects.delete(JOBS, world.job, {})
        await world.finish()
        await world.quiet()
        assert world.objects["NetworkPolicy"] == foreign["metadata"]["uid"]
        assert (controller.view.gone, controller.view.foreign) == (set(), {})
