"""allocate: who goes where, who waits, and in which order jobs and queues have their turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import pytest

from pumice.core import names
from pumice.core.actions.allocate import Allocate
from pumice.core.api.core import Affinity, PodSpec, TopologySpreadConstraint
from pumice.core.api.scheduling import SubGroupPolicy
from pumice.core.conf import Configuration
from pumice.core.cycle import run_session
from pumice.core.ids import JobKey
from pumice.core.model.tasks import Status
from tests.builders import (
    Thing,
    a_cluster,
    a_conf,
    a_group,
    a_job,
    a_node,
    a_plan,
    a_plugin,
    a_pod,
    a_priority_class,
    a_queue,
    a_session,
    nodes,
    placements,
    waits,
)

GANG = a_plugin("gang", "enableJobOrder", "enableJobReady", "enableJobPipelined")
BASIC = a_conf("allocate", ["priority", "gang"], ["predicates", "binpack"])
SHARED = a_conf(
    "allocate",
    [
        GANG,
        a_plugin("drf", "enableJobOrder"),
        a_plugin("proportion", "enableQueueOrder", "enabledAllocatable"),
        "predicates",
        "nodeorder",
    ],
)
FAIR = a_conf(
    "allocate",
    [
        a_plugin("drf", "enableJobOrder"),
        a_plugin("proportion", "enableQueueOrder"),
        "predicates",
        "nodeorder",
    ],
)


def near(app: str) -> PodSpec:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return PodSpec(affinity=msgspec.convert({"podAffinity": required}, Affinity))


def parts(least: int, size: int = 1) -> SubGroupPolicy:
    return SubGroupPolicy(
        name="w", match_label_keys=["part"], sub_group_size=size, min_sub_groups=least
    )


@dataclass(frozen=True)
class Case:
    world: Sequence[Thing | Iterable[Thing]]
    plan: dict[str, str] = field(default_factory=dict)
    conf: Configuration = BASIC
    assumed: Mapping[str, str] = field(default_factory=dict)
    waits: dict[str, str] | None = None


CASES = {
    "a task goes to the node it fills most": Case(
        [nodes(big="8 8Gi", small="2 2Gi"), a_job("j")], {"j-0": "small"}
    ),
    "the lowest index wins among equals": Case(
        [nodes(n0="4 4Gi", n1="4 4Gi"), a_job("j")], {"j-0": "n0"}
    ),
    "a gang fills one node before it opens the next": Case(
        [nodes(n0="2 2Gi", n1="2 2Gi"), a_job("j", 3)], {"j-0": "n0", "j-1": "n0", "j-2": "n1"}
    ),
    "a gang that does not fit leaves the room to the next job": Case(
        [nodes(n0="2 2Gi"), a_job("wide", 3), a_job("narrow")],
        {"narrow-0": "n0"},
        waits={
            "wide": "1/3 tasks in gang unschedulable: pod group is not ready, 3 Pending,"
            " 3 minAvailable; Pending: 1 Unschedulable, 2 Schedulable. Origin reason is wide-2:"
            " 0/1 nodes are unavailable: 1 Insufficient cpu."
        },
    ),
    "a gang may start short of its size": Case(
        [nodes(n0="2 2Gi"), a_job("j", 3, gang=2)], {"j-0": "n0", "j-1": "n0"}
    ),
    "what a gang has beyond its minimum follows as far as it fits": Case(
        [nodes(n0="3 8Gi", n1="3 8Gi"), a_job("j", 10, gang=4)],
        {"j-0": "n0", "j-1": "n0", "j-2": "n0", "j-3": "n1", "j-4": "n1", "j-5": "n1"},
    ),
    "surplus comes one task a turn": Case(
        [nodes(n0="4 8Gi"), a_job("a", 4, gang=1, created=1), a_job("b", 4, gang=1, created=2)],
        {"a-0": "n0", "a-1": "n0", "b-0": "n0", "b-1": "n0"},
        a_conf("allocate", [GANG, "drf", "predicates"]),
    ),
    "a gang without a minimum is all surplus": Case(
        [nodes(n0="2 8Gi"), a_job("j", 3, gang=0)], {"j-0": "n0", "j-1": "n0"}
    ),
    "running tasks count towards the minimum": Case(
        [nodes(n0="3 8Gi"), a_job("j", 3, on=["n0", "n0"])], {"j-2": "n0"}
    ),
    "tasks whose node is decided count as well, and hold their room": Case(
        [nodes(n0="3 8Gi"), a_job("j", 3)],
        {"j-2": "n0"},
        assumed={"j-0": "n0", "j-1": "n0"},
    ),
    "the rest of a broken gang is placed, not the whole again": Case(
        [nodes(n0="2 8Gi"), a_job("j", 3)], {}, assumed={"j-0": "n0"}
    ),
    "pods of other schedulers hold their room": Case(
        [nodes(n0="2 8Gi"), a_pod("o", node="n0", scheduler="other"), a_job("j", 2)], {}
    ),
    "a gang waits for a gated member": Case(
        [
            nodes(n0="4 8Gi"),
            a_group("j", least=2),
            a_pod("open", job="j"),
            a_pod("gated", job="j", gates=["example.com/hold"]),
        ],
        {},
    ),
    "our own gate holds nobody back": Case(
        [
            nodes(n0="4 8Gi"),
            a_group("j", least=2),
            [a_pod(n, job="j", gates=[names.GATE_HELD]) for n in ("a", "b")],
        ],
        {"a": "n0", "b": "n0"},
    ),
    "a pod that is being deleted is not placed": Case(
        [nodes(n0="4 8Gi"), a_group("j"), a_pod("p", job="j", deleting=True)], {}
    ),
    "a gang short of pods is not tried": Case(
        [nodes(n0="4 8Gi"), a_group("j", least=3), [a_pod(n, job="j") for n in "ab"]],
        {},
        waits={
            "j": "3/2 tasks in gang unschedulable: pod group is not ready, 2 Pending,"
            " 3 minAvailable; Pending: 2 Unschedulable. Origin reason is: Not enough valid tasks"
            " for gang-scheduling, valid: 2, min: 3"
        },
    ),
    "higher priority goes first": Case(
        [
            nodes(n0="1 8Gi"),
            a_priority_class("high", 10),
            a_job("low", created=1),
            a_job("high", created=2, priority="high"),
        ],
        {"high-0": "n0"},
    ),
    "a job that never fits does not block those behind it": Case(
        [nodes(n0="2 8Gi"), a_job("huge", asks="4", created=1), a_job("j", created=2)],
        {"j-0": "n0"},
    ),
    "a task goes to an idle node even where a waiting one scores higher": Case(
        [
            nodes(full="2 2Gi", big="64 64Gi"),
            a_group("r"),
            a_pod("r-0", "2", job="r", node="full", deleting=True),
            a_job("j"),
        ],
        {"j-0": "big"},
    ),
    "a gang that is promised room holds it, and nothing is sent out": Case(
        [
            nodes(n0="2 8Gi"),
            a_group("r"),
            a_pod("r-0", job="r", node="n0", deleting=True),
            a_job("j", 2, created=1),
            a_job("k", created=2),
        ],
        {},
    ),
    "half of a promise is not enough": Case(
        [
            nodes(n0="2 8Gi"),
            a_group("r"),
            a_pod("r-0", job="r", node="n0", deleting=True),
            a_job("j", 3, created=1),
            a_job("k", created=2),
        ],
        {"k-0": "n0"},
    ),
    "queues take turns": Case(
        [
            nodes(n0="2 8Gi"),
            [a_queue("a"), a_queue("b")],
            a_job("a1", queue="a", created=1),
            a_job("a2", queue="a", created=2),
            a_job("b1", queue="b", created=3),
        ],
        {"a1-0": "n0", "b1-0": "n0"},
        SHARED,
    ),
    "a queue of higher priority goes first whatever it holds": Case(
        [
            nodes(n1="2 4Gi", n2="2 4Gi"),
            [a_queue("q2", priority=1), a_queue("q3", priority=10)],
            a_job("r", asks="2 4Gi", queue="q3", on=["n1"], phase="Running"),
            a_job("x", asks="2 4Gi", queue="q2"),
            a_job("y", asks="2 4Gi", queue="q3"),
        ],
        {"y-0": "n2"},
        FAIR,
    ),
    "members that must be near others of the gang wait for them": Case(
        [
            [a_node("n0", labels={"zone": "a"}), a_node("n1", labels={"zone": "b"})],
            a_group("j", least=3),
            [a_pod(f"a-w-{i}", job="j", role="w", spec=near("ps")) for i in range(2)],
            a_pod("b-ps-9", job="j", role="ps", labels={"app": "ps"}),
        ],
        {"b-ps-9": "n0", "a-w-0": "n0", "a-w-1": "n0"},
    ),
    "members that must be near nobody wait for nothing": Case(
        [
            a_node("n0", labels={"zone": "a"}),
            a_group("j", least=2),
            a_pod("a", job="j", spec=near("nobody")),
            a_pod("b", job="j"),
        ],
        {},
        waits={
            "j": "1/2 tasks in gang unschedulable: pod group is not ready, 2 Pending,"
            " 2 minAvailable; Pending: 1 Schedulable, 1 Unschedulable. Origin reason is a: 0/1"
            " nodes are unavailable: 1 node(s) didn't match pod affinity rules."
        },
    ),
    "a nominated node is kept where it still fits": Case(
        [nodes(small="2 2Gi", big="8 8Gi"), a_group("j"), a_pod("p", job="j", nominated="big")],
        {"p": "big"},
    ),
    "a nominated node that is full is left": Case(
        [
            nodes(small="2 2Gi", big="8 8Gi"),
            a_job("r", asks="8", on=["big"]),
            a_group("j"),
            a_pod("p", job="j", nominated="big"),
        ],
        {"p": "small"},
    ),
    "each required part starts": Case(
        [
            nodes(n0="2 8Gi", n1="2 8Gi"),
            a_group("j", least=2, policies=[parts(2)]),
            [a_pod(f"p-{i}", "2", job="j", labels={"part": f"{i}"}) for i in range(2)],
        ],
        {"p-0": "n0", "p-1": "n1"},
    ),
    "parts beyond the minimum start where they fit": Case(
        [
            nodes(n0="5 8Gi"),
            a_group("j", least=4, policies=[parts(2, size=2)]),
            [a_pod(f"p-{i}", job="j", labels={"part": f"{i // 2}"}) for i in range(6)],
        ],
        {"p-0": "n0", "p-1": "n0", "p-2": "n0", "p-3": "n0"},
    ),
    "too few parts fit": Case(
        [
            nodes(n0="3 8Gi"),
            a_group("j", least=4, policies=[parts(2, size=2)]),
            [a_pod(f"p-{i}", job="j", labels={"part": f"{i // 2}"}) for i in range(6)],
        ],
        {},
    ),
    "a part that does not fit gives its room back to the next": Case(
        [
            nodes(n0="2 8Gi"),
            a_group("j", least=2, policies=[parts(1, size=2)]),
            [a_pod(f"a-{i}", "2", job="j", labels={"part": "0"}) for i in range(2)],
            [a_pod(f"b-{i}", "1", job="j", labels={"part": "1"}) for i in range(2)],
        ],
        {"b-0": "n0", "b-1": "n0"},
    ),
    "a group that is not let in yet is not tried": Case(
        [nodes(n0="2 8Gi"), a_job("j", phase="Pending", resources="9")],
        {},
        a_conf("enqueue allocate", ["gang"], ["overcommit", "predicates"]),
        waits={
            "j": "1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending,"
            " 1 minAvailable; Pending: 1 Unschedulable. Origin reason is: resource in cluster is"
            " overused: overused cpu: 9 cpu asked for, 2 in the cluster"
        },
    ),
    "without enqueue every group is tried": Case(
        [nodes(n0="2 8Gi"), a_job("j", phase="Pending", resources="9")], {"j-0": "n0"}
    ),
    "a job of a queue that does not exist waits": Case(
        [nodes(n0="2 8Gi"), a_job("j", queue="nowhere")],
        {},
        waits={"j": "queue nowhere not found"},
    ),
    "a malformed group waits and the others go on": Case(
        [nodes(n0="2 8Gi"), a_job("bad", resources="plenty"), a_job("good")],
        {"good-0": "n0"},
        waits={"bad": "minResources: not a quantity: 'plenty'"},
    ),
    "a queue that holds its due in every dimension is passed over": Case(
        [
            nodes(n0="8 8Gi"),
            a_queue("default", capability="1 8Gi pods=1"),
            a_job("r", on=["n0"], phase="Running"),
            a_job("j"),
        ],
        {},
        a_conf("allocate", ["gang"], ["predicates", "proportion"]),
        waits={
            "j": "1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending,"
            " 1 minAvailable; Pending: 1 Unschedulable. Origin reason is: queue default holds all"
            " that it deserves"
        },
    ),
    "a closed queue gets nothing": Case(
        [nodes(n0="2 8Gi"), a_queue("default", state="Closed"), a_job("j")],
        {},
        SHARED,
        waits={
            "j": "1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending,"
            " 1 minAvailable; Pending: 1 Unschedulable. Origin reason is j-0: queue default is"
            " not open"
        },
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_allocate(case: Case) -> None:
    cluster = a_cluster(*case.world, assumed=case.assumed)
    plan = run_session(cluster.snapshot(), case.conf, 0.0, "session-1")
    assert placements(plan) == case.plan
    if case.waits is not None:
        assert waits(plan) == case.waits


def test_beside_a_promise_the_next_task_may_find_an_idle_node() -> None:
    """Zone b, where the next pod must go, is full until one leaves; after that a may take one."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    spec = PodSpec(topology_spread_constraints=[msgspec.convert(spread, TopologySpreadConstraint)])
    ssn = a_session(
        BASIC,
        a_cluster(
            [
                a_node("a", "4 8Gi", labels={"zone": "a"}),
                a_node("b", "1 8Gi", labels={"zone": "b"}),
            ],
            a_pod("old", node="b", deleting=True),
            a_group("j", least=3),
            a_pod("j-w-0", job="j", node="a", labels={"app": "x"}),
            [a_pod(f"j-w-{i}", job="j", labels={"app": "x"}, spec=spec) for i in (1, 2)],
        ),
    )

    Allocate().execute(ssn)

    (job,) = ssn.active
    assert {task.name: (task.status, task.node) for task in job.tasks.values()} == {
        "j-w-0": (Status.RUNNING, "a"),
        "j-w-1": (Status.PIPELINED, "b"),
        "j-w-2": (Status.ALLOCATED, "a"),
    }


def test_a_decision_says_what_it_was_made_for() -> None:
    plan = a_plan(BASIC, nodes(n0="3 8Gi"), a_job("j", 3, gang=2))
    first, second = plan.allocations
    assert (first.job, first.group_uid) == ("ns/j", "group-j")
    assert [p.uid for p in first.placements] == ["j-0", "j-1"]
    assert first.reason.numbers == {"placed": 2.0, "ready": 3.0, "minAvailable": 2.0}
    assert [p.uid for p in second.placements] == ["j-2"]


def test_a_job_avoids_the_nodes_that_refused_it_and_others_do_not() -> None:
    cluster = a_cluster(nodes(n0="1 8Gi", n1="1 8Gi"), a_job("a"), a_job("b"))

    plan = run_session(
        cluster.snapshot({JobKey("ns/a"): frozenset({"n0"})}),
        a_conf("allocate", ["gang"], ["predicates"]),
        0.0,
        "s",
    )

    assert placements(plan) == {"a-0": "n1", "b-0": "n0"}


def test_a_job_that_avoids_every_node_says_so() -> None:
    cluster = a_cluster(nodes(n0="1 8Gi"), a_job("a"))

    plan = run_session(
        cluster.snapshot({JobKey("ns/a"): frozenset({"n0"})}),
        a_conf("allocate", ["gang"], ["predicates"]),
        0.0,
        "s",
    )

    assert placements(plan) == {}
    assert waits(plan)["a"].endswith("1 node(s) refused a planned pod a moment ago.")
