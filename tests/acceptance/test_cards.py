"""Parts of cards: never more is handed out than there is, nothing is lost, all that fits runs."""

from __future__ import annotations

import asyncio
import json
import random
from http import HTTPStatus

import aiohttp
import pytest

from pumice.core import names
from tests.acceptance.bed import Bed
from tests.acceptance.cards import (
    asking,
    card_nodes,
    change_cards,
    device_plugins,
    held,
    sharing,
)
from tests.acceptance.conftest import LAYOUTS as BOTH
from tests.acceptance.length import FULL, Length, chosen_length
from tests.acceptance.objects import Object, a_job, a_pod
from tests.acceptance.parked import behind_proxy
from tests.acceptance.proxy import FaultProxy
from tests.acceptance.races import CONFIGURATION, NODE_CARDS, Race, nothing_is_leaked
from tests.deviceplugin import DevicePlugins

pytestmark = pytest.mark.cluster
#: in the short form the other layout is that of the pods of others, some of ours among them
LAYOUTS = BOTH if chosen_length().name == FULL.name else None

MEMORY = 24576
PATIENCE_S = 60.0
KILL_LIMIT_S = 30.0
STAYS_S = 3.0


@pytest.fixture(scope="module")
def configuration() -> str:
    """vGPU cards are shared."""
    return CONFIGURATION


async def test_pods_race_for_the_memory_of_cards(bed: Bed, length: Length) -> None:
    card_nodes(bed, length.cards // len(NODE_CARDS), *NODE_CARDS)
    with device_plugins(bed) as plugins:
        async with bed.auditor() as auditor:
            race = Race(bed, plugins, room=4 * length.cards, full=(4, MEMORY, 0))
            race.start(10 * length.cards, **sharing(memory=MEMORY // 4))
            await race.is_run()
            await auditor.finish()
    nothing_is_leaked(bed, plugins)


async def test_pods_race_for_two_cards_each_and_half_of_their_compute(
    bed: Bed, length: Length
) -> None:
    card_nodes(bed, length.cards // len(NODE_CARDS), *NODE_CARDS)
    with device_plugins(bed) as plugins:
        async with bed.auditor() as auditor:
            race = Race(bed, plugins, room=length.cards, full=(2, 2000, 100))
            race.start(5 * length.cards, **sharing(2, memory=1000, cores=50))
            await race.is_run()
            await auditor.finish()
    nothing_is_leaked(bed, plugins)


async def test_a_gang_that_fills_the_cards_of_one_node_starts_at_once(bed: Bed) -> None:
    (node,) = card_nodes(bed, 1, *"abcdefgh")
    with device_plugins(bed) as plugins:
        async with bed.auditor() as auditor:
            bed.create(a_job("gang", replicas=8, min_available=8, **sharing()))
            await bed.until(lambda: len(bed.running("gang")) == 8, PATIENCE_S, "the gang runs")
            await bed.until(lambda: plugins.served == 8, PATIENCE_S, "it has its cards")
            bed.create(a_job("late", replicas=2, min_available=2, **sharing(memory=1)))
            await bed.never(lambda: bed.bound("late"), STAYS_S, "more than there is was given away")
            await auditor.finish()
    assert set(plugins.used(node).values()) == {(1, MEMORY, 0)}


async def test_percentages_are_of_cards_of_unlike_size(bed: Bed) -> None:
    card_nodes(bed, 1, "big memory=40960", "small memory=16384", "odd memory=999")
    with device_plugins(bed) as plugins:
        async with bed.auditor() as auditor:
            bed.create(*(a_pod(f"half-{i}", **sharing(percentage=50)) for i in range(7)))
            await bed.until(lambda: plugins.served == 6, PATIENCE_S, "two halves of each card")
            await bed.never(lambda: plugins.served > 6, STAYS_S, "a third half was given away")
            await auditor.finish()
        assert held(bed, plugins) == {
            "gpu-0-big": (2, 40960, 0),
            "gpu-0-small": (2, 16384, 0),
            "gpu-0-odd": (2, 998, 0),
        }


async def test_each_container_gets_what_it_asks_for(bed: Bed) -> None:
    (node,) = card_nodes(bed, 1, "a", "b", "c")
    plain = {"name": "plain", "image": "busybox"}
    containers = [asking("half", memory=MEMORY // 2), plain, asking("quarter", memory=MEMORY // 4)]
    with device_plugins(bed) as plugins:
        async with bed.auditor() as auditor:
            bed.create(a_job("gang", replicas=4, min_available=4, containers=containers))
            await bed.until(lambda: plugins.served == 4, PATIENCE_S, "all have their cards")
            await auditor.finish()
        assert {(memory, cores) for _, memory, cores in plugins.used(node).values()} == {
            (MEMORY, 0)
        }


async def test_init_containers_have_cards_before_the_others_and_sidecars_beside_them(
    bed: Bed,
) -> None:
    (node,) = card_nodes(bed, 1, "a", "b")
    sidecar = {**asking("sidecar", memory=MEMORY // 4), "restartPolicy": "Always"}
    init = [sidecar, asking("init", memory=MEMORY // 4 * 3)]
    pods = [a_pod(f"pod-{i}", initContainers=init, **sharing(memory=MEMORY // 2)) for i in range(3)]
    with device_plugins(bed) as plugins:
        async with bed.auditor() as auditor:
            bed.create(*pods)
            await bed.until(lambda: plugins.served == 2, PATIENCE_S, "two have a card each")
            assert set(plugins.used(node).values()) == {(2, MEMORY, 0)}
            await bed.until(lambda: len(running(bed, pods)) == 2, PATIENCE_S, "they run")
            await bed.aside(bed.end, *running(bed, pods)[:1])
            await bed.until(lambda: plugins.served == 3, PATIENCE_S, "the last has its card")
            await auditor.finish()


def running(bed: Bed, pods: list[Object]) -> list[Object]:
    """Return those of the pods that run."""
    found = (bed.pod(pod["metadata"]["name"]) for pod in pods)
    return [pod for pod in found if pod and pod["status"].get("phase") == "Running"]


async def test_two_cards_for_one_pod_are_at_one_numa_node(bed: Bed) -> None:
    (node,) = card_nodes(bed, 1, "a numa=0", "b numa=1", "c numa=0", "d numa=1")
    with device_plugins(bed) as plugins:
        async with bed.auditor() as auditor:
            bed.create(a_pod("one", **sharing()))
            await bed.until(lambda: plugins.served == 1, PATIENCE_S, "one card is in use")
            bed.create(a_pod("two", **sharing(2)))
            await bed.until(lambda: plugins.served == 2, PATIENCE_S, "two more are")
            await auditor.finish()
        assert set(plugins.used(node)) == {f"{node}-{card}" for card in "abd"}


async def test_a_sick_card_keeps_its_pods_and_takes_no_more(bed: Bed) -> None:
    (node,) = card_nodes(bed, 1, "a", "b")
    with device_plugins(bed) as plugins:
        async with bed.auditor() as auditor:
            for card, memory in (("a", 20000), ("b", 4000)):
                named = {names.USE_GPU_UUID: f"{node}-{card}"}
                bed.create(a_pod(f"on-{card}", annotations=named, **sharing(memory=memory)))
            await bed.until(lambda: plugins.served == 2, PATIENCE_S, "both cards are in use")
            change_cards(bed, node, "a", "b sick")
            bed.create(*(a_pod(f"small-{i}", **sharing(memory=4000)) for i in range(2)))
            await bed.until(lambda: plugins.served == 3, PATIENCE_S, "one has room beside another")
            await bed.never(lambda: plugins.served > 3, STAYS_S, "a sick card was given away")
            change_cards(bed, node, "a", "b")
            await bed.until(lambda: plugins.served == 4, PATIENCE_S, "it is well, the other runs")
            await auditor.finish()
        assert plugins.used(node) == {f"{node}-a": (2, 24000, 0), f"{node}-b": (2, 8000, 0)}


async def test_what_is_deleted_while_the_extender_is_down_makes_room(bed: Bed) -> None:
    card_nodes(bed, 2, "a", "b")
    old = [f"old-{i}" for i in range(4)]
    with device_plugins(bed) as plugins:
        async with bed.auditor(limit_s=KILL_LIMIT_S) as auditor:
            bed.create(*(a_pod(name, **sharing()) for name in old))
            await bed.until(lambda: plugins.served == 4, PATIENCE_S, "the cards are in use")
            bed.kill("extender")
            await auditor.killed()
            for name in old[:3]:
                bed.delete(a_pod(name), grace_s=0)
            bed.create(a_job("new", replicas=3, min_available=3, **sharing()))
            await bed.until(lambda: len(bed.pods) == 1, PATIENCE_S, "the pods are gone")
            await bed.aside(bed.restart, "extender")
            await bed.until(lambda: len(bed.running("new")) == 3, PATIENCE_S, "the new ones run")
            await auditor.finish()
        assert set(held(bed, plugins).values()) == {(1, MEMORY, 0)}


async def test_a_kill_between_choice_and_binding_loses_nothing(bed: Bed, length: Length) -> None:
    card_nodes(bed, 2, *NODE_CARDS)
    rng = random.Random(9)
    with device_plugins(bed) as plugins:
        async with behind_proxy(bed) as proxy, bed.auditor(limit_s=KILL_LIMIT_S) as auditor:
            for number in range(length.kills):
                bound = Nth(rng.randrange(SIZE))
                with proxy.hold(method="POST", path="/binding$", body=bound) as hold:
                    bed.create(a_gang(number))
                    await asyncio.wait_for(hold.arrived.wait(), PATIENCE_S)
                    bed.kill("extender")
                    await auditor.killed()
                    await hold.left.wait()
                await bed.aside(bed.restart, "extender")
                assert await arrives(proxy, bound.held) == HTTPStatus.CONFLICT
                await runs_on_cards_of_its_own(bed, plugins, number)
                if number >= KEPT:
                    await bed.aside(bed.delete, a_gang(number - KEPT))
                    await bed.until(lambda: shares(bed, plugins) == KEPT * SIZE, PATIENCE_S)
            await auditor.finish()
        for number in range(max(length.kills - KEPT, 0), length.kills):
            bed.delete(a_gang(number))
        await bed.until(lambda: not bed.pods, PATIENCE_S, "all pods are gone")
    nothing_is_leaked(bed, plugins)


SIZE, KEPT = 5, 2
"""Pods of a gang, each with half a card, and how many of the gangs stay: one more has room."""


def a_gang(number: int) -> Object:
    return a_job(f"gang-{number}", replicas=SIZE, min_available=SIZE, **sharing(memory=MEMORY // 2))


class Nth:
    """Accepts all calls but the first few."""

    def __init__(self, passed: int) -> None:
        self._left = passed
        #: the first that was accepted
        self.held = b""

    def __call__(self, body: bytes) -> bool:
        if not self._left:
            self.held = body
        self._left -= 1
        return self._left < 0


async def arrives(proxy: FaultProxy, binding: bytes) -> int:
    """Have the API server look at a binding that was kept from it; return its answer's status."""
    meta = json.loads(binding)["metadata"]
    url = f"{proxy.url}/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/binding"
    headers = {"Content-Type": "application/json"}
    async with aiohttp.request("POST", url, data=binding, headers=headers) as answer:
        return answer.status


async def runs_on_cards_of_its_own(bed: Bed, plugins: DevicePlugins, number: int) -> None:
    name, wanted = f"gang-{number}", (number + 1) * SIZE
    await bed.until(lambda: len(bed.running(name)) == SIZE, PATIENCE_S, f"{name} runs")
    await bed.until(lambda: plugins.served == wanted, PATIENCE_S, f"{name} has its cards")
    assert plugins.faults == []


def shares(bed: Bed, plugins: DevicePlugins) -> int:
    """Return how many shares of cards are handed out."""
    return sum(use[0] for use in held(bed, plugins).values())
