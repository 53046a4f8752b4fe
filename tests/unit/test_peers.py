"""
Peers: tallies that follow placements.

Whatever was asked when, and whatever was placed and undone in between, the filters must say the
same as a plain walk over all pods on all nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core.extension import Refusal
from pumice.core.model.columns import Columns
from pumice.core.model.nodes import NodeInfo
from pumice.core.model.peers import Peers
from pumice.core.model.signatures import Presence, Signature
from pumice.core.plugins.nodeorder import ranking
from pumice.core.plugins.predicates.affinity import refuse_by_affinity
from pumice.core.plugins.predicates.ports import refuse_ports
from pumice.core.plugins.predicates.spread import refuse_uneven
from pumice.core.selectors import tolerates
from tests.effort import examples
from tests.unit.worlds import (
    a_pod,
    a_term,
    apart,
    headcount,
    near,
    nodes,
    ports,
    spread,
    wishing,
)

NODES = nodes(
    n1="zone=a host=n1",
    n2="zone=a host=n2 !k:NoSchedule",
    n3="zone=b host=n3",
    n4="zone=c",
    n5="host=n5",
)
PODS = [
    a_pod("web"),
    a_pod("db"),
    a_pod("web", namespace="other"),
    a_pod("web", affinity=near(a_term("web"))),
    a_pod("db", affinity=near(a_term("web"), a_term("web", "host"))),
    a_pod("web", affinity=apart(a_term("web", "host"))),
    a_pod("db", affinity=apart(a_term("web"), a_term("db", namespaceSelector={}))),
    a_pod("web", affinity=wishing("podAffinity", 3, a_term("db"))),
    a_pod("db", affinity=wishing("podAntiAffinity", 7, a_term("web", "host"))),
    a_pod("web", topologySpreadConstraints=[spread("web")]),
    a_pod("db", topologySpreadConstraints=[spread("web", "host"), spread("db", minDomains=3)]),
    a_pod(
        "web",
        topologySpreadConstraints=[spread("web", nodeTaintsPolicy="Honor", maxSkew=2)],
        nodeSelector={"zone": "a"},
    ),
    a_pod("web", containers=ports(80)),
    a_pod("db", containers=ports(80, 81, ip="10.0.0.1")),
]


@dataclass(frozen=True)
class Placed:
    """A pod on a node, for the plain walk."""

    node: NodeInfo
    presence: Presence
    leaving: bool


def domain(node: NodeInfo, key: str) -> str | None:
    return node.labels.get(key)


def meets(a: NodeInfo, b: NodeInfo, key: str) -> bool:
    return key in a.labels and a.labels[key] == b.labels.get(key)


def walk_ports(pod: Signature, pods: Sequence[Placed], node: NodeInfo) -> bool:
    held = [port for p in pods if p.node is node for port in p.presence.ports]
    return not any(mine.conflicts(theirs) for mine in pod.presence.ports for theirs in held)


def walk_affinity(pod: Signature, pods: Sequence[Placed], node: NodeInfo) -> bool:
    terms = pod.affinity
    meant = [p for p in pods if all(p.presence.matched_by(t) for t in terms)]
    near_all = all(any(meets(node, p.node, t.topology_key) for p in meant) for t in terms)
    series = not any(t.topology_key in p.node.labels for t in terms for p in meant) and all(
        pod.presence.matched_by(t) for t in terms
    )
    has_keys = all(t.topology_key in node.labels for t in terms)
    repelled = any(
        t and p.presence.matched_by(t) and meets(node, p.node, t.topology_key)
        for t in pod.anti_affinity
        for p in pods
    ) or any(
        pod.presence.matched_by(t) and meets(node, p.node, t.topology_key)
        for p in pods
        for t in p.presence.anti_affinity
    )
    return (near_all or (series and has_keys)) and not repelled


def walk_spread(pod: Signature, pods: Sequence[Placed], node: NodeInfo) -> bool:
    keys = {c.topology_key for c in pod.spread}
    for c in pod.spread:
        choice, tolerations = pod.selection.choice, pod.selection.tolerations
        eligible = [
            n
            for n in NODES
            if keys <= n.labels.keys()
            and (not c.honor_affinity or choice.matches(n.name, n.labels))
            and (not c.honor_taints or all(tolerates(tolerations, t) for t in n.taints))
        ]
        counts: Counter[str] = Counter({n.labels[c.topology_key]: 0 for n in eligible})
        for p in pods:
            if p.node in eligible and not p.leaving and p.presence.namespace == pod.namespace:
                counts[p.node.labels[c.topology_key]] += c.selector.matches(p.presence.labels)
        here = domain(node, c.topology_key)
        if here is None:
            return False
        least = min(counts.values(), default=0) if len(counts) >= c.min_domains else 0
        if counts[here] + c.selector.matches(pod.labels) - least > c.max_skew:
            return False
    return True


def walk_wishes(pod: Signature, pods: Sequence[Placed], node: NodeInfo) -> int:
    total = 0
    for p in pods:
        for wish in pod.presence.preferred:
            if p.presence.matched_by(wish.term) and meets(node, p.node, wish.term.topology_key):
                total += wish.weight
        for wish in p.presence.preferred:
            if pod.presence.matched_by(wish.term) and meets(node, p.node, wish.term.topology_key):
                total += wish.weight
    return total


def accepted(refusals: Iterable[Refusal]) -> list[bool]:
    verdict = [True] * len(NODES)
    for refusal in refusals:
        verdict = [v and not r for v, r in zip(verdict, refusal.nodes.tolist(), strict=True)]
    return verdict


NODE = st.integers(0, len(NODES) - 1)
POD = st.integers(0, len(PODS) - 1)
START = st.lists(st.tuples(NODE, POD, st.booleans()), max_size=6)
#: place a pod; undo the last placement that is left; ask
STEPS = st.lists(
    st.one_of(st.tuples(NODE, POD), st.just("undo"), POD.map(lambda p: ("ask", p))), max_size=20
)


@settings(max_examples=examples(150))
@given(START, STEPS)
def test_filters_equal_a_walk_over_all_pods(
    start: list[tuple[int, int, bool]], steps: list[tuple[int, int] | str | tuple[str, int]]
) -> None:
    pods = [Placed(NODES[n], PODS[p].presence, leaving) for n, p, leaving in start]
    world = Peers(
        Columns(NODES),
        headcount(
            ((NODES[n].name, PODS[p]) for n, p, leaving in start if not leaving),
            ((NODES[n].name, PODS[p]) for n, p, leaving in start if leaving),
        ),
    )
    journal: list[tuple[int, int]] = []
    for step in [*steps, *(("ask", p) for p in range(len(PODS)))]:
        match step:
            case "undo":
                if journal:
                    node, pod = journal.pop()
                    world.place(PODS[pod].presence, [node], -1)
                    pods.pop()
            case ("ask", int(pod)):
                check(PODS[pod], world, pods)
            case (int(node), int(pod)):
                journal.append((node, pod))
                world.place(PODS[pod].presence, [node])
                pods.append(Placed(NODES[node], PODS[pod].presence, leaving=False))


def check(pod: Signature, world: Peers, pods: Sequence[Placed]) -> None:
    assert accepted(refuse_ports(pod, world)) == [walk_ports(pod, pods, n) for n in NODES]
    assert accepted(refuse_by_affinity(pod, world)) == [walk_affinity(pod, pods, n) for n in NODES]
    assert accepted(refuse_uneven(pod, world)) == [walk_spread(pod, pods, n) for n in NODES]
    assert ranking.pod_affinity(pod, world).tolist() == [walk_wishes(pod, pods, n) for n in NODES]


def test_several_pods_are_placed_at_once() -> None:
    world = Peers(Columns(NODES), {})
    web = a_pod("web")
    term = near(a_term("web"))
    (wanted,) = a_pod("db", affinity=term).affinity
    tally = world.matching((wanted,), "zone")

    world.place(web.presence, [0, 1, 0, 4])
    world.place(web.presence, [0], -1)

    assert tally.at_nodes().tolist() == [2, 2, 0, 0, 0]


def test_pods_on_nodes_that_are_not_known_count_nowhere() -> None:
    web = a_pod("web")
    world = Peers(Columns(NODES), headcount([("gone", web), ("n3", web)]))
    (wanted,) = a_pod("db", affinity=near(a_term("web"))).affinity

    assert world.matching((wanted,), "zone").at_nodes().tolist() == [0, 0, 1, 0, 0]


def test_padding_is_summed_by_node() -> None:
    small = a_pod(containers=[{"name": "c"}])
    world = Peers(Columns(NODES), headcount([("n1", small), ("n1", small), ("n2", a_pod())]))

    world.place(small.presence, [2])

    assert world.padding(cpu=True).tolist() == [200, 0, 100, 0, 0]
    assert world.padding(cpu=False).tolist() == [400 * 2**20, 0, 200 * 2**20, 0, 0]
