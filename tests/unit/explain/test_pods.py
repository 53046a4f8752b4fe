"""Why a pod waits, where it is, and what the nodes say to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
import pytest

from pumice.core.api.core import Pod, PodSpec, Taint
from pumice.core.conf import Configuration
from pumice.core.cycle import run_session
from pumice.core.explain.answers import Choice, Explanation, Nack, NodeVerdict, Refused, State
from pumice.core.explain.choice import choose, class_of, unpinned
from pumice.core.explain.picture import Picture, Progress
from pumice.core.explain.pods import Standing, explain_pod, with_choice, with_decision
from pumice.core.ids import JobKey, PodUid
from pumice.core.ledger import Arm
from pumice.core.steering import pin_patch
from tests.adapters.extender.world import merged
from tests.builders import Thing, a_cluster, a_group, a_job, a_node, a_pod, a_session, nodes
from tests.unit.explain.builders import ROOM, SHARES
from tests.volumes import a_claim, a_class, a_mounting_pod, a_volume, store

OURS = frozenset({"volcano"})
GANG: list[Thing] = [*nodes(n="2 8Gi"), *a_job("j", 3)]


@dataclass(frozen=True)
class Case:
    """A world; of pod `j-0` it is asked."""

    world: Sequence[Thing]
    state: State
    sentence: str
    standing: Standing = field(default_factory=Standing)
    name: str = "j-0"


def a_member(**more: Any) -> list[Thing]:
    """Return a group and its one pod."""
    return [*nodes(n="4 8Gi"), a_group("j"), a_pod("j-0", job="j", **more)]


CASES = {
    "its gang has no room, and it would have": Case(
        GANG,
        "waiting",
        "There is a node for the pod, which waits for the rest of its gang: the gang needs 3 pods"
        " at the same time, but only 2 of them find a node (1 node: not enough cpu for a pod that"
        " asks for 1).",
    ),
    "it is the one that finds no node": Case(
        GANG,
        "waiting",
        "The pod finds no node (1 node: not enough cpu for a pod that asks for 1).",
        name="j-2",
    ),
    "its queue does not exist": Case(
        [*nodes(n="2 8Gi"), *a_job("j", queue="gone")],
        "waiting",
        "The queue gone does not exist: the job waits until somebody makes it.",
    ),
    "it waits for its turn": Case(
        GANG,
        "starting",
        "There is a node for the pod, n, and it waits for its turn to be let go to kube-scheduler.",
        Standing("Held", "n"),
    ),
    "it was let go": Case(
        GANG,
        "starting",
        "The pod was given node n, and kube-scheduler has still to agree.",
        Standing("Released", "n", Arm.PIN),
    ),
    "it was let go, and its claims are not bound yet": Case(
        GANG,
        "starting",
        "The pod was given node n, and kube-scheduler has still to agree, and to bind the pod's"
        " claims.",
        Standing("Released", "n", Arm.NOMINATE, claims=True),
    ),
    "it waits in the barrier": Case(
        GANG,
        "starting",
        "kube-scheduler has placed the pod on node n, where it waits for the rest of its gang.",
        Standing("Arrived", "n", Arm.PIN),
    ),
    "it is on a node that was planned": Case(
        a_member(node="n"),
        "running",
        "The pod has node n: Pumice chose the node and nominated it to kube-scheduler.",
        Standing("Bound", "n", Arm.NOMINATE),
    ),
    "it is on a node that kube-scheduler chose": Case(
        a_member(node="n"),
        "running",
        "The pod has node n: kube-scheduler chose the node when Pumice had let the pod go.",
        Standing("Bound", "n", Arm.UNGATE),
    ),
    "it was there before us": Case(
        a_member(node="n"),
        "running",
        "The pod has node n: it had the node before Pumice saw it.",
        Standing("Bound", "n"),
    ),
    "it has finished": Case(
        a_member(node="n", phase="Failed"),
        "finished",
        "The pod has finished: it failed on node n.",
    ),
    "others hold it": Case(
        a_member(gates=["example.com/approval"]),
        "waiting",
        "The pod is held by scheduling gates of others: example.com/approval.",
    ),
    "it is another scheduler's": Case(
        a_member(scheduler="other"),
        "waiting",
        "The pod is not Pumice's to place: its scheduler is other.",
    ),
    "it is malformed": Case(
        [*nodes(n="4 8Gi"), a_group("j"), a_pod("j-0", "plenty", job="j")],
        "waiting",
        "The pod cannot be scheduled as it is written: not a quantity: 'plenty'.",
    ),
    "it has no group yet": Case(
        [*nodes(n="4 8Gi"), a_pod("j-0")],
        "waiting",
        "The pod names no PodGroup yet: the controllers give it one.",
    ),
    "its group does not exist": Case(
        [*nodes(n="4 8Gi"), a_pod("j-0", job="gone")],
        "waiting",
        "The pod has no PodGroup that exists: it waits until there is one.",
    ),
}


def look(
    world: Sequence[Thing], name: str, standing: Standing, conf: Configuration = ROOM
) -> tuple[Picture, Pod, Explanation]:
    cluster = a_cluster(world)
    snapshot = cluster.snapshot()
    picture = Picture(snapshot, run_session(snapshot, conf, 0.0, "s1"))
    pod = cluster.pods[PodUid(name)]
    nacks = Progress(nack=Nack("j-0", "n", "", "Unschedulable", "no"))
    return picture, pod, explain_pod(picture, pod, standing, nacks, OURS)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_is_said_of_a_pod(case: Case) -> None:
    _, _, found = look(case.world, case.name, case.standing)
    assert (found.kind, found.name) == ("pod", case.name)
    assert (found.state, found.sentence) == (case.state, case.sentence)


def test_a_pod_that_waits_has_numbers_and_one_that_does_not_has_none() -> None:
    _, _, waits = look(GANG, "j-2", Standing("Held"))
    _, _, goes = look(GANG, "j-2", Standing("Arrived", "n"))
    assert (len(waits.compared), waits.nodes, len(waits.refused)) == (3, 1, 1)
    assert (goes.compared, goes.nodes, goes.refused, goes.condition) == ((), 0, (), "")


def test_a_refusal_of_another_member_is_not_its_own() -> None:
    _, _, refused = look(GANG, "j-0", Standing("Held"))
    _, _, other = look(GANG, "j-1", Standing("Held"))
    assert (refused.nack is None, other.nack) == (False, None)


def test_the_session_that_placed_it_is_looked_up() -> None:
    picture, pod, found = look(
        [*nodes(n="4 8Gi"), *a_job("j", 3)], "j-1", Standing("Released", "n", Arm.PIN)
    )
    uid = PodUid(pod.metadata.uid)
    where = with_decision(
        found, uid, [replace(picture.plan, allocations=()), picture.plan]
    ).placement
    assert where is not None
    assert where.decision is not None
    assert (where.node, where.decision.session, where.together) == ("n", "s1", 3)
    assert with_decision(found, PodUid("another"), [picture.plan]) == found


# What the nodes say.


def a_crowd() -> list[Thing]:
    tainted = a_node("tainted", "9 8Gi")
    tainted.spec.taints = [Taint(key="k", effect="NoSchedule")]
    return [*nodes(big="8 8Gi", small="2 8Gi", full="1 8Gi"), tainted, a_group("j")]


def say(pod: Pod, node: str) -> tuple[Choice, Explanation]:
    """Return what the nodes say to a pod, and the explanation with that."""
    standing = Standing("Bound", node, Arm.PIN) if pod.spec.node_name else Standing("Held")
    picture, seen, found = look([*a_crowd(), pod], "j-0", standing)
    job = picture.snapshot.jobs[JobKey("ns/j")]
    task = job.tasks[PodUid("j-0")]
    choice = choose(picture, ROOM, job, task, class_of(picture, seen), node)
    return choice, with_choice(found, choice)


REFUSED = (
    Refused(1, "Insufficient cpu", "not enough cpu for a pod that asks for 2"),
    Refused(1, "node(s) had untolerated taint(s)", "a taint that the pod does not tolerate"),
)


def test_why_a_pod_is_where_it_is_as_if_it_were_not_there_yet() -> None:
    choice, found = say(a_pod("j-0", "2", job="j", node="small"), "small")
    verdict = NodeVerdict(
        "small", True, (), {"cpu": "2"}, {"cpu": "2"}, score=100.0, best=100.0, better=0
    )
    assert choice == Choice(4, 2, REFUSED, verdict)
    assert found.sentence == (
        "The pod has node small: Pumice chose the node and pinned the pod to it; 2 of the 4 nodes"
        " would take it as things stand, and none scores higher than small."
    )


def test_a_node_that_would_not_be_chosen_again() -> None:
    choice, found = say(a_pod("j-0", "2", job="j", node="big"), "big")
    assert choice.verdict is not None
    assert (choice.verdict.score, choice.verdict.best, choice.verdict.better) == (25.0, 100.0, 1)
    assert found.sentence.endswith("and 1 of them score higher than big.")


def test_why_a_pod_with_volumes_is_where_it_is_and_nowhere_else() -> None:
    pod = a_mounting_pod("j-0", "a", job="j")
    cluster = a_cluster(nodes(n1="4 8Gi", n2="4 8Gi"), a_group("j"), pod, assumed={"j-0": "n2"})
    store(cluster, a_class("local"), a_claim("a"), a_volume("v", on="n2"))
    picture = Picture(cluster.snapshot(), run_session(cluster.snapshot(), ROOM, 0.0, "s1"))
    job = picture.snapshot.jobs[JobKey("ns/j")]
    task = job.tasks[PodUid("j-0")]
    choice = choose(picture, ROOM, job, task, class_of(picture, task.pod), "n2")

    why = "no volume left for a claim of the pod, and none can be made there"
    nothing = "node(s) didn't find available persistent volumes to bind"
    assert choice.refused == (Refused(1, nothing, why),)
    assert choice.verdict is not None
    assert choice.verdict.takes


def test_why_a_pod_is_not_where_somebody_expects_it() -> None:
    choice, found = say(a_pod("j-0", "2", job="j"), "tainted")
    assert choice.verdict == NodeVerdict(
        "tainted",
        False,
        ("a taint that the pod does not tolerate",),
        {"cpu": "2"},
        {"cpu": "9"},
        best=100.0,
    )
    assert found.sentence.endswith("but not tainted: a taint that the pod does not tolerate.")


def test_a_pin_is_no_wish_of_the_pods_own() -> None:
    pinned = _pinned(a_pod("j-0", "2", job="j"), "small")
    bound = msgspec.structs.replace(
        pinned, spec=msgspec.structs.replace(pinned.spec, node_name="small")
    )
    choice, _ = say(bound, "small")
    assert (choice.open, choice.refused) == (2, REFUSED)


@pytest.mark.parametrize(
    "expressions", [None, [{"key": "zone", "operator": "In", "values": ["a"]}]]
)
def test_a_pin_is_taken_off_and_the_rest_of_the_affinity_stays(expressions: Any) -> None:
    required = {"nodeSelectorTerms": [{"matchExpressions": expressions}]} if expressions else None
    node_affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    affinity = {"nodeAffinity": node_affinity if required else {}}
    spec = msgspec.convert({"affinity": affinity if required else None}, PodSpec)
    pod = a_pod("p", spec=spec)
    free = unpinned(_pinned(pod, "n"))
    assert msgspec.to_builtins(free.spec.affinity or {}) in ({}, {"nodeAffinity": {}}, affinity)
    assert unpinned(pod) is pod


def _pinned(pod: Pod, node: str) -> Pod:
    return msgspec.convert(merged(msgspec.to_builtins(pod), pin_patch(pod, node)), Pod)


def test_every_node_is_asked_by_the_configured_plugins() -> None:
    picture, pod, _ = look(GANG, "j-0", Standing("Held"), SHARES)
    job = picture.snapshot.jobs[JobKey("ns/j")]
    task = job.tasks[PodUid("j-0")]
    choice = choose(picture, SHARES, job, task, class_of(picture, pod), "n")
    session = a_session(SHARES, a_cluster(GANG))
    (score,) = session.views.of(task.cls, job.key).scores(np.array([0]))
    assert choice.verdict is not None
    assert choice.verdict.score == score
