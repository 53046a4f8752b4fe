"""A reason, and the sentence and the numbers that are made of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pytest

from pumice.core.api.core import PodSpec, Taint
from pumice.core.conf import Configuration
from pumice.core.explain.answers import Comparison
from pumice.core.explain.comparisons import comparisons, short_resources
from pumice.core.explain.sentences import explained, fresh_condition, sentence
from pumice.core.explain.words import REFUSALS, refusal, refusals
from pumice.core.plan import GroupStatus, Reason
from tests.builders import (
    Thing,
    a_group,
    a_job,
    a_node,
    a_pod,
    a_queue,
    nodes,
)
from tests.unit.explain.builders import CAPACITY, ROOM, SHARES, a_picture, the_reason


def of(
    plugin: str, scope: str, resource: str, wanted: str, had: str, whole: str = ""
) -> Comparison:
    return Comparison(plugin, scope, resource, wanted, had, whole)  # type: ignore[arg-type]


def tainted(name: str) -> Thing:
    node = a_node(name)
    node.spec.taints = [Taint(key="dedicated", effect="NoSchedule")]
    return node


@dataclass(frozen=True)
class Case:
    """A world with a group `j` that waits."""

    world: Sequence[Thing | Iterable[Thing]]
    obstacle: str
    sentence: str
    compared: Sequence[Comparison] = ()
    short: Sequence[str] = ()
    conf: Configuration = ROOM


GANG_OF_3 = of("gang", "gang", "members", "3", "2")

CASES = {
    "one node short": Case(
        [nodes(n="2 8Gi"), a_job("j", 3)],
        "room",
        "The gang needs 3 pods at the same time, but only 2 of them find a node (1 node: not"
        " enough cpu for a pod that asks for 1).",
        [
            GANG_OF_3,
            of("allocate", "cluster", "cpu", "3", "2"),
            of("allocate", "node", "cpu", "1", "0"),
        ],
        ["cpu"],
    ),
    "only one finds a node": Case(
        [nodes(n="1 8Gi"), a_job("j", 2)],
        "room",
        "The gang needs 2 pods at the same time, but only 1 of them finds a node (1 node: not"
        " enough cpu for a pod that asks for 1).",
        [
            of("gang", "gang", "members", "2", "1"),
            of("allocate", "cluster", "cpu", "2", "1"),
            of("allocate", "node", "cpu", "1", "0"),
        ],
        ["cpu"],
    ),
    "none of a gang": Case(
        [nodes(n="2 8Gi"), a_job("j", 2, "9 1Gi")],
        "room",
        "The gang needs 2 pods at the same time, but none of them finds a node (1 node: not enough"
        " cpu for a pod that asks for 9).",
        [
            of("gang", "gang", "members", "2", "0"),
            of("allocate", "cluster", "cpu", "18", "2"),
            of("allocate", "cluster", "memory", "2Gi", "8Gi"),
            of("allocate", "node", "cpu", "9", "2"),
        ],
        ["cpu"],
    ),
    "enough in all, and on no node": Case(
        [nodes(n="2 8Gi", m="2 8Gi"), a_job("j", asks="3")],
        "room",
        "The pod finds no node (2 nodes: not enough cpu for a pod that asks for 3).",
        [
            of("gang", "gang", "members", "1", "0"),
            of("allocate", "cluster", "cpu", "3", "4"),
            of("allocate", "node", "cpu", "3", "2"),
        ],
        ["cpu"],
    ),
    "pods of which one is enough": Case(
        [nodes(n="2 8Gi"), a_job("j", 3, "4", gang=1)],
        "room",
        "None of the job's 3 pods finds a node (1 node: not enough cpu for a pod that asks for 4).",
        [
            of("gang", "gang", "members", "1", "0"),
            of("allocate", "cluster", "cpu", "4", "2"),
            of("allocate", "node", "cpu", "4", "2"),
        ],
        ["cpu"],
    ),
    "more than the gang needs": Case(
        [nodes(n="2 8Gi"), a_job("j", 4, gang=2)],
        "room",
        "The job has the pods that it needs; 2 more find no node (1 node: not enough cpu for a pod"
        " that asks for 1).",
        [
            of("allocate", "cluster", "cpu", "1", "0"),
            of("allocate", "node", "cpu", "1", "0"),
        ],
        ["cpu"],
    ),
    "pods of one task": Case(
        [
            nodes(n="4 8Gi"),
            a_group("j", least=2, roles={"ps": 1, "w": 1}),
            [a_pod(f"w-{i}", job="j", role="w", node="n") for i in range(2)],
            a_pod("ps-0", "9", job="j", role="ps"),
        ],
        "room",
        "The gang lacks pods of one of its tasks, and they find no node (1 node: not enough cpu for"
        " a pod that asks for 9).",
        [
            of("gang", "gang", "members", "2", "2"),
            of("allocate", "cluster", "cpu", "9", "2"),
            of("allocate", "node", "cpu", "9", "2"),
        ],
        ["cpu"],
    ),
    "several reasons, most nodes first": Case(
        [
            nodes(n="1 8Gi", m="1 8Gi"),
            [tainted(name) for name in "abc"],
            a_job("j", asks="2"),
        ],
        "room",
        "The pod finds no node (3 nodes: a taint that the pod does not tolerate; 2 nodes: not"
        " enough cpu for a pod that asks for 2).",
        [
            of("gang", "gang", "members", "1", "0"),
            of("allocate", "cluster", "cpu", "2", "14"),
            of("allocate", "node", "cpu", "2", "1"),
        ],
        ["cpu"],
    ),
    "nodes with no slot left": Case(
        [nodes(n="9 8Gi pods=1"), a_job("j", 2)],
        "room",
        "The gang needs 2 pods at the same time, but only 1 of them finds a node (1 node: no"
        " slot left for a pod).",
        [
            of("gang", "gang", "members", "2", "1"),
            of("allocate", "cluster", "cpu", "2", "9"),
            of("allocate", "cluster", "pods", "2", "1"),
            of("allocate", "node", "pods", "1", "0"),
        ],
        ["pods"],
    ),
    "no nodes at all": Case(
        [a_job("j", 2)],
        "room",
        "The gang needs 2 pods at the same time, but none of them finds a node (there is none).",
        [
            of("gang", "gang", "members", "2", "0"),
            of("allocate", "cluster", "cpu", "2", "0"),
            of("allocate", "cluster", "pods", "2", "0"),
        ],
        ["cpu"],
    ),
    "no nodes at all, and shares": Case(
        [a_job("j", 2)],
        "room",
        "The gang needs 2 pods at the same time, but none of them finds a node (there is none).",
        [
            of("gang", "gang", "members", "2", "0"),
            of("proportion", "queue", "cpu", "2", "0", "0"),
            of("allocate", "cluster", "cpu", "2", "0"),
            of("allocate", "cluster", "pods", "2", "0"),
        ],
        ["cpu"],
        SHARES,
    ),
    "a queue's share is used up": Case(
        [
            nodes(n="4 8Gi"),
            [a_queue("q"), a_queue("r")],
            a_job("k", 4, "1", gang=1, queue="r"),
            a_job("i", queue="q", on=["n"]),
            a_job("j", 2, queue="q"),
        ],
        "queue",
        "The gang needs 2 pods at the same time, but only 1 of them may be placed: queue q holds 1"
        " of the 2 cpu that it deserves, and a pod asks for 1.",
        [
            of("gang", "gang", "members", "2", "1"),
            of("proportion", "queue", "cpu", "2", "1", "2"),
            of("allocate", "cluster", "cpu", "2", "1"),
        ],
        ["cpu"],
        SHARES,
    ),
    "a queue may have no more": Case(
        [
            nodes(n="9 8Gi"),
            a_queue("q", capability="3"),
            a_job("i", queue="q", on=["n"]),
            a_job("j", 4, queue="q"),
        ],
        "queue",
        "The gang needs 4 pods at the same time, but only 2 of them may be placed: queue q holds 1"
        " of the 3 cpu that it may have, and a pod asks for 1.",
        [
            of("gang", "gang", "members", "4", "2"),
            of("capacity", "queue", "cpu", "4", "2", "3"),
            of("allocate", "cluster", "cpu", "4", "8"),
        ],
        ["cpu"],
        CAPACITY,
    ),
    "a queue that is not open": Case(
        [nodes(n="4 8Gi"), a_queue("q", state="Closed"), a_job("j", queue="q")],
        "queue",
        "The pod may not be placed: queue q is not open.",
        [
            of("gang", "gang", "members", "1", "0"),
            of("allocate", "cluster", "cpu", "1", "4"),
        ],
        ["cpu"],
        SHARES,
    ),
    "not let in: more than the cluster has": Case(
        [nodes(n="4 8Gi"), a_job("j", phase="Pending", resources="99 1Gi")],
        "admission",
        "The job is not let in yet: it needs 99 cpu to start, and the whole cluster has 4 cpu.",
        [of("overcommit", "cluster", "cpu", "99", "4800m", "4")],
        ["cpu"],
        SHARES,
    ),
    "not let in: the cluster is full": Case(
        [
            nodes(n="4 8Gi"),
            a_job("i", asks="4", on=["n"], phase="Running"),
            a_job("j", phase="Pending", resources="2"),
        ],
        "admission",
        "The job is not let in yet: it needs 2 cpu to start, and too much of the cluster's 4 cpu is"
        " taken or promised.",
        [of("overcommit", "cluster", "cpu", "2", "800m", "4")],
        ["cpu"],
        SHARES,
    ),
    "not let in: more than the queue may have": Case(
        [
            nodes(n="9 8Gi"),
            a_queue("q", capability="1"),
            a_job("j", phase="Pending", resources="2", queue="q"),
        ],
        "admission",
        "The job is not let in yet: 2 cpu asked for, queue q may have 1 in all.",
        [of("proportion", "queue", "cpu", "2", "1", "1")],
        ["cpu"],
        SHARES,
    ),
    "not let in: the queue is full": Case(
        [
            nodes(n="9 8Gi"),
            a_queue("q", capability="3"),
            a_job("i", asks="2", on=["n"], queue="q", resources="2", phase="Running"),
            a_job("j", phase="Pending", resources="2", queue="q"),
        ],
        "admission",
        "The job is not let in yet: 2 cpu asked for, queue q may have 3 in all, and too much of"
        " that is taken or promised.",
        [of("proportion", "queue", "cpu", "2", "1", "3")],
        ["cpu"],
        SHARES,
    ),
    "not let in: the queue is not open": Case(
        [
            nodes(n="4 8Gi"),
            a_queue("q", state="Closed"),
            a_job("j", phase="Pending", resources="1", queue="q"),
        ],
        "admission",
        "The job is not let in yet: queue q is not open.",
        conf=SHARES,
        short=["cpu"],
    ),
    "a queue that does not exist": Case(
        [nodes(n="4 8Gi"), a_job("j", queue="gone")],
        "no queue",
        "The queue gone does not exist: the job waits until somebody makes it.",
    ),
    "a malformed group": Case(
        [nodes(n="4 8Gi"), a_job("j", resources="plenty")],
        "malformed",
        "The PodGroup cannot be scheduled as it is written: minResources: not a quantity:"
        " 'plenty'.",
    ),
    "fewer pods than the gang needs": Case(
        [nodes(n="4 8Gi"), a_group("j", least=3), a_pod("j-0", job="j")],
        "too few pods",
        "The gang needs 3 pods at the same time, but has only 1.",
        [of("gang", "gang", "members", "3", "0")],
    ),
    "fewer pods than a task needs": Case(
        [
            nodes(n="4 8Gi"),
            a_group("j", least=2, roles={"ps": 1, "w": 1}),
            [a_pod(f"w-{i}", job="j", role="w") for i in range(2)],
        ],
        "too few pods",
        "The job needs a minimum of pods of each task, and for some task there are fewer.",
        [of("gang", "gang", "members", "2", "0")],
    ),
    "room that is promised": Case(
        [nodes(n="2 8Gi"), a_pod("old", node="n", deleting=True), a_job("j", 2)],
        "promised",
        "Pods that are ending still hold the room that is promised to the job.",
        [of("gang", "gang", "members", "2", "1")],
    ),
    "gates of others": Case(
        [
            nodes(n="4 8Gi"),
            a_group("j", least=1),
            a_pod("j-0", job="j", gates=["example.com/approval"]),
        ],
        "gates",
        "The pods are held by scheduling gates that others have put on them.",
        [of("gang", "gang", "members", "1", "0")],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_why_a_job_waits(case: Case) -> None:
    reason = the_reason(a_picture(*case.world, conf=case.conf))
    assert reason.obstacle == case.obstacle
    assert sentence(reason) == case.sentence
    assert list(comparisons(reason)) == list(case.compared)
    assert short_resources(reason) == list(case.short)


def test_what_is_none_of_the_known_obstacles_is_told_as_it_is() -> None:
    assert sentence(Reason("a", "b", "the moon is full")) == "The moon is full."


def test_a_sentence_shows_some_reasons_and_counts_the_rest() -> None:
    refused = {f"reason {i}": i for i in range(1, 8)}
    assert refusals(refused, {}) == (
        "7 nodes: reason 7; 6 nodes: reason 6; 5 nodes: reason 5; 4 nodes: reason 4; 3 more reasons"
    )


@pytest.mark.parametrize(
    ("reason", "want"),
    {
        "Insufficient nvidia.com/gpu": "not enough nvidia.com/gpu for a pod that asks for 2",
        "Insufficient memory": "not enough memory",
        "node(s) had the blues": "had the blues",
        "too many cooks": "too many cooks",
        **REFUSALS,
    }.items(),
)
def test_why_nodes_were_refused_in_plain_words(reason: str, want: str) -> None:
    assert refusal(reason, {"nvidia.com/gpu": 2000.0}) == want


# Conditions.


def the_status(*world: Thing | Iterable[Thing]) -> GroupStatus:
    (status,) = a_picture(*world).plan.groups
    return status


def test_a_condition_has_volcanos_words_and_then_the_sentence() -> None:
    status = the_status(nodes(n="2 8Gi"), a_job("j", 3))
    condition = fresh_condition(status)
    assert condition is not None
    assert explained(condition.message, status.reason) == (
        "1/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable;"
        " Pending: 1 Unschedulable, 2 Schedulable. Origin reason is j-2: 0/1 nodes are unavailable:"
        " 1 Insufficient cpu. The gang needs 3 pods at the same time, but only 2 of them find a"
        " node (1 node: not enough cpu for a pod that asks for 1)."
    )


def test_a_sentence_that_says_it_all_stands_alone() -> None:
    status = the_status(nodes(n="2 8Gi"), a_job("j", resources="plenty"))
    condition = fresh_condition(status)
    assert condition is not None
    assert explained(condition.message, status.reason) == (
        "The PodGroup cannot be scheduled as it is written: minResources: not a quantity: 'plenty'."
    )


def test_a_group_whose_surplus_waits_gets_no_condition_for_it() -> None:
    status = the_status(nodes(n="2 8Gi"), a_job("j", 4, gang=2))
    assert status.reason is not None
    assert fresh_condition(status) is None


def test_the_sentence_names_nobody_else_and_nothing_that_changes_with_others() -> None:
    """Another tenant's pods come and go: nothing of it is seen as long as room is short."""

    def told(others: int) -> str:
        world = [a_pod(f"secret-{i}", job="x", node="n", namespace="other") for i in range(others)]
        group = a_group("x", namespace="other")
        picture = a_picture(nodes(n="4 8Gi", m="3 8Gi"), group, world, a_job("j", asks="5"))
        return sentence(the_reason(picture))

    assert {told(others) for others in range(4)} == {
        "The pod finds no node (2 nodes: not enough cpu for a pod that asks for 5)."
    }


def test_a_pod_spec_is_no_part_of_it() -> None:
    spec = PodSpec(node_selector={"disk": "secret"})
    pod = a_pod("j-0", job="j", spec=spec)
    assert sentence(the_reason(a_picture(nodes(n="4 8Gi"), a_group("j"), pod))) == (
        "The pod finds no node (1 node: not what the pod's node selector or affinity asks for)."
    )
