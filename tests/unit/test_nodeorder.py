"""The scores of nodeorder, figure by figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from pumice.core.model.columns import Columns
from pumice.core.model.nodes import NodeInfo
from pumice.core.model.signatures import Signature
from pumice.core.plugins.nodeorder import load, ranking
from pumice.core.resources import Floats
from tests.unit.worlds import a_node, a_pod, a_term, nodes, peers, spread, wishing

GIB = 1024**3
MIB = 1024**2


def column(*amounts: float) -> Floats:
    """Return cpu in thousandths, memory in GiB, pods, further rows as they are; one node."""
    return np.array([[a * GIB if row == 1 else a] for row, a in enumerate(amounts)], float)


@dataclass(frozen=True)
class Load:
    alloc: Floats
    used: Floats
    least: float
    most: float


LOADS = {
    "an even load": Load(column(4000, 8), column(1500, 3), 62, 37),
    "parts are rounded down before the mean is taken": Load(
        column(3000, 3), column(1000, 2), 49, 49
    ),
    "a full node": Load(column(4000, 8), column(4000, 8), 0, 100),
    "an over-committed resource counts as full": Load(column(4000, 8), column(5000, 4), 25, 75),
    "what a node does not offer is left out": Load(column(4000, 0), column(1000, 1), 75, 25),
    "a node that offers nothing": Load(column(0, 0), column(1000, 1), 0, 0),
}


@pytest.mark.parametrize("case", LOADS.values(), ids=LOADS.keys())
def test_least_and_most_allocated(case: Load) -> None:
    assert load.least_allocated(case.alloc, case.used).tolist() == [case.least]
    assert load.most_allocated(case.alloc, case.used).tolist() == [case.most]


@dataclass(frozen=True)
class Balance:
    alloc: Floats
    used: Floats
    """With the task."""
    req: Floats
    want: float


BALANCES = {
    "a task that evens out what was uneven": Balance(
        column(4000, 8), column(2000, 4), column(0, 2), 81
    ),
    "a task that changes nothing scores 75": Balance(
        column(4000, 8), column(2000, 4), column(1000, 2), 75
    ),
    "a task that makes an even load uneven": Balance(
        column(4000, 8), column(4000, 4), column(2000, 0), 62
    ),
    "one resource alone is always balanced": Balance(
        column(4000, 0), column(1000, 0), column(1000, 0), 75
    ),
    "shares end at 1": Balance(column(1000, 1), column(3000, 1), column(1000, 0), 75),
    "a device counts where it is asked for": Balance(
        column(4000, 8, 110, 4000),
        column(2000, 4, 1, 4000),
        column(2000, 4, 1, 4000),
        63,
    ),
    "a device does not count for tasks that don't ask for it": Balance(
        column(4000, 8, 110, 4000),
        column(2000, 4, 1, 4000),
        column(2000, 4, 1, 0),
        75,
    ),
    "a device that the node lacks is left out": Balance(
        column(4000, 8, 110, 0),
        column(2000, 4, 1, 0),
        column(2000, 4, 1, 1000),
        75,
    ),
}


@pytest.mark.parametrize("case", BALANCES.values(), ids=BALANCES.keys())
def test_balanced_allocation(case: Balance) -> None:
    rows = [row for row in (0, 1, 3) if row < len(case.alloc)]

    got = load.balanced(case.alloc, case.used, case.req[:, 0], rows)

    assert got.tolist() == [case.want]


def test_loads_are_scored_for_copies_at_once() -> None:
    alloc = np.concatenate([column(4000, 8), column(8000, 8)], axis=1)[:, :, None]
    req = column(500, 1)[:, 0]
    used = req[:, None, None] * np.array([1, 2, 3])

    together = load.least_allocated(alloc, np.broadcast_to(used, (2, 2, 3)))
    balance = load.balanced(alloc, np.broadcast_to(used, (2, 2, 3)), req, (0, 1))

    assert together.tolist() == [[87, 75, 62], [90, 81, 71]]
    assert balance.shape == (2, 3)
    for n in range(2):
        for t in range(3):
            one = load.balanced(alloc[:, n, :1], used[:, 0, t : t + 1], req, (0, 1))
            assert balance[n, t] == one[0]


RANKINGS = {
    "shares of the highest": (ranking.of_highest, [0, 1, 3], [0, 33, 100]),
    "nothing anywhere": (ranking.of_highest, [0, 0], [0, 0]),
    "reversed": (ranking.reversed_of_highest, [0, 1, 3], [100, 67, 0]),
    "reversed, nothing anywhere": (ranking.reversed_of_highest, [0, 0], [100, 100]),
    "between the extremes": (ranking.between_extremes, [-10, 0, 5], [0, 66, 100]),
    "all alike": (ranking.between_extremes, [7, 7], [0, 0]),
    "nobody": (ranking.between_extremes, [], []),
}


@pytest.mark.parametrize(("rank", "raw", "want"), RANKINGS.values(), ids=RANKINGS.keys())
def test_rankings(rank: Any, raw: list[int], want: list[int]) -> None:
    assert rank(np.array(raw, np.int64)).tolist() == want


def test_preferred_node_affinity_adds_up_weights() -> None:
    infos = nodes(n1="zone=a gen=1", n2="zone=a", n3="")
    terms = [
        {"weight": 5, "preference": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}},
        {"weight": 3, "preference": {"matchExpressions": [{"key": "gen", "operator": "Exists"}]}},
        {"weight": 9, "preference": {}},
    ]
    wishes = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}

    raw = ranking.preferred_by_pod(a_pod(affinity=wishes).selection, Columns(infos))

    assert raw.tolist() == [8, 5, 0]


def test_disliked_taints_are_counted() -> None:
    infos = nodes(n1="!a:PreferNoSchedule !b:PreferNoSchedule", n2="!a:PreferNoSchedule", n3="")
    tolerations = [{"key": "b", "operator": "Exists", "effect": "PreferNoSchedule"}]

    raw = Columns(infos).disliked(a_pod(tolerations=tolerations).selection.tolerations)

    assert raw.tolist() == [1, 1, 0]
    assert ranking.reversed_of_highest(raw).tolist() == [0, 0, 100]


WEB, DB = a_pod("web"), a_pod("db")
ZONES = nodes(n1="zone=a", n2="zone=a", n3="zone=b", n4="")
LIKES = wishing("podAffinity", 5, a_term("web"))
HATES = wishing("podAntiAffinity", 5, a_term("web"))


@dataclass(frozen=True)
class Wish:
    pod: Signature
    placed: Sequence[tuple[str, Signature]]
    want: list[int]


WISHES = {
    "no wishes anywhere": Wish(WEB, [("n1", DB)], [0, 0, 0, 0]),
    "the pod's own wish weighs for each pod it means": Wish(
        a_pod(affinity=LIKES), [("n1", WEB), ("n2", WEB), ("n3", WEB)], [10, 10, 5, 0]
    ),
    "the pod's own aversion": Wish(a_pod(affinity=HATES), [("n1", WEB)], [-5, -5, 0, 0]),
    "wishes of pods that are there": Wish(WEB, [("n3", a_pod("db", affinity=LIKES))], [0, 0, 5, 0]),
    "aversions of pods that are there": Wish(
        WEB, [("n3", a_pod("db", affinity=HATES))], [0, 0, -5, 0]
    ),
    "wishes that mean others": Wish(DB, [("n3", a_pod("db", affinity=LIKES))], [0, 0, 0, 0]),
    "both ways": Wish(
        a_pod("web", affinity=LIKES), [("n1", a_pod("web", affinity=LIKES))], [10, 10, 0, 0]
    ),
}


@pytest.mark.parametrize("case", WISHES.values(), ids=WISHES.keys())
def test_preferred_pod_affinity(case: Wish) -> None:
    assert ranking.pod_affinity(case.pod, peers(ZONES, *case.placed)).tolist() == case.want


@dataclass(frozen=True)
class Even:
    pod: Signature
    placed: Sequence[tuple[str, Signature]]
    want: list[float]
    candidates: Sequence[bool] = (True, True, True, True)
    nodes: list[NodeInfo] = field(default_factory=lambda: ZONES)


def soft(*constraints: dict[str, Any]) -> Signature:
    anyway = [{**c, "whenUnsatisfiable": "ScheduleAnyway"} for c in constraints]
    return a_pod("web", topologySpreadConstraints=anyway)


HOSTS = nodes(
    n1="zone=a kubernetes.io/hostname=n1",
    n2="zone=a kubernetes.io/hostname=n2",
    n3="zone=b kubernetes.io/hostname=n3",
)

EVEN = {
    "without pods all domains are alike, nodes without the label score nothing": Even(
        soft(spread("web")), [], [100, 100, 100, 0]
    ),
    "fuller domains score less": Even(
        soft(spread("web")), [("n1", WEB), ("n2", WEB), ("n3", WEB)], [33, 33, 100, 0]
    ),
    "an empty domain scores 100, the fullest 0": Even(
        soft(spread("web")), [("n1", WEB)], [0, 0, 100, 0]
    ),
    "only candidates are compared": Even(
        soft(spread("web")),
        [("n1", WEB), ("n2", WEB), ("n3", WEB)],
        [100, 100, 0, 0],
        (True, True, False, False),
    ),
    "nodes are domains by their host name": Even(
        soft(spread("web", "kubernetes.io/hostname")),
        [("n1", WEB), ("n1", WEB), ("n3", WEB)],
        # 2 ln 5, 0 and 1 ln 5 pods, rounded: 3, 0, 2
        [0, 100, 33, 0],
        nodes=[*HOSTS, a_node("n4")],
    ),
    "nobody is a candidate": Even(
        soft(spread("web")), [], [0, 0, 0, 0], (False, False, False, False)
    ),
}


@pytest.mark.parametrize("case", EVEN.values(), ids=EVEN.keys())
def test_soft_spreading(case: Even) -> None:
    world = peers(case.nodes, *case.placed)

    got = ranking.evenness(case.pod, world, np.array(case.candidates))

    assert got.tolist() == case.want


def test_image_locality() -> None:
    image = {"a:1": 500 * MIB, "b:latest": 2000 * MIB}
    infos = [
        a_node("n1", images=image),
        a_node("n2", images={"a:1": 500 * MIB}),
        a_node("n3"),
        a_node("n4"),
    ]
    pod = a_pod(containers=[{"image": "a:1"}, {"image": "b"}])

    got = ranking.images_present(pod, Columns(infos))

    # n1: 500 x 2/4 + 2000 x 1/4 = 750 MiB of at most 2000, both less 23
    assert got.tolist() == [36, 11, 0, 0]
    assert ranking.images_present(a_pod(), Columns(infos)).tolist() == [0, 0, 0, 0]
