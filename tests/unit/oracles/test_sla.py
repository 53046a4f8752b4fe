"""sla: whose time to wait is over."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pumice.core import names
from pumice.core.api.scheduling import PodGroup
from pumice.core.extension import Vote
from tests.builders import a_cluster, a_conf, a_group, a_plugin, a_queue, a_session, nodes

DAY = 1_767_225_600.0  # the moment at which groups created at 0 were made


def with_wait(group: PodGroup, text: str) -> PodGroup:
    group.metadata.annotations = {names.SLA_WAITING_TIME: text}
    return group


@dataclass(frozen=True)
class Case:
    """Whether the group without a time of its own goes before the one with one hour."""

    argument: object
    plain_first: bool


CASES = {
    "whose time is over first": Case("3m", True),
    "a number is no time": Case(1, False),
    "nor is nothing": Case(None, False),
    "nor a time of nothing": Case("0s", False),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_order(case: Case) -> None:
    arguments = {} if case.argument is None else {"sla-waiting-time": case.argument}
    cluster = a_cluster(a_group("z-plain"), with_wait(a_group("own"), "1h"))
    ssn = a_session(a_conf("enqueue", [a_plugin("sla", "enableJobOrder", **arguments)]), cluster)
    ordered = [job.name for job in sorted(ssn.active, key=ssn.job_key)]
    assert ordered == (["z-plain", "own"] if case.plain_first else ["own", "z-plain"])
    assert bool(ssn.findings.warnings) == (case.argument in (1, "0s"))


def test_a_group_that_has_waited_long_enough_is_let_in_whatever_tiers_below_say() -> None:
    group = with_wait(a_group("g", phase="Pending", resources="9", queue="q"), "1m")
    cluster = a_cluster(nodes(n="1"), a_queue("q", capability="1"), group)
    conf = a_conf("enqueue", ["sla"], ["proportion"])
    for waited, entered in ((59, False), (60, True)):
        ssn = a_session(conf, cluster, now=DAY + waited)
        assert ssn.is_enqueueable(ssn.active[0]) is entered


def test_but_not_what_the_same_tier_says() -> None:
    group = with_wait(a_group("g", phase="Pending", resources="9", queue="q"), "1m")
    cluster = a_cluster(nodes(n="1"), a_queue("q", capability="1"), group)
    ssn = a_session(a_conf("enqueue", ["sla", "proportion"]), cluster, now=DAY + 3600)
    assert not ssn.is_enqueueable(ssn.active[0])


def test_it_is_promised_room_as_well() -> None:
    cluster = a_cluster(with_wait(a_group("g", least=3), "1m"))
    ssn = a_session(a_conf("allocate", ["sla"]), cluster, now=DAY + 61)
    (pipelined,) = ssn.points.job_pipelined
    assert pipelined(ssn.active[0]) is Vote.PERMIT
