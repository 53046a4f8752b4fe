"""task-topology: which tasks go together."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pumice.core import names
from pumice.core.actions.allocate import Allocate
from pumice.core.api.core import Pod
from pumice.core.plugins.task_topology import Topology
from pumice.core.session import Session
from tests.builders import (
    a_cluster,
    a_conf,
    a_group,
    a_plugin,
    a_pod,
    a_session,
    nodes,
    placements,
)
from tests.unit.oracles.views import scores, task


def pods(*words: str) -> list[Pod]:
    """Return pods of `name:role@node`."""
    found = []
    for word in words:
        name, _, rest = word.partition(":")
        role, _, node = rest.partition("@")
        found.append(a_pod(name, "1 1Gi", job="g", role=role, node=node))
    return found


def a_world(
    notes: Mapping[str, str], *words: str, sizes: Mapping[str, str], least: int = 0
) -> Session:
    group = a_group("g", least=least)
    group.metadata.annotations = dict(notes)
    conf = a_conf("allocate", [a_plugin("task-topology"), "gang", "predicates"])
    return a_session(conf, a_cluster(nodes(**sizes), group, pods(*words)))


NEAR, FAR, ORDER = names.TASK_AFFINITY, names.TASK_ANTI_AFFINITY, names.TASK_ORDER
THREE = {"n1": "3 8Gi", "n2": "2 8Gi", "n3": "1 8Gi"}
TRIO = ("ps-0:ps@n1", "w-1:worker", "w-2:worker")


def test_a_worked_example() -> None:
    ssn = a_world({NEAR: "ps,worker"}, *TRIO, sizes=THREE)
    assert scores(ssn, "w-1") == {"n1": 100.0, "n2": 66.6667, "n3": 33.3333}


def test_scores_follow_the_session() -> None:
    ssn = a_world({NEAR: "ps,worker"}, *TRIO, sizes={"n1": "3 8Gi", "n2": "3 8Gi"})
    statement = ssn.statement()
    statement.allocate([task(ssn, "w-2")], [1])
    assert scores(ssn, "w-1") == {"n1": 66.6667, "n2": 66.6667}
    statement.discard()
    assert scores(ssn, "w-1") == {"n1": 100.0, "n2": 66.6667}


def test_a_node_without_room_scores_nothing() -> None:
    ssn = a_world({NEAR: "ps,worker"}, *TRIO, sizes={"n1": "1 8Gi", "n2": "1 8Gi"})
    assert scores(ssn, "w-1") == {"n1": 0.0, "n2": 33.3333}


def test_tasks_that_repel_each_other_get_buckets_of_their_own() -> None:
    words = ("a-0:ps", "a-1:ps", "b-0:worker", "b-1:worker")
    ssn = a_world(
        {NEAR: "ps,worker", FAR: "ps"}, *words, sizes={"n1": "2 8Gi", "n2": "2 8Gi"}, least=4
    )
    Allocate().execute(ssn)
    placed = placements(ssn.close())
    assert placed["a-0"] != placed["a-1"]
    assert sorted(placed.values()) == ["n1", "n1", "n2", "n2"]


def test_the_session_keeps_tasks_apart_that_repel_each_other() -> None:
    ssn = a_world({FAR: "w"}, "w-0:w", "w-1:w", sizes={"n1": "9 9Gi", "n2": "9 9Gi"}, least=2)
    Allocate().execute(ssn)
    assert sorted(placements(ssn.close()).values()) == ["n1", "n2"]


def test_tasks_that_attract_each_other_go_together() -> None:
    ssn = a_world({NEAR: "w"}, *(f"w-{i}:w" for i in range(4)), sizes=dict.fromkeys("abc", "5 9Gi"))
    Allocate().execute(ssn)
    assert len(set(placements(ssn.close()).values())) == 1


def test_the_roles_that_are_listed_go_first() -> None:
    notes = {NEAR: "ps,worker", ORDER: "worker,ps"}
    ssn = a_world(notes, "a:ps", "b:worker", "c:other", sizes=THREE)
    (job,) = ssn.active
    assert [t.name for t in sorted(job.tasks.values(), key=ssn.task_key)] == ["b", "a", "c"]


READ = {
    "pairs and single roles": (
        {NEAR: "ps,worker;evaluator", FAR: "ps"},
        {("ps", "worker"), ("worker", "ps"), ("evaluator", "evaluator")},
        {("ps", "ps")},
    ),
    "an unknown role makes all of it void": ({NEAR: "ps,chief", FAR: "ps"}, None, None),
    "so does one that is named twice in a group": ({NEAR: "ps,ps"}, None, None),
    "and an unknown one in the order": ({NEAR: "ps", ORDER: "chief"}, None, None),
    "an order alone is no topology": ({ORDER: "ps"}, None, None),
}


@pytest.mark.parametrize(("notes", "near", "far"), READ.values(), ids=READ.keys())
def test_what_groups_say(
    notes: dict[str, str], near: set[tuple[str, str]] | None, far: set[tuple[str, str]] | None
) -> None:
    words = ("a:ps", "b:worker", "c:evaluator")
    topology = Topology.of(a_world(notes, *words, sizes=THREE).active[0])
    assert (topology and topology.near, topology and topology.far) == (near, far)


def test_a_role_insists_by_its_strongest_membership() -> None:
    notes = {NEAR: "a,b;c", FAR: "a;d,e"}
    words = [f"{role}:{role}" for role in "abcdef"]
    topology = Topology.of(a_world(notes, *words, sizes=THREE).active[0])
    assert topology is not None
    assert [topology.priority(role) for role in "abcdef"] == [4, 3, 2, 1, 1, 0]
