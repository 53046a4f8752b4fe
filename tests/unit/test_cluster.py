"""The cache: events in any order give the same tables, and single pods are checked against them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core import names
from pumice.core.api.core import Affinity, Pod, PodAffinity, PodAffinityTerm, PodSpec
from pumice.core.api.meta import LabelSelector
from pumice.core.api.scheduling import PodGroup, PodGroupCondition, SubGroupPolicy
from pumice.core.cluster import Cluster
from pumice.core.ids import JobKey, PodUid
from pumice.core.model.population import places
from pumice.core.model.signatures import Presence
from pumice.core.model.tasks import Status
from pumice.core.room import lacking, lacking_when_bound
from tests.builders import (
    Thing,
    a_cluster,
    a_group,
    a_job,
    a_node,
    a_pod,
    a_priority_class,
    a_queue,
    nodes,
    show,
)
from tests.effort import examples

KEY = JobKey("ns/j")


def used(cluster: Cluster) -> dict[str, dict[str, str]]:
    """Return what is charged to each node."""
    table = cluster.nodes
    return {n: cluster.space.amounts(table.used[:, i]) for n, i in table.index.items()}


def releasing(cluster: Cluster) -> dict[str, dict[str, str]]:
    table = cluster.nodes
    return {n: cluster.space.amounts(table.releasing[:, i]) for n, i in table.index.items()}


@dataclass(frozen=True)
class PodCase:
    pod: Pod
    status: Status
    used: dict[str, str] = field(default_factory=dict)
    releasing: dict[str, str] = field(default_factory=dict)
    job: str | None = "ns/j"
    gates: tuple[str, ...] = ()


ONE = {"cpu": "1", "pods": "1"}
PODS = {
    "a waiting pod": PodCase(a_pod("p", job="j"), Status.PENDING),
    "a held pod simply waits": PodCase(
        a_pod("p", job="j", gates=[names.GATE_HELD]), Status.PENDING
    ),
    "another gate is seen": PodCase(
        a_pod("p", job="j", gates=[names.GATE_HELD, "example.com/g"]),
        Status.PENDING,
        gates=("example.com/g",),
    ),
    "a bound pod": PodCase(a_pod("p", job="j", node="n", phase="Pending"), Status.BOUND, ONE),
    "a running pod": PodCase(a_pod("p", job="j", node="n"), Status.RUNNING, ONE),
    "a pod on its way out keeps its room": PodCase(
        a_pod("p", job="j", node="n", deleting=True), Status.RELEASING, ONE, ONE
    ),
    "a pod deleted before it had a node": PodCase(
        a_pod("p", job="j", deleting=True), Status.RELEASING
    ),
    "a finished pod is not charged": PodCase(
        a_pod("p", job="j", node="n", phase="Succeeded"), Status.SUCCEEDED
    ),
    "a failed pod is not charged": PodCase(
        a_pod("p", job="j", node="n", phase="Failed"), Status.FAILED
    ),
    "a pod out of touch is charged": PodCase(
        a_pod("p", job="j", node="n", phase="Unknown"), Status.UNKNOWN, ONE
    ),
    "another scheduler's pod is charged and belongs to no job": PodCase(
        a_pod("p", job="j", node="n", scheduler="other"), Status.RUNNING, ONE, job=None
    ),
    "a pod without a group": PodCase(a_pod("p", node="n"), Status.RUNNING, ONE, job=None),
}


@pytest.mark.parametrize("case", PODS.values(), ids=PODS.keys())
def test_what_a_pod_comes_to(case: PodCase) -> None:
    cluster = a_cluster(a_node("n"), a_group("j"), case.pod)
    task = cluster.task(PodUid("p"))
    assert task is not None
    assert (task.status, task.job, task.gates) == (case.status, case.job, case.gates)
    assert (used(cluster)["n"], releasing(cluster)["n"]) == (case.used, case.releasing)
    assert (PodUid("p") in cluster.jobs[KEY].tasks) == (case.job is not None)
    assert cluster.check() == []


DERIVED: dict[str, tuple[Pod, tuple[str, int, bool]]] = {
    "defaults": (a_pod("p"), ("", 1, True)),
    "the role by annotation": (a_pod("p", role="ps"), ("ps", 1, True)),
    "the role by label": (a_pod("p", labels={names.TASK_SPEC: "ps"}), ("ps", 1, True)),
    "the pod's priority": (a_pod("p", priority=0), ("", 0, True)),
    "the annotation goes before it": (
        a_pod("p", priority=5, annotations={names.TASK_PRIORITY: "7"}),
        ("", 7, True),
    ),
    "an annotation that is no number does not": (
        a_pod("p", priority=5, annotations={names.TASK_PRIORITY: "high"}),
        ("", 5, True),
    ),
    "nor is one that only looks like a number": (
        a_pod("p", priority=5, annotations={names.TASK_PRIORITY: "1_0"}),
        ("", 5, True),
    ),
    "not to be evicted": (a_pod("p", labels={names.PREEMPTABLE: "false"}), ("", 1, False)),
    "what is neither true nor false is false": (
        a_pod("p", annotations={names.PREEMPTABLE: "perhaps"}),
        ("", 1, False),
    ),
}


@pytest.mark.parametrize(("pod", "want"), DERIVED.values(), ids=DERIVED.keys())
def test_what_is_read_of_a_pod(pod: Pod, want: tuple[str, int, bool]) -> None:
    task = a_cluster(pod).task(PodUid("p"))
    assert task is not None
    assert (task.role, task.priority, task.preemptable) == want


def test_an_assumed_pod_holds_its_room_until_the_truth_is_seen() -> None:
    cluster = a_cluster(nodes(n="4 8Gi", m="4 8Gi"), a_job("j"))
    uid = PodUid("j-0")

    cluster.assume(uid, "n")
    assert used(cluster) == {"n": ONE, "m": {}}
    assert cluster.jobs[KEY].counts.total.by_status == {Status.BINDING: 1}

    cluster.set_pod(a_pod("j-0", job="j", labels={"seen": "again"}))
    assert used(cluster) == {"n": ONE, "m": {}}

    cluster.set_pod(a_pod("j-0", job="j", node="m", phase="Pending"))
    assert used(cluster) == {"n": {}, "m": ONE}
    assert cluster.jobs[KEY].counts.total.by_status == {Status.BOUND: 1}

    cluster.forget(uid)
    assert used(cluster) == {"n": {}, "m": ONE}
    assert cluster.check() == []


def test_a_forgotten_pod_waits_again() -> None:
    cluster = a_cluster(a_node("n"), a_job("j"), assumed={"j-0": "n"})
    cluster.forget(PodUid("j-0"))
    task = cluster.task(PodUid("j-0"))
    assert task is not None
    assert (task.status, task.node, used(cluster)["n"]) == (Status.PENDING, "", {})
    assert cluster.check() == []


def test_an_assumed_pod_that_is_deleted_holds_its_room_until_it_is_gone() -> None:
    cluster = a_cluster(a_node("n"), a_job("j"), assumed={"j-0": "n"})
    cluster.set_pod(a_pod("j-0", job="j", deleting=True))
    assert (used(cluster)["n"], releasing(cluster)["n"]) == (ONE, ONE)
    cluster.remove_pod(PodUid("j-0"))
    assert used(cluster)["n"] == {}
    assert cluster.check() == []


def test_an_assumed_pod_that_finishes_unseen_is_charged_no_more() -> None:
    cluster = a_cluster(a_node("n"), a_job("j"), assumed={"j-0": "n"})
    cluster.set_pod(a_pod("j-0", job="j", phase="Failed"))
    assert used(cluster)["n"] == {}
    assert cluster.check() == []


def test_a_dismissed_pod_is_on_its_way_out_whatever_it_shows() -> None:
    running = a_pod("p", job="j", node="n")
    cluster = a_cluster(a_node("n"), a_group("j"), running)
    cluster.dismiss(PodUid("p"))
    assert releasing(cluster) == used(cluster) == {"n": ONE}
    cluster.set_pod(running)
    assert releasing(cluster) == {"n": ONE}
    cluster.retain(PodUid("p"))
    assert (releasing(cluster), used(cluster)) == ({"n": {}}, {"n": ONE})
    cluster.dismiss(PodUid("p"))
    cluster.remove_pod(PodUid("p"))
    cluster.set_pod(running)
    assert releasing(cluster) == {"n": {}}
    assert cluster.check() == []


def test_a_promised_pod_is_nominated_until_it_shows_what_it_is_promised() -> None:
    def nominated() -> str:
        task = cluster.task(PodUid("p"))
        return task.nominated if task is not None else ""

    cluster = a_cluster(a_node("n"), a_group("j"), a_pod("p", job="j"))
    cluster.promise(PodUid("p"), "n")
    cluster.set_pod(a_pod("p", job="j"))
    assert nominated() == "n"
    cluster.set_pod(a_pod("p", job="j", nominated="n"))
    cluster.set_pod(a_pod("p", job="j"))
    assert nominated() == ""
    cluster.set_pod(a_pod("p", job="j", nominated="n"))
    cluster.promise(PodUid("p"), "")
    assert nominated() == ""
    assert cluster.check() == []


def test_a_pod_waits_for_its_group() -> None:
    cluster = a_cluster(a_node("n"), a_pod("p", job="j"), a_pod("q", job="j", node="n"))
    assert (dict(cluster.jobs), cluster.faults, used(cluster)["n"]) == ({}, {}, ONE)
    cluster.set_pod_group(a_group("j"))
    assert list(cluster.jobs[KEY].tasks) == ["p", "q"]
    cluster.remove_pod_group(KEY)
    assert dict(cluster.jobs) == {}
    cluster.set_pod_group(a_group("j", least=2))
    assert cluster.jobs[KEY].counts.total.by_status == {Status.PENDING: 1, Status.RUNNING: 1}
    assert cluster.check() == []


def test_a_pod_on_an_unknown_node_is_charged_when_the_node_appears() -> None:
    cluster = a_cluster(a_job("j", on=["n"]))
    assert cluster.jobs[KEY].counts.total.ready == 1
    cluster.set_node(a_node("n"))
    assert used(cluster)["n"] == ONE
    cluster.remove_node("n")
    cluster.set_node(a_node("m"))
    cluster.set_node(a_node("n"))
    assert (cluster.nodes.names, used(cluster)) == (["m", "n"], {"m": {}, "n": ONE})
    assert cluster.check() == []


def test_a_removed_node_leaves_the_others_as_they_are() -> None:
    cluster = a_cluster(nodes(a="1", b="2", c="3"), a_job("j", 2, on=["b", "c"]))
    cluster.remove_node("a")
    cluster.remove_node("unknown")
    assert cluster.nodes.index == {"b": 0, "c": 1}
    assert cluster.nodes.alloc[0].tolist() == [2000.0, 3000.0]
    assert used(cluster) == {"b": ONE, "c": ONE}


def test_oversubscribed_amounts_come_on_top() -> None:
    node = a_node("n", "4 1Ki")
    node.metadata.annotations = {
        names.OVERSUBSCRIPTION_CPU: "500",
        names.OVERSUBSCRIPTION_MEMORY: "lots",
    }
    assert a_cluster(node).nodes.alloc[:2, 0].tolist() == [4500.0, 1024.0]


def test_priority_classes_reach_their_groups_whenever_they_come() -> None:
    cluster = a_cluster(a_group("j", priority="high"), a_group("k"))
    key = JobKey("ns/k")
    assert cluster.jobs[KEY].terms.remarks == ("priority class high does not exist, priority is 0",)
    cluster.set_priority_class(a_priority_class("high", 100))
    cluster.set_priority_class(a_priority_class("usual", 10, default=True))
    assert (cluster.jobs[KEY].priority, cluster.jobs[key].priority) == (100, 10)
    assert cluster.jobs[KEY].terms.remarks == ()
    cluster.remove_priority_class("high")
    cluster.remove_priority_class("unknown")
    assert (cluster.jobs[KEY].priority, cluster.jobs[key].priority) == (10, 10)


def test_sub_jobs_follow_the_policies_of_the_group() -> None:
    def policy(*keys: str) -> SubGroupPolicy:
        return SubGroupPolicy(name="w", match_label_keys=list(keys), sub_group_size=2)

    pods = [a_pod(f"p{i}", job="j", labels={"part": str(i // 2)}) for i in range(4)]
    cluster = a_cluster(a_group("j", policies=[policy("part")]), pods, a_pod("q", job="j"))
    job = cluster.jobs[KEY]
    assert {s.id: (s.min_available, s.match_index) for s in job.sub_jobs.values()} == {
        "ns/j/w-0": (2, 0),
        "ns/j/w-1": (2, 1),
        "ns/j": (1, 0),
    }
    larger = msgspec.structs.replace(policy("part"), sub_group_size=3)
    cluster.set_pod_group(a_group("j", policies=[larger]))
    assert cluster.jobs[KEY].sub_jobs["ns/j/w-0"].min_available == 3
    cluster.set_pod_group(a_group("j", policies=[policy("missing")]))
    assert list(cluster.jobs[KEY].sub_jobs) == ["ns/j"]
    cluster.set_pod_group(a_group("j"))
    assert (cluster.jobs[KEY].sub_jobs, cluster.check()) == ({}, [])


def test_long_sub_job_ids_are_hashed() -> None:
    policy = SubGroupPolicy(name="w", match_label_keys=["part"])
    pod = a_pod("p", job="j", labels={"part": "x" * 130})
    job = a_cluster(a_group("j", policies=[policy]), pod).jobs[KEY]
    assert list(job.sub_jobs) == ["ns/j/w-932645741"]


FAULTY: dict[str, tuple[Thing, str, str]] = {
    "a pod": (a_pod("p", "plenty"), "pod ns/p", "not a quantity: 'plenty'"),
    "a node": (a_node("n", "plenty"), "node n", "not a quantity: 'plenty'"),
    "a queue": (a_queue("q", capability="plenty"), "queue q", "not a quantity: 'plenty'"),
}


@pytest.mark.parametrize(("thing", "name", "want"), FAULTY.values(), ids=FAULTY.keys())
def test_a_malformed_object_is_left_out_and_named(thing: Thing, name: str, want: str) -> None:
    cluster = a_cluster(a_node("good"), a_job("j", on=["good"]))
    before = used(cluster)
    show(cluster, thing)
    assert (cluster.faults, used(cluster), cluster.check()) == ({name: want}, before, [])


def test_a_fault_is_forgotten_with_its_object() -> None:
    cluster = a_cluster(a_pod("p", "plenty"), a_node("n", "plenty"), a_queue("q", weight=1))
    cluster.set_node(a_node("n"))
    cluster.remove_pod(PodUid("p"))
    assert cluster.faults == {}


def test_selectors_that_appear_later_class_the_pods_anew() -> None:
    cluster = a_cluster(a_job("j", on=["n"]), a_pod("p", labels={"app": "web", "serial": "1"}))
    task = cluster.task(PodUid("p"))
    assert task is not None
    assert dict(task.cls.signature.labels) == {}
    asking = msgspec.convert(
        {
            "affinity": {
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
                    ]
                }
            }
        },
        PodSpec,
    )
    cluster.set_pod(a_pod("q", spec=asking))
    task = cluster.task(PodUid("p"))
    assert task is not None
    assert dict(task.cls.signature.labels) == {"app": "web"}
    assert cluster.check() == []


@dataclass(frozen=True)
class FitCase:
    node: str
    short: list[str]
    bound: list[str]
    committed: tuple[str, ...] = ()


#: n (2 cpu, 2 slots) holds a running pod and an assumed one; m (1 cpu) is free; f (8 cpu) is
#: full of slots; e is where the asking pod itself is assumed.
FITS = {
    "what is assumed counts, but not as bound": FitCase("n", ["cpu", "pods"], []),
    "committed pods count as bound": FitCase("n", ["cpu", "pods"], ["cpu", "pods"], ("a-0",)),
    "the pod itself does not count against itself": FitCase("e", [], [], ("p-0",)),
    "another node's commitments do not count": FitCase("m", [], [], ("a-0",)),
    "a node without slots": FitCase("f", ["pods"], ["pods"]),
    "an unknown node": FitCase("gone", ["node"], ["node"]),
}


@pytest.mark.parametrize("case", FITS.values(), ids=FITS.keys())
def test_whether_one_pod_fits(case: FitCase) -> None:
    cluster = a_cluster(
        nodes(n="2 4Gi pods=2", m="1 4Gi", f="8 4Gi pods=1", e="1 4Gi"),
        a_job("r", on=["n"]),
        a_job("s", on=["f"]),
        [*a_job("a"), *a_job("p")],
        assumed={"a-0": "n", "p-0": "e"},
    )
    uid = PodUid("p-0")
    assert lacking(cluster, uid, case.node) == case.short
    assert lacking_when_bound(cluster, uid, case.node, map(PodUid, case.committed)) == case.bound


def test_an_unknown_pod_fits_anywhere_that_is() -> None:
    cluster = a_cluster(a_node("n"))
    assert lacking(cluster, PodUid("?"), "n") == []
    assert lacking_when_bound(cluster, PodUid("?"), "n", ()) == []


def test_a_snapshot_does_not_change() -> None:
    cluster = a_cluster(nodes(n="4 8Gi"), a_job("j", 2, on=["n"]))
    snapshot = cluster.snapshot()
    job = snapshot.jobs[KEY]
    before = (dict(job.tasks), job.counts.clone(), snapshot.nodes.used.copy())
    people = {presence: dict(places) for presence, places in snapshot.population.items()}

    cluster.assume(PodUid("j-1"), "n")
    cluster.remove_pod(PodUid("j-0"))
    cluster.set_node(a_node("m"))
    cluster.set_pod_group(a_group("j", least=9))

    assert (dict(job.tasks), job.counts, job.min_available) == (before[0], before[1], 2)
    assert (snapshot.nodes.used == before[2]).all()
    assert list(snapshot.nodes.tasks_on("n")) == ["j-0"]
    assert snapshot.nodes.names == ["n"]
    assert {p: dict(places) for p, places in snapshot.population.items()} == people
    assert cluster.check() == []


def test_settled_jobs_are_not_active() -> None:
    def seen(group: PodGroup) -> Mapping[JobKey, object]:
        cluster = a_cluster(a_node("n"), group, a_pod("p", job="j", node="n"))
        return dict.fromkeys(cluster.snapshot().active)

    done = a_group("j", phase="Running")
    done.status.running = 1
    assert seen(done) == {KEY: None}  # the condition is missing
    done.status.conditions = [PodGroupCondition(type="Scheduled", status="True")]
    assert seen(done) == {}
    done.status.running = 0
    assert seen(done) == {KEY: None}


def test_a_group_that_is_not_let_in_is_never_settled() -> None:
    waiting = a_group("j", least=0, phase="Pending")
    waiting.status.conditions = [PodGroupCondition(type="Scheduled", status="True")]
    assert a_cluster(waiting).snapshot().active == {KEY}


def avoiding(tier: str) -> PodSpec:
    """Return the specification of a pod that is kept apart from a tier."""
    term = PodAffinityTerm(
        label_selector=LabelSelector(match_labels={"tier": tier}), topology_key="zone"
    )
    return PodSpec(affinity=Affinity(pod_anti_affinity=PodAffinity(required=[term])))


PODS_OF_ALL_KINDS = [
    a_pod(f"p{i}", asks, job=job, node=node, phase=phase, deleting=deleting, labels={"part": "1"})
    for i in range(3)
    for asks in ("1", "2 1Gi", "1 nvidia.com/gpu=1")
    for job in ("", "j", "k")
    for node, phase in (("", ""), ("n", "Pending"), ("n", ""), ("m", ""), ("m", "Succeeded"))
    for deleting in (False, True)
]
LIVES_OF_A_POD = [
    a_pod("p", asks, job="j", node=node, phase=phase, role=role, spec=avoiding(tier))
    for asks in ("1", "2")
    for node, phase in (("", ""), ("n", "Pending"), ("n", ""))
    for role in ("", "w")
    for tier in ("web", "db")
]
SPLIT = SubGroupPolicy(name="w", match_label_keys=["part"])
THINGS: list[Thing] = [
    *PODS_OF_ALL_KINDS,
    a_node("n"),
    a_node("n", "8 nvidia.com/gpu=4"),
    a_node("m"),
    a_group("j"),
    a_group("j", least=2, policies=[SPLIT], resources="1"),
    a_group("k", queue="other"),
    a_queue("other"),
]
Event = Callable[[Cluster], object]


def shown(thing: Thing) -> Event:
    return lambda cluster: show(cluster, thing)


UIDS = st.sampled_from(["p0", "p1", "p2"]).map(PodUid)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.sampled_from(THINGS).map(shown),
    UIDS.map(lambda uid: lambda c: c.remove_pod(uid)),
    UIDS.map(lambda uid: lambda c: c.assume(uid, "n")),
    UIDS.map(lambda uid: lambda c: c.forget(uid)),
    st.sampled_from(["n", "m"]).map(lambda name: lambda c: c.remove_node(name)),
    st.sampled_from(["ns/j", "ns/k"]).map(lambda key: lambda c: c.remove_pod_group(JobKey(key))),
    st.just(lambda c: c.snapshot()),
)


@settings(max_examples=examples(60))
@given(st.lists(EVENTS, max_size=20))
def test_after_any_events_the_tables_are_sums_over_what_is_known(events: list[Event]) -> None:
    cluster = Cluster()
    for event in events:
        event(cluster)
        assert cluster.check() == []
        assert counted(cluster) == present(cluster)


@settings(max_examples=examples(300))
@given(st.lists(st.sampled_from(LIVES_OF_A_POD), max_size=5), st.booleans())
def test_whatever_becomes_of_a_pod_the_tables_are_sums(pods: list[Pod], assumed: bool) -> None:
    cluster = a_cluster(a_node("n"), a_group("j", roles={"w": 1}))
    for pod in pods:
        cluster.set_pod(pod)
        if assumed:
            cluster.assume(PodUid("p"), "n")
        assert cluster.check() == []
        assert counted(cluster) == present(cluster)


def counted(cluster: Cluster) -> Counter[tuple[Presence, str, bool]]:
    """Return how often each presence is on each node, on its way out or not, as it is kept."""
    rows = places(cluster.headcount(lambda task: True))
    return Counter({(presence, node, leaving): n for presence, node, leaving, n in rows})


def present(cluster: Cluster) -> Counter[tuple[Presence, str, bool]]:
    """Return the same, counted anew."""
    tasks = [task for uid in cluster.pods if (task := cluster.task(uid)) and task.occupies]
    return Counter((t.cls.signature.presence, t.node, t.status is Status.RELEASING) for t in tasks)


FINAL: list[Thing] = [
    a_node("n"),
    a_node("m", "8 nvidia.com/gpu=4"),
    a_group("j", least=2, policies=[SPLIT], resources="1"),
    a_group("k", queue="other"),
    a_queue("other"),
    a_pod("p0", job="j", node="n", labels={"part": "1"}),
    a_pod("p1", "2 1Gi nvidia.com/gpu=1", job="j", node="m", phase="Pending"),
    a_pod("p2", "2", job="j", labels={"part": "2"}),
    a_pod("p3", job="k", node="n", deleting=True),
    a_pod("p4", node="m", scheduler="other"),
]


def tables(cluster: Cluster) -> object:
    snapshot = cluster.snapshot()
    jobs = {
        key: (set(job.tasks), job.counts, job.sub_jobs, cluster.space.amounts(job.allocated))
        for key, job in snapshot.jobs.items()
    }
    usage = {
        queue: (sums.jobs, cluster.space.amounts(sums.request), cluster.space.amounts(sums.elastic))
        for queue, sums in snapshot.usage.items()
    }
    return used(cluster), releasing(cluster), jobs, usage, snapshot.active


@settings(max_examples=examples(40))
@given(st.permutations(FINAL), st.lists(st.sampled_from(FINAL), max_size=5))
def test_the_order_of_events_does_not_matter(order: list[Thing], again: list[Thing]) -> None:
    cluster = Cluster()
    for thing in (*order, *again):
        show(cluster, thing)
    assert tables(cluster) == tables(a_cluster(*FINAL))
