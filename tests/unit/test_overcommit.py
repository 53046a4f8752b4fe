"""overcommit: how much more than the cluster holds is let in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pytest

from tests.builders import Thing, a_conf, a_group, a_job, a_node, a_plan, a_plugin, a_pod


@dataclass(frozen=True)
class Case:
    factor: float | None
    minimum: str | None
    want: bool
    others: Sequence[Thing | Iterable[Thing]] = ()


CASES = {
    "within what is idle": Case(None, "2 2G", True),
    "up to a fifth more than there is": Case(None, "7200m", True),
    "not more than that": Case(None, "7201m", False),
    "by a factor": Case(2.0, "12", True),
    "a factor below one counts as the default": Case(0.8, "7", True),
    "a factor of one": Case(1.0, "6001m", False),
    "far more than there is": Case(None, "20 20G", False),
    "no minimum at all": Case(None, None, True),
    "what is used counts": Case(1.0, "3", False, [a_job("r", asks="4", on=["n2"])]),
    "those let in before count": Case(1.0, "3", False, [a_job("w", asks="4", resources="4")]),
    "they count whole, whether or not they run": Case(
        1.0, "2", False, [a_job("w", 2, asks="2", resources="4", on=["n2"])]
    ),
    "running ones count by what they lack": Case(
        1.0,
        "2",
        True,
        [a_job("r", 2, asks="2", gang=1, resources="4", on=["n2"], phase="Running")],
    ),
    "what gated tasks of theirs ask for does not": Case(
        1.0,
        "6",
        True,
        [a_group("w", resources="4"), a_pod("w-0", "4", job="w", gates=["example.com/g"])],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_overcommit(case: Case) -> None:
    arguments = {} if case.factor is None else {"overcommit-factor": case.factor}
    conf = a_conf("enqueue", [a_plugin("overcommit", **arguments)])
    plan = a_plan(
        conf,
        [a_node("n1", "2 4Gi"), a_node("n2", "4 16Gi")],
        *case.others,
        a_job("j", phase="Pending", resources=case.minimum),
    )
    assert [e.job for e in plan.enqueued] == (["ns/j"] if case.want else [])


def test_a_rejection_names_what_is_short() -> None:
    conf = a_conf("enqueue", ["overcommit"])
    plan = a_plan(conf, a_node("n", "10 10Gi"), a_job("j", phase="Pending", resources="13 13Gi"))
    (group,) = plan.groups
    assert group.event == (
        "Normal",
        "Unschedulable",
        "resource in cluster is overused: overused cpu, overused memory",
    )
    assert group.reason is not None
    assert group.reason.detail == (
        "13 cpu asked for, 10 in the cluster, 13Gi memory asked for, 10Gi in the cluster"
    )
    numbers = {name: group.reason.numbers[name] for name in ("minimum cpu", "limit cpu")}
    assert numbers == {"minimum cpu": 13000.0, "limit cpu": 12000.0}
