"""Recall: a session is the same with and without the one before it, and looks at less."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core import catalog
from pumice.core.api.core import PodCondition, SchedulingGate
from pumice.core.api.scheduling import PodGroupCondition, PodGroupPhase
from pumice.core.cluster import Cluster
from pumice.core.conf import DEFAULT, Arguments, Configuration
from pumice.core.cycle import run_session
from pumice.core.ids import JobKey, PodUid
from pumice.core.model.snapshots import Snapshot
from pumice.core.plan import Plan
from pumice.core.recall import Former, recalled
from pumice.core.replay.record import encode_plan
from pumice.core.session import Session
from tests.builders import (
    Thing,
    a_cluster,
    a_conf,
    a_group,
    a_job,
    a_node,
    a_pod,
    a_queue,
    nodes,
    placements,
    show,
)
from tests.effort import examples

FOREIGN = "example.com/gate"


def a_world() -> Cluster:
    """Return a cluster with a job that runs, two that find no room, and one behind a gate."""
    return a_cluster(
        nodes(n0="4 16Gi", n1="4 16Gi"),
        a_job("runs", 2, on=["n0", "n1"], created=0),
        a_job("wide", 2, "100", created=1),
        a_job("far", 1, "3 99Gi", created=2),
        [a_group("gated", created=3), a_pod("gated-0", job="gated", gates=[FOREIGN])],
    )


def a_former(cluster: Cluster, conf: Configuration = DEFAULT) -> Former:
    snapshot = cluster.snapshot()
    return Former(snapshot, conf, run_session(snapshot, conf, 0.0, "s1"))


def say(cluster: Cluster, job: str, message: str, phase: PodGroupPhase = "Inqueue") -> None:
    """Let the cluster see a text in the status of a group."""
    group = cluster.jobs[JobKey(job)].group
    condition = PodGroupCondition("Unschedulable", "True", message=message)
    status = msgspec.structs.replace(group.status, phase=phase, conditions=[condition])
    cluster.set_pod_group(msgspec.structs.replace(group, status=status))


def tell(cluster: Cluster, pod: str, message: str) -> None:
    """Let the cluster see a text in the status of a pod."""
    seen = cluster.pods[PodUid(pod)]
    condition = PodCondition(type="PodScheduled", status="False", message=message)
    status = msgspec.structs.replace(seen.status, conditions=[condition])
    cluster.set_pod(msgspec.structs.replace(seen, status=status))


def seeing(thing: Thing) -> Callable[[Cluster], None]:
    return lambda cluster: show(cluster, thing)


def _arrives(cluster: Cluster) -> None:
    for thing in a_job("new", 1, "100"):
        show(cluster, thing)


ALL = ["ns/far", "ns/gated", "ns/runs", "ns/wide"]

CHANGES: dict[str, tuple[Callable[[Cluster], None], list[str]]] = {
    "nothing changes": (lambda cluster: None, ALL),
    "a group's text changes": (
        lambda cluster: say(cluster, "ns/wide", "no room"),
        ["ns/far", "ns/gated", "ns/runs"],
    ),
    "a pod's text changes": (
        lambda cluster: tell(cluster, "far-0", "no room"),
        ["ns/gated", "ns/runs", "ns/wide"],
    ),
    "what a running pod shows changes": (
        lambda cluster: tell(cluster, "runs-0", "once it waited"),
        ["ns/far", "ns/gated", "ns/wide"],
    ),
    "a node has more room": (seeing(a_node("n0", "5 16Gi")), []),
    "a node has another label": (seeing(a_node("n0", labels={"zone": "a"})), []),
    "a node more": (seeing(a_node("n2")), []),
    "a queue changes": (seeing(a_queue("default", capability="3")), []),
    "a queue more": (seeing(a_queue("other")), []),
    "a pod is gone": (lambda cluster: cluster.remove_pod(PodUid("runs-0")), []),
    "a pod is on its way out": (lambda cluster: cluster.dismiss(PodUid("runs-0")), []),
    "a job more": (_arrives, []),
    "a job less": (lambda cluster: cluster.remove_pod_group(JobKey("ns/far")), []),
}


@pytest.mark.parametrize(("change", "want"), CHANGES.values(), ids=CHANGES.keys())
def test_what_is_not_looked_at_again(change: Callable[[Cluster], None], want: list[str]) -> None:
    cluster = a_world()
    former = a_former(cluster)
    change(cluster)
    snapshot = cluster.snapshot()

    assert sorted(recalled(former, snapshot, DEFAULT)) == want
    plan = run_session(snapshot, DEFAULT, 1.0, "s2", former=former)
    assert plan == run_session(snapshot, DEFAULT, 1.0, "s2")
    then = {group.job: group for group in former.plan.groups}
    assert sorted(g.job for g in plan.groups if g is then.get(g.job)) == want


def test_a_job_to_which_nodes_are_closed_is_looked_at_again() -> None:
    cluster = a_world()
    former = a_former(cluster)
    avoided = {JobKey("ns/far"): frozenset({"n0"})}
    assert not recalled(former, cluster.snapshot(avoided), DEFAULT)


def test_another_configuration_looks_at_all() -> None:
    cluster = a_world()
    former = a_former(cluster)
    conf = a_conf("enqueue allocate", ["gang"], ["predicates"])
    assert not recalled(former, cluster.snapshot(), conf)


def test_where_one_gets_something_all_are_looked_at_after_all() -> None:
    """One gate less, and there is room: the job behind it starts, and all others are tried."""
    cluster = a_world()
    former = a_former(cluster)
    cluster.set_pod(a_pod("gated-0", job="gated"))
    snapshot = cluster.snapshot()
    assert sorted(recalled(former, snapshot, DEFAULT)) == ["ns/far", "ns/runs", "ns/wide"]

    plan = run_session(snapshot, DEFAULT, 1.0, "s2", former=former)
    assert [*placements(plan)] == ["gated-0"]
    assert plan == run_session(snapshot, DEFAULT, 1.0, "s2")
    assert not plan.steady


UNSTEADY: dict[str, Configuration] = {
    "a plugin that heeds the time": a_conf("enqueue allocate", ["gang", "sla"], ["predicates"]),
    "an action that evicts": a_conf("enqueue allocate preempt", ["gang"], ["predicates"]),
}


@pytest.mark.parametrize("conf", UNSTEADY.values(), ids=UNSTEADY.keys())
def test_all_are_looked_at_beside(conf: Configuration) -> None:
    cluster = a_world()
    former = a_former(cluster, conf)
    assert not former.plan.steady
    assert not recalled(former, cluster.snapshot(), conf)


@dataclass
class Probe:
    """A plugin of somebody else's."""

    name: str = "probe"

    def on_session_open(self, ssn: Session) -> None:
        """Register nothing."""

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""


@dataclass
class SteadyProbe(Probe):
    """One that says that it depends on the snapshot alone."""

    steady: bool = True


@pytest.mark.parametrize(("build", "want"), [(Probe, False), (SteadyProbe, True)])
def test_a_plugin_of_somebody_else_s_counts_as_steady_if_it_says_so(
    build: type[Probe], want: bool
) -> None:
    def make(_: Arguments) -> Probe:
        return build()

    catalog.add_plugin("probe", make)
    try:
        conf = a_conf("enqueue allocate", ["gang", "probe"], ["predicates"])
        assert a_former(a_world(), conf).plan.steady is want
    finally:
        catalog.remove_plugin("probe")


def test_what_is_promised_is_found_out_again() -> None:
    """A promise holds room: jobs behind it see less than the next session begins with."""
    cluster = a_world()
    cluster.dismiss(PodUid("runs-0"))
    for thing in a_job("next", 1, "4", created=4):
        show(cluster, thing)
    assert not a_former(cluster).plan.steady


# Random lives, with and without.

CONFIGURATIONS = [
    DEFAULT,
    a_conf("enqueue allocate backfill", ["priority", "gang"], ["drf", "predicates", "capacity"]),
    a_conf("allocate backfill", ["gang"], ["predicates", "proportion", "binpack", "sla"]),
    a_conf("enqueue allocate preempt reclaim", ["gang"], ["predicates", "proportion"]),
    a_conf("enqueue allocate", ["gang", "network-topology-aware"], ["predicates", "overcommit"]),
]
NAMES = st.sampled_from(["a", "b", "c", "d"])
TEXTS = st.sampled_from(["no room", "too much"])
Step = Callable[[Cluster], None]


def _comes(name: str, pods: int, asks: str, gang: int, queue: str, phase: PodGroupPhase) -> Step:
    things = a_job(
        name, pods, asks, gang=gang, queue=queue, phase=phase, resources="1", created=ord(name)
    )

    def step(cluster: Cluster) -> None:
        for thing in things:
            show(cluster, thing)

    return step


def _says(name: str, text: str) -> Step:
    return lambda cluster: (
        say(cluster, f"ns/{name}", text) if f"ns/{name}" in cluster.jobs else None
    )


def _tells(name: str, text: str) -> Step:
    return lambda cluster: tell(cluster, f"{name}-0", text) if f"{name}-0" in cluster.pods else None


def _gates(name: str, gates: list[SchedulingGate]) -> Step:
    """Let a pod that waits be behind a gate, or behind none."""

    def step(cluster: Cluster) -> None:
        seen = cluster.pods.get(PodUid(f"{name}-0"))
        if seen is not None:
            spec = msgspec.structs.replace(seen.spec, scheduling_gates=gates)
            cluster.set_pod(msgspec.structs.replace(seen, spec=spec))

    return step


STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(
        _comes,
        NAMES,
        st.integers(1, 3),
        st.sampled_from(["1", "3", "100"]),
        st.integers(1, 3),
        st.sampled_from(["default", "other", "gone"]),
        st.sampled_from(["Inqueue", "Pending"]),
    ),
    st.builds(_says, NAMES, TEXTS),
    st.builds(_tells, NAMES, TEXTS),
    st.builds(_gates, NAMES, st.sampled_from([[], [SchedulingGate(name=FOREIGN)]])),
    st.builds(lambda size: seeing(a_node("n0", size)), st.sampled_from(["4 16Gi", "2 8Gi"])),
    st.builds(
        lambda cpu: seeing(a_queue("other", capability=cpu)), st.sampled_from([None, "2", "4"])
    ),
    st.just(lambda cluster: None),
)


@given(st.sampled_from(CONFIGURATIONS), st.lists(STEPS, min_size=2, max_size=8), st.booleans())
@settings(max_examples=examples(100), deadline=None)
def test_plans_are_the_same_with_and_without_the_session_before(
    conf: Configuration, steps: list[Step], applied: bool
) -> None:
    cluster = a_cluster(nodes(n0="4 16Gi", n1="2 8Gi"), [a_queue("default"), a_queue("other")])
    former: Former | None = None
    for number, step in enumerate(steps):
        step(cluster)
        snapshot = cluster.snapshot()
        plan = _both(snapshot, conf, f"s{number}", float(number), former)
        former = Former(snapshot, conf, plan)
        if applied:
            for uid, node in placements(plan).items():
                cluster.assume(PodUid(uid), node)


def _both(
    snapshot: Snapshot, conf: Configuration, name: str, now: float, former: Former | None
) -> Plan:
    plan = run_session(snapshot, conf, now, name, former=former)
    alone = run_session(snapshot, conf, now, name)
    assert plan == alone
    assert encode_plan(plan) == encode_plan(alone)
    return plan
