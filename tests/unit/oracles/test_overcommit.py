"""overcommit: what the cluster lets in, by factor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pytest

from tests.builders import Thing, a_conf, a_node, a_plan, a_plugin
from tests.unit.oracles.cases import a_job

SMALL, LARGE = a_node("n1", "2 4Gi"), a_node("n2", "4 16Gi")


@dataclass(frozen=True)
class Case:
    """A group that waits, by its minimum, beside others on nodes of 6 cpu and 20Gi together."""

    least: str | None
    admitted: bool
    factor: object = 1.2
    others: Sequence[Thing | Iterable[Thing]] = field(default_factory=tuple)


SAME = [a_job("other", least="2 2G")]
CASES = {
    "beside one of its size that is let in": Case("2 2G", True, others=SAME),
    "a factor below one counts as a fifth more": Case("2 2G", True, 0.8, SAME),
    "by a fifth more there is room for this much": Case("5200m 2G", True, 0.8, SAME),
    "and for no more": Case("5201m 2G", False, 0.8, SAME),
    "far beyond the cluster": Case("20 20G", False, others=SAME),
    "no minimum": Case(None, True, others=SAME),
    "a minimum of nothing": Case("", True, others=SAME),
    "only what it names is compared": Case("1", True, 1.0, [a_job("other", least="1 30G")]),
    "a factor that is text counts as none": Case("7200m", True, "2"),
    "the same for more": Case("7201m", False, "2"),
    "a whole number will do": Case("12", True, 2),
    "what runs is not there for others": Case(
        "4201m", False, others=[a_job("r", asks="3", on=["n2"], phase="Running")]
    ),
    "a running group that lacks a part of its minimum keeps it": Case(
        "3201m", False, others=[a_job("r", asks="3", gang=1, least="4", on=["n2"], phase="Running")]
    ),
    "one below its number of tasks does not": Case(
        "4200m",
        True,
        others=[a_job("r", 2, asks="3", gang=2, least="6", on=["n2"], phase="Running")],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_overcommit(case: Case) -> None:
    plugin = a_plugin("overcommit", "enableJobEnqueued", **{"overcommit-factor": case.factor})
    new = a_job("new", gang=1, least=case.least, phase="Pending")
    plan = a_plan(a_conf("enqueue", [plugin]), SMALL, LARGE, *case.others, new)
    assert [e.job for e in plan.enqueued] == (["ns/new"] if case.admitted else [])
