"""Parts of cards are taken back: no more than must, from the card that then has room, at once."""

from __future__ import annotations

import pytest

from pumice.core.conf import Configuration
from pumice.core.cycle import run_session
from pumice.core.ids import PodUid
from pumice.core.plan import Plan
from tests.builders import a_cluster, a_conf, a_group, a_plugin, a_priority_class, a_queue
from tests.devices import a_card_pod, a_vgpu_node, vgpu
from tests.unit.test_deviceshare import cards, on

QUEUES = [a_queue("default"), a_queue("rich"), a_queue("poor")]
RANKS = [a_priority_class("low", 1), a_priority_class("high", 10)]


def conf(action: str) -> Configuration:
    shared = a_plugin(
        "deviceshare", deviceshare__VGPUEnable=True, deviceshare__SchedulePolicy="binpack"
    )
    return a_conf(
        f"enqueue allocate {action} backfill",
        ["priority", "gang", "conformance"],
        ["predicates", "proportion", "network-topology-aware", shared],
    )


ACTIONS = {
    "preempt": ("default", "default"),
    "gangpreempt": ("default", "default"),
    "reclaim": ("rich", "poor"),
    "gangreclaim": ("rich", "poor"),
}


#: card and memory of each pod that runs: 4,576 are left of `a`, and 6,576 of `b`
RUNNING = {"old-0": ("a", 10000), "old-1": ("a", 10000), "old-2": ("b", 18000)}
ASKED = 20000


@pytest.mark.parametrize(("action", "queues"), ACTIONS.items(), ids=ACTIONS)
def test_what_is_taken_back_is_on_one_card(action: str, queues: tuple[str, str]) -> None:
    theirs, mine = queues
    cluster = a_cluster(
        QUEUES,
        RANKS,
        a_vgpu_node("n1", "a", "b"),
        a_group("old", least=0, queue=theirs, priority="low", phase="Running"),
        [
            on(a_card_pod(name, vgpu(1, memory), job="old", priority=1), "n1", card)
            for name, (card, memory) in RUNNING.items()
        ],
        a_group("new", least=1, queue=mine, priority="high", phase="Inqueue"),
        a_card_pod("new-0", vgpu(1, ASKED), job="new", priority=10),
    )

    plan = run_session(cluster.snapshot(), conf(action), 0.0, "s1")

    victims = evicted(plan)
    [card] = {RUNNING[name][0] for name in victims}
    for spared in victims:
        gone = set(victims) - {spared}
        assert left_of(card, gone) < ASKED <= left_of(card, set(victims)), "each has to go"
    assert cards(plan) == {}, "they are still there"

    for name in victims:
        cluster.dismiss(PodUid(name))
    cluster.promise(PodUid("new-0"), "n1")
    again = run_session(cluster.snapshot(), conf(action), 0.0, "s2")
    assert (evicted(again), cards(again)) == ([], {}), "they are on their way"

    for name in victims:
        cluster.remove_pod(PodUid(name))
    last = run_session(cluster.snapshot(), conf(action), 0.0, "s3")
    assert cards(last) == {"new-0": card}


def left_of(card: str, gone: set[str]) -> int:
    held = (memory for name, (on, memory) in RUNNING.items() if on == card and name not in gone)
    return 24576 - sum(held)


def evicted(plan: Plan) -> list[str]:
    return [victim.uid for eviction in plan.evictions for victim in eviction.victims]
