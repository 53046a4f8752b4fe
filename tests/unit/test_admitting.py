"""The gate of the queue: whom it lets go, and what the queue keeps for those."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from pumice.core import names
from pumice.core.api.core import Pod
from pumice.core.api.scheduling import PodGroup, Queue
from pumice.core.ids import PodUid
from pumice.core.plan import Plan
from tests.builders import (
    ALL_FLAGS,
    a_cluster,
    a_conf,
    a_group,
    a_node,
    a_plan,
    a_plugin,
    a_pod,
    a_queue,
    placements,
)

GATE = names.QUEUE_ALLOCATION_GATE
OTHER = "example.com/other"
Made = list[PodGroup | Pod]


def gated(
    name: str, n: int = 1, asks: str = "1 1Gi", *, gates: tuple[str, ...] = (GATE,), **of: object
) -> Made:
    """Return a gang whose pods ask for the gate of their queue, and stand behind these gates."""
    group = a_group(name, least=n, **of)  # type: ignore[arg-type]
    notes = {GATE: "true"}
    pods = [a_pod(f"{name}-{i}", asks, job=name, gates=gates, annotations=notes) for i in range(n)]
    return [group, *pods]


def free(name: str, asks: str = "1 1Gi") -> Made:
    return [a_group(name, created=9), a_pod(f"{name}-0", asks, job=name, created=9)]


@dataclass(frozen=True)
class Case:
    made: list[Made]
    admitted: list[str] = field(default_factory=list)
    placed: dict[str, str] = field(default_factory=dict)
    capability: str = "2 64Gi"
    node: str = "8 64Gi"


CASES = {
    "a pod is let go when its queue may have it": Case([gated("a")], ["a-0"]),
    "whether or not there is a node for it": Case([gated("a")], ["a-0"], node="0 64Gi"),
    "it is not placed before": Case([gated("a"), free("b")], ["a-0"], {"b-0": "n"}),
    "not beyond what the queue may have": Case([gated("a", 1, "3 1Gi")]),
    "not as long as there is another gate": Case([gated("a", gates=(GATE, OTHER))]),
    "pods of other gates are nobody's business": Case([gated("a", gates=(OTHER,))]),
    "one after the other, as far as the queue goes": Case(
        [gated("a"), gated("b"), gated("c")], ["a-0", "b-0"]
    ),
    "of a gang all that it needs": Case([gated("a", 2)], ["a-0", "a-1"]),
    "or none": Case([gated("a", 3), gated("b")], ["b-0"]),
    "one that is through keeps its room from others": Case(
        [gated("a", 1, "2 1Gi", gates=()), free("b")], node="1 64Gi"
    ),
    "and takes it itself": Case([gated("a", 1, "2 1Gi", gates=())], placed={"a-0": "n"}),
    "who has been let go before is not kept from each other": Case(
        [gated("a", gates=()), gated("b", gates=()), gated("c", gates=())],
        placed={"a-0": "n", "b-0": "n"},
    ),
    "a group that was not let in waits": Case([gated("a", phase="Pending", resources="9 1Gi")]),
}


def plan_of(case: Case) -> Plan:
    conf = a_conf("enqueue allocate", ["gang", "predicates", a_plugin("capacity", *ALL_FLAGS)])
    queue = a_queue("default", capability=case.capability)
    return a_plan(conf, a_node("n", case.node), a_queue("root"), queue, *case.made)


def admitted(plan: Plan) -> list[str]:
    return [uid for decision in plan.admitted for uid in decision.pods]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_gate_of_the_queue(case: Case) -> None:
    plan = plan_of(case)
    assert (admitted(plan), placements(plan)) == (case.admitted, case.placed)


def test_queues_above_keep_the_room_as_well() -> None:
    tree: list[Queue] = [
        a_queue("root"),
        a_queue("team", capability="2 64Gi", parent="root"),
        a_queue("a", parent="team"),
        a_queue("b", parent="team"),
    ]
    waiting = gated("through", 1, "2 1Gi", gates=(), queue="a")
    other: Made = [a_group("other", queue="b"), a_pod("other-0", "1 1Gi", job="other")]
    flags = (*ALL_FLAGS, "enableHierarchy")
    conf = a_conf("allocate", ["gang", a_plugin("capacity", *flags)])
    plan = a_plan(conf, a_node("n", "1 64Gi"), tree, waiting, other)
    assert placements(plan) == {}


def test_a_cluster_follows_a_pod_through_the_gate() -> None:
    cluster = a_cluster(a_node("n"), gated("a"))
    before = cluster.task(PodUid("a-0"))
    cluster.set_pod(a_pod("a-0", "1 1Gi", job="a", annotations={GATE: "true"}))
    after = cluster.task(PodUid("a-0"))
    assert before is not None
    assert after is not None
    assert (before.gates, after.gates) == ((GATE,), ())
    assert before.cls is not after.cls
