"""nodegroup: which groups of nodes a queue's pods may use, and like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from pumice.core import names
from pumice.core.api.scheduling import NodeGroupRules, Queue, QueueAffinity
from pumice.core.extension import Code
from pumice.core.plan import Reason
from pumice.core.plugins.nodegroup import EXCEEDED, INVALID, NO_LABEL, NO_RULES, NOT_WANTED
from pumice.core.session import Session
from tests.builders import a_cluster, a_conf, a_job, a_node, a_plugin, a_queue, a_session
from tests.unit.oracles.views import refused, scores, task

GROUPS = {"n1": "g1", "n2": "g2", "n3": "g3", "n4": "g4", "n5": ""}


def queue_with(name: str = "q", parent: str = "", **rules: str) -> Queue:
    """Return a queue; `near`, `like`, `far` and `dislike` name groups."""
    queue = a_queue(name, parent=parent)
    near, like, far, dislike = (
        rules[key].split() if key in rules else None for key in ("near", "like", "far", "dislike")
    )
    queue.spec.affinity = QueueAffinity(
        node_group_affinity=NodeGroupRules(near, like),
        node_group_anti_affinity=NodeGroupRules(far, dislike),
    )
    return queue


@dataclass(frozen=True)
class Case:
    queues: list[Queue]
    scores: list[float]
    refused: Mapping[str, str]
    arguments: Mapping[str, object] = field(default_factory=dict)
    hierarchy: bool = False


RULES = {"near": "g1 g3", "like": "g3", "far": "g2 g4", "dislike": "g4"}
CASES = {
    "required, preferred, avoided": Case(
        [queue_with(**RULES)], [100, 0, 150, -1, 0], {"n2": NOT_WANTED, "n5": NO_LABEL}
    ),
    "what is preferred need not be required": Case(
        [queue_with(near="g1", like="g3", far="g2", dislike="g4")],
        [100, 0, 50, -1, 0],
        {"n2": NOT_WANTED, "n5": NO_LABEL},
    ),
    "a queue without rules uses nodes without a group, if not strict": Case(
        [a_queue("q")],
        [0, 0, 0, 0, 0],
        dict.fromkeys(("n1", "n2", "n3", "n4"), NO_RULES),
        {"strict": False},
    ),
    "if strict, nothing": Case(
        [a_queue("q")],
        [0, 0, 0, 0, 0],
        {**dict.fromkeys(("n1", "n2", "n3", "n4"), NO_RULES), "n5": NO_LABEL},
    ),
    "rules come from the nearest queue above that has some": Case(
        [queue_with("root", **RULES), a_queue("mid", parent="root"), a_queue("q", parent="mid")],
        [100, 0, 150, -1, 0],
        {"n2": NOT_WANTED, "n5": NO_LABEL},
        hierarchy=True,
    ),
    "not without the hierarchy": Case(
        [queue_with("root", **RULES), a_queue("q", parent="root")],
        [0, 0, 0, 0, 0],
        {**dict.fromkeys(("n1", "n2", "n3", "n4"), NO_RULES), "n5": NO_LABEL},
    ),
    "the order of preference counts where it is to": Case(
        [queue_with(like="g1 g3")],
        [50, 0, 25, 0, 0],
        {"n2": NOT_WANTED, "n4": NOT_WANTED, "n5": NO_LABEL},
        {"enablePreferredOrder": True},
    ),
}


def a_world(case: Case) -> Session:
    labelled = [
        a_node(name, labels={names.NODE_GROUP: group} if group else None)
        for name, group in GROUPS.items()
    ]
    flags = ["enablePredicate", "enableNodeOrder", *(["enableHierarchy"] if case.hierarchy else [])]
    option = a_plugin("nodegroup", *flags, **case.arguments)
    cluster = a_cluster(labelled, case.queues, a_queue("free"), a_job("p", queue="q"))
    return a_session(a_conf("allocate", [option]), cluster)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_groups(case: Case) -> None:
    ssn = a_world(case)
    assert list(scores(ssn, "p-0").values()) == case.scores
    want = {node: (Code.UNRESOLVABLE, text) for node, text in case.refused.items()}
    assert refused(ssn, "p-0") == want


def limited(text: str) -> Session:
    queue = queue_with(near="g1 g2", like="g1")
    queue.metadata.annotations = {names.NODE_GROUP_LIMITS: text}
    cluster = a_cluster(
        [
            a_node(n, "8 16Gi", labels={names.NODE_GROUP: g})
            for n, g in (("n1", "g1"), ("n2", "g2"))
        ],
        queue,
        a_queue("other"),
        a_job("held", asks="2 4Gi", queue="q", on=["n1"]),
        a_job("foreign", asks="2 4Gi", queue="other", on=["n1"]),
        a_job("p", asks="2 4Gi", queue="q"),
        a_job("small", asks="1 4Gi", queue="q"),
    )
    return a_session(a_conf("allocate", ["nodegroup"]), cluster)


def test_a_queue_stays_within_its_limit_in_a_group() -> None:
    ssn = limited('{"g1": {"cpu": "3", "memory": "8Gi"}}')
    assert refused(ssn, "p-0") == {"n1": (Code.UNRESOLVABLE, EXCEEDED)}
    assert refused(ssn, "small-0") == {}


def test_limits_follow_the_session() -> None:
    ssn = limited('{"g1": {"cpu": "3"}}')
    statement = ssn.statement()
    statement.evict(task(ssn, "held-0"), Reason("preempt", "", ""))
    assert refused(ssn, "p-0") == {}
    statement.allocate([task(ssn, "small-0")], [0])
    statement.discard()
    assert refused(ssn, "p-0") == {"n1": (Code.UNRESOLVABLE, EXCEEDED)}


def test_limits_that_cannot_be_read_stop_the_queue() -> None:
    assert set(refused(limited('{"g1": "3"}'), "p-0").values()) == {(Code.UNRESOLVABLE, INVALID)}
    assert set(refused(limited('{"g1": {"cpu": "x"}}'), "p-0")) == {"n1", "n2"}
