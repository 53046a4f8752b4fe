"""
Cards on fake nodes, and device plugins that hand them out.

    nodes = card_nodes(bed, 5, "a", "b memory=16384")
    with device_plugins(bed) as plugins:
        bed.create(a_job("gang", replicas=2, min_available=2, **sharing(memory=8192)))
        ...                         # a fault of any kind fails the test when the block ends

A plugin sees pods by the bed's own watch, gives a pod its cards when it has come to a node, and
writes on it that it has. Fake nodes have no kubelet that would ask: it goes by what it sees.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from pumice.core import names
from pumice.local.errors import ApiError
from pumice.local.nodes import NODES, a_node, create_all
from tests.acceptance.bed import Bed, pod_path
from tests.acceptance.objects import Object
from tests.deviceplugin import HANDED_OUT, DevicePlugins
from tests.devices import register, vgpu, vgpu_amounts

Held = dict[str, tuple[int, int, int]]
"""What is handed out of each card: shares, memory, compute."""
SERVED_S = 30.0


def card_nodes(bed: Bed, count: int, *cards: str) -> list[str]:
    """
    Create nodes with vGPU cards; return their names.

    The cards are written as for `register`, each with a name that the node's is put before.
    """
    bodies = [_card_node(f"gpu-{i}", cards) for i in range(count)]
    create_all(bed.api, NODES, bodies)
    return [body["metadata"]["name"] for body in bodies]


def change_cards(bed: Bed, node: str, *cards: str) -> None:
    """Have a node register these cards and no others."""
    text = registration(node, cards)
    bed.api.patch(f"{NODES}/{node}", {"metadata": {"annotations": {names.VGPU_REGISTER: text}}})
    bed.resize(node, **vgpu_amounts(text))


def registration(node: str, cards: tuple[str, ...]) -> str:
    """Return a node's registration of cards; their names have the node's before them."""
    return register(*(f"{node}-{card}" for card in cards))


def _card_node(name: str, cards: tuple[str, ...]) -> Object:
    text = registration(name, cards)
    body = a_node(name, cpu=64, extra=vgpu_amounts(text))
    body["metadata"]["annotations"] = {names.VGPU_REGISTER: text}
    return body


def sharing(number: int = 1, memory: int = 0, cores: int = 0, percentage: int = 0) -> Object:
    """Return the part of a pod's spec by which its one container asks for cards."""
    return {"containers": [asking("main", number, memory, cores, percentage)]}


def asking(
    name: str, number: int = 1, memory: int = 0, cores: int = 0, percentage: int = 0
) -> Object:
    """Return a container that asks for cards."""
    asked = vgpu(number, memory, cores, percentage)
    resources = {"requests": {"cpu": "100m", **asked}, "limits": asked}
    return {"name": name, "image": "busybox", "resources": resources}


@contextmanager
def device_plugins(bed: Bed) -> Iterator[DevicePlugins]:
    """Let device plugins work on all nodes; fail where one of them met a fault."""
    follower = _Follower(bed)
    with ThreadPoolExecutor(1, "device plugins") as pool:
        running = pool.submit(follower.run)
        try:
            yield follower.plugins
        finally:
            follower.stop()
            running.result(SERVED_S)
    assert follower.plugins.faults == []


@dataclass
class _Follower:
    """Tells the plugins what the watches of the bed bring, and writes what they have done."""

    bed: Bed
    plugins: DevicePlugins = field(default_factory=DevicePlugins)
    _nodes: int = 0
    _pods: int = 0
    _stopping: bool = False

    def run(self) -> None:
        """Follow until told to stop, and until all that was seen by then is dealt with."""
        while True:
            with self.bed.changed:
                self.bed.changed.wait_for(lambda: self._stopping or self._behind())
                if not self._behind():
                    return
                served = self._catch_up()
                self.bed.changed.notify_all()
            for pod in served:
                with suppress(ApiError):  # it may be gone
                    self.bed.api.patch(pod_path(pod), {"metadata": {"annotations": HANDED_OUT}})

    def stop(self) -> None:
        """Stop once all is dealt with."""
        with self.bed.changed:
            self._stopping = True
            self.bed.changed.notify_all()

    def _behind(self) -> bool:
        nodes, pods = self.bed.node_objects.history, self.bed.pods.history
        return len(nodes) > self._nodes or len(pods) > self._pods

    def _catch_up(self) -> list[Object]:
        """Tell of what is new; return the pods that were given vGPU cards."""
        nodes, pods = self.bed.node_objects.history, self.bed.pods.history
        for seen in nodes[self._nodes :]:
            self.plugins.node(seen.object)
        new = pods[self._pods :]
        self._nodes, self._pods = len(nodes), len(pods)
        served = [seen.object for seen in new if self.plugins.pod(seen.kind, seen.object)]
        return [p for p in served if names.VGPU_IDS in p["metadata"]["annotations"]]


def held(bed: Bed, plugins: DevicePlugins) -> Held:
    """Return what is handed out of all cards together."""
    return {card: use for node in bed.node_objects for card, use in plugins.used(node).items()}
