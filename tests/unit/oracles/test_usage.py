"""usage: busy nodes are kept away from, and what was placed a moment ago counts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from pumice.core.conf import Arguments
from pumice.core.extension import Code
from pumice.core.model.inputs import Load
from pumice.core.plugins.usage import CPU_EXCEEDED, MEMORY_EXCEEDED, Estimator, composite
from pumice.core.session import Session
from tests.builders import Thing, a_cluster, a_conf, a_job, a_node, a_plugin, a_session
from tests.unit.oracles.views import refused, scores, task

NOW = 1_800_000_000.0
FIGURES = {"n1": (30, 50, 0), "n2": (60, 50, 0), "n3": (60, 80, 0), "n4": (10, 20, 360)}


def a_world(
    figures: Mapping[str, tuple[float, float, float]], *things: Thing, **arguments: object
) -> Session:
    cluster = a_cluster(
        [a_node(name, "8 16Gi") for name in (*figures, "unknown")], things, a_job("p", asks="1 2Gi")
    )
    for name, (cpu, memory, age) in figures.items():
        cluster.inputs.loads[name] = Load(cpu, memory, NOW - age)
    return a_session(a_conf("allocate", [a_plugin("usage", **arguments)]), cluster, now=NOW)


SCORES = {
    "cpu and memory alike": ({}, [300, 225, 150, 0, 0]),
    "memory before cpu": ({"cpu__weight": 2, "memory__weight": 8}, [270, 240, 120, 0, 0]),
    "with a weight of its own": ({"usage__weight": 1}, [60, 45, 30, 0, 0]),
}


@pytest.mark.parametrize(("arguments", "want"), SCORES.values(), ids=SCORES.keys())
def test_scores(arguments: dict[str, object], want: list[float]) -> None:
    assert list(scores(a_world(FIGURES, **arguments), "p-0").values()) == want


def test_nodes_above_a_threshold_take_nothing_unless_that_was_long_ago() -> None:
    figures = {"n1": (81, 60, 0), "n2": (60, 81, 0), "n3": (80, 79, 0), "n4": (90, 81, 360)}
    assert refused(a_world(figures, thresholds={"cpu": 80, "mem": 80}), "p-0") == {
        "n1": (Code.UNRESOLVABLE, CPU_EXCEEDED),
        "n2": (Code.UNRESOLVABLE, MEMORY_EXCEEDED),
    }


def test_a_pod_that_was_placed_a_moment_ago_counts_by_what_it_will_use() -> None:
    ssn = a_world({"n1": (50, 30, 0)}, *a_job("fresh", asks="1 2Gi"))
    statement = ssn.statement()
    statement.allocate([task(ssn, "fresh-0")], [0])
    assert scores(ssn, "p-0")["n1"] == 256.25
    statement.discard()
    assert scores(ssn, "p-0")["n1"] == 300.0


def test_one_that_was_bound_and_does_not_run_yet_as_well() -> None:
    group, pod = a_job("fresh", asks="1 2Gi", on=["n1"])
    pod.status.phase = "Pending"
    assert scores(a_world({"n1": (50, 30, 0)}, group, pod), "p-0")["n1"] == 256.25


def test_one_that_has_run_for_a_while_shows_in_the_figures() -> None:
    ssn = a_world({"n1": (50, 30, 0)}, *a_job("old", asks="1 2Gi", on=["n1"]))
    assert scores(ssn, "p-0")["n1"] == 300.0


def test_on_loaded_nodes_more_is_expected() -> None:
    ssn = a_world({"n1": (70, 70, 0)}, *a_job("fresh", asks="1 2Gi"))
    ssn.statement().allocate([task(ssn, "fresh-0")], [0])
    load = 0.7 + 0.7 * 1.2 / 8
    assert scores(ssn, "p-0")["n1"] == pytest.approx((1 - load) * 500)


ESTIMATES = [
    ((500, 2000, 1.0, 0.0, 1.0), 500),
    ((500, 2000, 0.5, 0.2, 1.0), 550),
    ((500, 600, 1.0, 0.0, 1.2), 600),
    ((500, 0, 1.0, 1.0, 1.2), 500),
]


@pytest.mark.parametrize(("row", "want"), ESTIMATES)
def test_estimates(row: tuple[float, float, float, float, float], want: float) -> None:
    request, limit, ratio, burst, risk = row
    estimator = Estimator(request_ratio=ratio, burst_ratio=burst)
    assert estimator.estimate(request, limit, np.array([risk])).tolist() == [want]


def test_the_load_of_a_node() -> None:
    rows = np.array([[50, 0, 8000], [50, 2000, 8000], [80, 5000, 8000], [50, 1000, 0]], float)
    assert composite(*rows.T).tolist() == [0.5, 0.75, 1.0, 0.0]


def test_settings_out_of_range_count_as_the_default() -> None:
    raw = {"request_ratio": 2, "risk_factor": 0.5, "be_cpu": 100, "be_mem": "1Gi", "burst_ratio": 1}
    got = Estimator.parse(Arguments(raw))
    assert got == Estimator(burst_ratio=1.0, nothing=(100.0, 1024.0**3))
