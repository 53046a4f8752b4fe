"""One kube-scheduler for all: pods of others get cards of the same table as those with a plan."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from http import HTTPStatus

import pytest

from pumice.local.scheduler import PUMICE as KUBE_SCHEDULER
from tests.acceptance.bed import Bed
from tests.acceptance.cards import card_nodes, device_plugins, held, sharing
from tests.acceptance.length import Length
from tests.acceptance.objects import Object, a_pod
from tests.acceptance.parked import behind_proxy
from tests.acceptance.races import CONFIGURATION, NODE_CARDS, Race, nothing_is_leaked
from tests.acceptance.test_cards import Nth, arrives

pytestmark = pytest.mark.cluster
LAYOUTS = ("shared",)

MEMORY = 24576
OTHERS = "default-scheduler"
PATIENCE_S = 60.0
STAYS_S = 3.0


@pytest.fixture(scope="module")
def configuration() -> str:
    """vGPU cards are shared."""
    return CONFIGURATION


@pytest.mark.parametrize("schedulers", [[OTHERS], ["volcano", OTHERS]], ids=["alone", "mixed"])
async def test_they_race_for_the_memory_of_cards(
    bed: Bed, length: Length, schedulers: Sequence[str]
) -> None:
    card_nodes(bed, length.cards // len(NODE_CARDS), *NODE_CARDS)
    with device_plugins(bed) as plugins:
        async with bed.auditor() as auditor:
            race = Race(bed, plugins, room=4 * length.cards, full=(4, MEMORY, 0))
            race.start(10 * length.cards, schedulers=schedulers, **sharing(memory=MEMORY // 4))
            await race.is_run()
            await auditor.finish()
    nothing_is_leaked(bed, plugins)


ASKS: dict[str, tuple[Object, tuple[int, int, int]]] = {
    "whole cards": (sharing(), (1, MEMORY, 0)),
    "memory, and no number": (sharing(0, memory=1000), (1, 1000, 0)),
    "compute alone": (sharing(cores=30), (1, MEMORY, 30)),
    "a percentage": (sharing(percentage=25), (1, MEMORY // 4, 0)),
}


@pytest.mark.parametrize(("asked", "want"), ASKS.values(), ids=ASKS.keys())
async def test_they_go_where_a_card_is_left(
    bed: Bed, asked: Object, want: tuple[int, int, int]
) -> None:
    nodes = card_nodes(bed, 5, "a")
    # By the sums that kube-scheduler sees there is room on every node.
    taken = [a_pod(f"taken-{i}", **on_node(node)) for i, node in enumerate(nodes[1:])]
    with device_plugins(bed) as plugins:
        async with bed.auditor() as auditor:
            bed.create(*taken)
            await bed.until(lambda: plugins.served == 4, PATIENCE_S, "four nodes are taken")
            bed.create(a_pod("other", scheduler=OTHERS, **asked))
            await bed.until(lambda: plugins.served == 5, PATIENCE_S, "the last card is given away")
            await auditor.finish()
        assert plugins.used(nodes[0]) == {f"{nodes[0]}-a": want}


def on_node(node: str) -> Object:
    """Return what makes a pod take the compute of a node's only card."""
    selector = {"kubernetes.io/hostname": node}
    return {**sharing(memory=1, cores=100), "nodeSelector": selector}


@pytest.mark.parametrize("part", ["extender", KUBE_SCHEDULER])
async def test_a_kill_while_they_are_bound_gives_nothing_away_twice(bed: Bed, part: str) -> None:
    card_nodes(bed, 1, "a", "b")
    names = [f"pod-{i}" for i in range(3)]
    with device_plugins(bed) as plugins:
        async with behind_proxy(bed) as proxy, bed.auditor() as auditor:
            with proxy.hold(method="POST", path="/binding$", body=(bound := Nth(0))) as hold:
                bed.create(*(a_pod(name, scheduler=OTHERS, **sharing()) for name in names))
                await asyncio.wait_for(hold.arrived.wait(), PATIENCE_S)
                bed.kill(part)
                await auditor.killed()
                if part == "extender":
                    await hold.left.wait()
            await bed.aside(bed.restart, part)
            if part == "extender":  # what was on its way arrives late
                assert await arrives(proxy, bound.held) == HTTPStatus.CONFLICT
            await bed.until(lambda: plugins.served == 2, PATIENCE_S, "two of them have a card")
            await bed.never(lambda: plugins.served > 2, STAYS_S, "a card was given away twice")
            await auditor.finish()
        assert set(held(bed, plugins).values()) == {(1, MEMORY, 0)}
