"""HyperNodes in a session: bounds that no session breaks, and sums that follow what it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core.actions.allocate import Allocate
from pumice.core.api.core import Pod
from pumice.core.api.scheduling import NetworkTopology, PodGroup, SubGroupPolicy
from pumice.core.api.topology import HyperNode
from pumice.core.cluster import Cluster
from pumice.core.conf import Configuration
from pumice.core.cycle import run_session
from pumice.core.domains import Domains
from pumice.core.model.tasks import Status
from pumice.core.resources import minus
from pumice.core.session import Session
from tests.builders import (
    SOFT,
    Thing,
    a_cluster,
    a_conf,
    a_group,
    a_hypernode,
    a_node,
    a_pod,
    placements,
    within,
)
from tests.effort import examples

TIER = ["predicates", "binpack"]
CONFS = [
    a_conf("enqueue allocate backfill", ["priority", "gang"], [*TIER, "network-topology-aware"]),
    a_conf("enqueue allocate backfill", ["priority", "gang"], TIER),
]
"""A bound holds whether or not a plugin chooses among HyperNodes."""
NODES = [f"n{i}" for i in range(8)]
WORDS = {1: "leaf", 2: "spine"}


@st.composite
def trees(draw: st.DrawFn) -> list[HyperNode]:
    """Return leaves over some of the nodes, and spines over some of the leaves."""
    leaf_of = {node: draw(st.integers(0, 4)) for node in NODES}
    leaves = [f"leaf-{i}" for i in sorted(set(leaf_of.values()) - {0})]
    made = [
        a_hypernode(name, 1, *(n for n, i in leaf_of.items() if name == f"leaf-{i}"))
        for name in leaves
    ]
    spine_of = {leaf: draw(st.integers(0, 2)) for leaf in leaves}
    made += [
        a_hypernode(f"spine-{i}", 2, *(f"@{leaf}" for leaf, k in spine_of.items() if k == i))
        for i in sorted(set(spine_of.values()) - {0})
    ]
    for hypernode in made:
        hypernode.spec.tier_name = WORDS[hypernode.spec.tier]
    return made


TOPOLOGIES = st.sampled_from(
    [None, SOFT, within(1), within(2), within(1), within("leaf"), within("spine"), within("room")]
)


@st.composite
def jobs(draw: st.DrawFn, name: str) -> list[PodGroup | Pod]:
    """Return a gang, perhaps of sub-groups, of which some pods may run already on one node."""
    size = draw(st.integers(1, 5))
    parts = [draw(st.sampled_from("ab")) for _ in range(size)]
    policy = SubGroupPolicy(
        name="w",
        match_label_keys=["part"],
        network_topology=draw(TOPOLOGIES),
        sub_group_size=draw(st.integers(1, 3)),
        min_sub_groups=draw(st.integers(0, 2)),
    )
    group = a_group(
        name,
        least=draw(st.integers(1, size)),
        topology=draw(TOPOLOGIES),
        policies=draw(st.sampled_from([[], [policy]])),
        created=draw(st.integers(0, 3)),
    )
    there, node = draw(st.integers(0, 1)), draw(st.sampled_from(NODES))
    pods = [
        a_pod(
            f"{name}-{i}",
            draw(st.sampled_from(["1 1Gi", "1 1Gi", "2 1Gi", "3 1Gi", "0 0"])),
            job=name,
            node=node if i < there else "",
            deleting=i < there and draw(st.booleans()),
            labels={"part": parts[i]},
        )
        for i in range(size)
    ]
    return [group, *pods]


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    nodes = [a_node(name, f"{draw(st.integers(1, 4))} 8Gi pods=6") for name in NODES]
    made: list[Thing | Iterable[Thing]] = [nodes, draw(trees())]
    made += [draw(jobs(f"j{i}")) for i in range(draw(st.integers(1, 4)))]
    return a_cluster(*made)


def holders(cluster: Cluster, tier: int) -> list[set[str]]:
    """Return the nodes of each HyperNode up to a tier, by the objects themselves."""
    objects = cluster.hypernodes

    def nodes(name: str) -> set[str]:
        found = set()
        for member in objects[name].spec.members or ():
            assert member.selector.exact_match is not None
            inner = member.selector.exact_match.name
            found |= {inner} if member.type == "Node" else nodes(inner)
        return found

    return [nodes(name) for name, h in objects.items() if h.spec.tier <= tier]


def highest(topology: NetworkTopology | None) -> int | None:
    """Return the highest tier that a hard bound allows; None where there is none."""
    if topology is None or topology.mode == "soft":
        return None
    if topology.highest_tier_allowed is not None:
        return topology.highest_tier_allowed
    named = {word: tier for tier, word in WORDS.items()}
    return named.get(topology.highest_tier_name, -1)


def check_bounds(cluster: Cluster, placed: Mapping[str, str]) -> None:
    """Check that pods of a job, and of each sub-group, are where one HyperNode holds them."""
    for job in cluster.jobs.values():
        spec = job.group.spec
        groups: dict[str, tuple[int | None, set[str]]] = {}
        for task in job.tasks.values():
            node = placed.get(task.uid) or (task.node if task.status is Status.RUNNING else "")
            if not node:
                continue
            bounds = {"": highest(spec.network_topology)}
            for policy in spec.sub_group_policy or ():
                bounds[task.sub_job] = highest(policy.network_topology)
            for name, bound in bounds.items():
                groups.setdefault(name, (bound, set()))[1].add(node)
        new = [task.uid for task in job.tasks.values() if task.uid in placed]
        for bound, nodes in groups.values():
            if bound is not None and new:
                assert any(nodes <= holder for holder in holders(cluster, bound)), (job, nodes)


@settings(max_examples=examples(200), derandomize=True)
@given(clusters(), st.sampled_from(CONFS))
def test_no_session_breaks_a_bound_or_starts_half_a_gang(
    cluster: Cluster, conf: Configuration
) -> None:
    plan = run_session(cluster.snapshot(), conf, 0.0, "s")
    placed = placements(plan)
    check_bounds(cluster, placed)
    asked: Counter[str] = Counter()
    for job in cluster.jobs.values():
        ready = 0
        for task in job.tasks.values():
            node = placed.get(task.uid) or task.node
            ready += bool(node) and task.status is not Status.RELEASING
            if node:
                asked[node] += int(task.cls.req[0]) if task.cls.req.size else 0
        if any(task.uid in placed for task in job.tasks.values()):
            assert ready >= job.min_available
    table = cluster.nodes
    for node, milli in asked.items():
        i = table.index[node]
        assert milli <= max(table.alloc[0, i], table.used[0, i])
    assert placements(run_session(cluster.snapshot(), conf, 0.0, "s")) == placed


@settings(max_examples=examples(60), derandomize=True)
@given(clusters())
def test_sums_and_standings_follow_the_session(cluster: Cluster) -> None:
    ssn = Session(cluster.snapshot(), CONFS[0], 0.0, "s")
    ssn.open()
    domains = ssn.domains
    for job in ssn.active:
        domains.asked(job, "")
        domains.standings(job)
    Allocate().execute(ssn)
    fresh = Domains(ssn.snapshot.tree, ssn.space)
    for mine, theirs in (
        (domains.alloc, fresh.alloc),
        (domains.used, fresh.used),
        (domains.idle, fresh.idle),
        (domains.future_idle, fresh.future_idle),
    ):
        assert np.array_equal(mine, theirs)
    for job in ssn.active:
        now = ssn.space.jobs[job.key]
        for sub_job in {task.sub_job for task in now.tasks.values()}:
            ours, again = domains.standings(now).part(sub_job), fresh.standings(now).part(sub_job)
            assert (ours.total, ours.held.tolist()) == (again.total, again.held.tolist())
            waits = domains.asked(now, sub_job).pending
            assert not minus(waits, fresh.asked(now, sub_job).pending).any()
