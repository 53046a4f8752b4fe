"""Whatever happens to objects and connections: what was told adds up to what is."""

from __future__ import annotations

import asyncio
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.kube.client import Client
from pumice.kube.informer import SILENCE_S, Added, Deleted, Event, Informer, Updated
from pumice.kube.patches import MergePatch
from pumice.kube.resources import CONFIG_MAPS, ConfigMap
from tests.adapters.kube.conftest import running
from tests.effort import examples
from tests.fakeapi import FakeApi, ManualClock, settle

NAMES = ("a", "b", "c")

steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(NAMES)),
        st.tuples(st.just("write and observe late"), st.sampled_from(NAMES)),
        st.tuples(st.just("delete"), st.sampled_from(NAMES)),
        st.tuples(
            st.sampled_from(["drop", "end", "silence", "compact", "bookmark", "lose", "refuse"]),
            st.just(""),
        ),
        st.tuples(st.sampled_from(["settle", "wait"]), st.just("")),
    ),
    max_size=30,
)


class World:
    """A server, an informer, and what the informer's words add up to."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.api = FakeApi(self.clock)
        self.client = self.api.client()
        self.uids: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.late: list[ConfigMap] = []
        self.informer: Informer[ConfigMap, str] = Informer(
            self.client,
            CONFIG_MAPS,
            self.hear,
            project=lambda obj: obj.metadata.resource_version,
            clock=self.clock,
            rng=random.Random(0),
        )

    def hear(self, event: Event[ConfigMap, str]) -> None:
        """Add up; each event must fit what was told before it."""
        match event:
            case Added(key, obj):
                assert key not in self.uids
                self.uids[key] = obj.metadata.uid
                self.versions[key] = int(obj.metadata.resource_version)
            case Updated(key, obj, old):
                assert self.uids[key] == obj.metadata.uid
                assert self.versions[key] == int(old) < int(obj.metadata.resource_version)
                self.versions[key] = int(obj.metadata.resource_version)
            case Deleted(key, uid, old):
                assert self.uids.pop(key) == uid
                assert self.versions.pop(key) == int(old)

    async def do(self, what: str, name: str) -> None:
        match what:
            case "write" | "write and observe late":
                obj = await write(self.client, self.api, name)
                if what == "write":
                    self.informer.observe(obj)
                else:
                    self.late.append(obj)
            case "delete":
                if self.api.get(CONFIG_MAPS, "default", name):
                    await self.client.delete(CONFIG_MAPS, "default", name)
            case "drop":
                self.api.drop_watches()
            case "end":
                self.api.end_watches()
            case "silence":
                self.api.silence_watches()
            case "compact":
                self.api.compact()
            case "bookmark":
                self.api.bookmark()
            case "lose":
                self.api.lose(method="GET")
            case "refuse":
                self.api.fail(500, method="GET")
            case "settle":
                await settle()
                for obj in self.late:
                    self.informer.observe(obj)
                self.late.clear()
            case "wait":
                await self.clock.advance(SILENCE_S / 2)


async def write(client: Client, api: FakeApi, name: str) -> ConfigMap:
    if api.get(CONFIG_MAPS, "default", name):
        patch = MergePatch({"data": {"v": str(api.store.version)}})
        return await client.patch(CONFIG_MAPS, "default", name, patch)
    return await client.create(CONFIG_MAPS, "default", {"metadata": {"name": name}})


@settings(max_examples=examples(60))
@given(steps)
def test_converges(plan: list[tuple[str, str]]) -> None:
    async def run() -> None:
        world = World()
        async with running(world.informer.run()):
            for what, name in plan:
                await world.do(what, name)
            await world.clock.advance(3 * SILENCE_S)
            is_there = {
                f"default/{o['metadata']['name']}": o["metadata"]["uid"]
                for o in world.api.all(CONFIG_MAPS)
            }
            assert world.uids == is_there
            assert world.informer.store.keys() == is_there.keys()
        await world.client.close()

    asyncio.run(run())
