"""The nodeorder plugin in a session: figures, weights, and when tasks go in groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core.api.core import Node, Pod
from pumice.core.model.tasks import TaskClass
from pumice.core.plugins.nodeorder import NAME
from pumice.core.resources import pad
from pumice.core.session import Session
from tests.effort import examples
from tests.unit.sessions import a_node, a_pod, a_session, classes, pending
from tests.unit.worlds import a_term, spread, wishing

MIB = 2**20
WEIGHTS = (
    "leastrequested",
    "mostrequested",
    "balancedresource",
    "nodeaffinity",
    "podaffinity",
    "tainttoleration",
    "podtopologyspread",
    "imagelocality",
)


def only(**weights: int) -> dict[str, object]:
    """Return arguments that switch off every scorer but those given."""
    return {f"{name}.weight": weights.get(name, 0) for name in WEIGHTS}


def alone(ssn: Session, cls: TaskClass, copies: Sequence[int] = (1,)) -> list[list[float]]:
    """Return what nodes score by themselves for numbers of copies, node by node."""
    (order,) = ssn.points.node_order
    nodes = ssn.nodes
    held = nodes.used[:, :, None] + nodes.pipelined[:, :, None]
    used = held + pad(cls.req, nodes.rows)[:, None, None] * np.array(copies)
    scores: list[list[float]] = order.score(
        cls, np.arange(len(nodes)), nodes.alloc[:, :, None], used
    ).tolist()
    return scores


def ranked(ssn: Session, cls: TaskClass, at: Sequence[int]) -> list[float] | None:
    """Return the ranks of candidates; None where the class has none."""
    (order,) = ssn.points.batch_node_order
    if not order.applies(cls):
        return None
    ranks: list[float] = order.score(cls, np.array(at)).tolist()
    return ranks


BARE = {"containers": [{"name": "c"}]}
HALF = a_pod("p", cpu="500m", memory="1Gi")


@dataclass(frozen=True)
class Figure:
    """What a node of 4 cpu and 8Gi, on which a pod runs, scores for the pod `p`."""

    running: Pod
    pod: Pod
    weights: dict[str, object]
    want: float
    node: Node = field(default_factory=lambda: a_node("n", cpu="4", memory="8Gi"))


RUNS = a_pod("r", node="n", cpu="1", memory="2Gi")

FIGURES = {
    "least allocated": Figure(RUNS, HALF, only(leastrequested=1), 62),
    "most allocated": Figure(RUNS, HALF, only(mostrequested=1), 37),
    "weights multiply": Figure(RUNS, HALF, only(leastrequested=3), 186),
    "scores add up": Figure(RUNS, HALF, only(leastrequested=1, mostrequested=1), 99),
    "a pod that asks for nothing counts as 100m and 200Mi": Figure(
        RUNS,
        a_pod("p", spec=BARE),
        only(leastrequested=1),
        71,
        a_node("n", cpu="4", memory="8000Mi"),
    ),
    "so does one that is there": Figure(
        a_pod("r", node="n", spec=BARE),
        a_pod("p", cpu="900m", memory="1848Mi"),
        only(leastrequested=1),
        75,
        a_node("n", cpu="4", memory="8Gi"),
    ),
    "balance, before and after": Figure(
        a_pod("r", node="n", cpu="2", memory="2Gi"),
        a_pod("p", cpu="0", memory="2Gi"),
        only(balancedresource=1),
        81,
    ),
    "a pod that asks for nothing has no balance": Figure(
        RUNS, a_pod("p", cpu="0", memory="0"), only(balancedresource=1), 0
    ),
    "all by default": Figure(RUNS, HALF, {}, 62 + 75 + 3 * 100),
}


@pytest.mark.parametrize("case", FIGURES.values(), ids=FIGURES.keys())
def test_figures_of_one_node(case: Figure) -> None:
    ssn = a_session([case.node], [case.running, case.pod], {NAME: case.weights})

    assert alone(ssn, classes(ssn)["p"]) == [[case.want]]


def test_padding_follows_copies_and_placements() -> None:
    node = a_node("n", cpu="1", memory="2000Mi")
    ssn = a_session(
        [node], [a_pod("a", spec=BARE), a_pod("b", spec=BARE)], {NAME: only(leastrequested=1)}
    )
    cls = classes(ssn)["b"]
    assert alone(ssn, cls, (1, 2, 3)) == [[90, 80, 70]]

    stmt = ssn.statement()
    stmt.allocate([pending(ssn)["a"]], [0])
    assert alone(ssn, cls, (1, 2)) == [[80, 70]]

    stmt.discard()
    assert alone(ssn, cls) == [[90]]


def prefers(*terms: tuple[int, str]) -> dict[str, Any]:
    listed = [
        {
            "weight": weight,
            "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": [z]}]},
        }
        for weight, z in terms
    ]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": listed}}


def soft_taints(n: int) -> list[dict[str, str]]:
    return [{"key": f"k{i}", "effect": "PreferNoSchedule"} for i in range(n)]


ZONES = [a_node(f"n{i}", {"zone": zone}) for i, zone in enumerate("aabc")]
LIKES_WEB = {"affinity": wishing("podAffinity", 5, a_term("web"))}
WEB = {"app": "web"}
ANYWAY = [{**spread("web"), "whenUnsatisfiable": "ScheduleAnyway"}]


@dataclass(frozen=True)
class Ranked:
    """`p` among candidates: the ranks, or None where it is placed in groups."""

    pods: Sequence[Pod]
    want: list[float] | None
    nodes: Sequence[Node] = field(default_factory=lambda: ZONES)
    at: Sequence[int] = (0, 1, 2, 3)
    arguments: Mapping[str, object] = field(default_factory=dict)


RANKED = {
    "an ordinary pod": Ranked([a_pod("p")], None),
    "one preferred zone leaves groups possible": Ranked(
        [a_pod("p", spec={"affinity": prefers((1, "a"))})], None
    ),
    "several degrees of preference are compared": Ranked(
        [a_pod("p", spec={"affinity": prefers((2, "a"), (1, "b"))})], [200, 200, 100, 0]
    ),
    "with the candidates only": Ranked(
        [a_pod("p", spec={"affinity": prefers((2, "a"), (1, "b"))})], [200, 0], at=(2, 3)
    ),
    "unless they count for nothing": Ranked(
        [a_pod("p", spec={"affinity": prefers((2, "a"), (1, "b"))})],
        None,
        arguments={"nodeaffinity.weight": 0},
    ),
    "soft taints of several numbers are compared": Ranked(
        [a_pod("p")],
        [300, 150, 0],
        nodes=[a_node(f"n{i}", taints=soft_taints(i)) for i in range(3)],
        at=(0, 1, 2),
    ),
    "wishes of the pod": Ranked(
        [a_pod("r", WEB, node="n2"), a_pod("p", spec=LIKES_WEB)], [0, 0, 200, 0]
    ),
    "wishes of pods that are there": Ranked(
        [a_pod("r", node="n3", spec=LIKES_WEB), a_pod("p", WEB)], [0, 0, 0, 200]
    ),
    "wishes of pods that wait": Ranked([a_pod("q", spec=LIKES_WEB), a_pod("p", WEB)], [0, 0, 0, 0]),
    "wishes that mean others": Ranked(
        [a_pod("r", {"app": "db"}, node="n3", spec=LIKES_WEB), a_pod("p", {"app": "db"})], None
    ),
    "soft spreading": Ranked(
        [a_pod("r", WEB, node="n0"), a_pod("p", WEB, spec={"topologySpreadConstraints": ANYWAY})],
        [0, 0, 200, 200],
    ),
}


@pytest.mark.parametrize("case", RANKED.values(), ids=RANKED.keys())
def test_rankings(case: Ranked) -> None:
    ssn = a_session(case.nodes, case.pods, {NAME: case.arguments})

    assert ranked(ssn, classes(ssn)["p"], case.at) == case.want


def test_a_preferred_zone_is_a_fixed_score() -> None:
    spec = {"affinity": prefers((1, "a"))}
    ssn = a_session(ZONES, [a_pod("p", spec=spec)], {NAME: only(nodeaffinity=2)})

    assert alone(ssn, classes(ssn)["p"]) == [[200], [200], [0], [0]]


def test_images_are_a_fixed_score() -> None:
    nodes = [a_node("n0", images={"big:1": 1000 * MIB}), a_node("n1")]
    spec = {"containers": [{"name": "c", "image": "big:1"}]}
    ssn = a_session(nodes, [a_pod("p", spec=spec)], {NAME: only(imagelocality=1)})

    # 1000 MiB on one node of two counts as 500; (500 - 23) / (1000 - 23)
    assert alone(ssn, classes(ssn)["p"]) == [[48], [0]]


def test_wishes_follow_placements() -> None:
    pods = [a_pod("a", WEB), a_pod("b", spec=LIKES_WEB)]
    ssn = a_session(ZONES, pods, {NAME: {}})
    cls = classes(ssn)["b"]
    stmt = ssn.statement()

    stmt.allocate([pending(ssn)["a"]], [2])
    assert ranked(ssn, cls, (0, 1, 2, 3)) == [0, 0, 200, 0]

    stmt.discard()
    assert ranked(ssn, cls, (0, 1, 2, 3)) == [0, 0, 0, 0]


NODES = st.lists(
    st.tuples(st.integers(1, 6), st.integers(1, 12), st.integers(0, 1), st.sampled_from("ab")),
    min_size=1,
    max_size=5,
)
REQUESTS = st.tuples(st.sampled_from(["0", "500m", "1"]), st.sampled_from(["0", "512Mi", "2Gi"]))


@settings(max_examples=examples(60))
@given(NODES, REQUESTS, st.integers(1, 8), st.booleans())
def test_groups_equal_one_task_after_the_other(
    drawn: list[tuple[int, int, int, str]], request: tuple[str, str], m: int, bare: bool
) -> None:
    nodes = [
        a_node(f"n{i}", {"zone": zone}, cpu=f"{cpu}", memory=f"{memory}Gi", taints=soft_taints(t))
        for i, (cpu, memory, t, zone) in enumerate(drawn)
    ]
    spec: dict[str, Any] = {"affinity": prefers((1, "a"))} | (BARE if bare else {})
    pods = [a_pod(f"p{i}", cpu=request[0], memory=request[1], spec=spec) for i in range(m)]

    together = a_session(nodes, pods, {"predicates": {}, NAME: {}})
    view = together.views.of(classes(together)["p0"], None)
    assert view.groups()
    got = list(view.picks(m))

    apart = a_session(nodes, pods, {"predicates": {}, NAME: {}})
    cls, tasks = classes(apart)["p0"], list(pending(apart).values())
    want: list[int] = []
    for task in tasks:
        scores = [one[0] for one in alone(apart, cls)]
        free = apart.nodes.idle - pad(cls.req, apart.nodes.rows)[:, None] >= 0
        open_nodes = [i for i in range(len(nodes)) if free[:, i].all()]
        if not open_nodes:
            break
        want.append(max(open_nodes, key=lambda i: (scores[i], -i)))
        apart.statement().allocate([task], want[-1:])

    assert got == want
