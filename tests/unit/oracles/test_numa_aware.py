"""numa-aware: whole cpus that are close to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from pumice.core import names
from pumice.core.actions.allocate import Allocate
from pumice.core.api.core import Container, Pod, PodSpec, ResourceRequirements
from pumice.core.api.meta import ObjectMeta
from pumice.core.api.numatopology import (
    CpuInfo,
    NumaResource,
    Numatopology,
    NumatopologySpec,
    PodAllocation,
)
from pumice.core.extension import Code
from pumice.core.plugins.numa_aware.cpus import Layout, parse_cpus
from pumice.core.session import Session
from tests.builders import (
    a_cluster,
    a_conf,
    a_group,
    a_node,
    a_plugin,
    a_pod,
    a_session,
    amounts,
    placements,
)
from tests.unit.oracles.views import refused, scores, task


def layout(nodes: int = 2, cores: int = 2) -> Layout:
    """Return NUMA nodes, each a socket of cores of two threads: 0-3, 4-7 and so on."""
    each = cores * 2
    return Layout({c: CpuInfo(c // each, c // each, c // 2) for c in range(nodes * each)})


HINTS = [
    (4, "0-7", [((0,), True), ((1,), True), ((0, 1), False)]),
    (4, "1-7", [((1,), True), ((0, 1), False)]),
    (5, "0-7", [((0, 1), True)]),
    (9, "0-7", []),
    (4, "2-5", [((0, 1), False)]),
]


@pytest.mark.parametrize(("number", "free", "want"), HINTS)
def test_hints(number: int, free: str, want: list[tuple[tuple[int, ...], bool]]) -> None:
    got = layout().hints(number, parse_cpus(free))
    assert [(hint.nodes, hint.preferred) for hint in got] == want


TAKEN = {
    "a whole socket": (4, "1-7", "4-7"),
    "whole cores, then a thread": (3, "0-3", "0-2"),
    "a thread of a core that is broken already": (1, "1,2-7", "1"),
    "the socket with least left first": (1, "0,4-5", "0"),
}


@pytest.mark.parametrize(("number", "free", "want"), TAKEN.values(), ids=TAKEN.keys())
def test_which_cpus_are_taken(number: int, free: str, want: str) -> None:
    assert layout().take(number, parse_cpus(free)) == parse_cpus(want)


ADMITTED = {
    "best effort takes what there is": ("best-effort", "2-5", True),
    "restricted wants as few nodes as could do": ("restricted", "2-5", False),
    "and takes several where fewer could never do": ("restricted", "0-7", True),
    "a single node": ("single-numa-node", "0-3", True),
    "not two": ("single-numa-node", "2-5", False),
    "nobody cares": ("none", "2-5", True),
    "but so many there must be": ("best-effort", "2-4", False),
}


@pytest.mark.parametrize(("policy", "free", "admitted"), ADMITTED.values(), ids=ADMITTED.keys())
def test_policies(policy: str, free: str, admitted: bool) -> None:
    got = layout().assign(policy, 4, parse_cpus(free))
    assert (got is not None and len(got) == 4) is admitted


def a_topology(
    name: str,
    policy: str = "best-effort",
    *,
    cpus: str = "0-7",
    manager: str = "static",
    reserved: str = "0",
    reported: str = "",
    detail: Layout | None = None,
) -> Numatopology:
    where = (detail or layout()).cpus
    return Numatopology(
        metadata=ObjectMeta(name=name),
        spec=NumatopologySpec(
            policies={"CPUManagerPolicy": manager, "TopologyManagerPolicy": policy},
            res_reserved={"cpu": reserved},
            numares={"cpu": NumaResource(allocatable=cpus, capacity=8)},
            cpu_detail={str(cpu): info for cpu, info in where.items()},
            pod_allocations=[PodAllocation(uid=reported)] if reported else None,
        ),
    )


def a_guaranteed_pod(
    name: str, cpu: str = "4", *, policy: str = "", node: str = "", loose: bool = False
) -> Pod:
    asked = amounts(f"{cpu} 1Gi")
    limits = None if loose else asked
    container = Container(name="c", resources=ResourceRequirements(requests=asked, limits=limits))
    notes = {names.NUMA_POLICY: policy} if policy else None
    spec = PodSpec(containers=[container])
    return a_pod(name, job="g", node=node, annotations=notes, spec=spec)


def a_world(pods: list[Pod], *topologies: Numatopology, least: int = 1) -> Session:
    found = [t.metadata.name for t in topologies]
    cluster = a_cluster([a_node(n, "8 16Gi") for n in found], a_group("g", least=least), pods)
    for topology in topologies:
        if topology.spec.cpu_detail is not None:
            cluster.inputs.set_numa(topology)
    conf = a_conf("allocate", [a_plugin("numa-aware"), "gang", "predicates"])
    return a_session(conf, cluster)


SPLIT = "container c cannot be assigned by numa"
OTHER = "task topology policy[restricted] is different with node[best-effort]"
NOWHERE = Numatopology(metadata=ObjectMeta(name="n"))


@dataclass(frozen=True)
class Case:
    pod: Pod
    node: Numatopology
    why: tuple[Code, str] | None


SINGLE = "single-numa-node"
CASES: Mapping[str, Case] = {
    "four cpus of one node": Case(a_guaranteed_pod("p"), a_topology("n", SINGLE), None),
    "not of two": Case(
        a_guaranteed_pod("p"), a_topology("n", SINGLE, cpus="2-5"), (Code.UNRESOLVABLE, SPLIT)
    ),
    "what is reserved cannot be had": Case(
        a_guaranteed_pod("p"),
        a_topology("n", SINGLE, cpus="0-3", reserved="500m"),
        (Code.UNRESOLVABLE, SPLIT),
    ),
    "pods that are not guaranteed go anywhere": Case(
        a_guaranteed_pod("p", loose=True), a_topology("n", SINGLE, cpus="2-5"), None
    ),
    "so do parts of cpus": Case(
        a_guaranteed_pod("p", "3500m"), a_topology("n", SINGLE, cpus="2-5"), None
    ),
    "a node without a policy takes all": Case(
        a_guaranteed_pod("p"), a_topology("n", "none", cpus="2-5"), None
    ),
    "so does one that hands out no cpus": Case(
        a_guaranteed_pod("p"), a_topology("n", SINGLE, cpus="2-5", manager="none"), None
    ),
    "a pod may insist on the policy": Case(
        a_guaranteed_pod("p", policy="best-effort"), a_topology("n"), None
    ),
    "then another one does not do": Case(
        a_guaranteed_pod("p", policy="restricted"), a_topology("n"), (Code.ERROR, OTHER)
    ),
    "nor a node that nothing is known of": Case(
        a_guaranteed_pod("p", policy="restricted"), NOWHERE, (Code.ERROR, "numa info is empty")
    ),
    "nor one without static cpus": Case(
        a_guaranteed_pod("p", policy="best-effort"),
        a_topology("n", manager="none"),
        (Code.ERROR, "cpu manager policy isn't static"),
    ),
    "nor one whose layout is not known": Case(
        a_guaranteed_pod("p", policy="best-effort"),
        a_topology("n", detail=Layout({})),
        (Code.ERROR, "no topo information"),
    ),
    "nor one that has no cpus": Case(
        a_guaranteed_pod("p", policy="best-effort"),
        a_topology("n", cpus=""),
        (Code.ERROR, "cpu allocatable map is empty"),
    ),
    "none is no policy": Case(a_guaranteed_pod("p", policy="none"), NOWHERE, None),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_who_may_go_where(case: Case) -> None:
    assert refused(a_world([case.pod], case.node)).get("n") == case.why


def test_nodes_score_by_how_few_numa_nodes_it_takes() -> None:
    topologies = a_topology("near"), a_topology("far", cpus="2-5")
    ssn = a_world([a_guaranteed_pod("p", policy="best-effort")], *topologies)
    assert scores(ssn) == {"near": 50.0, "far": 0.0}
    ssn = a_world([a_guaranteed_pod("p")], *topologies)
    assert scores(ssn) == {"near": 0.0, "far": 0.0}


def test_the_session_gives_no_cpu_twice() -> None:
    pods = [a_guaranteed_pod(f"p{i}", "3") for i in range(3)]
    ssn = a_world(pods, a_topology("a", SINGLE), a_topology("b", SINGLE), least=3)
    Allocate().execute(ssn)
    assert sorted(placements(ssn.close()).values()) == ["a", "a", "b"]


def test_what_is_taken_back_can_be_had_again() -> None:
    ssn = a_world([a_guaranteed_pod(n) for n in ("p", "q", "r")], a_topology("n", SINGLE))
    statement = ssn.statement()
    statement.allocate([task(ssn, "q")], [0])
    statement.allocate([task(ssn, "r")], [0])
    assert ssn.points.live_predicate.all[0].check(task(ssn, "p").cls).mask.tolist() == [False]
    statement.discard()
    assert refused(ssn) == {}


def test_pods_that_were_not_reported_yet_have_their_cpus() -> None:
    pods = [a_guaranteed_pod("p"), a_guaranteed_pod("new", "2", node="n")]
    for reported, free in (("", False), ("new", True)):
        ssn = a_world(pods, a_topology("n", SINGLE, cpus="0-3", reported=reported))
        assert (refused(ssn) == {}) is free


def test_a_malformed_topology_is_told_of_and_left_out() -> None:
    ssn = a_world([a_guaranteed_pod("p")], a_topology("n", SINGLE, cpus="0-x"))
    assert [w.partition(":")[0] for w in ssn.findings.warnings] == ["numatopology n"]
    assert refused(ssn) == {}
