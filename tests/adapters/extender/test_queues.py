"""The queue at `bind`: what it may hold, the pod that asks included."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from extender.queues import within_queue
from pumice.core.api.scheduling import Queue
from pumice.core.ids import PodUid
from tests.adapters.extender.world import World, a_node, a_pod


def a_queue(state: str = "Open", **capability: str) -> Queue:
    body: dict[str, Any] = {
        "metadata": {"name": "default"},
        "spec": {"capability": capability},
        "status": {"state": state},
    }
    return msgspec.convert(body, Queue)


QUEUES = {
    "without a capability": (a_queue(), True),
    "with room for the pods that it holds": (a_queue(cpu="2"), True),
    "with more than it may hold": (a_queue(cpu="1500m"), False),
    "with little of something that the pod does not ask for": (a_queue(memory="1"), True),
    "where nothing of cpu means no bound, as in Volcano": (a_queue(cpu="0"), True),
    "that is closed": (a_queue("Closed"), False),
}


@pytest.mark.parametrize(("queue", "want"), QUEUES.values(), ids=QUEUES.keys())
def test_within_queue(queue: Queue, want: bool) -> None:
    world = World.make(a_node("n1"), pods=(a_pod("a"), a_pod("b")))
    world.model.cluster.set_queue(queue)
    world.apply({"a": "n1", "b": "n1"})
    task = world.model.cluster.task(PodUid("a"))
    assert task is not None

    assert within_queue(world.model.cluster, task) is want


def test_a_resource_that_turns_up_later_is_not_limited() -> None:
    world = World.make(a_node("n1"), minimum=1)
    world.model.cluster.set_queue(a_queue(cpu="2"))
    gpu = {"containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]}
    world.model.set_pod(a_pod("a", gates=None, node="n1", spec=gpu))
    task = world.model.cluster.task(PodUid("a"))
    assert task is not None

    assert within_queue(world.model.cluster, task)
