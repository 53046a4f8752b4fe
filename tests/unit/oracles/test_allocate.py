"""allocate: how far a job is placed when not all of it can be."""

from __future__ import annotations

import pytest

from pumice.core.api.core import PodSpec
from tests.builders import a_conf, a_group, a_node, a_plugin, a_pod, a_queue, nodes
from tests.unit.oracles.cases import Case, a_job, check, members

CONF = a_conf(
    "allocate",
    [
        a_plugin(
            "gang", "enableJobOrder", "enableJobReady", "enableJobPipelined", "enableJobStarving"
        ),
        a_plugin("drf", "enablePreemptable", "enableJobOrder"),
        a_plugin("proportion", "enableQueueOrder", "enableReclaimable", "enabledAllocatable"),
        a_plugin("predicates", "enablePredicate"),
        a_plugin("nodeorder", "enableNodeOrder"),
    ],
)
MASTER = a_node("m", "1 2Gi pods=10", labels={"for": "master"})
WORKER = a_node("w", "1 2Gi pods=10", labels={"for": "worker"})
TWO_WORKERS = a_node("w", "2 2Gi pods=10", labels={"for": "worker"})
TWO_OF_EACH = [
    *members("j", "master", 2, chosen="master"),
    *members("j", "worker", 2, chosen="worker"),
]
HOST = "kubernetes.io/hostname"
TWO_QUEUES = [a_queue("a"), a_queue("b")]

CASES = {
    "a role that has no node leaves another role its own": Case(
        [
            TWO_WORKERS,
            a_group("j", least=1),
            members("j", "master", 1, chosen="master"),
            members("j", "worker", 1, chosen="worker"),
        ],
        {"worker-0": "w"},
    ),
    "a role that has its minimum may fail, and the others go on to theirs": Case(
        [MASTER, WORKER, a_group("j", least=2, roles={"master": 1, "worker": 1}), TWO_OF_EACH],
        {"master-0": "m", "worker-0": "w"},
    ),
    "a role that cannot have its minimum ends the try": Case(
        [MASTER, TWO_WORKERS, a_group("j", least=2, roles={"master": 2, "worker": 0}), TWO_OF_EACH],
    ),
    "minima of roles beyond the job's own do not end it": Case(
        [MASTER, TWO_WORKERS, a_group("j", least=2, roles={"master": 2, "worker": 1}), TWO_OF_EACH],
        {"master-0": "m", "worker-0": "w", "worker-1": "w"},
    ),
    "a role that has finished its minimum may fail": Case(
        [
            WORKER,
            a_group("j", least=2, roles={"master": 1, "worker": 1}),
            a_pod("done", "1 1G", job="j", role="master", node="w", phase="Succeeded"),
            TWO_OF_EACH,
        ],
        {"worker-0": "w"},
    ),
    "a role that failed is not tried again in a later turn": Case(
        [
            nodes(m="3 8G pods=10", n="1 8G pods=10"),
            a_group("j", least=0),
            a_pod("a", "4", job="j", role="x"),
            a_pod("b", "1", job="j", role="y"),
            a_pod("c", "1", job="j", role="x"),
        ],
        {"b": "m"},
    ),
    "tasks without a role are tried one by one": Case(
        [
            nodes(m="3 8G pods=10", n="1 8G pods=10"),
            a_group("j", least=0),
            [a_pod(name, asks, job="j") for name, asks in zip("abc", "411", strict=True)],
        ],
        {"b": "m", "c": "m"},
    ),
    "a job without a minimum is placed task by task": Case(
        [nodes(n="2 4Gi pods=10"), a_job("j", 2)], {"j-0": "n", "j-1": "n"}
    ),
    "equal queues take turns": Case(
        [nodes(n="2 4G pods=10"), TWO_QUEUES, a_job("x", 2, queue="a"), a_job("y", 2, queue="b")],
        {"x-0": "n", "y-0": "n"},
    ),
    "a job that fits nowhere does not block the queue behind": Case(
        [
            nodes(n="2 4G pods=10"),
            TWO_QUEUES,
            a_job("x", asks="3 1G", queue="a"),
            a_job("y", queue="b"),
        ],
        {"y-0": "n"},
    ),
    "a job that is ready waits for its next turn with a promise, too": Case(
        [
            nodes(full="2 8G pods=10", idle="2 8G pods=10"),
            a_pod("leaves", "2", node="full", deleting=True),
            [a_group("a", least=0), a_group("b", least=0)],
            a_pod("a-0", "1", job="a", spec=PodSpec(node_selector={HOST: "full"})),
            a_pod("a-1", "2", job="a"),
            a_pod("b-0", "2", job="b"),
        ],
        {"b-0": "idle"},
    ),
    "of equal jobs of one age the first by name goes first": Case(
        [nodes(n="1 4G pods=10"), a_job("b", gang=1), a_job("a", gang=1)], {"a-0": "n"}
    ),
    "a node takes no more pods than it has slots": Case(
        [nodes(n="8 8G pods=1"), a_job("j", 2)], {"j-0": "n"}
    ),
    "a node that names no slots takes nothing": Case([nodes(n="8 8G pods=0"), a_job("j")]),
    "a node whose memory is over-committed takes no pod of cpu alone": Case(
        [nodes(n="8 1G pods=10"), a_job("r", asks="1 2G", on=["n"]), a_job("j", asks="1")]
    ),
    "one with too few devices left still does": Case(
        [
            nodes(n="8 8G pods=10 a.b/gpu=1"),
            a_job("r", asks="1 1G a.b/gpu=2", on=["n"]),
            a_job("j", asks="1"),
        ],
        {"j-0": "n"},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_allocate(case: Case) -> None:
    check(case, CONF)
