"""The HyperNode controller against the in-memory API server."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from controllers.caches import CONFIGURATION
from controllers.hypernode import HyperNodeController
from pumice.core import names
from pumice.core.hypernodes.configuration import KEY, UfmSource
from pumice.core.hypernodes.ufm import UfmError
from pumice.kube.resources import CONFIG_MAPS, HYPERNODES, NAMESPACES, NODES, SECRETS
from tests.adapters.controllers.world import World
from tests.fakeapi.clock import until

Json = dict[str, Any]

NAMESPACE, NAME = CONFIGURATION
RACKS = """
networkTopologyDiscovery:
- source: label
  enabled: true
  config:
    networkTopologyTypes:
      rack: [{nodeLabel: zone}, {nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]
"""
UFM = """
networkTopologyDiscovery:
- source: ufm
  enabled: true
  interval: 10m
  credentials: {secretRef: {name: ufm}}
  config: {endpoint: ufm.example.com}
"""


class Fabric:
    """A fabric manager: which node hangs on which leaf."""

    def __init__(self) -> None:
        self.links: dict[str, str] = {"n0": "l0", "n1": "l1"}
        self.asked: list[tuple[str, str, str]] = []
        self.fails = False

    async def ports(self, source: UfmSource, username: str, password: str) -> bytes:
        self.asked.append((source.endpoint, username, password))
        if self.fails:
            raise UfmError("it is down")
        return msgspec.json.encode(
            [
                {"description": "Computer", "system_name": node, "peer_node_name": leaf}
                for node, leaf in self.links.items()
            ]
        )


class TopologyWorld(World[HyperNodeController]):
    """A world with the HyperNode controller in it."""

    def __init__(self) -> None:
        self.fabric = Fabric()
        super().__init__(
            lambda made: HyperNodeController(
                made.client, made.caches, made.events, clock=made.clock, ask_ufm=self.fabric.ports
            )
        )
        self.api.add(NAMESPACES, {"metadata": {"name": NAMESPACE}})

    def configure(self, text: str) -> None:
        old = self.api.get(CONFIG_MAPS, NAMESPACE, NAME)
        if old:
            self.api.put(CONFIG_MAPS, {**old, "data": {KEY: text}})
        else:
            body = {"metadata": {"name": NAME}, "data": {KEY: text}}
            self.api.add(CONFIG_MAPS, body, NAMESPACE)

    def add_node(self, name: str, **labels: str) -> None:
        self.api.add(NODES, {"metadata": {"name": name, "labels": labels}})

    def label(self, name: str, **labels: str) -> None:
        node = self.api.get(NODES, "", name)
        assert node is not None
        self.api.put(NODES, {**node, "metadata": {**node["metadata"], "labels": labels}})

    def add_hypernode(self, name: str, *nodes: str, **labels: str) -> None:
        members = [{"type": "Node", "selector": {"exactMatch": {"name": n}}} for n in nodes]
        meta = {"name": name, "labels": labels}
        self.api.add(HYPERNODES, {"metadata": meta, "spec": {"tier": 1, "members": members}})

    def members(self) -> dict[str, list[str]]:
        """Return the members of every HyperNode, by what it stands for or its name."""
        return {
            self._title(h): [m["selector"]["exactMatch"]["name"] for m in h["spec"]["members"]]
            for h in self.api.all(HYPERNODES)
        }

    def counts(self) -> dict[str, int]:
        return {
            self._title(h): h.get("status", {}).get("nodeCount", -1)
            for h in self.api.all(HYPERNODES)
        }

    def _title(self, hypernode: Json) -> str:
        labels = hypernode["metadata"].get("labels", {})
        return str(labels.get("rack") or labels.get("zone") or hypernode["metadata"]["name"])


@pytest.fixture
def world() -> TopologyWorld:
    return TopologyWorld()


async def test_labels_are_discovered_followed_and_forgotten(world: TopologyWorld) -> None:
    world.configure(RACKS)
    world.add_node("n0", rack="a")
    world.add_node("n1", rack="a")
    async with world.running():
        await world.clock.advance(2)
        assert world.members() == {"a": ["n0", "n1"]}
        assert world.counts() == {"a": 2}
        (found,) = world.api.all(HYPERNODES)
        assert found["spec"]["tierName"] == "rack"
        assert found["metadata"]["labels"][names.TOPOLOGY_SOURCE] == "label"

        world.label("n1", rack="b", zone="z")
        await world.clock.advance(2)
        members = world.members()
        assert (members["a"], members["b"], len(members["z"])) == (["n0"], ["n1"], 1)
        assert world.counts() == {"a": 1, "b": 1, "z": 1}

        world.label("n0")
        world.label("n1")
        await world.clock.advance(2)
        assert world.members() == {}


async def test_what_somebody_changes_or_deletes_is_put_right(world: TopologyWorld) -> None:
    world.configure(RACKS)
    world.add_node("n0", rack="a")
    async with world.running():
        await world.clock.advance(2)
        (found,) = world.api.all(HYPERNODES)
        world.api.put(HYPERNODES, {**found, "spec": {**found["spec"], "tier": 5}})
        await world.clock.advance(2)
        (mended,) = world.api.all(HYPERNODES)
        assert mended["spec"] == found["spec"]

        world.api.objects.delete(HYPERNODES, mended, {})
        await world.clock.advance(2)
        assert world.members() == {"a": ["n0"]}


async def test_hypernodes_made_by_hand_have_their_nodes_counted_and_are_left(
    world: TopologyWorld,
) -> None:
    world.configure(RACKS)
    world.add_hypernode("mine", "n0", "n1")
    async with world.running():
        await world.clock.advance(2)
        assert world.counts() == {"mine": 2}
        (condition,) = world.api.all(HYPERNODES)[0]["status"]["conditions"]
        assert condition["message"] == "0 nodes; not found: Node n0, Node n1"

        world.add_node("n0")
        world.add_node("n1")
        await world.clock.advance(2)
        (condition,) = world.api.all(HYPERNODES)[0]["status"]["conditions"]
        assert (condition["status"], condition["message"]) == ("True", "2 nodes")


async def test_a_second_start_writes_nothing_and_neither_does_time(world: TopologyWorld) -> None:
    world.configure(RACKS)
    world.add_node("n0", rack="a", zone="z")
    world.add_hypernode("mine", "n0")
    async with world.running():
        await world.clock.advance(5)
    world.writes()

    async with world.running():
        await world.clock.advance(300)

    assert world.writes() == []


async def test_a_source_that_is_turned_off_leaves_what_it_found(world: TopologyWorld) -> None:
    world.configure(RACKS)
    world.add_node("n0", rack="a")
    async with world.running():
        await world.clock.advance(2)
        world.configure("")
        world.label("n0", rack="b")
        await world.clock.advance(2)
        assert world.members() == {"a": ["n0"]}

        world.configure(RACKS)
        await world.clock.advance(2)
        assert world.members() == {"b": ["n0"]}


async def test_mistakes_are_told_on_the_config_map_once(world: TopologyWorld) -> None:
    world.configure("networkTopologyDiscovery: [{source: roce, enabled: true}]")
    async with world.running():
        await world.clock.advance(5)
        text = "networkTopologyDiscovery[0]: unsupported discoverer type: roce"
        assert world.events() == {(NAME, "InvalidConfiguration", text)}

        world.configure(RACKS)
        world.add_node("n0", rack="a")
        await world.clock.advance(2)
        assert world.members() == {"a": ["n0"]}


async def test_one_that_the_api_server_refuses_is_told_and_the_others_are_made(
    world: TopologyWorld,
) -> None:
    world.configure(RACKS)
    world.add_node("n0", rack="a")
    world.add_node("n1", rack="b")
    world.api.fail(
        422,
        times=100,
        reason="Invalid",
        when=lambda call: call.method == "POST" and b'"rack":"a"' in call.body,
    )
    async with world.running():
        await world.clock.advance(100)
        assert world.members() == {"b": ["n1"]}
        ((_, reason, message),) = world.events()
        assert reason == "DiscoveryFailed"
        assert message.endswith(": 422 was ordered")


async def test_an_outage_is_waited_out(world: TopologyWorld) -> None:
    world.configure(RACKS)
    world.add_node("n0", rack="a")
    world.api.fail(503, method="POST", path="hypernodes", times=3)
    world.api.fail(409, method="PATCH", path="status", reason="Conflict", times=2)
    async with world.running():
        await world.clock.advance(10)
        assert world.counts() == {"a": 1}
        assert world.events() == set()


def credentials(world: TopologyWorld) -> None:
    data = {k: base64.b64encode(v).decode() for k, v in (("username", b"u"), ("password", b"p"))}
    world.api.add(SECRETS, {"metadata": {"name": "ufm"}, "data": data}, NAMESPACE)


async def test_a_fabric_manager_is_asked_every_interval(world: TopologyWorld) -> None:
    credentials(world)
    world.configure(UFM)
    async with world.running():
        await world.clock.advance(2)
        assert world.fabric.asked == [("https://ufm.example.com", "u", "p")]
        spine = ["leaf-hn-0", "leaf-hn-1"]
        assert world.members() == {"leaf-hn-0": ["n0"], "leaf-hn-1": ["n1"], "spine-hn": spine}

        world.fabric.links["n1"] = "l0"
        await world.clock.advance(600)
        assert len(world.fabric.asked) == 2
        assert world.members() == {"leaf-hn-0": ["n0", "n1"], "spine-hn": ["leaf-hn-0"]}


async def test_what_was_deleted_comes_back_without_asking_again(world: TopologyWorld) -> None:
    credentials(world)
    world.configure(UFM)
    async with world.running():
        await world.clock.advance(2)
        spine = world.api.get(HYPERNODES, "", "spine-hn")
        assert spine is not None
        world.api.objects.delete(HYPERNODES, spine, {})
        await world.clock.advance(2)
        assert "spine-hn" in world.members()
        assert len(world.fabric.asked) == 1


async def test_a_fabric_manager_that_is_down_leaves_all_and_is_asked_again(
    world: TopologyWorld,
) -> None:
    credentials(world)
    world.configure(UFM)
    async with world.running():
        await world.clock.advance(2)
        before = world.members()
        world.fabric.fails = True
        await world.clock.advance(700)
        assert world.members() == before
        assert world.events() == {(NAME, "DiscoveryFailed", "source ufm: it is down")}

        world.fabric.fails = False
        world.fabric.links["n1"] = "l0"
        await world.clock.advance(60)
        assert world.members()["leaf-hn-0"] == ["n0", "n1"]


async def test_credentials_that_are_missing_are_told_and_found_later(world: TopologyWorld) -> None:
    world.configure(UFM)
    async with world.running():
        await until(world.events)
        ((_, reason, message),) = world.events()
        assert (reason, message[:40]) == (
            "DiscoveryFailed",
            "source ufm: Secret pumice-system/ufm: se",
        )
        assert world.fabric.asked == []

        credentials(world)
        await world.clock.advance(60)
        assert "spine-hn" in world.members()
